"""Kernels as launches: which threads do what.

In: a `Kernel` whose loops are cut for threads (`strategy.GPU`).  Out: `Launches`: buffers that live from one launch to
the next, and a `Launch` for each loop nest at the top of the kernel.  Raises `NoLaunch`.

Note [Rows and elements]
A nest that computes each element by itself is spread over all threads of the grid.  In other nests an iteration of the
outermost loop is a row, which a team of threads shares: all of them run the statements of the row, independent loops
in it are spread over them, and what these accumulate is combined, so that all threads know it.  Where that cannot be
(loops that depend on their own variables), a row is the work of one thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from engine.fuser.gpu import library
from engine.fuser.gpu.tiles import Tiles, tiles_of
from engine.fuser.gpu.walking import Nest, is_independent, loads_of, nest_of
from engine.fuser.ir import math
from engine.fuser.ir.affine import affine
from engine.fuser.ir.kernel import (
    Allocate,
    Apply,
    Assign,
    Buffer,
    Call,
    Declare,
    Expression,
    For,
    Kernel,
    Let,
    Name,
    Parameter,
    Return,
    Statement,
    Store,
    View,
    all_expressions,
    all_statements,
    index,
    parts,
)
from engine.fuser.ir.outlining import free_parameters
from engine.lang.records import dataclass


class NoLaunch(Exception):
    """No GPU can run the kernel; says why."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One grid of threads, for the iterations of `nest`, which are rows if they are shared.

    `sizes`: the parameters that are sizes and strides.  `rooms`: buffers that each row has of its own.  `is_shared`:
    several threads may share a row.  `is_across`: elements of neighbouring rows are neighbours in memory, rather than
    those of one row.  `lengths`: the extents of the loops in a row.  `tiles`: another order for loops over elements.
    """

    name: str
    parameters: tuple[Parameter, ...]
    sizes: frozenset[str]
    nest: Nest
    rooms: tuple[Buffer, ...] = ()
    is_shared: bool = False
    is_across: bool = False
    lengths: tuple[Expression, ...] = ()
    tiles: Tiles | None = None


@dataclass(frozen=True, slots=True)
class Launches:
    """`scratch`: buffers that launches hand on."""

    scratch: tuple[Buffer, ...]
    launches: tuple[Launch, ...]

    @property
    def sizes(self) -> Iterator[Expression]:
        """All that grids and memory depend on."""
        for launch in self.launches:
            yield from (*launch.nest.extents, *launch.lengths)
            yield from (size for room in launch.rooms for size in room.shape or ())
        yield from (size for buffer in self.scratch for size in buffer.shape or ())


def launches_of(kernel: Kernel, numbers: Collection[str]) -> Launches:
    """The launches of a kernel, in order; `numbers` are the scalars that are no sizes or strides."""
    _require_possible(kernel.body)
    scratch = tuple(each.buffer for each in kernel.body if isinstance(each, Allocate))
    types = {each.name: each.type for each in (*kernel.buffers, *scratch)}
    pieces = [*_pieces(each for each in kernel.body if not isinstance(each, Allocate))]
    sizes = frozenset(each.name for each in kernel.scalars if each.name not in numbers)
    made = (_launch(f"{kernel.name}_{i}", piece, types, sizes) for i, piece in enumerate(pieces))
    return Launches(scratch, tuple(made))


def _require_possible(body: Sequence[Statement]) -> None:
    for statement in all_statements(body):
        if isinstance(statement, (Call, Return, View)):
            raise NoLaunch(f"{type(statement).__name__} in a kernel for threads")
        for root in parts(statement):
            for each in all_expressions(root):
                if isinstance(each, Apply) and not library.REFUSED.isdisjoint(_functions(each)):
                    raise NoLaunch(f"{each.function} of {each.operands[-1].type}, which is the C library's")


def _functions(of: Apply) -> Iterator[tuple[str, str]]:
    """The function and those that it is written in, with the types of their operands."""
    yield of.function, of.operands[-1].type
    written = math.function(of.function, of.operands[-1].type)
    for root in (written.result, *(let.value for let in written.body)) if written is not None else ():
        for each in all_expressions(root):
            if isinstance(each, Apply):
                yield from _functions(each)


def _pieces(body: Iterable[Statement]) -> Iterator[For]:
    """The loops at the top, and what lies between them as one row each."""
    between: list[Statement] = []
    for statement in body:
        if isinstance(statement, For) and statement.kind == "parallel":
            yield from _one_row(between)
            between = []
            yield statement
        else:
            between.append(statement)
    yield from _one_row(between)


def _one_row(body: Sequence[Statement]) -> Iterator[For]:
    if body:
        yield For("only", index(0), index(1), tuple(body), kind="parallel", line=body[0].line)


def _launch(name: str, loop: For, types: Mapping[str, str], sizes: frozenset[str]) -> Launch:
    found = free_parameters([loop], dict(types))
    parameters = tuple(sorted(found, key=lambda each: isinstance(each, Buffer)))
    nest = nest_of(loop)
    if not any(isinstance(each, (For, Allocate)) for each in all_statements(nest.body)):
        return Launch(name, parameters, sizes, nest, tiles=tiles_of(nest))
    rooms = tuple(each.buffer for each in loop.body if isinstance(each, Allocate))
    body = tuple(each for each in loop.body if not isinstance(each, Allocate))
    loops = [nest_of(each) for each in body if isinstance(each, For)]
    lengths = tuple(extent for each in loops for extent in each.extents)
    return Launch(
        name, parameters, sizes, Nest((loop.index,), (loop.stop,), body, line=loop.line), rooms,
        all(map(_is_shareable, body)), _is_across(_fastest(loop, body), loops), lengths,
    )  # fmt: skip


def _is_shareable(statement: Statement) -> bool:
    """True for statements of a row that several threads can run together."""
    if not isinstance(statement, For):
        return isinstance(statement, (Let, Declare, Assign, Store))
    if not is_independent(statement):
        return False
    return not any(isinstance(each, (For, Assign)) for each in all_statements(nest_of(statement).body))


# ------------------------------------------------------------------ which way memory goes


def _fastest(loop: For, body: Sequence[Statement]) -> str:
    """The index that differs by one from row to row: the loop's, or the last of those that are made of it."""
    for statement in body:
        match statement:
            case Let(name=name, value=Apply(function="rest", operands=(Name(name=whole), _))) if whole == loop.index:
                return name
    return loop.index


def _is_across(row: str, loops: Sequence[Nest]) -> bool:
    """True if more is read that lies next to each other from row to row than along a row."""
    across = along = 0
    for nest in loops:
        for load in loads_of(nest.body):
            found = affine(load.indices[0], (row, *nest.indices))
            if found is None:
                continue
            own, inner = (found.steps.get(each, _ZERO) for each in (row, nest.indices[-1]))
            across += own == _ONE and inner != _ONE
            along += inner == _ONE
    return across > along


_ZERO: Final = index(0)
_ONE: Final = index(1)
