"""Loops over columns that go down each of them by itself, as loops over rows that do many columns at once.

    for i in range(n):                       for block in range(n / 128, rounded up):
        s = 0                                    begin, width = block * 128, at most 128
        for j in range(m):                       sums = allocate(f32[128])
            s += x[j * n + i]             →      for c in range(width): sums[c] = 0
        out[i] = s                               for j in range(m):
                                                     for c in range(width): sums[c] += x[j * n + begin + c]
                                                 for c in range(width): out[begin + c] = sums[c]

In: the body of the loop over i.  Out: that of the loop over blocks, where neighbours in a column are far apart in
memory and those in a row are not: then a column alone reads a line of memory for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Final

from engine.fuser.ir.affine import affine
from engine.fuser.ir.kernel import (
    Accumulate,
    Declare,
    Expression,
    For,
    Let,
    Load,
    Name,
    Statement,
    Store,
    add,
    all_expressions,
    all_statements,
    allocate,
    apply,
    index,
    multiply,
    parts,
    rewritten,
)
from engine.lang.records import dataclass

WIDTH: Final = 128
"""Columns in a block: their sums stay in the cache next to the processor."""
LEAST: Final = 16
"""Columns from which on a block is worth it."""
_ZERO, _ONE = index(0), index(1)


def blocks(count: Expression) -> Expression:
    """The number of blocks of so many columns."""
    return apply("quotient", add(count, index(WIDTH - 1)), index(WIDTH))


def in_blocks(
    body: Sequence[Statement], column: str, count: Expression, block: str, fresh: Callable[[str], str]
) -> list[Statement] | None:
    """The body of the loop over blocks; None where columns may stay as they are, or have to."""
    if not all(map(_is_plain, body)) or not any(isinstance(each, For) for each in body):
        return None
    if not _is_worth_it(body, column) or not _is_even(body, column):
        return None
    return _Blocks(_segments(body), column, count, block, fresh).written()


def _is_plain(statement: Statement) -> bool:
    return isinstance(statement, (Let, Declare, Store)) or (isinstance(statement, For) and _is_plain_loop(statement))


def _is_plain_loop(loop: For) -> bool:
    """True for nested loops with simple statements in the innermost."""
    if len(loop.body) == 1 and isinstance(loop.body[0], For):
        return _is_plain_loop(loop.body[0])
    return all(isinstance(each, (Let, Store, Accumulate)) for each in loop.body)


def _innermost(loop: For) -> For:
    first = loop.body[0]
    return _innermost(first) if isinstance(first, For) else loop


def _is_worth_it(body: Sequence[Statement], column: str) -> bool:
    """True if what is read is contiguous from column to column, if anything, and some of it is not along a column."""
    steps: list[tuple[Expression, Expression]] = []
    for loop in body:
        inner = _innermost(loop) if isinstance(loop, For) else None
        for load in _loads(inner.body if inner is not None else ()):
            found = affine(load.indices[0], (column, inner.index)) if inner is not None else None
            if found is None or inner is None:
                return False
            steps.append((found.steps.get(column, _ZERO), found.steps.get(inner.index, _ZERO)))
    is_contiguous = all(across in (_ZERO, _ONE) for across, _ in steps)
    return is_contiguous and any(across == _ONE and down not in (_ZERO, _ONE) for across, down in steps)


def _is_even(body: Sequence[Statement], column: str) -> bool:
    """True if loops go down all columns as far."""
    own = {column, *(each.name for each in body if isinstance(each, (Let, Declare)))}
    loops = [each for each in all_statements(body) if isinstance(each, For)]
    return not any(_names((each.start, each.stop, each.step)) & own for each in loops)


def _names(of: Iterable[Expression]) -> set[str]:
    return {each.name for root in of for each in all_expressions(root) if isinstance(each, Name)}


def _segments(body: Sequence[Statement]) -> list[list[Statement]]:
    """Each loop by itself, and the statements between them."""
    found: list[list[Statement]] = [[]]
    for each in body:
        if isinstance(each, For):
            found += [[each], []]
        else:
            found[-1].append(each)
    return [segment for segment in found if segment]


def _loads(body: Sequence[Statement]) -> Iterator[Load]:
    for statement in body:
        for root in parts(statement):
            yield from (each for each in all_expressions(root) if isinstance(each, Load))


@dataclass(eq=False, slots=True)
class _Blocks:
    """Writes the body, segment by segment.

    `kept` are the variables of a column that are an array of a block's columns: those that other segments read too.
    """

    segments: Sequence[Sequence[Statement]]
    column: str
    count: Expression
    block: str
    fresh: Callable[[str], str]
    kept: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The array's name and the type."""
    begin: Name = field(init=False)
    width: Name = field(init=False)

    def __post_init__(self) -> None:
        self.begin, self.width = (Name(self.fresh(each), "i64") for each in ("begin", "width"))
        for segment in self.segments:
            others = [each for other in self.segments if other is not segment for each in all_statements(other)]
            read = _names(root for each in others for root in parts(each))
            for each in segment:
                if isinstance(each, Declare) or (isinstance(each, Let) and each.name in read):
                    self.kept[each.name] = self.fresh(f"{each.name}_columns"), each.value.type

    def written(self) -> list[Statement]:
        first = multiply(Name(self.block, "i64"), index(WIDTH))
        left = add(self.count, multiply(index(-1), self.begin))
        found: list[Statement] = [allocate(name, type, index(WIDTH)) for name, type in self.kept.values()]
        found += [Let(self.begin.name, first), Let(self.width.name, apply("minimum", left, index(WIDTH)))]
        for segment in self.segments:
            first_one = segment[0]
            found += [self.down(first_one)] if isinstance(first_one, For) else self.loop(segment)
        return found

    def down(self, loop: For) -> For:
        """The loop down the columns, with one over columns inside."""
        inner = loop.body[0]
        body = (self.down(inner),) if isinstance(inner, For) else self.loop(loop.body)
        return replace(loop, body=tuple(body))

    def loop(self, body: Sequence[Statement]) -> Sequence[Statement]:
        """The statements for each column of the block."""
        column = Name(self.fresh("c"), "i64")
        defined = {each.name for each in body if isinstance(each, Let)}
        made: list[Statement] = []
        for each in body:
            made += self.statement(each, column, defined)
        return (For(column.name, _ZERO, self.width, tuple(made)),)

    def statement(self, s: Statement, column: Name, defined: set[str]) -> Iterator[Statement]:
        """A statement for one column; values of other loops are in arrays."""

        def change(e: Expression) -> Expression:
            if not isinstance(e, Name):
                return e
            if e.name == self.column:
                return add(self.begin, column)
            return e if e.name not in self.kept or e.name in defined else self.load(e.name, column)

        assert isinstance(s, (Let, Declare, Store, Accumulate))
        value = rewritten(s.value, change)
        match s:
            case Store():
                yield replace(s, value=value, indices=tuple(rewritten(each, change) for each in s.indices))
            case Let(name=name):
                yield replace(s, value=value)
                if name in self.kept:
                    yield Store(self.kept[name][0], (column,), Name(name, value.type))
            case Declare(name=name):
                yield Store(self.kept[name][0], (column,), value)
            case Accumulate(name=name, function=function):
                yield Store(self.kept[name][0], (column,), apply(function, self.load(name, column), value))

    def load(self, name: str, column: Name) -> Load:
        array, type = self.kept[name]
        return Load(array, (column,), type)
