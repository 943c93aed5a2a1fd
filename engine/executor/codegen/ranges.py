"""Integer range analysis of a graph, so that generated code leaves out checks that never fail.

In: a graph.  Out: `Ranges`: for each int an interval of 64-bit numbers.  Bounds come from constants, from what
operators give, and from the conditions under which loops go on; what a loop carries is widened to the end of the
numbers in the direction in which it grows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from engine.ir.constants import constant_value
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.ops import op_of
from engine.lang.types import INT

Interval = tuple[int, int]
LOW: Final = -(2**63)
HIGH: Final = 2**63 - 1
ALL: Final[Interval] = (LOW, HIGH)
_MOST_ELEMENTS: Final = 2**48
_MAX_NESTING: Final = 3
"""Loops nested deeper are not analysed: each level multiplies the work."""
_MAX_ROUNDS: Final = 8
"""Each round lets at least one bound go to the end of the numbers."""


class Ranges:
    """The intervals of one graph's ints."""

    def __init__(self, graph: Graph) -> None:
        self._known: dict[Value, Interval] = {}
        self._analyze(graph.block, 0)

    def of(self, value: Value) -> Interval:
        return self._known.get(value, ALL)

    def unwrapped(self, node: Node) -> Interval | None:
        """The interval of the mathematical result of an operator on ints, which may exceed 64 bits; None: unknown."""
        op = op_of(node)
        rule = _RULES.get(op.qualified_name) if op is not None else None
        return rule([self.of(value) for value in node.inputs]) if rule else None

    # -- nodes

    def _analyze(self, block: Block, depth: int) -> None:
        for node in block.nodes():
            if node.kind == "prim::If":
                for inner in node.blocks:
                    self._analyze(inner, depth)
                for results in zip(node.outputs, *(inner.outputs for inner in node.blocks), strict=True):
                    self._set(results[0], _joined(self.of(results[1]), self.of(results[2])))
            elif node.kind == "prim::Loop":
                self._analyze_loop(node, depth)
            elif len(node.outputs) == 1:
                self._analyze_operator(node)

    def _analyze_operator(self, node: Node) -> None:
        constant = constant_value(node.output)
        if type(constant) is int:
            self._known[node.output] = (constant, constant)
            return
        found = self.unwrapped(node)
        if found is not None:
            self._set(node.output, found if found[0] >= LOW and found[1] <= HIGH else ALL)

    def _set(self, value: Value, interval: Interval) -> None:
        if value.type == INT:
            self._known[value] = interval

    # -- loops

    def _analyze_loop(self, node: Node, depth: int) -> None:
        (body,) = node.blocks
        count, first_condition, *initial = node.inputs
        condition, *given = body.outputs
        index, *carried = body.inputs
        self._known[index] = (0, max(0, self.of(count)[1] - 1))
        start = [self._under(value, first_condition) for value in initial]
        now = start if depth < _MAX_NESTING else [ALL] * len(start)
        for _ in range(_MAX_ROUNDS):
            for value, interval in zip(carried, now, strict=True):
                self._set(value, interval)
            self._analyze(body, depth + 1)
            after = [_joined(s, self._under(g, condition)) for s, g in zip(start, given, strict=True)]
            if all(a[0] <= b[0] and b[1] <= a[1] for a, b in zip(now, after, strict=True)):
                break
            now = [_widened(a, b) for a, b in zip(now, after, strict=True)]
            now = [self._limited(n, g, condition, s) for n, g, s in zip(now, given, start, strict=True)]
        else:
            for value in carried:
                self._set(value, ALL)
            self._analyze(body, depth + 1)
        for output, value, last in zip(node.outputs, initial, given, strict=True):
            self._set(output, _joined(self.of(value), self.of(last)))

    def _under(self, value: Value, condition: Value) -> Interval:
        """The value's interval where the condition holds."""
        return self._cut(self.of(value), value, condition)

    def _limited(self, widened: Interval, given: Value, condition: Value, start: Interval) -> Interval:
        """A widened interval, cut by the condition under which the loop goes on."""
        return _joined(self._cut(widened, given, condition), start)

    def _cut(self, interval: Interval, value: Value, condition: Value) -> Interval:
        comparison = condition.node
        if comparison.kind not in _LESS or len(comparison.inputs) != 2:
            return interval
        strict, swapped = _LESS[comparison.kind]
        less, more = reversed(comparison.inputs) if swapped else comparison.inputs
        low, high = interval
        if less is value and more.type == INT:
            high = min(high, self.of(more)[1] - strict)
        if more is value and less.type == INT:
            low = max(low, self.of(less)[0] + strict)
        return (low, high) if low <= high else interval


def _joined(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])


def _widened(old: Interval, new: Interval) -> Interval:
    return LOW if new[0] < old[0] else old[0], HIGH if new[1] > old[1] else old[1]


_LESS: Final[dict[str, tuple[bool, bool]]] = {
    "aten::lt": (True, False), "aten::le": (False, False), "aten::gt": (True, True), "aten::ge": (False, True),
}  # fmt: skip
"""Comparisons -> (strict, the lesser operand is the right one)."""


def _corners(combine: Callable[[int, int], int]) -> Callable[[Sequence[Interval]], Interval]:
    def rule(inputs: Sequence[Interval]) -> Interval:
        (a, b) = inputs
        values = [combine(x, y) for x in a for y in b]
        return min(values), max(values)

    return rule


def _quotient(inputs: Sequence[Interval]) -> Interval | None:
    low, high = inputs[1]
    if low <= 0 <= high:
        # Without zero the divisor is at least 1 away from it; dividing by -1 may leave 64 bits.
        most = max(abs(inputs[0][0]), abs(inputs[0][1]))
        return -most, most
    return _corners(lambda a, b: a // b)(inputs)


def _rest(inputs: Sequence[Interval]) -> Interval | None:
    low, high = inputs[1]
    if low <= 0 <= high:
        return None
    return (0, high - 1) if low > 0 else (low + 1, 0)


def _masked(inputs: Sequence[Interval]) -> Interval | None:
    limits = [high for low, high in inputs if low >= 0]
    return (0, min(limits)) if limits else None


_COUNT: Final = (0, _MOST_ELEMENTS)
_RULES: Final[dict[str, Callable[[Sequence[Interval]], Interval | None]]] = {
    "aten::add.int": lambda v: (v[0][0] + v[1][0], v[0][1] + v[1][1]),
    "aten::sub.int": lambda v: (v[0][0] - v[1][1], v[0][1] - v[1][0]),
    "aten::mul.int": _corners(lambda a, b: a * b),
    "aten::neg.int": lambda v: (-v[0][1], -v[0][0]),
    "aten::floordiv.int": _quotient,
    "aten::remainder.int": _rest,
    "aten::__and__.int": _masked,
    "aten::Int.bool": lambda _: (0, 1),
    "prim::min.int": lambda v: (min(v[0][0], v[1][0]), min(v[0][1], v[1][1])),
    "prim::max.int": lambda v: (max(v[0][0], v[1][0]), max(v[0][1], v[1][1])),
    "aten::len.t": lambda _: _COUNT,
    "aten::len.str": lambda _: _COUNT,
    "aten::size.int": lambda _: _COUNT,
    "aten::dim": lambda _: (0, 64),
}
