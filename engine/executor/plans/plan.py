"""A graph made ready for one combination of arguments.

In: what `making` fills in.  Out: an `ExecutionPlan`: the optimized graph, its code for the interpreter, and, where that
can be, a Python function that does the same faster; and the error for what such a function raises.

Note [Errors of generated code]
A generated function raises whatever Python or the operator raised.  `failure` makes the error of it that the
interpreter would have raised: Python's traceback tells the lines, lines tell nodes, nodes their places in the program.
Where an expression stood for an operator, the operator runs again on the same inputs, to raise its own error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from numpy import ndarray

from engine.aten.dispatch.wrapping import fresh
from engine.executor.bytecode.code import Code
from engine.executor.bytecode.operations import operation_of
from engine.executor.bytecode.traceback import CallSite, execution_error
from engine.executor.plans.history import PlanHistory
from engine.executor.plans.plan_cache import PlanCounts
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.lang.deferred import deferred
from engine.lang.errors import ExecutionError
from engine.lang.records import dataclass

if TYPE_CHECKING:
    from engine.executor.codegen import source as sources
    from engine.executor.codegen.source import GeneratedSource
    from engine.executor.concurrency.futures import Future
    from engine.executor.plans.differentiation import PlanDifferentiation
    from engine.executor.plans.fusion import PlanFusion
    from engine.executor.plans.scalar_plans import ScalarPlan
    from engine.executor.plans.spec import ArgumentSpec
    from engine.executor.profiling import bailouts
    from engine.executor.profiling.bailouts import BailoutSite
    from engine.executor.profiling.guards import GuardNote
    from engine.executor.profiling.record import ProfilingRecord
    from engine.ir.graph import Graph, Node, Value
    from engine.ir.unit import Function
else:
    sources, bailouts = deferred("engine.executor.codegen.source"), deferred("engine.executor.profiling.bailouts")

PLAN: Final = "PLAN"
"""The name under which a generated function's globals hold its plan and its source."""


GRADIENTS_RECORDED: Final = "gradients may be recorded"
"""The reason why a plan has no kernels that it would have where none are."""


@dataclass(eq=False, slots=True, weakref_slot=True)
class ExecutionPlan:
    """`entry` is the generated function, None where the interpreter has to run the plan, which `reason` explains."""

    name: str
    spec: ArgumentSpec
    graph: Graph
    entry: Any = None
    generated: GeneratedSource | None = None
    reason: str = ""
    fusion: PlanFusion | None = None
    """Its groups on their way to kernels; None where nothing is fused, for the reason in `why_unfused`."""
    why_unfused: str = ""
    differentiation: PlanDifferentiation | None = None
    """Its groups whose gradients are compiled; None where nothing is recorded."""
    scalar: ScalarPlan | None = None
    """The plan on its way to one kernel of numbers; None where it is none."""
    history: PlanHistory = field(default_factory=PlanHistory)
    record: ProfilingRecord | None = None
    """The profile that the plan was made from, or that it makes; None without profiling."""
    guards: tuple[GuardNote, ...] = ()
    """The fate of each guard that the profile asked for."""
    bailouts: tuple[BailoutSite, ...] = ()
    hits: int = 0
    """Calls that looked for a plan and found this one, as far as they are counted (see `GraphExecutor.settle`)."""
    is_dropped: bool = False
    """True for a plan that calls find no more."""
    occasion: str = ""
    """The difference between the call that the plan was made for and the one before: `a: Float(*) → Double(*)`."""
    gradients: int = 0
    """Of the graph of a backward pass: the number of its first inputs, which are gradients."""
    optimized: ExecutionPlan | None = None
    """Of a run that is profiled: the plan of the function that ran before, if there is one; of what runs in place of a
    plan: that plan, once it is there."""
    stands_in: bool = False
    """True of what runs in place of a plan."""
    spent: int = 0
    """Nanoseconds that calls took which the interpreter ran, in place of the plan or as it has no generated code."""
    have_made: Callable[[], object] | None = None
    """Of what runs in place of a plan: has that made, unless it is there."""
    doubts: list[Callable[[], object]] = field(default_factory=list)
    """Of what came from disk and is to be compared with the interpreter first: removes that (see `verifying.py`)."""
    _code: Code | None = None
    itself: ref[ExecutionPlan] = field(init=False, repr=False)
    """For those who must not keep it."""

    def __post_init__(self) -> None:
        self.itself = ref(self)

    def request_bailout(self, index: int) -> None:
        """Have a guard fail when it is checked next; that is by the generated function, so calls go there first."""
        if self.fusion is not None:
            self.fusion.offer(None)
        self.bailouts[index].request()

    def enter_again(self) -> None:
        """Let calls go straight to kernels again, once the guard has failed that was asked to."""
        if self.fusion is not None:
            self.fusion.offer_kernels()

    def catch_up(self) -> None:
        """Install what the compile mode asks for, which calls do otherwise once the mode has changed."""
        for part in (self.fusion, self.differentiation):
            if part is not None:
                part.catch_up()

    def form_groups(self) -> None:
        """Form the groups that calls run, which in mode "eager" is what the first call begins with."""
        for part in (self.fusion, self.differentiation):
            if part is not None:
                part.form()

    @property
    def source(self) -> str:
        """The generated text; empty where the interpreter runs the plan."""
        return self.generated.text if self.generated else ""

    @property
    def counts(self) -> PlanCounts:
        """The hits, misses and failures so far, without those of forward and backward graphs, which have own plans."""
        misses = sum(group.fallbacks for group in self.fusion.groups) if self.fusion is not None else 0
        return PlanCounts(1, self.hits, misses, sum(site.count for site in self.bailouts))

    @property
    def calls(self) -> bool:
        """True if the generated function calls others; it then takes the depth of calls as its last argument."""
        return self.generated is not None and self.generated.calls

    @property
    def waits(self) -> bool:
        """True if the generated function may block its thread while it waits for a future."""
        return self.generated is not None and self.generated.waits

    @property
    def code(self) -> Code:
        """The instructions for the interpreter, made when first asked for, and when operators have begun anew."""
        if self._code is None or not self._code.is_current:
            self._code = Code(self.graph, self.name)
        return self._code

    def __repr__(self) -> str:
        return f"<ExecutionPlan of {self.name}{self.spec}>"


