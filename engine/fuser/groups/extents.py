"""Sizes of tensors in kernels: symbols that calls give, compared by an example.

In: sizes as expressions with the value they have in the example of a call.  Out: `Extents`, which finds the sizes of
results and notes what it took for granted: guards.  Sizes are guarded only as far as the kernel depends on it, so that
one kernel serves all batch sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from engine.fuser.groups.from_expression import Unsupported
from engine.fuser.ir.kernel import Constant, Expression, apply, index
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class Extent:
    """A size: an i64 expression, and its value in the example."""

    size: Expression
    example: int


def known(value: int) -> Extent:
    return Extent(index(value), value)


ONE = known(1)


@dataclass(slots=True)
class Extents:
    """The guards so far, and which sizes are equal under them."""

    guards: list[Expression] = field(default_factory=list)
    _same: dict[Expression, Extent] = field(default_factory=dict)

    def canonical(self, extent: Extent) -> Extent:
        """The one that stands for all sizes equal to it."""
        while extent.size in self._same:
            extent = self._same[extent.size]
        return extent

    def guard(self, function: str, a: Expression, b: Expression) -> None:
        """Have a comparison hold in each call; what is known when compiling holds in the example."""
        guard = apply(function, a, b)
        if not (isinstance(a, Constant) and isinstance(b, Constant)) and guard not in self.guards:
            self.guards.append(guard)

    def require(self, a: Extent, b: Extent) -> Extent:
        """A size that both are; raises Unsupported if they differ in the example."""
        a, b = self.canonical(a), self.canonical(b)
        if a.example != b.example:
            raise Unsupported(f"sizes {a.example} and {b.example} differ")
        if a.size != b.size:
            if isinstance(a.size, Constant):
                a, b = b, a
            self.guard("eq", a.size, b.size)
            self._same[a.size] = b
        return b if isinstance(b.size, Constant) else self.canonical(a)

    def is_one(self, extent: Extent) -> bool:
        """True if the size is 1 in the example, which it then has to be in each call."""
        if self.canonical(extent).example != 1:
            return False
        self.require(extent, ONE)
        return True

    def broadcast(self, *shapes: Sequence[Extent]) -> tuple[Extent, ...]:
        """The shape of a result; raises Unsupported for shapes that do not fit."""
        rank = max(map(len, shapes))
        return tuple(self._common([s[i - rank] for s in shapes if rank - i <= len(s)]) for i in range(rank))

    def _common(self, extents: Sequence[Extent]) -> Extent:
        open_ones = {canonical for each in extents if (canonical := self.canonical(each)) != ONE}
        if len(open_ones) < 2:
            return next(iter(open_ones), ONE)
        several = [each for each in extents if not self.is_one(each)]
        common = several[0] if several else ONE
        for each in several[1:]:
            common = self.require(common, each)
        return self.canonical(common)
