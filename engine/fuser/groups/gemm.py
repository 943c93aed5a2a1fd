"""Matrix products of float32 and float64 in kernel IR, for kernels that multiply and go on with the result.

In: the sizes, and where the operands lie (`Matrix`).  Out: statements (`product`, `dots`), which hand each element of
the result to the caller: bias, activation and residual are done while it is in the cache.  They call `helpers`, which
the kernel has to bring along.  `packing` copies a matrix into panels, for several products or for several threads.

Note [Tiles of products]
A panel holds the columns of a tile, element (k, j) at k * step + j: some columns of a matrix whose rows are contiguous,
or a copy, which repeats the last column beyond it.  A tile is some rows of the result by one panel: its sums are
variables of vectors, as many as the processor has registers for, besides those for a row of the panel and for one
number (`SHAPES`).  What is left of rows has tiles that are half as high, and half of that; a last panel that is as
narrow as in the example has tiles of its own.

Where k is long, it is done in blocks of `Tile.depth`, so that a block of a panel stays in the cache while tile after
tile uses it; sums rest in "partial" meanwhile.  Tiles are functions of their own, one for each size, whatever is
multiplied; so are strips, which are all rows that have a panel in common, tile after tile, and the copying of panels.
The library of operators has them (`ahead`), so that kernels are what differs: what goes in, and what becomes of it.

Where k is last in the memory of both operands and the first has few rows, as in x @ weight.t(), panels cost more than
they save: `dots` adds up products along k, for a few rows and columns at a time, which load each vector for several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Final, Literal

from engine.fuser.backend.target import Target, current
from engine.fuser.ir.kernel import (
    SIZES,
    VECTORS,
    Accumulate,
    Address,
    Assign,
    Buffer,
    Call,
    Declare,
    Expression,
    For,
    If,
    Kernel,
    Let,
    Load,
    Name,
    Scalar,
    Statement,
    Store,
    add,
    allocate,
    apply,
    constant,
    convert,
    element_of,
    index,
    lanes_of,
    multiply,
)
from engine.lang.records import dataclass

_ZERO: Final = index(0)
_ONE: Final = index(1)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Elements of a buffer: (i, j) is at `first` + i * `row` + j * `column`.

    Where `reach` is the name of a buffer of i64, rows are as far from `first` as it says, instead of i * `row`.
    """

    buffer: str
    row: Expression
    column: Expression = _ONE
    first: Expression = _ZERO
    type: str = "f32"
    reach: str = ""

    def place(self, i: Expression, j: Expression) -> Expression:
        down = Load(self.reach, (i,), "i64") if self.reach else multiply(i, self.row)
        return add(add(self.first, down), multiply(j, self.column))

    def element(self, i: Expression, j: Expression) -> Load:
        return Load(self.buffer, (self.place(i, j),), self.type)

    def address(self, i: Expression, j: Expression) -> Address:
        return Address(self.buffer, (self.place(i, j),))

    @property
    def transposed(self) -> Matrix:
        return replace(self, row=self.column, column=self.row)


