"""Matrix products of float32 in kernel IR, for kernels that multiply and go on with the result.

In: expressions for the sizes and for the elements of the operands.  Out: statements (`product`), which hand each
element of the result to the caller: bias, activation and residual are done while it is in the cache.  `packing` copies
a matrix into panels, for several products or for several threads.

Note [Tiles of products]
A panel holds the columns of a tile, element (k, j) at k * width + j, with zeros beyond the last column of the matrix.
A tile is some rows of the result by one panel: its sums are a small array, which LLVM keeps in vector registers, as
all indices into it are constants once the innermost loops are unrolled.  Where k is long, it is done in blocks of
`DEPTH`, so that a block of a panel stays in the cache while tile after tile uses it; sums rest in "partial" meanwhile.

Where k is last in the memory of both operands and the first has few rows, as in x @ weight.t(), panels cost more than
they save: `dots` adds up products along k, for a few rows and columns at a time, which load each vector for several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from engine.fuser.kernel import (
    Accumulate,
    Assign,
    Declare,
    Expression,
    For,
    If,
    Let,
    Load,
    Name,
    Statement,
    Store,
    While,
    add,
    allocate,
    apply,
    constant,
    index,
    multiply,
)


@dataclass(frozen=True, slots=True)
class Tile:
    """A piece of the result whose sums are 24 vectors of 16 elements: `rows` by `width` columns, that of panels."""

    rows: int
    width: int


WIDE: Final = Tile(6, 64)
TILES: Final = (Tile(24, 16), Tile(12, 32), WIDE)
DEPTH: Final = 512
"""Elements of k in a block."""
BLOCK: Final = 240
"""Rows of the first operand that are gone over for one panel before the next panel; a multiple of all tiles' rows."""

Element = Callable[[Expression, Expression], Expression]
"""From two indices to an element."""
Fill = Callable[[Expression, Expression, Expression, str, Expression], Sequence[Statement]]
"""From the first column of a panel, the first k, the number of them, a buffer and an index into it to statements that
put the panel's elements there."""
Put = Callable[[Expression, Expression, Expression], Sequence[Statement]]
"""From a row, a column and an element of the product to statements that store it."""


def tile_for(columns: int) -> Tile:
    """The tile for about so many columns: the widest that is not mostly empty."""
    return next((tile for tile in TILES if columns <= tile.width), WIDE)


def packed_size(rows: Expression, columns: Expression, tile: Tile = WIDE) -> Expression:
    """The elements of a matrix of these sizes in panels."""
    return multiply(rows, multiply(panels(columns, tile), index(tile.width)))


def panels(columns: Expression, tile: Tile = WIDE) -> Expression:
    """The number of panels."""
    return apply("quotient", add(columns, index(tile.width - 1)), index(tile.width))


def _i(name: str) -> Name:
    return Name(name, "i64")


def _load(buffer: str, *indices: Expression) -> Load:
    return Load(buffer, indices, "f32")


def filled(element: Element, columns: Expression, tile: Tile = WIDE) -> Fill:
    """A `Fill` with these elements, and zeros beyond the last column."""

    def fill(
        first: Expression, depth: Expression, deep: Expression, buffer: str, place: Expression
    ) -> Sequence[Statement]:
        target = (add(place, add(multiply(_i("at"), index(tile.width)), _i("j"))),)
        copy = Store(buffer, target, element(add(depth, _i("at")), add(first, _i("j"))))
        inside = For("j", index(0), _i("inside"), (copy,), kind="vector")
        zeros = For("j", _i("inside"), index(tile.width), (Store(buffer, target, constant(0, "f32")),), kind="vector")
        return (
            Let("inside", apply("minimum", apply("sub", columns, first), index(tile.width))),
            For("at", index(0), deep, (inside, zeros)),
        )

    return fill


def packing(n: Expression, k: Expression, fill: Fill, buffer: str, tile: Tile = WIDE) -> Statement:
    """All panels of a matrix (k, n) into a buffer of `packed_size`."""
    blocks = apply("quotient", add(k, index(DEPTH - 1)), index(DEPTH))
    number, depth = apply("quotient", _i("part"), blocks), multiply(apply("rest", _i("part"), blocks), index(DEPTH))
    place = multiply(add(multiply(_i("number"), k), _i("depth")), index(tile.width))
    deep = apply("minimum", apply("sub", k, _i("depth")), index(DEPTH))
    body = fill(multiply(_i("number"), index(tile.width)), _i("depth"), deep, buffer, place)
    lets = (Let("number", number), Let("depth", depth))
    return For("part", index(0), multiply(panels(n, tile), blocks), (*lets, *body), kind="parallel")


