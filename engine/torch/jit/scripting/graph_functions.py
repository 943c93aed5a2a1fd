"""Functions made from graphs, lazily computed values, and smaller parts of `torch.jit`.

In: graphs, Python functions.  Out: callables, results, counts of calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final, TypeVar

from engine.aten.values.awaits import Await
from engine.executor.bytecode.code import Code
from engine.executor.conversion.from_python import from_python
from engine.executor.conversion.to_python import to_python
from engine.executor.interpreter.interpreter import InterpreterState
from engine.executor.plans.plan_events import PlanLookup, ValuesProfiled
from engine.executor.plans.switches import listening
from engine.frontend.tracing.values import schema_of
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.unit import CompilationUnit, Function
from engine.lang.errors import ArgumentError
from engine.torch.compiled.facade import unwrap
from engine.torch.compiled.objects import ScriptFunction

T = TypeVar("T")


def defined(unit: CompilationUnit, qualname: str, graph: Graph) -> Function:
    """Add the graph to the unit as a function."""
    function = unit.add_function(Function(qualname))
    function.define(schema_of(function.name, graph), graph)
    return function


def function_from_graph(name: str, graph: Any, unit: CompilationUnit | None = None) -> ScriptFunction:
    """A function of that name with a copy of the graph as its body, in the unit or in one of its own."""
    return ScriptFunction(defined(unit or CompilationUnit(), name, copy_graph(unwrap(graph))))


def interpret_graph(graph: Any, inputs: tuple[Any, ...]) -> Any:
    """The graph's result for the inputs, interpreted without optimization.  Raises ArgumentError, ExecutionError."""
    body = unwrap(graph)
    if len(inputs) != len(body.inputs):
        raise ArgumentError(f"the graph takes {len(body.inputs)} inputs, not {len(inputs)}")
    given = [from_python(value.type)(each) for value, each in zip(body.inputs, inputs, strict=True)]
    result = InterpreterState(Code(body, "graph")).run(*given)
    convert = to_python(body.outputs[0].type) if len(body.outputs) == 1 else None
    return convert(result) if convert else result


def awaitable(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Await:
    """A call that is made when its result is first needed."""
    return Await(lambda: func(*args, **kwargs), args, func)


def awaitable_wait(aw: Await) -> Any:
    """The result; the call is made unless it was made before."""
    return aw.wait()


def awaitable_nowait(o: Any) -> Await:
    """An `Await` with a given result."""
    return Await.of(o)


def unwrap_optional(x: T | None) -> T:
    """The value.  Raises AssertionError for None."""
    assert x is not None, "Unwrapping null optional"
    return x


class IgnoreContextManager:
    """`with torch.jit._IgnoreContextManager(a="inp:int"):`: the block is left to Python."""

    def __init__(self, **kwargs: Any) -> None:
        self.declared: Final = kwargs

    def __enter__(self) -> None: ...

    def __exit__(self, *exception: object) -> None: ...


class ScriptProfile:
    """Counts the runs of each function from Python or generated code, between `enable()` and `disable()`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._listening: ExitStack | None = None

    def enable(self) -> None:
        """Start counting."""
        if self._listening is None:
            self._listening = ExitStack()
            self._listening.enter_context(listening(self._note))

    def disable(self) -> None:
        """Stop counting; the counts remain."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None

    def dump_string(self) -> str:
        """The counts as a table, the highest first; "" where nothing ran."""
        if not self.counts:
            return ""
        rows = [f"{count:>10}  {name}" for name, count in self.counts.most_common()]
        return "\n".join([f"{'runs':>10}  function", *rows]) + "\n"

    def dump(self) -> None:
        """Print the table."""
        print(self.dump_string(), end="")

    def _note(self, event: Any) -> None:
        if isinstance(event, (PlanLookup, ValuesProfiled)):
            self.counts[event.function] += 1
