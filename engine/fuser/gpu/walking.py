"""Nests of loops, and what their statements read and write.

In: loops and statements of kernel IR.  Out: `Nest`s, and the loads, stores and variables in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from engine.fuser.ir.kernel import (
    Accumulate,
    Expression,
    For,
    Load,
    Placed,
    Statement,
    Store,
    all_expressions,
    all_statements,
    index,
    parts,
)
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class Nest(Placed):
    """Perfectly nested independent loops from 0, outermost first, at the line of that one."""

    indices: tuple[str, ...]
    extents: tuple[Expression, ...]
    body: tuple[Statement, ...]


def nest_of(loop: For) -> Nest:
    """The loop with those that it consists of, as far as they are independent."""
    indices, extents, body = [loop.index], [loop.stop], loop.body
    while len(body) == 1 and isinstance(inner := body[0], For) and is_independent(inner):
        indices.append(inner.index)
        extents.append(inner.stop)
        body = inner.body
    return Nest(tuple(indices), tuple(extents), body, line=loop.line)


def is_independent(loop: For) -> bool:
    """True if the iterations may run in any order, and are numbered from 0."""
    return loop.kind != "range" and loop.start == _ZERO and loop.step == _ONE


def loads_of(body: Sequence[Statement]) -> Iterator[Load]:
    """The loads in simple statements."""
    for statement in body:
        for root in parts(statement):
            yield from (each for each in all_expressions(root) if isinstance(each, Load))


def loaded(body: Sequence[Statement]) -> set[str]:
    """The buffers that statements, and those inside, read."""
    return {load.buffer for load in loads_of([*all_statements(body)])}


def accumulated(body: Sequence[Statement]) -> dict[str, str]:
    """The variables that statements accumulate, and the functions."""
    return {each.name: each.function for each in all_statements(body) if isinstance(each, Accumulate)}


def stored(body: Sequence[Statement]) -> set[str]:
    """The buffers that statements write."""
    return {each.buffer for each in all_statements(body) if isinstance(each, Store)}


_ZERO: Final = index(0)
_ONE: Final = index(1)