Along = Literal["k", "rows", ""]
"""The index of the first operand along which its elements follow one another in memory."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A piece of the result: `rows` by some `vectors` of the type `vector`, as wide as a panel.

    `narrow` are the columns of tiles for what is left of these, 0 where that is not known.
    `reaches`: the rows of panels are where a buffer says (`Matrix.reach`).  `depth`: elements of k in a block.
    """

    rows: int
    vectors: int
    vector: str
    along: Along = ""
    narrow: int = 0
    reaches: bool = False
    depth: int = 256

    @property
    def type(self) -> str:
        return element_of(self.vector)

    @property
    def lanes(self) -> int:
        return lanes_of(self.vector)

    @property
    def width(self) -> int:
        return self.vectors * self.lanes

    @property
    def widths(self) -> tuple[Tile, ...]:
        """The tile, and the one for what is left of columns: of whole vectors, or of one that is half as long."""
        if not self.narrow:
            return (self,)
        lanes = min(self.lanes, self.narrow)
        return self, replace(self, vectors=self.narrow // lanes, vector=f"{self.type}x{lanes}")

    @property
    def heights(self) -> tuple[int, ...]:
        """The rows of tiles: these, and halves for what is left, down to 1."""
        halves = [self.rows]
        while halves[-1] > 1:
            halves.append(halves[-1] // 2)
        return tuple(halves)

    @property
    def name(self) -> str:
        along = "_by_" * bool(self.along) + self.along
        return f"tile_{self.rows}x{self.vectors}_{self.vector}{along}{'_reaching' * self.reaches}"

    @property
    def strip(self) -> str:
        """The name of the function of all rows by a panel."""
        return f"strip_of_{self.name}"


SHAPES: Final = {
    (16, False): ((6, 2), (8, 1)), (16, True): ((4, 3), (6, 2), (8, 1)), (32, True): ((8, 3), (12, 2), (12, 1)),
}  # fmt: skip
"""By the number of registers, and whether there is one step for a product and a sum, the rows and vectors of tiles.

Sums leave registers for a row of the panel and a number.  The widest are the first: numbers of several rows are far
from one another, a panel's are not.
"""
TYPES: Final = ("f32", "f64")
BLOCK: Final = 240
"""Rows of the first operand that are gone over for one panel before the next panel."""
FEWEST_OF_BLOCK: Final = 48
"""Rows of a block at least, so that its panels do not come too often."""
FEWEST_ROWS: Final = 16
"""Rows up to which products are made of `dots`, where both operands have contiguous k."""
FEW_ROWS: Final = 32
"""Rows of the first operand up to which copies of the second cost more than they save."""

Element = Callable[[Expression, Expression], Expression]
"""From two indices to an element."""
Fill = Callable[[Expression, Expression, Expression, str, Expression], Sequence[Statement]]
"""From the first column of a panel, the first k, the number of them, a buffer and an index into it to statements that
put the panel's elements there."""
Put = Callable[[Expression, Expression, Expression], Sequence[Statement]]
"""From a row, a column and an element of the product to statements that store it."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a panel that are wanted: `walk` makes the loop over them, of the panel's width and what is done.

    `before`: what is found out first, from the panel's first column.  Whole panels have a loop of known length.
    """

    walk: Callable[[int, Callable[[Expression], Sequence[Statement]]], Statement]
    before: Callable[[Expression], Sequence[Statement]] = lambda first: ()


def columns_loop(stop: Expression, body: Callable[[Expression], Sequence[Statement]]) -> For:
    """The loop over columns of a panel up to that one."""
    return For("j", index(0), stop, tuple(body(_i("j"))), kind="vector")


def _each_column(width: int, body: Callable[[Expression], Sequence[Statement]]) -> Statement:
    is_whole = apply("eq", _i("columns"), index(width))
    return If(is_whole, (columns_loop(index(width), body),), (columns_loop(_i("columns"), body),))


ALL_COLUMNS: Final = Columns(_each_column)


def vector_for(type: str, processor: Target | None = None) -> str:
    """The vector that fills a register."""
    return f"{type}x{(processor or current()).vector // SIZES[type]}"


def tile_for(
    columns: int = 0, rows: int = 0, type: str = "f32", along: Along = "", processor: Target | None = None
) -> Tile:  # fmt: skip
    """The tile for so many columns and rows, 0 where that is not known, on a processor."""
    processor = processor or current()
    vector = vector_for(type, processor)
    shapes = SHAPES[processor.registers, processor.fuses]
    tiles = [
        Tile(height, vectors, vector, along, _narrow(columns, vectors, vector))
        for most, vectors in (shapes if columns else shapes[:1])
        for height in (range(most, 0, -1) if rows else (most,))
    ]
    return min(tiles, key=lambda tile: (_time(rows or BLOCK, columns or tile.width, tile), -tile.rows, tile.vectors))


_LONGEST: Final = 64
"""Bytes of vectors that many processors take in two steps, so that half of one is quicker than the whole."""


def _narrow(columns: int, vectors: int, vector: str) -> int:
    """The columns of the last panel's tile; 0 where that is a whole one."""
    lanes = lanes_of(vector)
    left = columns % (vectors * lanes)
    if 0 < left <= lanes // 2 and lanes * SIZES[element_of(vector)] == _LONGEST:
        return lanes // 2
    return -(-left // lanes) % vectors * lanes


def _time(rows: int, columns: int, tile: Tile) -> float:
    """An estimate of the time that so many rows and columns take, whole tiles and what is left."""
    down = ((rows // tile.rows, tile.rows), (1, rows % tile.rows))
    panels = -(-columns // tile.width) - (tile.narrow > 0)
    right = ((panels, tile.vectors), (1, tile.narrow / tile.lanes))
    return sum(i * j * _time_of_tile(height, vectors) for i, height in down for j, vectors in right)


def _time_of_tile(rows: int, vectors: float) -> float:
    """Of few sums each waits for the one before; loads take part of the time that they could be done in meanwhile."""
    return 2 * max(rows * vectors, 10 * min(vectors, 1)) + rows + vectors if rows and vectors else 0


def block_for(rows: int, tile: Tile, least: int = 1) -> int:
    """The rows of a block: whole tiles, as many in each block as so many rows allow, of at least so many blocks."""
    blocks = max(-(-rows // BLOCK), least)
    return BLOCK if blocks <= 1 else -(-max(rows, FEWEST_OF_BLOCK * blocks) // (blocks * tile.rows)) * tile.rows


def packed_size(rows: Expression, columns: Expression, tile: Tile) -> Expression:
    """The elements of a matrix of these sizes in panels."""
    return multiply(rows, multiply(panels(columns, tile), index(tile.width)))


def panels(columns: Expression, tile: Tile) -> Expression:
    """The number of panels."""
    return apply("quotient", add(columns, index(tile.width - 1)), index(tile.width))


def _i(name: str) -> Name:
    return Name(name, "i64")


def filled(element: Element, columns: Expression, tile: Tile) -> Fill:
    """A `Fill` with these elements, and the last column again beyond it."""

    def fill(
        first: Expression, depth: Expression, deep: Expression, buffer: str, place: Expression
    ) -> Sequence[Statement]:
        target = (add(place, add(multiply(_i("at"), index(tile.width)), _i("j"))),)

        def copied(column: Expression) -> For:
            copy = Store(buffer, target, element(add(depth, _i("at")), column))
            return For("at", index(0), deep, (For("j", index(0), index(tile.width), (copy,), kind="vector"),))

        column = add(first, _i("j"))
        is_whole = apply("le", add(first, index(tile.width)), columns)
        return (If(is_whole, (copied(column),), (copied(apply("minimum", column, add(columns, index(-1)))),)),)

    return fill


def fill_from(matrix: Matrix, columns: Expression, tile: Tile) -> Fill:
    """A `Fill` with the elements of a matrix; where its columns are contiguous, the `helpers` have to turn."""
    return _copied_from(matrix, columns, tile) if matrix.row != _ONE else _turned_from(matrix, columns, tile)


def _copied_from(matrix: Matrix, columns: Expression, tile: Tile) -> Fill:
    def fill(
        first: Expression, depth: Expression, deep: Expression, buffer: str, place: Expression
    ) -> Sequence[Statement]:
        last = apply("sub", add(columns, index(-1)), first)
        sizes = (deep, last, matrix.row, matrix.column)
        return (Call(_copy_name(tile), (*sizes, matrix.address(depth, first), Address(buffer, (place,)))),)

    return fill


def _turned_from(matrix: Matrix, columns: Expression, tile: Tile) -> Fill:
    def fill(
        first: Expression, depth: Expression, deep: Expression, buffer: str, place: Expression
    ) -> Sequence[Statement]:
        last = add(columns, index(-1))
        column = apply("minimum", add(first, _i("beside")), last)
        source, target = matrix.address(depth, _i("source")), Address(buffer, (add(place, _i("beside")),))
        sizes = (deep, apply("sub", last, _i("source")), matrix.column, index(tile.width))
        turn = (Let("source", column), Call(_turn_name(tile.vector), (*sizes, source, target)))
        return (For("beside", index(0), index(tile.width), turn, step=index(tile.lanes)),)

    return fill


def packing(n: Expression, k: Expression, fill: Fill, buffer: str, tile: Tile) -> Statement:
    """All panels of a matrix (k, n) into a buffer of `packed_size`."""
    blocks = apply("quotient", add(k, index(tile.depth - 1)), index(tile.depth))
    number, depth_number = (apply(each, _i("part"), blocks) for each in ("quotient", "rest"))
    place = multiply(add(multiply(_i("number"), k), _i("depth")), index(tile.width))
    deep = apply("minimum", apply("sub", k, _i("depth")), index(tile.depth))
    body = fill(multiply(_i("number"), index(tile.width)), _i("depth"), deep, buffer, place)
    lets = (Let("number", number), Let("depth", multiply(depth_number, index(tile.depth))))
    return For("part", index(0), multiply(panels(n, tile), blocks), (*lets, *body), kind="parallel")


def product(
    m: Expression,
    n: Expression,
    k: Expression,
    a: Matrix,
    put: Put,
    *,
    b: Matrix | None = None,
    packed: str = "",
    fill: Fill | None = None,
    tile: Tile,
    block: int = BLOCK,
    by_columns: bool = False,
    in_place: bool = False,
    columns: Columns = ALL_COLUMNS,
) -> tuple[Statement, ...]:
    """(m, n) = (m, k) times (k, n), k at least 1.

    The second operand is `packed`, a buffer of panels; or else filled into panels block by block, by `fill`, or from
    `b`, whose whole panels may be read `in_place` where its rows are contiguous: for up to `FEW_ROWS`.  Where the tile
    `reaches` panels of `b`, all are read there.  Elements of some `columns` are handed on row by row, or of all
    `by_columns`, where there are few panels: then a thread stays with those that it packed.
    `block`: of rows, at most `BLOCK`; where there are few panels, fewer rows give more threads something to do.
    """
    fill = fill or (fill_from(b, n, tile) if b is not None and not tile.reaches else None)
    blocks = apply("quotient", add(m, index(block - 1)), index(block))
    there, is_early = b if in_place or tile.reaches else None, not (in_place or by_columns)
    finish = partial(_finished_rows, put=put, tile=tile, columns=columns) if is_early else None
    late = partial(_finished_columns if by_columns else _finished_rows, put=put, tile=tile, columns=columns)
    outer, inner = ("panels", "blocks") if by_columns else ("blocks", "panels")
    numbers = {outer: apply("quotient", _i("part"), _i(inner)), inner: apply("rest", _i("part"), _i(inner))}
    part = (
        Let("number", numbers["panels"]),
        Let("column", multiply(_i("number"), index(tile.width))),
        Let("begin", multiply(numbers["blocks"], index(block))),
        Let("end", apply("minimum", add(_i("begin"), index(block)), m)),
        allocate("partial", tile.type, index(block * tile.width)),
        *([allocate("panel", tile.type, index(tile.depth * tile.width))] if fill is not None else []),
        Let("columns", apply("minimum", apply("sub", n, _i("column")), index(tile.width))),
        *columns.before(_i("column")),
        For("depth", index(0), k, (*_depth(a, n, k, packed, fill, there, tile, finish),), step=index(tile.depth)),
        *(() if is_early else late(_i("begin"), _i("end"), _i("begin"))),
    )
    return (
        Let("panels", panels(n, tile)),
        Let("blocks", blocks),
        For("part", index(0), multiply(_i("panels"), _i("blocks")), part, kind="parallel"),
    )


FEW_COLUMNS_BLOCK: Final = 48
"""Rows for one panel of `product_by_columns`: small, as a few panels are all that most batches have."""


def product_by_columns(
    m: Expression, n: Expression, k: Expression, a: Matrix, b: Matrix, put: Put, tile: Tile, packed: str = "packed"
) -> tuple[Statement, ...]:  # fmt: skip
    """(m, n) = (m, k) times (k, n) as the transposed product: all panels of the first operand's rows, packed before."""
    return (
        allocate(packed, tile.type, packed_size(k, m, tile)),
        packing(m, k, fill_from(a.transposed, m, tile), packed, tile),
        *product(
            n, m, k, b.transposed, lambda i, j, value: put(j, i, value), packed=packed, tile=tile, by_columns=True,
            block=FEW_COLUMNS_BLOCK,
        ),
    )  # fmt: skip


Finish = Callable[[Expression, Expression, Expression], Iterable[Statement]]
"""From the first row, the end, and the row that "partial" begins with to statements that hand these rows on."""


def _depth(
    a: Matrix, n: Expression, k: Expression, packed: str, fill: Fill | None, in_place: Matrix | None, tile: Tile,
    finish: Finish | None,
) -> Iterator[Statement]:  # fmt: skip
    """One block of k, for all rows."""
    yield Let("deep", apply("minimum", apply("sub", k, _i("depth")), index(tile.depth)))
    if packed:
        start = multiply(add(multiply(_i("number"), k), _i("depth")), index(tile.width))
        yield from _rows(a, k, Matrix(packed, index(tile.width), first=start, type=tile.type), tile, finish)
        return
    if in_place is not None and tile.reaches:
        yield from _rows(a, k, replace(in_place, first=add(in_place.first, _i("column"))), tile, finish)
        return
    assert fill is not None
    filling = (
        *fill(_i("column"), _i("depth"), _i("deep"), "panel", index(0)),
        *_rows(a, k, Matrix("panel", index(tile.width), type=tile.type), tile, finish),
    )
    if in_place is None:
        yield from filling
        return
    there = replace(in_place, column=_ONE, first=in_place.place(_i("depth"), _i("column")))
    is_whole = apply("le", add(_i("column"), index(tile.width)), n)
    yield If(is_whole, tuple(_rows(a, k, there, tile, finish)), filling)


def _rows(a: Matrix, k: Expression, panel: Matrix, tile: Tile, finish: Finish | None) -> Iterator[Statement]:
    """All rows by a panel: whole tiles, then smaller ones for what is left.

    Rows are finished after their last block of k; if that is the only one, one after the other uses the same place.
    """
    start, end = _i("begin"), _i("end")
    if finish is None:
        yield _strip(tile, a, panel, start, end, start)
        return
    is_last, is_only = apply("ge", add(_i("depth"), _i("deep")), k), apply("le", k, index(tile.depth))
    rows = (
        Let("stop", apply("minimum", add(_i("top"), index(tile.rows)), end)),
        Let("base", apply("select", is_only, _i("top"), start)),
        _strip(tile, a, panel, _i("top"), _i("stop"), _i("base")),
        If(is_last, tuple(finish(_i("top"), _i("stop"), _i("base")))),
    )
    yield For("top", start, end, rows, step=index(tile.rows))


def _strip(tile: Tile, a: Matrix, panel: Matrix, top: Expression, stop: Expression, base: Expression) -> Statement:
    """The rows from `top` on by a panel, to sums that begin with the row `base`."""
    place = multiply(apply("sub", top, base), index(tile.width))
    operands = a, a.address(top, _i("depth")), panel, Address("partial", (place,)), _i("depth"), _i("deep"), tile.width
    whole, *narrower = (_call(each.strip, *operands, before=(apply("sub", stop, top),)) for each in tile.widths)
    if not narrower:
        return whole
    return If(apply("le", _i("columns"), index(tile.narrow)), (*narrower,), (whole,))


def tile_call(
    tile: Tile, a: Matrix, operand: Address, panel: Matrix, sums: Address, depth: Expression, deep: Expression,
) -> Call:  # fmt: skip
    """Rows of `a` from `operand` on by a panel, to sums, which begin at 0 for depth 0, in rows as wide as a panel."""
    return _call(tile.name, a, operand, panel, sums, depth, deep, tile.width)


def _call(
    name: str, a: Matrix, operand: Address, panel: Matrix, sums: Address, depth: Expression, deep: Expression,
    line: int, before: tuple[Expression, ...] = (),
) -> Call:  # fmt: skip
    """The call of a tile or strip, to sums whose rows are `line` apart."""
    sizes = (*before, depth, deep, a.row, a.column, panel.row, index(line))
    reach = (Address(panel.reach, (depth,)),) if panel.reach else ()
    return Call(name, (*sizes, operand, Address(panel.buffer, (panel.first,)), *reach, sums))


def helpers(tile: Tile, *, turns: bool = False) -> tuple[Kernel, ...]:
    """The functions that a product with this tile calls, whose second operand has contiguous columns if it `turns`."""
    tiles = (tile_helper(replace(each, rows=rows)) for rows in tile.heights for each in tile.widths)
    strips = map(strip_helper, tile.widths)
    return (*tiles, *strips, turn_helper(tile.vector) if turns else copy_helper(tile))


def dots_helpers(type: str = "f32") -> tuple[Kernel, ...]:
    """The functions that `dots` calls."""
    most, wide = _DOTS[current().registers]
    return tuple(_dots_helper(rows, columns, type) for rows in (1, most) for columns in (1, wide))


def ahead() -> Iterator[Kernel]:
    """The functions that most products of float32 call, each once, which the library of operators has for all."""
    vector = vector_for("f32")
    lanes = lanes_of(vector)
    halves = [(1, f"f32x{lanes // 2}")] if lanes * SIZES["f32"] == _LONGEST else []
    found = dict[str, Kernel]()
    for most, vectors in SHAPES[current().registers, current().fuses]:
        widths = [*((i, vector) for i in range(1, vectors + 1)), *halves]
        heights = range(1, most + 1)
        tiles = [Tile(i, *each, "k", reaches=reaches) for i in heights for each in widths for reaches in (False, True)]
        tiles += [Tile(i, *each, "rows") for i in Tile(most, vectors, vector).heights for each in widths]
        found |= {each.name: tile_helper(each) for each in tiles}
        found |= {each.strip: replace(strip_helper(each), helpers=_tiles_of(each)) for each in tiles}
        found |= {_copy_name(each): copy_helper(each) for each in tiles if not each.reaches}
    yield from (*found.values(), turn_helper(vector), *dots_helpers())


def _tiles_of(tile: Tile) -> tuple[Kernel, ...]:
    return tuple(tile_helper(replace(tile, rows=rows)) for rows in tile.heights)


def tile_helper(tile: Tile) -> Kernel:
    """The function that `tile_call` calls: sums of `deep` products, which begin at 0 where `depth` does."""
    return _tile_helper(replace(tile, narrow=0, depth=0))


def strip_helper(tile: Tile) -> Kernel:
    """The function of `count` rows by a panel: tiles of all heights, as many as there are rows for."""
    return _strip_helper(replace(tile, narrow=0, depth=0))


@cache
def _strip_helper(tile: Tile) -> Kernel:
    down = _ONE if tile.along == "rows" else _i("row")
    body = list[Statement]()
    done: Expression = _ZERO
    for rows in tile.heights:
        tiles, after = f"tiles{rows}", f"after{rows}"
        top = add(done, multiply(_i("tile"), index(rows)))
        places = {"a": multiply(_i("top"), down), "panel": _ZERO, **({"reach": _ZERO} if tile.reaches else {})}
        places["result"] = multiply(_i("top"), _i("line"))
        call = Call(replace(tile, rows=rows).name, (*map(_i, _SIZES), *(Address(b, (i,)) for b, i in places.items())))
        body += [
            Let(tiles, apply("quotient", apply("sub", _i("count"), done), index(rows))),
            For("tile", _ZERO, _i(tiles), (Let("top", top), call)),
            Let(after, add(done, multiply(_i(tiles), index(rows)))),
        ]
        done = _i(after)
    return Kernel(tile.strip, (Scalar("count", "i64"), *_parameters(tile)), tuple(body), is_ahead=True)


@cache
def _tile_helper(tile: Tile) -> Kernel:
    places = [(row, j) for row in range(tile.rows) for j in range(tile.vectors)]
    vector = tile.vector

    def result(row: int, j: int) -> tuple[Expression]:
        return (add(multiply(_i("line"), index(row)), index(j * tile.lanes)),)

    before = tuple(Assign(_sum(*each), Load("result", result(*each), vector)) for each in places)
    body: tuple[Statement, ...] = (
        *(Declare(_sum(*each), convert(constant(0, tile.type), vector)) for each in places),
        If(apply("ne", _i("depth"), index(0)), before),
        For("at", index(0), _i("deep"), tuple(_step(tile))),
        *(Store("result", result(*each), Name(_sum(*each), vector)) for each in places),
    )
    return Kernel(tile.name, _parameters(tile), body, is_ahead=True)


_SIZES: Final = ("depth", "deep", "row", "column", "step", "line")


def _parameters(tile: Tile) -> tuple[Scalar | Buffer, ...]:
    operands = (Buffer("a", tile.type, None), Buffer("panel", tile.type, None))
    reach = (Buffer("reach", "i64", None),) if tile.reaches else ()
    sizes = tuple(Scalar(each, "i64") for each in _SIZES)
    return (*sizes, *operands, *reach, Buffer("result", tile.type, None, access="inout"))


def _sum(row: int, j: int) -> str:
    return f"sum{row}_{j}"


def _step(tile: Tile) -> Iterator[Statement]:
    """One element of k: each row's times the panel's."""
    down, right = (_ONE if tile.along == along else _i(step) for along, step in (("rows", "row"), ("k", "column")))
    a, at, vector = Matrix("a", down, right, type=tile.type), _i("at"), tile.vector
    yield Let("from_", Load("reach", (at,), "i64") if tile.reaches else multiply(at, _i("step")))
    for j in range(tile.vectors):
        yield Let(f"b{j}", Load("panel", (add(_i("from_"), index(j * tile.lanes)),), vector))
    for row in range(tile.rows):
        yield Let(f"a{row}", convert(a.element(index(row), at), vector))
        for j in range(tile.vectors):
            factors = Name(f"a{row}", vector), Name(f"b{j}", vector)
            yield Assign(_sum(row, j), apply("muladd", *factors, Name(_sum(row, j), vector)))


def _copy_name(tile: Tile) -> str:
    return f"copy_{tile.width}_{tile.type}"


def copy_helper(tile: Tile) -> Kernel:
    """The function that copies `deep` rows of a matrix into a panel; columns beyond the `last` are that one again."""
    return _copy_helper(_copy_name(tile), tile.width, tile.type)


@cache
def _copy_helper(name: str, width: int, type: str) -> Kernel:
    matrix = Matrix("a", _i("row"), _i("column"), type=type)
    target = (add(multiply(_i("at"), index(width)), _i("j")),)

    def copied(matrix: Matrix, column: Expression) -> For:
        copy = Store("panel", target, matrix.element(_i("at"), column))
        return For("at", _ZERO, _i("deep"), (For("j", _ZERO, index(width), (copy,), kind="vector"),))

    is_whole = apply("le", index(width - 1), _i("last"))
    is_plain = apply("eq", apply("select", is_whole, _i("column"), _ZERO), _ONE)
    repeated = copied(matrix, apply("minimum", _i("j"), _i("last")))
    body = (If(is_plain, (copied(replace(matrix, column=_ONE), _i("j")),), (repeated,)),)
    sizes = tuple(Scalar(each, "i64") for each in ("deep", "last", "row", "column"))
    buffers = (Buffer("a", type, None), Buffer("panel", type, None, access="out"))
    return Kernel(name, (*sizes, *buffers), body, is_ahead=True)


def _turn_name(vector: str) -> str:
    return f"turn_{vector}"


@cache
def turn_helper(vector: str) -> Kernel:
    """The function that copies `deep` elements of as many columns as a vector is long, each contiguous, into rows.

    `last`: the last column that there is, which is repeated; `column`, `step`: from a column, or row, to the next.
    """
    type, lanes = VECTORS[vector]
    place = [multiply(apply("minimum", index(j), _i("last")), _i("column")) for j in range(lanes)]
    rows = [Let(f"v0_{j}", Load("a", (add(_i(f"place{j}"), _i("at")),), vector)) for j in range(lanes)]
    rounds = lanes.bit_length() - 1  # each one brings elements of one row half of the distance nearer
    for number in range(rounds):
        for j in range(lanes):
            pair = (Name(f"v{number}_{j // 2 + half}", vector) for half in (0, lanes // 2))
            rows.append(Let(f"v{number + 1}_{j}", apply("zip_high" if j % 2 else "zip_low", *pair)))
    line = multiply(_i("at"), _i("step"))
    stores = (
        Store("panel", (add(line, multiply(index(j), _i("step"))),), Name(f"v{rounds}_{j}", vector))
        for j in range(lanes)
    )
    single = (
        Store("panel", (add(line, index(j)),), Load("a", (add(_i(f"place{j}"), _i("at")),), type)) for j in range(lanes)
    )
    whole = multiply(apply("quotient", _i("deep"), index(lanes)), index(lanes))
    body: tuple[Statement, ...] = (
        *(Let(f"place{j}", each) for j, each in enumerate(place)),
        Let("whole", whole),
        For("at", index(0), _i("whole"), (*rows, *stores), step=index(lanes)),
        For("at", _i("whole"), _i("deep"), tuple(single)),
    )
    sizes = tuple(Scalar(each, "i64") for each in ("deep", "last", "column", "step"))
    buffers = (Buffer("a", type, None), Buffer("panel", type, None, access="out"))
    return Kernel(_turn_name(vector), (*sizes, *buffers), body, is_ahead=True)


def _finished_rows(
    first: Expression, end: Expression, base: Expression, put: Put, tile: Tile, columns: Columns
) -> Iterator[Statement]:
    """The elements of some rows to whoever wants them, row by row."""
    line = multiply(apply("sub", _i("row"), base), index(tile.width))

    def element(j: Expression) -> Sequence[Statement]:
        return put(_i("row"), add(_i("column"), j), Load("partial", (add(line, j),), tile.type))

    yield For("row", first, end, (columns.walk(tile.width, element),))


def _finished_columns(
    first: Expression, end: Expression, base: Expression, put: Put, tile: Tile, columns: Columns
) -> Iterator[Statement]:
    """The same, column by column."""
    place = add(multiply(apply("sub", _i("row"), base), index(tile.width)), _i("j"))
    element = put(_i("row"), add(_i("column"), _i("j")), Load("partial", (place,), tile.type))
    inner = For("row", first, end, tuple(element), kind="vector")
    yield For("j", index(0), _i("columns"), (inner,))


# ------------------------------------------------------------------ sums along k


def dots(m: Expression, n: Expression, k: Expression, a: Matrix, b: Matrix, put: Put) -> tuple[Statement, ...]:
    """(m, n) = (m, k) times the transpose of (n, k), both with contiguous rows.

    Each part reads its rows of the second operand once from afar, and all of the first: for few rows of that.
    """
    rows, columns = _DOTS[current().registers]
    whole = apply("quotient", m, index(rows))
    part = (
        Let("begin", multiply(_i("part"), index(_DOTS_OF_PART))),
        Let("end", apply("minimum", add(_i("begin"), index(_DOTS_OF_PART)), n)),
        For(
            "several",
            index(0),
            whole,
            (Let("row", multiply(_i("several"), index(rows))), _dots_of_rows(rows, columns, k, a, b, put)),
        ),
        For("row", multiply(whole, index(rows)), m, (_dots_of_rows(1, columns, k, a, b, put),)),
    )
    parts = apply("quotient", add(n, index(_DOTS_OF_PART - 1)), index(_DOTS_OF_PART))
    return (For("part", index(0), parts, part, kind="parallel"),)


_DOTS: Final = {16: (2, 4), 32: (4, 4)}
"""By the number of registers the rows and columns of `dots` at a time: so many sums and vectors of operands fit."""
_DOTS_OF_PART: Final = 16
"""Columns that are in the nearest cache while all rows of the first operand are gone over."""


def _dots_of_rows(rows: int, columns: int, k: Expression, a: Matrix, b: Matrix, put: Put) -> Statement:
    """Some rows by the columns of a part, the last of which may be fewer."""
    whole = (Let("column", _i("first")), *_dots(rows, columns, k, a, b, put))
    single = For("column", _i("first"), _i("end"), _dots(rows, 1, k, a, b, put))
    is_whole = apply("le", add(_i("first"), index(columns)), _i("end"))
    return For("first", _i("begin"), _i("end"), (If(is_whole, whole, (single,)),), step=index(columns))


def _dots(rows: int, columns: int, k: Expression, a: Matrix, b: Matrix, put: Put) -> tuple[Statement, ...]:
    addresses = (a.address(_i("row"), index(0)), b.address(_i("column"), index(0)), Address("sums", (index(0),)))
    element = Load("sums", (add(multiply(_i("i"), index(columns)), _i("j")),), a.type)
    handed = (
        Let("down", add(_i("row"), _i("i"))),
        Let("right", add(_i("column"), _i("j"))),
        *put(_i("down"), _i("right"), element),
    )
    return (
        allocate("sums", a.type, index(rows * columns)),
        Call(f"dots_{rows}x{columns}_{a.type}", (k, a.row, b.row, *addresses)),
        For("i", index(0), index(rows), (For("j", index(0), index(columns), handed, kind="vector"),)),
    )


@cache
def _dots_helper(rows: int, columns: int, type: str) -> Kernel:
    """Sums along k of some rows by some columns."""
    places = [(i, j) for i in range(rows) for j in range(columns)]
    a, b = Matrix("a", _i("row"), type=type), Matrix("b", _i("column"), type=type)
    lets = [Let(f"a{i}", a.element(index(i), _i("at"))) for i in range(rows)]
    lets += [Let(f"b{j}", b.element(index(j), _i("at"))) for j in range(columns)]
    products = {(i, j): apply("mul", Name(f"a{i}", type), Name(f"b{j}", type)) for i, j in places}
    adding: tuple[Statement, ...] = (*lets, *(Accumulate(f"sum{i}_{j}", "add", products[i, j]) for i, j in places))
    body: tuple[Statement, ...] = (
        *(Declare(f"sum{i}_{j}", constant(0, type)) for i, j in places),
        For("at", index(0), _i("k"), adding, kind="vector"),
        *(Store("sums", (index(i * columns + j),), Name(f"sum{i}_{j}", type)) for i, j in places),
    )
    sizes = tuple(Scalar(each, "i64") for each in ("k", "row", "column"))
    buffers = (Buffer("a", type, None), Buffer("b", type, None), Buffer("sums", type, None, access="out"))
    return Kernel(f"dots_{rows}x{columns}_{type}", (*sizes, *buffers), body, is_ahead=True)
