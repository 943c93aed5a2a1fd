"""Loops over elements in tiles, for what is read in another order than it is written in.

    for i, j in (n, m):                         for tile_i, tile_j, i_, j_ in (n / 32, m / 32, 32, 32):
        out[i * m + j] = x[j * n + i]    →          i, j = tile_i * 32 + i_, tile_j * 32 + j_
                                                    if i < n and j < m: out[i * m + j] = x[j * n + i]

In: a nest.  Out: the nest in tiles, or None where it is as good as it is.  Neighbouring threads write neighbours; with
tiles what the threads of a block read lies in few lines of memory, all of which they use.
"""

from __future__ import annotations

from typing import Final

from engine.fuser.gpu.walking import Nest, loads_of
from engine.fuser.ir.affine import affine
from engine.fuser.ir.kernel import Expression, If, Let, Name, Statement, add, apply, index, multiply
from engine.lang.records import dataclass

SIDE: Final = 32


@dataclass(frozen=True, slots=True)
class Tiles:
    """`sides`: the extents of the loops that are cut."""

    nest: Nest
    sides: tuple[Expression, Expression]


def tiles_of(nest: Nest) -> Tiles | None:
    """The nest in tiles of the innermost loop and the one along which most is read."""
    found = _across(nest)
    if found is None:
        return None
    rows, columns = nest.indices[found], nest.indices[-1]
    sides = nest.extents[found], nest.extents[-1]
    inside = apply("bitand", *(apply("lt", Name(n, "i64"), e) for n, e in zip((rows, columns), sides, strict=True)))
    lets = (
        Let(name, add(multiply(_tile(name), index(SIDE)), _place(name)), line=nest.line) for name in (rows, columns)
    )
    others = [d for d in range(len(nest.indices) - 1) if d != found]
    indices = (
        *(nest.indices[d] for d in others), *(_tile(n).name for n in (rows, columns)),
        *(_place(n).name for n in (rows, columns)),
    )  # fmt: skip
    extents = (*(nest.extents[d] for d in others), *map(_tiles, sides), index(SIDE), index(SIDE))
    body: tuple[Statement, ...] = (*lets, If(inside, nest.body, line=nest.line))
    return Tiles(Nest(indices, extents, body, line=nest.line), sides)


def _across(nest: Nest) -> int | None:
    """The loop, but the innermost, along which what is read most often is contiguous, if that is not the innermost."""
    counts = dict.fromkeys(range(len(nest.indices) - 1), 0)
    for load in loads_of(nest.body):
        place = affine(load.indices[0], nest.indices)
        if place is None or place.steps.get(nest.indices[-1], _ZERO) in (_ZERO, _ONE):
            continue
        for d in counts:
            counts[d] += place.steps.get(nest.indices[d], _ZERO) == _ONE
    best = max(counts, key=counts.__getitem__, default=None)
    return best if best is not None and counts[best] else None


def _tile(name: str) -> Name:
    return Name(f"{name}.tile", "i64")


def _place(name: str) -> Name:
    return Name(f"{name}.place", "i64")


def _tiles(extent: Expression) -> Expression:
    return apply("quotient", add(extent, index(SIDE - 1)), index(SIDE))


_ZERO: Final = index(0)
_ONE: Final = index(1)
