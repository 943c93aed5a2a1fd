"""First calls that run before there is a plan for them.

In: the graph of a function and the inputs of a call.  Out: True if the interpreter, whose operators are native, runs
the call in less time than a plan takes to make.  That is so unless a loop may take many rounds: how many is read off
the inputs, where a count comes from sizes, lengths or numbers among them.  What is called is asked about when it is
called (`InterpreterState`), so that nothing is compiled for an answer that no run needs; only what a loop calls is
part of its work.  A program that is loaded, called once and left never pays for a plan; one that goes on has it made
once the interpreter has run for a while (`GraphExecutor`).  What is known to run once, as an entry at a prompt, leaves
what it calls to the plans of that, unless the process ends with it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, prod
from typing import Any, Final

from engine.aten.values.tensor import Tensor
from engine.executor.plans.switches import is_leaving
from engine.fuser.backend import tiering
from engine.ir.constants import constant_value
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.match import callee_of
from engine.ir.unit import Function

MOST: Final = 20_000
"""Nodes that are run in about the time that a plan takes to make."""
FEW: Final = 64
"""The length that is expected of what is no input."""
UNCOMPILED: Final = 20
"""Nodes that take as long to make a plan of as it takes to compile a function that is not called much."""
DEEPEST: Final = 32
"""Steps of arithmetic after which nothing is expected of a number any more."""


def runs_before_plan(graph: Graph, inputs: Sequence[Any], *, once: bool = False) -> bool:
    """True if the first call, with these inputs, is the interpreter's; `once` if it is the only one, too."""
    if tiering.mode() != "background":
        return False
    if once and not is_leaving() and any(map(callee_of, graph.all_nodes())):
        return False
    return _Rounds(graph, inputs).work_outside_calls(graph) <= MOST


def size_of(function: Function, most: int) -> float:
    """The number of nodes of the function and of those that it calls, infinite where they are more than `most`; one
    that was never compiled counts for `UNCOMPILED`."""
    waiting, known, nodes = [function], {function}, 0
    while waiting:
        each = waiting.pop()
        own = [*each.graph.all_nodes()] if each.is_defined else []
        nodes += len(own) if each.is_defined else UNCOMPILED
        if nodes > most:
            return inf
        new = {callee for node in own if (callee := callee_of(node)) is not None} - known
        known |= new
        waiting += new
    return nodes


class _Rounds:
    """The most rounds that loops of a call may take, as far as its inputs tell.

    An estimate: intervals that are proved of numbers, whatever the inputs, are `codegen.ranges`.
    """

    def __init__(self, graph: Graph, inputs: Sequence[Any]) -> None:
        self._numbers: dict[Value, float] = {
            value: abs(float(given)) for value, given in zip(graph.inputs, inputs, strict=True) if type(given) is int
        }
        self._longest = float(max(FEW, *map(_length, inputs), 0))
        self._known: dict[Function, float] = {}

    def work_outside_calls(self, block: Block | Graph) -> float:
        """The number of nodes that run, but for calls that no loop makes; infinite where nothing tells."""
        return sum(
            self._work_of_loop(node)
            if node.kind == "prim::Loop"
            else 1 + sum(map(self.work_outside_calls, node.blocks))
            for node in block.nodes()
        )

    def _work_of_loop(self, loop: Node) -> float:
        return self._most(loop.inputs[0]) * (1 + self._work(loop.blocks[0]))

    def _work(self, block: Block | Graph) -> float:
        """The number of nodes that run, calls included."""
        return sum(map(self._work_of, block.nodes()))

    def _work_of(self, node: Node) -> float:
        if node.kind == "prim::Loop":
            return self._work_of_loop(node)
        callee = callee_of(node)
        return 1 + sum(map(self._work, node.blocks)) + (self._work_of_call(callee) if callee is not None else 0)

    def _work_of_call(self, callee: Function) -> float:
        if callee not in self._known:
            self._known[callee] = inf  # for a function that calls itself
            self._known[callee] = 0 if callee.body is None else self._work(callee.body)
        return self._known[callee]

    def _most(self, number: Value, depth: int = 0) -> float:
        """The greatest value that an integer is expected to have, `depth` steps of arithmetic before a count."""
        if number not in self._numbers:
            self._numbers[number] = self._most_of(number, depth)
        return self._numbers[number]

    def _most_of(self, number: Value, depth: int) -> float:
        constant, node = constant_value(number), number.node
        if type(constant) is int:
            return abs(float(constant))
        if node.kind in _LENGTHS:
            return self._longest
        combined = _COMBINED.get(node.kind)
        if combined is None or depth == DEEPEST:
            return inf
        return combined(self._most(value, depth + 1) for value in node.inputs)


_LENGTHS: Final = frozenset({"aten::len", "aten::size", "aten::dim"})
_COMBINED: Final[Mapping[str, Callable[[Iterator[float]], float]]] = {
    "aten::add": sum, "aten::sub": sum, "aten::mul": prod, "aten::floordiv": max, "aten::__range_length": max,
    "prim::min": min, "prim::max": max, "prim::ListConstruct": max, "aten::__getitem__": next,
}  # fmt: skip


def _length(value: Any) -> int:
    """The greatest size of a tensor, the length of a collection; 0 of anything else."""
    if isinstance(value, Tensor):
        return max(value.array.shape, default=0)
    return len(value) if isinstance(value, (list, tuple, dict, str)) else 0