def product(
    m: Expression,
    n: Expression,
    k: Expression,
    a: Element,
    put: Put,
    *,
    packed: str = "",
    fill: Fill | None = None,
    tile: Tile = WIDE,
    block: int = BLOCK,
    by_columns: bool = False,
) -> tuple[Statement, ...]:
    """(m, n) = (m, k) times (k, n), k at least 1: elements of the first from `a`, of the second from the buffer
    `packed`, or else from panels that are filled block by block.  Elements are handed on row by row, or `by_columns`.
    `block`: of rows, at most `BLOCK`; where there are few panels, fewer rows give more threads something to do.
    """
    blocks = apply("quotient", add(m, index(block - 1)), index(block))
    part = (
        Let("number", apply("rest", _i("part"), _i("panels"))),
        Let("column", multiply(_i("number"), index(tile.width))),
        Let("begin", multiply(apply("quotient", _i("part"), _i("panels")), index(block))),
        Let("end", apply("minimum", add(_i("begin"), index(block)), m)),
        allocate("partial", "f32", index(block * tile.width)),
        *([] if packed else [allocate("panel", "f32", index(DEPTH * tile.width))]),
        For("depth", index(0), k, (*_depth(a, k, packed, fill, tile),), step=index(DEPTH)),
        *_finished(n, put, tile, by_columns),
    )
    return (
        Let("panels", panels(n, tile)),
        For("part", index(0), multiply(_i("panels"), blocks), part, kind="parallel"),
    )


def _depth(a: Element, k: Expression, packed: str, fill: Fill | None, tile: Tile) -> Iterator[Statement]:
    """One block of k, for all rows: whole tiles, then what is left."""
    yield Let("deep", apply("minimum", apply("sub", k, _i("depth")), index(DEPTH)))
    if fill is not None:
        yield from fill(_i("column"), _i("depth"), _i("deep"), "panel", index(0))
    begin = multiply(add(multiply(_i("number"), k), _i("depth")), index(tile.width)) if packed else index(0)
    yield Let("first", begin)
    yield Declare("row", _i("begin"))
    tiles: tuple[Statement, ...] = ()
    for rows in _heights(tile.rows):
        fits = apply("le", add(_i("row"), index(rows)), _i("end"))
        body = (*_tile(Tile(rows, tile.width), a, packed or "panel"), Assign("row", add(_i("row"), index(rows))))
        tiles = (If(fits, body, tiles),)
    yield While(apply("lt", _i("row"), _i("end")), tiles)


