"""Convolutions of images of float32 in kernel IR, as products (see Note [Tiles of products]).

In: `Geometry`, which is known when compiling.  Out: statements.  The weights (rows: channels of the result) are
multiplied with what the windows show (columns: places of the result).  Where every channel has a kernel of its own
there is no product: each place is a sum over the kernel.

Note [Phases of images]
An image is copied with its border, each channel as some planes: a plane, or phase, has every `stride`-th row and column
from one of the first on.  An element of the kernel sees in neighbouring places neighbours in one phase, `reach` behind
the place.  So a tile reads its panel there, and nothing is laid out: its columns are positions in a phase; those at the
ends of rows, which are no places, are computed and left.  Of small images that is too many, whose panels are filled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from math import inf
from typing import Final

from engine.fuser.groups import gemm
from engine.fuser.groups.gemm import Columns, Matrix, Tile
from engine.fuser.ir.kernel import (
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
    Scalar,
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
from engine.lang.records import dataclass

_FEW: Final = 16
"""Panels up to which they are filled once for all rows: else too few threads would have work."""
_SMALL_BLOCK: Final = 48
"""The rows of a block then."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Rows and columns of the kernel, steps, borders and gaps.

    `block`: of rows of the product, for which panels are filled before; 0: where they are used.  `is_depthwise`: there
    are as many groups as channels.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    tile: Tile = field(default_factory=gemm.tile_for)
    block: int = 0
    is_depthwise: bool = False

    @property
    def is_padded(self) -> bool:
        return self.padding != (0, 0)

    @property
    def phases(self) -> tuple[tuple[int, int], ...]:
        """The first rows and columns of the phases that the kernel sees."""
        rows, columns = (
            dict.fromkeys(i * gap % step for i in range(side))
            for side, step, gap in zip(self.kernel, self.stride, self.dilation, strict=True)
        )
        return tuple((row, column) for row in rows for column in columns)

    @property
    def spread(self) -> tuple[int, int]:
        """The rows and columns that a phase has more than the result."""
        rows, columns = (
            (side - 1) * gap // step for side, step, gap in zip(self.kernel, self.stride, self.dilation, strict=True)
        )
        return rows, columns

    @property
    def is_pointwise(self) -> bool:
        """True if a place of the result sees one place of the image."""
        return self.kernel == (1, 1) and self.stride == (1, 1) and self.padding == (0, 0)


Put = Callable[[Expression, Expression], Sequence[Statement]]
"""From a channel and the value of the place `column` of it in image `image` to statements."""
SIZES: Final = tuple(Scalar(each, "i64") for each in ("n", "c", "h", "w", "o", "oh", "ow"))
"""Images, channels, rows and columns; channels, rows and columns of the result."""


def _i(name: str) -> Name:
    return Name(name, "i64")


def _load(buffer: str, *indices: Expression) -> Load:
    return Load(buffer, indices, "f32")


def _sum(*terms: Expression) -> Expression:
    total: Expression = index(0)
    for each in terms:
        total = add(total, each)
    return total


def operands() -> tuple[Buffer, ...]:
    """x (n, c, h, w) and weight, flat: both contiguous."""
    return Buffer("x", "f32", None), Buffer("weight", "f32", None)


def place(channel: Expression, column: Expression) -> Expression:
    """The index of an element of the result, (n, o, oh, ow)."""
    return add(multiply(add(multiply(_i("image"), _i("o")), channel), _i("places")), column)


def helpers(g: Geometry) -> tuple[Kernel, ...]:
    """The functions that a convolution calls."""
    return () if g.is_depthwise else gemm.helpers(g.tile)


