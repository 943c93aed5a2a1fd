"""`engine.bisect`: the search for the rewrite of a pass that changes a program's result.

In: a compiled function and arguments; the expected result (by default the unoptimized interpreter's); passes.
Out: None, or a `Culprit`: the first pass after which the result differs, and the first rewrite inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.executor.calls.call import call_function
from engine.executor.plans.switches import optimized_execution
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.rewrites import Rewrite, watching
from engine.ir.unit import Function
from engine.ir.verify import verify
from engine.lang.errors import EngineError
from engine.lang.records import dataclass
from engine.passes.pipeline import OPTIMIZE, run_pass
from engine.torch.compiled.objects import ScriptObject, copied
from engine.torch.testing.comparison import assert_close

MAX_TRIED_IN_ORDER: Final = 200
"""The number of rewrites up to which every prefix is tried; beyond, bisection finds a rewrite that changes the result,
though not necessarily the first one."""
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Failed:
    """The error of a run, in place of a result; equal to others of the same kind and message."""

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass(frozen=True, slots=True)
class Culprit:
    """The rewrite that changes a result.

    `index` is the pass's position in the pipeline; it is -1 if the result is wrong before any pass.  `rewrite` counts
    the pass's rewrites from 1; it is 0 if the pass changes the result without announcing a rewrite.  `node` is the
    rewritten node as text, and `change` its replacement; `before` and `after` are the graphs.
    """

    pass_name: str
    index: int
    rewrite: int
    node: str
    change: str
    before: Graph
    after: Graph
    expected: Any
    result: Any

    def __str__(self) -> str:
        if self.index < 0:
            return f"before any pass the result is {self.result}, not {self.expected}:\n{self.before}"
        what = f"rewrite {self.rewrite} of " if self.rewrite else ""
        lines = [f"{what}pass {self.index + 1}, {self.pass_name}, makes {self.result} of {self.expected}"]
        lines += [self.change] if self.change else []
        return "\n".join([*lines, "before:", str(self.before).rstrip(), "after:", str(self.after).rstrip()])


def bisect(
    function: Any, args: Sequence[Any] = (), expected: Any = _MISSING, pipeline: Iterable[str] | str = OPTIMIZE
) -> Culprit | None:
    """The first rewrite of the pipeline after which the result is not the expected one; None without one.

    `function` is a ScriptFunction, a method or a module; errors count as results.
    """
    names = pipeline.replace(",", " ").split() if isinstance(pipeline, str) else tuple(pipeline)
    program = _Program.of(function, args)
    graph = copy_graph(program.function.graph)
    first = program.run(graph)
    if expected is _MISSING:
        expected = first
    elif not _same(first, expected):
        return Culprit("", -1, 0, "", "", graph, graph, expected, first)
    for index, name in enumerate(names):
        before = copy_graph(graph)
        count = _run_limited(name, graph, None)[0]
        if not _same(program.run(graph), expected):
            return _culprit(program, name, index, count, before, expected)
    return None


@dataclass(frozen=True, slots=True)
class _Program:
    """A function with the arguments of its test runs."""

    function: Function
    args: tuple[Any, ...]

    @staticmethod
    def of(function: Any, args: Sequence[Any]) -> _Program:
        callee = function if hasattr(function, "_function") else getattr(function, "forward", function)
        owner = (callee.owner,) if hasattr(callee, "owner") else ()
        return _Program(getattr(callee, "_function", callee), (*owner, *args))

    def run(self, graph: Graph) -> Any:
        """The result of interpreting the graph, unoptimized, on a copy of the arguments."""
        made = Function(self.function.qualname)
        try:
            verify(graph)
            made.define(self.function.schema, copy_graph(graph))
            with optimized_execution(False):
                return call_function(made, copied(self.args, {}), {})
        except AssertionError as error:
            return Failed("broken graph", str(error))
        except EngineError as error:
            return Failed(type(error).__name__, error.message)


class _Limit:
    """Allows a number of rewrites (all with None), and records the last."""

    __slots__ = ("count", "last", "limit")

    def __init__(self, limit: int | None) -> None:
        self.limit, self.count = limit, 0
        self.last = ("", "")

    def __call__(self, rewrite: Rewrite) -> bool:
        if self.limit is not None and self.count >= self.limit:
            return False
        self.count += 1
        if self.count == self.limit:
            self.last = (str(rewrite.node), rewrite.text)
        return True


def _run_limited(name: str, graph: Graph, limit: int | None) -> tuple[int, str, str]:
    """Run the pass with a limited number of rewrites: their count, the last rewritten node, and its replacement."""
    watch = _Limit(limit)
    with watching(watch):
        run_pass(name, graph)
    return watch.count, *watch.last


def _culprit(program: _Program, name: str, index: int, count: int, before: Graph, expected: Any) -> Culprit:
    def attempt(limit: int) -> tuple[Graph, Any, str, str]:
        graph = copy_graph(before)
        _, node, change = _run_limited(name, graph, limit)
        return graph, program.run(graph), node, change

    number = _first_wrong(count, lambda limit: not _same(attempt(limit)[1], expected))
    start = attempt(number - 1)[0] if number > 0 else before
    after, result, node, change = attempt(number)
    return Culprit(name, index, number, node, change, start, after, expected, result)


def _first_wrong(count: int, is_wrong: Callable[[int], bool]) -> int:
    """The least number of rewrites with which the result is wrong; with all `count` it is wrong."""
    if count <= MAX_TRIED_IN_ORDER:
        return next((limit for limit in range(count) if is_wrong(limit)), count)
    if is_wrong(0):
        return 0
    right, wrong = 0, count
    while wrong - right > 1:
        middle = (right + wrong) // 2
        right, wrong = (right, middle) if is_wrong(middle) else (middle, wrong)
    return wrong


def _same(result: Any, expected: Any) -> bool:
    """True if both are equal up to rounding, with the same types and dtypes; nan equals nan."""
    if isinstance(result, Tensor) and isinstance(expected, Tensor):
        return _close(result, expected)
    if type(result) is not type(expected):
        return False
    if isinstance(result, (list, tuple)):
        return len(result) == len(expected) and all(map(_same, result, expected))
    if isinstance(result, dict):
        return list(result) == list(expected) and all(map(_same, result.values(), expected.values()))
    if isinstance(result, (float, complex)):
        return _close(result, expected)
    if isinstance(result, ScriptObject):
        return _same(result._ivalue.slots, expected._ivalue.slots)
    if isinstance(result, Object):
        return _same(result.slots, expected.slots)
    return bool(result == expected)


def _close(result: Any, expected: Any) -> bool:
    try:
        assert_close(result, expected, equal_nan=True)
    except AssertionError:
        return False
    return True