def _heights(rows: int) -> Iterator[int]:
    """The rows of tiles, smallest first: each about half of the next."""
    if rows > 1:
        yield from _heights(rows // 2)
    yield rows


def _tile(tile: Tile, a: Element, panel: str) -> Iterator[Statement]:
    """The sums of a tile, from "partial" and back: registers have no index that only the run tells."""
    j, size = _i("j"), index(tile.rows * tile.width)
    yield Let("rest", multiply(apply("sub", _i("row"), _i("begin")), index(tile.width)))
    resting = (add(_i("rest"), j),)
    yield allocate("sums", "f32", size)
    yield If(
        apply("eq", _i("depth"), index(0)),
        (For("j", index(0), size, (Store("sums", (j,), constant(0, "f32")),), kind="vector"),),
        (For("j", index(0), size, (Store("sums", (j,), _load("partial", *resting)),), kind="vector"),),
    )
    yield For("at", index(0), _i("deep"), (*_step(tile, a, panel),))
    yield For("j", index(0), size, (Store("partial", resting, _load("sums", j)),), kind="vector")


def _step(tile: Tile, a: Element, panel: str) -> Iterator[Statement]:
    """One element of k: each row's times the panel's."""
    for row in range(tile.rows):
        yield Let(f"a{row}", a(add(_i("row"), index(row)), add(_i("depth"), _i("at"))))
    yield Let("line", add(_i("first"), multiply(_i("at"), index(tile.width))))
    body: list[Statement] = [Let("b", _load(panel, add(_i("line"), _i("j"))))]
    for row in range(tile.rows):
        place = (add(_i("j"), index(row * tile.width)),)
        total = apply("fma", Name(f"a{row}", "f32"), Name("b", "f32"), _load("sums", *place))
        body.append(Store("sums", place, total))
    yield For("j", index(0), index(tile.width), tuple(body), kind="vector")


def _finished(n: Expression, put: Put, tile: Tile, by_columns: bool) -> Iterator[Statement]:
    """The elements of the part to whoever wants them."""
    line = multiply(apply("sub", _i("row"), _i("begin")), index(tile.width))
    element = tuple(put(_i("row"), add(_i("column"), _i("j")), _load("partial", add(line, _i("j")))))
    yield Let("columns", apply("minimum", apply("sub", n, _i("column")), index(tile.width)))
    if by_columns:
        inner = For("row", _i("begin"), _i("end"), element, kind="vector")
        yield For("j", index(0), _i("columns"), (inner,))
    else:
        inner = For("j", index(0), _i("columns"), element, kind="vector")
        yield For("row", _i("begin"), _i("end"), (inner,))


def dots(m: Expression, n: Expression, k: Expression, a: Element, b: Element, put: Put) -> tuple[Statement, ...]:
    """(m, n) = (m, k) times the transpose of (n, k), where elements that are next in k are next in memory.

    Each part reads its rows of the second operand once from afar, and all of the first: for few rows of that.
    """
    fours = apply("quotient", m, index(_DOTS))
    part = (
        Let("begin", multiply(_i("part"), index(_DOTS_OF_PART))),
        Let("end", apply("minimum", add(_i("begin"), index(_DOTS_OF_PART)), n)),
        For(
            "four",
            index(0),
            fours,
            (Let("row", multiply(_i("four"), index(_DOTS))), _dots_of_rows(_DOTS, k, a, b, put)),
        ),
        For("row", multiply(fours, index(_DOTS)), m, (_dots_of_rows(1, k, a, b, put),)),
    )
    parts = apply("quotient", add(n, index(_DOTS_OF_PART - 1)), index(_DOTS_OF_PART))
    return (For("part", index(0), parts, part, kind="parallel"),)


_DOTS: Final = 4
"""Rows and columns of `dots` at a time: 16 sums and 8 vectors of operands, of 32 registers."""
_DOTS_OF_PART: Final = 16
"""Columns that are in the nearest cache while all rows of the first operand are gone over."""


def _dots_of_rows(rows: int, k: Expression, a: Element, b: Element, put: Put) -> Statement:
    """Some rows by the columns of a part, the last of which may be fewer."""
    whole = (Let("column", _i("first")), *_dots(rows, _DOTS, k, a, b, put))
    single = For("column", _i("first"), _i("end"), _dots(rows, 1, k, a, b, put))
    is_whole = apply("le", add(_i("first"), index(_DOTS)), _i("end"))
    return For("first", _i("begin"), _i("end"), (If(is_whole, whole, (single,)),), step=index(_DOTS))


def _dots(rows: int, columns: int, k: Expression, a: Element, b: Element, put: Put) -> tuple[Statement, ...]:
    places = [(i, j) for i in range(rows) for j in range(columns)]
    lets = [Let(f"a{i}", a(add(_i("row"), index(i)), _i("at"))) for i in range(rows)]
    lets += [Let(f"b{j}", b(add(_i("column"), index(j)), _i("at"))) for j in range(columns)]
    products = {(i, j): apply("mul", Name(f"a{i}", "f32"), Name(f"b{j}", "f32")) for i, j in places}
    adding: tuple[Statement, ...] = (*lets, *(Accumulate(f"sum{i}_{j}", "add", products[i, j]) for i, j in places))
    element = _load("sums", add(multiply(_i("i"), index(columns)), _i("j")))
    handed = (Let("r", add(_i("row"), _i("i"))), Let("c", add(_i("column"), _i("j"))), *put(_i("r"), _i("c"), element))
    return (
        *(Declare(f"sum{i}_{j}", constant(0, "f32")) for i, j in places),
        For("at", index(0), k, adding, kind="vector"),
        allocate("sums", "f32", index(rows * columns)),
        *(Store("sums", (index(i * columns + j),), Name(f"sum{i}_{j}", "f32")) for i, j in places),
        For("i", index(0), index(rows), (For("j", index(0), index(columns), handed, kind="vector"),)),
    )