def fitted(g: Geometry, outputs: int, sides: tuple[int, int]) -> Geometry:
    """The same with the tile and the block for so many channels, rows and columns of the result."""
    rows, columns = sides
    places, positions = rows * columns, rows * (columns + g.spread[1]) - g.spread[1]
    tile, wider = (gemm.tile_for(each, outputs, along="k") for each in (places, positions))
    if not g.is_pointwise and _vectors(positions, tile) <= _WORTH * _vectors(places, tile):
        tile, places = replace(wider, reaches=True), positions
    is_small = -(-places // tile.width) <= _FEW
    is_filled_often = outputs > gemm.BLOCK and not tile.reaches
    block = -(-_SMALL_BLOCK // tile.rows) * tile.rows if is_small or is_filled_often else 0
    return replace(g, tile=tile, block=block)


def _vectors(columns: int, tile: Tile) -> int:
    return -(-columns // tile.lanes)


_MANY_GROUPS: Final = 8
"""Groups from which on each is one thread's."""
_WORTH: Final = 1.1
"""Vectors, for each that places need, up to which all positions are computed rather than panels filled."""


@dataclass(frozen=True, slots=True)
class Pooling:
    """`function`: "max", of which what is beyond the border takes no part, or "mean", in which it counts as 0."""

    function: str

    @property
    def border(self) -> float:
        return -inf if self.function == "max" else 0


def pooling(g: Geometry, what: Pooling, put: Put) -> tuple[Statement, ...]:
    """All windows of all channels of all images."""
    return _images(g, _padded_sides(g), _window_by_window(g, put, what))


def convolution(g: Geometry, put: Put) -> tuple[Statement, ...]:
    """All images, one after the other."""
    if g.is_depthwise and g.stride != (1, 1):
        return _images(g, _padded_sides(g), _window_by_window(g, put))
    sides = [add(_i(each), index(more)) for each, more in zip(("oh", "ow"), g.spread, strict=True)]
    return _images(g, sides, _channel_by_channel(g, put) if g.is_depthwise else _products(g, put))


def _images(g: Geometry, sides: Sequence[Expression], image: Image) -> tuple[Statement, ...]:
    """The loop over all images, of which planes with these `sides` are copied."""
    before, inside = image
    return (
        Let("places", multiply(_i("oh"), _i("ow"))),
        Let("height", sides[0]),
        Let("width", sides[1]),
        Let("plane", multiply(*sides)),
        Let("area", multiply(index(len(g.phases)), _i("plane"))),
        Let("inputs", apply("quotient", _i("c"), index(g.groups))),
        Let("outputs", apply("quotient", _i("o"), index(g.groups))),
        *before,
        For("image", index(0), _i("n"), inside),
    )


Image = tuple[tuple[Statement, ...], tuple[Statement, ...]]
"""Statements before all images and for one."""


def _products(g: Geometry, put: Put) -> Image:
    if g.is_pointwise:
        return (), _groups(g, put)
    size, elements = multiply(_i("c"), _i("area")), g.kernel[0] * g.kernel[1]
    beyond = Store("padded", (add(size, _i("j")),), constant(0, "f32"))  # which the last panel may reach
    before = (
        allocate("padded", "f32", add(size, index(g.tile.width))),
        For("j", index(0), index(g.tile.width), (beyond,), kind="vector"),
        allocate("reach", "i64", multiply(_i("inputs"), index(elements))),
        For("channel", index(0), _i("inputs"), tuple(_reaches(g))),
    )
    planes = (*_phases(g, multiply(_i("channel"), _i("area"))),)
    return before, (For("channel", index(0), _i("c"), planes, kind="parallel"), *_groups(g, put))


def _reaches(g: Geometry) -> Iterator[Statement]:
    """The distance of each element of the kernel from the first one of all channels."""
    size = g.kernel[0] * g.kernel[1]
    for i in range(size):
        target = add(multiply(_i("channel"), index(size)), index(i))
        yield Store("reach", (target,), add(multiply(_i("channel"), _i("area")), _reach(g, i)))


def _reach(g: Geometry, element: int) -> Expression:
    """The distance of an element of the kernel from the first one of its channel."""
    down, right = (i * gap for i, gap in zip(divmod(element, g.kernel[1]), g.dilation, strict=True))
    phase = g.phases.index((down % g.stride[0], right % g.stride[1]))
    row = multiply(index(down // g.stride[0]), _i("width"))
    return _sum(multiply(index(phase), _i("plane")), row, index(right // g.stride[1]))


def _phases(g: Geometry, first: Expression) -> Iterator[Statement]:
    """The phases of a channel, from `first` on."""
    for number, start in enumerate(g.phases):
        yield from _plane_of(g, add(first, multiply(index(number), _i("plane"))), start, g.stride)


def _plane_of(
    g: Geometry, first: Expression, start: tuple[int, int] = (0, 0), stride: tuple[int, int] = (1, 1), border: float = 0
) -> tuple[Statement, ...]:
    """Rows and columns of a channel with its border, from `start` on, at "padded" from `first` on."""
    (top, left), (down, right) = ((p - s for p, s in zip(g.padding, start, strict=True)), stride)
    line = add(first, multiply(_i("row"), _i("width")))
    source_row = add(multiply(_i("row"), index(down)), index(-top))
    source = add(multiply(add(multiply(_i("image"), _i("c")), _i("channel")), _i("h")), _i("source_row"))
    is_inside = apply("bitand", apply("ge", _i("source_row"), index(0)), apply("lt", _i("source_row"), _i("h")))
    begin = apply("minimum", index(max(0, -(-left // right))), _i("width"))
    end = apply("quotient", apply("maximum", add(_i("w"), index(left + right - 1)), index(0)), index(right))
    end = apply("maximum", apply("minimum", end, _i("width")), _i("begin"))

    def beyond(start: Expression, stop: Expression) -> For:
        return For("j", start, stop, (Store("padded", (add(_i("line"), _i("j")),), constant(border, "f32")),))

    copied = _load("x", _sum(_i("source"), multiply(_i("j"), index(right)), index(-left)))
    row = (
        Let("line", line), Let("source_row", source_row), Let("source", multiply(source, _i("w"))),
        Let("begin", begin), Let("end", apply("select", is_inside, end, _i("begin"))),
        beyond(index(0), _i("begin")),
        For("j", _i("begin"), _i("end"), (Store("padded", (add(_i("line"), _i("j")),), copied),), kind="vector"),
        beyond(_i("end"), _i("width")),
    )  # fmt: skip
    return (For("row", index(0), _i("height"), row),)


def _channel_by_channel(g: Geometry, put: Put) -> Image:
    """Each channel by itself: sums over the kernel for all positions, in long rows, of which the places are wanted."""
    size = g.kernel[0] * g.kernel[1]
    reaches = [Let(f"reach{i}", _reach(g, i)) for i in range(size)]
    total: Expression = constant(0, "f32")
    for i in range(size):
        total = apply("muladd", Name(f"weight{i}", "f32"), _load("padded", add(_i(f"reach{i}"), _i("j"))), total)
    element = add(multiply(_i("row"), _i("width")), _i("j"))
    value = (Let("sum", _load("sums", element)), Let("column_", add(multiply(_i("row"), _i("ow")), _i("j"))))
    places = For("j", index(0), _i("ow"), (*value, *put(_i("into"), Name("sum", "f32"))), kind="vector")
    result: tuple[Statement, ...] = (
        Let("into", add(multiply(_i("channel"), _i("outputs")), _i("of"))),
        *_weights(g),
        For("j", index(0), _positions(), (Store("sums", (_i("j"),), total),), kind="vector"),
        For("row", index(0), _i("oh"), (places,)),
    )
    channel: tuple[Statement, ...] = (
        allocate("padded", "f32", _i("area")),
        allocate("sums", "f32", _i("plane")),
        *_phases(g, index(0)),
        *reaches,
        For("of", index(0), _i("outputs"), result),
    )
    return (), (For("channel", index(0), _i("c"), channel, kind="parallel"),)


def _positions() -> Expression:
    """The number of positions in a phase from the first place to the last."""
    return add(multiply(add(_i("oh"), index(-1)), _i("width")), _i("ow"))


def _weights(g: Geometry) -> list[Let]:
    """The kernel of the channel `into`."""
    size = g.kernel[0] * g.kernel[1]
    first = multiply(_i("into"), index(size))
    return [Let(f"weight{i}", _load("weight", add(first, index(i)))) for i in range(size)]


def _padded_sides(g: Geometry) -> list[Expression]:
    return [add(_i(each), index(2 * p)) for each, p in zip("hw", g.padding, strict=True)]


def _window_by_window(g: Geometry, put: Put, what: Pooling | None = None) -> Image:
    """Each channel by itself, which gets its border while it is in the cache: pooled, or sums over the kernel."""
    padded = allocate("padded", "f32", _i("plane"))
    border = (padded, *_plane_of(g, index(0), border=what.border if what else 0)) if g.is_padded else ()
    place = add(multiply(_i("image"), _i("c")), _i("channel"))
    first = index(0) if g.is_padded else multiply(place, _i("plane"))
    windows = _windows(g, put, "padded" if g.is_padded else "x", what)
    plane: tuple[Statement, ...] = (Let("into", _i("channel")), windows)
    if what is None:
        into = Let("into", add(multiply(_i("channel"), _i("outputs")), _i("of")))
        plane = (For("of", index(0), _i("outputs"), (into, *_weights(g), windows)),)
    channel: tuple[Statement, ...] = (*border, Let("origin", first), *plane)
    return (), (For("channel", index(0), _i("c"), channel, kind="parallel"),)


def _windows(g: Geometry, put: Put, source: str, what: Pooling | None) -> For:
    """The channel `into` of the result from the elements of `source` after `origin`."""
    rows, columns = g.kernel
    size, across = rows * columns, multiply(_i("j"), index(g.stride[1]))
    starts: list[Let] = []
    total: Expression = constant(what.border if what else 0, "f32")
    for i in range(size):
        down = add(multiply(_i("row"), index(g.stride[0])), index(i // columns * g.dilation[0]))
        start = _sum(_i("origin"), multiply(down, _i("width")), index(i % columns * g.dilation[1]))
        starts.append(Let(f"start{i}", start))
        element = _load(source, add(_i(f"start{i}"), across))
        if what is None:
            total = apply("muladd", Name(f"weight{i}", "f32"), element, total)
        else:
            total = apply("maximum" if what.function == "max" else "add", element, total)
    if what is not None and what.function == "mean":
        total = apply("div", total, constant(size, "f32"))
    value = (Let("sum", total), Let("column_", add(multiply(_i("row"), _i("ow")), _i("j"))))
    body: tuple[Statement, ...] = (*value, *put(_i("into"), Name("sum", "f32")))
    return For("row", index(0), _i("oh"), (*starts, For("j", index(0), _i("ow"), body, kind="vector")))


def _groups(g: Geometry, put: Put) -> tuple[Statement, ...]:
    channels = multiply(_i("group"), _i("inputs"))
    of_image = multiply(add(multiply(_i("image"), _i("c")), channels), _i("places"))
    begin = of_image if g.is_pointwise else multiply(channels, _i("area"))
    rows = multiply(_i("group"), _i("outputs"))
    k = multiply(_i("inputs"), index(g.kernel[0] * g.kernel[1]))
    body = (Let("origin", begin), Let("into", rows), Let("k", k), *_product(g, put))
    if g.groups < _MANY_GROUPS:
        return (For("group", index(0), index(g.groups), body),)
    body = tuple(replace(each, kind="range") if isinstance(each, For) else each for each in body)
    return (For("group", index(0), index(g.groups), body, kind="parallel"),)


def _product(g: Geometry, put: Put) -> tuple[Statement, ...]:
    """The weights of a group by the places of an image."""
    k, rows, places = _i("k"), _i("outputs"), _i("places")
    a = Matrix("weight", k, first=multiply(_i("into"), k))
    of = partial(gemm.product, rows, k=k, a=a, tile=g.tile, block=g.block or gemm.BLOCK)

    def element(row: Expression, column: Expression, value: Expression) -> Sequence[Statement]:
        return (Let("column_", column), *put(add(_i("into"), row), value))

    if g.tile.reaches:
        b = Matrix("padded", index(0), first=_i("origin"), reach="reach")

        def at_place(row: Expression, position: Expression, value: Expression) -> Sequence[Statement]:
            return element(row, add(position, _i("shift")), value)

        before = partial(_runs, line=_i("width"), other=_i("ow"), inside=_i("columns"), tile=g.tile)
        return of(_positions(), put=at_place, b=b, columns=Columns(_each_run, before))
    fill = _pointwise_fill(g.tile) if g.is_pointwise else _window_fill(g)
    if not g.block:
        return of(places, put=element, fill=fill)
    packed = allocate("packed", "f32", gemm.packed_size(k, places, g.tile))
    return (packed, gemm.packing(places, k, fill, "packed", g.tile), *of(places, put=element, packed="packed"))


def _pointwise_fill(tile: Tile) -> gemm.Fill:
    def element(depth: Expression, column: Expression) -> Expression:
        return _load("x", add(add(_i("origin"), multiply(depth, _i("places"))), column))

    return gemm.filled(element, _i("places"), tile)


def _window_fill(g: Geometry) -> gemm.Fill:
    """Panels of what windows show: runs of places in one row of the result are runs in one row of a phase."""
    width = index(g.tile.width)

    def fill(
        first: Expression, depth: Expression, deep: Expression, buffer: str, at: Expression
    ) -> Sequence[Statement]:
        target = _sum(at, multiply(_i("at"), width), _i("j"))

        def copied(j: Expression) -> Sequence[Statement]:
            return (Store(buffer, (target,), _load("padded", _sum(_i("seen"), _i("shift"), j))),)

        seen = _sum(_i("origin"), first, _load_whole("reach", add(depth, _i("at"))))
        zeros = For("j", _i("inside"), width, (Store(buffer, (target,), constant(0, "f32")),), kind="vector")
        return (
            Let("inside", apply("minimum", apply("sub", _i("places"), first), width)),
            *_runs(first, _i("ow"), _i("width"), _i("inside"), g.tile),
            For("at", index(0), deep, (Let("seen", seen), _each_run(g.tile.width, copied), zeros)),
        )

    return fill


def _load_whole(buffer: str, at: Expression) -> Load:
    return Load(buffer, (at,), "i64")


def _runs(
    first: Expression, line: Expression, other: Expression, inside: Expression, tile: Tile
) -> tuple[Statement, ...]:
    """Of the columns of a panel: those of one row each, as far as they are places, and their shift to other rows.

    Columns are numbers in rows of the length `line`; with the shift they are numbers in rows of the length `other`.
    """
    row, column = (apply(each, add(first, _i("start")), line) for each in ("quotient", "rest"))
    left = apply("sub", _i("ow"), _i("across"))  # nothing where the column is no place
    body: tuple[Statement, ...] = (
        Let("across", column),
        Store("starts", (_i("runs"),), _i("start")),
        Store("ends", (_i("runs"),), apply("minimum", add(_i("start"), left), inside)),
        Store("shifts", (_i("runs"),), multiply(row, apply("sub", other, line))),
        Assign("start", add(_i("start"), apply("sub", line, _i("across")))),
        Assign("runs", add(_i("runs"), index(1))),
    )
    return (
        *(allocate(each, "i64", index(tile.width)) for each in ("starts", "ends", "shifts")),
        Declare("start", index(0)),
        Declare("runs", index(0)),
        While(apply("lt", _i("start"), inside), body),
    )


def _each_run(width: int, body: Callable[[Expression], Sequence[Statement]]) -> Statement:
    """The loop over the columns of all runs."""
    start, end = (_load_whole(each, _i("run")) for each in ("starts", "ends"))
    shift = Let("shift", _load_whole("shifts", _i("run")))
    run = (shift, For("j", start, end, tuple(body(_i("j"))), kind="vector"))
    whole = (Let("run", index(0)), shift, gemm.columns_loop(index(width), body))
    is_whole = apply("eq", _load_whole("ends", index(0)), index(width))
    return If(is_whole, whole, (For("run", index(0), _i("runs"), run),))
