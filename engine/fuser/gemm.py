"""Matrix products of float32 with a second operand that is packed once, as kernels.

In: nothing.  Out: `pack(rows)`, which copies a matrix into panels, and `product(epilogue)`, which multiplies by them and
hands each finished element to the epilogue: bias, activation, residual.

Note [Tiles of products]
A panel holds `WIDTH` columns of the second operand, element (k, j) at k * WIDTH + j, with zeros beyond the last column.
A tile is `ROWS` rows of the result by one panel: its sums are a small array, which LLVM keeps in vector registers as all
indices into it are constants once the innermost loops are unrolled.  Where k is long, it is done in blocks, so that a
block of a panel stays in the cache while tile after tile uses it; sums rest in the result meanwhile.
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

Epilogue = Callable[[Expression, Expression, Expression], Expression]
"""From an element of the product, its row and its column to what is stored."""


def packed_size(rows: int, columns: int) -> int:
    """The elements of a matrix of these sizes in panels."""
    return rows * -(-columns // WIDTH) * WIDTH


def _i(name: str) -> Name:
    return Name(name, "i64")


def _load(buffer: str, *indices: Expression) -> Load:
    return Load(buffer, indices, "f32")


def _panels(columns: Expression) -> Expression:
    return apply("quotient", add(columns, index(WIDTH - 1)), index(WIDTH))


def pack() -> Kernel:
    """`pack(k, n, row_stride, column_stride, b, packed)`: b (k, n), with its strides, in panels."""
    k, n, panel, at, j = _i("k"), _i("n"), _i("panel"), _i("at"), _i("j")
    column = add(multiply(panel, index(WIDTH)), j)
    target = add(multiply(add(multiply(panel, k), at), index(WIDTH)), j)
    copy = If(
        apply("lt", column, n),
        (Store("packed", (target,), _load("b", at, column)),),
        (Store("packed", (target,), constant(0, "f32")),),
    )
    body = (For("at", index(0), k, (For("j", index(0), index(WIDTH), (copy,)),)),)
    parameters: tuple[Parameter, ...] = (
        *(Scalar(each, "i64") for each in ("k", "n", "row_stride", "column_stride")),
        Buffer("b", "f32", (k, n), (_i("row_stride"), _i("column_stride"))),
        Buffer("packed", "f32", None, access="out"),
    )
    return Kernel("pack", parameters, (For("panel", index(0), _panels(n), body, kind="parallel"),))


def product(
    name: str = "product", epilogue: Epilogue = lambda value, row, column: value, more: Sequence[Parameter] = ()
) -> Kernel:
    """`product(m, n, k, row_stride, a, packed, c, more...)`: c (m, n) = epilogue(a (m, k) times the packed matrix).

    `more`: what the epilogue reads.
    """
    m, n, k = _i("m"), _i("n"), _i("k")
    parts = apply("quotient", add(m, index(BLOCK - 1)), index(BLOCK))
    parameters = (
        *(Scalar(each, "i64") for each in ("m", "n", "k", "row_stride")),
        Buffer("a", "f32", (m, k), (_i("row_stride"), index(1))), Buffer("packed", "f32", None),
        Buffer("c", "f32", (m, n), access="out"), *more,
    )  # fmt: skip
    part = (
        Let("panel", apply("rest", _i("part"), _i("panels"))),
        Let("begin", multiply(apply("quotient", _i("part"), _i("panels")), index(BLOCK))),
        Let("end", apply("minimum", add(_i("begin"), index(BLOCK)), m)),
        For("depth", index(0), k, (*_rows_of_block(epilogue),), step=index(DEPTH)),
    )
    body: tuple[Statement, ...] = (
        Let("panels", _panels(n)),
        For("part", index(0), multiply(_i("panels"), parts), part, kind="parallel"),
    )
    return Kernel(name, parameters, body)


def _rows_of_block(epilogue: Epilogue) -> Iterator[Statement]:
    """All tiles of the block's rows: whole ones, then what is left, of fewer rows."""
    yield Let("deep", apply("minimum", apply("sub", _i("k"), _i("depth")), index(DEPTH)))
    yield Allocate(Buffer("tile", "f32", (index(ROWS * WIDTH),)))
    yield Declare("row", _i("begin"))
    yield Declare("rows", index(0))
    tile: tuple[Statement, ...] = ()
    for rows in (1, 2, 4, ROWS):
        fits = apply("le", add(_i("row"), index(rows)), _i("end"))
        tile = (If(fits, (*_tile(rows), Assign("rows", index(rows))), tile),)
    following = Assign("row", add(_i("row"), _i("rows")))
    yield While(apply("lt", _i("row"), _i("end")), (*tile, *_written(epilogue), following))


def _tile(rows: int) -> Iterator[Statement]:
    """The sums of a tile, in "tile": registers have no index that only the run tells."""
    place = (_i("j"),)
    yield Allocate(Buffer("sums", "f32", (index(rows * WIDTH),)))
    yield For("j", index(0), index(rows * WIDTH), (Store("sums", place, constant(0, "f32")),), kind="vector")
    yield For("at", index(0), _i("deep"), (*_step(rows),))
    yield For("j", index(0), index(rows * WIDTH), (Store("tile", place, _load("sums", *place)),), kind="vector")


def _step(rows: int) -> Iterator[Statement]:
    """One element of k: each row's times the panel's."""
    depth = add(_i("depth"), _i("at"))
    for row in range(rows):
        yield Let(f"a{row}", _load("a", add(_i("row"), index(row)), depth))
    yield Let("first", multiply(add(multiply(_i("panel"), _i("k")), depth), index(WIDTH)))
    body: list[Statement] = [Let("b", _load("packed", add(_i("first"), _i("j"))))]
    for row in range(rows):
        place = (add(_i("j"), index(row * WIDTH)),)
        total = apply("fma", Name(f"a{row}", "f32"), Name("b", "f32"), _load("sums", *place))
        body.append(Store("sums", place, total))
    yield For("j", index(0), index(WIDTH), tuple(body), kind="vector")


def _written(epilogue: Epilogue) -> Iterator[Statement]:
    """The tile into the result, on top of the blocks before, and through the epilogue after the last one."""
    is_first = apply("eq", _i("depth"), index(0))
    is_last = apply("ge", add(_i("depth"), index(DEPTH)), _i("k"))
    place = (add(_i("row"), _i("r")), add(multiply(_i("panel"), index(WIDTH)), _i("j")))
    own = _load("tile", add(multiply(_i("r"), index(WIDTH)), _i("j")))
    total = apply("add", _load("c", *place), own)

    def elements(value: Expression) -> For:
        row = For("j", index(0), _i("columns"), (Store("c", place, value),), kind="vector")
        return For("r", index(0), _i("rows"), (row,))

    yield Let("columns", apply("minimum", apply("sub", _i("n"), multiply(_i("panel"), index(WIDTH))), index(WIDTH)))
    yield If(
        is_last,
        (If(is_first, (elements(epilogue(own, *place)),), (elements(epilogue(total, *place)),)),),
        (If(is_first, (elements(own),), (elements(total),)),),
    )