class _Recent:
    """A cell for the plan that ran last, in any thread, or for the function that ran its kernels directly; it holds
    neither, but a weak reference."""

    __slots__ = ("ran",)

    def __init__(self) -> None:
        self.ran: Callable[[], ExecutionPlan | Function | None] = lambda: None


RECENT: Final = _Recent()


@dataclass(slots=True)
class Runtime:
    """Slots for the functions that generated code calls by these names; the interpreter, a layer above, takes them."""

    call: Callable[[Function, Sequence[Any], int], Any] | None = None
    """Runs a TorchScript function on its arguments, at this depth of calls."""
    fork: Callable[[Function, Sequence[Any]], Future] | None = None
    """Starts a TorchScript function on its arguments."""
    leave: Callable[[list[Any]], None] | None = None
    """Calls `__exit__` of contexts that an error leaves, innermost first."""
    resume: Callable[[BailoutSite, Sequence[Any], int], Any] | None = None
    """Runs the rest of a program behind a guard that fails, on the values that are alive, at this depth of calls."""

    def functions(self) -> dict[str, Any]:
        return {"call": self.call, "fork": self.fork, "leave": self.leave, "resume": self.resume}


RUNTIME: Final = Runtime()


# -- errors


def failure(error: Exception) -> ExecutionError:
    """The program's error for what a generated function raised.  See Note [Errors of generated code]."""
    frames = list(generated_frames(error.__traceback__))
    if frames:
        _, source, node, variables = frames[-1]
        if node is not None and node not in source.genuine:
            error = _own_error(source, node, variables) or error
    found = execution_error(error, [CallSite(plan.name, node) for plan, _, node, _ in frames])
    found.__cause__ = None if isinstance(error, ExecutionError) else error
    return found


def generated_frames(
    trace: TracebackType | None,
) -> Iterator[tuple[ExecutionPlan, GeneratedSource, Node | None, Mapping[str, Any]]]:
    """The generated functions in a traceback, outermost first: plan, source, current node and variables of each; less
    those in whose place the rest of the program ran, behind a guard that failed."""
    while trace is not None:
        frame = trace.tb_frame
        if PLAN in frame.f_globals and frame.f_code.co_name == sources.FUNCTION:
            plan, source = frame.f_globals[PLAN]
            node = source.nodes[trace.tb_lineno - 1]
            if node is None or node.kind != bailouts.BAIL_OUT:
                yield plan, source, node, frame.f_locals
        trace = trace.tb_next


def _own_error(source: GeneratedSource, node: Node, variables: Mapping[str, Any]) -> Exception | None:
    """The error that the node's operator raises."""
    try:
        operation_of(node)(*(_found(source, value, variables) for value in node.inputs))
    except Exception as error:
        return error
    return None


def _found(source: GeneratedSource, value: Value, variables: Mapping[str, Any]) -> Any:
    """A value's content while the function runs; expressions that were moved are computed."""
    constant = constant_value(value)
    if constant is not NOT_CONSTANT:
        return constant
    name = source.variables.get(value)
    if name is None:
        return operation_of(value.node)(*(_found(source, each, variables) for each in value.node.inputs))
    found = variables[name]
    if type(found) is list:
        return [fresh(each) if type(each) is ndarray else each for each in found]
    return fresh(found) if name.startswith("a") else found
