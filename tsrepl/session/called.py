"""The functions that a command is about: one by its name, with what its calls left, or those that an expression calls.

In: the argument of a command, `f` or `f(x) + g(y)`.  Out: a `Called`: the functions, and the call, if there is one.
Where an expression calls nothing, it is the function itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from engine.executor.interpreter.planning import plan_call
from engine.executor.plans.executor import executor_of
from engine.executor.plans.explanation import PlanExplanation
from engine.executor.plans.plan import GRADIENTS_RECORDED
from engine.frontend.compilation.entries import ENTRY
from engine.fuser.backend import tiering
from engine.ir.match import callees_in
from engine.ir.unit import Function
from engine.lang.records import dataclass
from engine.lang.types import ClassType
from tsrepl.session.failures import UsageError
from tsrepl.session.modules import short_name
from tsrepl.session.replies import Reply, TextReply
from tsrepl.session.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Called:
    """`text` is the argument of the command; `call` runs it once, and is None for the name of a function; `plan` makes
    the plans of such a run, and leaves out the call at its end; `option` stands before calls that are suggested."""

    text: str
    functions: tuple[Function, ...]
    call: Callable[[], Any] | None
    known: frozenset[str] = frozenset()
    """The functions that the session has by name."""
    plan: Callable[[], None] | None = None
    option: str = ""

    def name(self, function: Function) -> str:
        """`f`, `Net.forward`, or the expression itself."""
        if function.name.startswith(ENTRY):
            return self.text
        owner = function.schema.arguments[0].type if function.is_method else None
        return f"{short_name(owner)}.{function.name}" if isinstance(owner, ClassType) else function.name


def called(workspace: Workspace, argument: str) -> Called:
    """The functions that the argument is about.  Raises UsageError, CompileError."""
    found, known = workspace.named(argument), frozenset(workspace.functions())
    if found is not None:
        return Called(argument, (found,), None, known, option=workspace.option)
    entry, arguments = workspace.compile_expression(argument)
    if not any(node.kind != "prim::Constant" for node in entry.graph.all_nodes()):
        raise UsageError(f"'{argument}' runs nothing", hints=("name a function, or write a call of one: f(x)",))
    callees = tuple(callees_in(entry.graph))
    entry.inlines = not callees
    run, plan = (partial(each, entry, arguments) for each in (workspace.run, plan_call))
    return Called(argument, callees or (entry,), run, known, plan, workspace.option)


def no_grad_hint(command: str, target: Called, plans: Iterable[PlanExplanation]) -> Iterator[Reply]:
    """A hint where plans have no kernels because gradients may be recorded."""
    whys = (why for plan in plans for why in (plan.why, *(each.why for each in plan.unfused)))
    if GRADIENTS_RECORDED in whys:
        call = example_call(target)
        yield TextReply(f"%{command} --no-grad {call} shows the kernels that run where none are recorded")


def has_run(function: Function) -> bool:
    """True if there are plans or profiles of the function."""
    executor = executor_of(function)
    return bool(executor.plans or executor.records)


def check_has_run(command: str, target: Called) -> None:
    """Raises UsageError where nothing of the functions has run, which says what to type."""
    if not any(map(has_run, target.functions)):
        raise UsageError(
            f"{target.text} has not run yet", hints=(f"write %{command} {example_call(target)} to run it",)
        )


def example_call(target: Called) -> str:
    """The text of a call of the target's function, to be typed."""
    if target.call is not None:
        return f"{target.option}{target.text}"
    (function,) = target.functions
    given = function.schema.arguments[function.is_method :]
    return f"{target.option}{target.text}({', '.join(argument.name for argument in given if not argument.has_default)})"


@contextmanager
def compiled_at_once() -> Iterator[None]:
    """While the block runs, kernels are made before they are needed, unless nothing is to be compiled."""
    before = tiering.mode()
    tiering.set_mode("eager" if before == "background" else before)
    try:
        yield
    finally:
        tiering.set_mode(before)
