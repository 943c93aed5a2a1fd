"""Matrix products of float32 in kernel IR, for kernels that multiply and go on with the result.

In: expressions for the sizes and for the elements of the operands.  Out: statements (`product`), which hand each
element of the result to the caller: bias, activation and residual are done while it is in the cache.  `pack` copies a
matrix into panels once, for weights that do not change.

Note [Tiles of products]
A panel holds `WIDTH` columns of the second operand, element (k, j) at k * WIDTH + j, with zeros beyond the last column.
A tile is `ROWS` rows of the result by one panel: its sums are a small array, which LLVM keeps in vector registers, as
all indices into it are constants once the innermost loops are unrolled.  Where k is long, it is done in blocks of
`DEPTH`, so that a block of a panel stays in the cache while tile after tile uses it; sums rest in "partial" meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from engine.fuser.kernel import (
    Allocate,
    Assign,
    Buffer,
    Declare,
    Expression,
    For,
    If,
    Kernel,
    Let,
    Load,
    Name,
    Parameter,
    Scalar,
    Statement,
    Store,
    While,
    add,
    apply,
    constant,
    index,
    multiply,
)

WIDTH: Final = 64
"""Columns of a panel: four vectors of 16 float32."""
ROWS: Final = 6
"""Rows of a tile: with four vectors each, 24 of 32 vector registers."""
DEPTH: Final = 512
"""Elements of k in a block."""
BLOCK: Final = 40 * ROWS
"""Rows of the first operand that are gone over for one panel before the next panel."""

Element = Callable[[Expression, Expression], Expression]
"""From two indices to an element."""
Fill = Callable[[Expression, Expression, Expression], Sequence[Statement]]
"""From the first column of a panel, the first k and the number of them to statements that fill the buffer "panel"."""
Put = Callable[[Expression, Expression, Expression], Sequence[Statement]]
"""From a row, a column and an element of the product to statements that store it."""


def packed_size(rows: int, columns: int) -> int:
    """The elements of a matrix of these sizes in panels."""
    return rows * -(-columns // WIDTH) * WIDTH


def panels(columns: Expression) -> Expression:
    """The number of panels."""
    return apply("quotient", add(columns, index(WIDTH - 1)), index(WIDTH))


_ZERO: Final = index(0)


def _i(name: str) -> Name:
    return Name(name, "i64")


def _load(buffer: str, *indices: Expression) -> Load:
    return Load(buffer, indices, "f32")


def pack() -> Kernel:
    """`pack(k, n, row_stride, column_stride, b, packed)`: b (k, n), with its strides, in panels."""
    k, n = _i("k"), _i("n")
    fill = filled(lambda depth, column: _load("b", depth, column), n)
    place = multiply(multiply(_i("part"), k), index(WIDTH))
    body = fill(multiply(_i("part"), index(WIDTH)), index(0), k, "packed", place)
    sizes = tuple(Scalar(each, "i64") for each in ("k", "n", "row_stride", "column_stride"))
    b = Buffer("b", "f32", (k, n), (_i("row_stride"), _i("column_stride")))
    parameters: tuple[Parameter, ...] = (*sizes, b, Buffer("packed", "f32", None, access="out"))
    return Kernel("pack", parameters, (For("part", index(0), panels(n), tuple(body), kind="parallel"),))


def filled(element: Element, columns: Expression) -> Callable[..., Sequence[Statement]]:
    """A `Fill` with these elements, and zeros beyond the last column."""

    def fill(
        first: Expression, depth: Expression, deep: Expression, buffer: str = "panel", place: Expression = _ZERO
    ) -> Sequence[Statement]:
        column = add(first, _i("j"))
        target = (add(place, add(multiply(_i("at"), index(WIDTH)), _i("j"))),)
        inside = For("j", index(0), _i("inside"), (Store(buffer, target, element(add(depth, _i("at")), column)),))
        beyond = For("j", _i("inside"), index(WIDTH), (Store(buffer, target, constant(0, "f32")),))
        return (
            Let("inside", apply("minimum", apply("sub", columns, first), index(WIDTH))),
            For("at", index(0), deep, (inside, beyond)),
        )

    return fill


def product(
    m: Expression, n: Expression, k: Expression, a: Element, put: Put, packed: str = "", fill: Fill | None = None
) -> tuple[Statement, ...]:
    """(m, n) = (m, k) times (k, n), k at least 1: elements of the first from `a`, of the second from the buffer
    `packed`, or else from panels that are filled block by block, each for all rows.
    """
    rows = index(BLOCK) if packed else m
    blocks = apply("quotient", add(m, index(BLOCK - 1)), index(BLOCK)) if packed else index(1)
    part = (
        Let("number", apply("rest", _i("part"), _i("panels"))),
        Let("column", multiply(_i("number"), index(WIDTH))),
        Let("begin", multiply(apply("quotient", _i("part"), _i("panels")), rows)),
        Let("end", apply("minimum", add(_i("begin"), rows), m)),
        Allocate(Buffer("partial", "f32", (multiply(rows, index(WIDTH)),))),
        *([] if packed else [Allocate(Buffer("panel", "f32", (index(DEPTH * WIDTH),)))]),
        For("depth", index(0), k, (*_depth(a, k, packed, fill),), step=index(DEPTH)),
        *_finished(n, put),
    )
    return (
        Let("panels", panels(n)),
        For("part", index(0), multiply(_i("panels"), blocks), part, kind="parallel"),
    )


def _depth(a: Element, k: Expression, packed: str, fill: Fill | None) -> Iterator[Statement]:
    """One block of k, for all rows: tiles of `ROWS`, then what is left."""
    yield Let("deep", apply("minimum", apply("sub", k, _i("depth")), index(DEPTH)))
    if fill is not None:
        yield from fill(_i("column"), _i("depth"), _i("deep"))
    begin = multiply(add(multiply(_i("number"), k), _i("depth")), index(WIDTH)) if packed else index(0)
    yield Let("first", begin)
    yield Declare("row", _i("begin"))
    tile: tuple[Statement, ...] = ()
    for rows in (1, 2, 4, ROWS):
        fits = apply("le", add(_i("row"), index(rows)), _i("end"))
        body = (*_tile(rows, a, packed or "panel"), Assign("row", add(_i("row"), index(rows))))
        tile = (If(fits, body, tile),)
    yield While(apply("lt", _i("row"), _i("end")), tile)


def _tile(rows: int, a: Element, panel: str) -> Iterator[Statement]:
    """The sums of a tile, from "partial" and back: registers have no index that only the run tells."""
    j, size = _i("j"), index(rows * WIDTH)
    yield Let("rest", multiply(apply("sub", _i("row"), _i("begin")), index(WIDTH)))
    resting = (add(_i("rest"), j),)
    yield Allocate(Buffer("sums", "f32", (size,)))
    yield If(
        apply("eq", _i("depth"), index(0)),
        (For("j", index(0), size, (Store("sums", (j,), constant(0, "f32")),), kind="vector"),),
        (For("j", index(0), size, (Store("sums", (j,), _load("partial", *resting)),), kind="vector"),),
    )
    yield For("at", index(0), _i("deep"), (*_step(rows, a, panel),))
    yield For("j", index(0), size, (Store("partial", resting, _load("sums", j)),), kind="vector")


def _step(rows: int, a: Element, panel: str) -> Iterator[Statement]:
    """One element of k: each row's times the panel's."""
    for row in range(rows):
        yield Let(f"a{row}", a(add(_i("row"), index(row)), add(_i("depth"), _i("at"))))
    yield Let("line", add(_i("first"), multiply(_i("at"), index(WIDTH))))
    body: list[Statement] = [Let("b", _load(panel, add(_i("line"), _i("j"))))]
    for row in range(rows):
        place = (add(_i("j"), index(row * WIDTH)),)
        total = apply("fma", Name(f"a{row}", "f32"), Name("b", "f32"), _load("sums", *place))
        body.append(Store("sums", place, total))
    yield For("j", index(0), index(WIDTH), tuple(body), kind="vector")


def _finished(n: Expression, put: Put) -> Iterator[Statement]:
    """The elements of the part to whoever wants them."""
    column = add(_i("column"), _i("j"))
    value = _load("partial", add(_i("line"), _i("j")))
    row = For("j", index(0), _i("columns"), tuple(put(_i("row"), column, value)), kind="vector")
    line = Let("line", multiply(apply("sub", _i("row"), _i("begin")), index(WIDTH)))
    yield Let("columns", apply("minimum", apply("sub", n, _i("column")), index(WIDTH)))
    yield For("row", _i("begin"), _i("end"), (line, row))
