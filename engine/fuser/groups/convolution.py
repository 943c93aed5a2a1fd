"""Convolutions of images of float32 in kernel IR, as products (see Note [Tiles of products]).

In: `Geometry`, which is known when compiling.  Out: statements.  The weights (rows: channels of the result) are
multiplied with what the windows show (columns: places of the result).  Where every channel has a kernel of its own
there is no product: each place is a sum over the kernel.

Note [Phases of images]
An image is copied with its border, each channel as some planes: a plane, or phase, has every `stride`-th row and column
from one of the first on.  An element of the kernel sees in neighbouring places neighbours in one phase, `reach` behind
the place.  So a tile reads its panel there, and nothing is laid out: its columns are positions in a phase; those at the
ends of rows, which are no places, are computed and left.  Of small images that is too many: these have a phase for each
column of the kernel, as wide as the result, in which positions are places ("compact").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from math import inf
from typing import Final

from engine.fuser.backend.target import current
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


@dataclass(frozen=True, slots=True)
class Geometry:
    """Rows and columns of the kernel, steps, borders and gaps.

    `block`: of rows of the product that a thread takes at a time.  `is_depthwise`: there are as many groups as
    channels.  `is_compact`: each column of the kernel has a phase.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    tile: Tile = field(default_factory=gemm.tile_for)
    block: int = gemm.BLOCK
    is_depthwise: bool = False
    is_compact: bool = False

    @property
    def is_padded(self) -> bool:
        return self.padding != (0, 0)

    @property
    def columns(self) -> tuple[int, ...]:
        """The first columns of phases with the same rows."""
        every = range(0, self.kernel[1] * self.dilation[1], self.dilation[1])
        return tuple(dict.fromkeys(each if self.is_compact else each % self.stride[1] for each in every))

    @property
    def phases(self) -> tuple[tuple[int, int], ...]:
        """The first rows and columns of the phases that the kernel sees."""
        rows = dict.fromkeys(i * self.dilation[0] % self.stride[0] for i in range(self.kernel[0]))
        return tuple((row, column) for row in rows for column in self.columns)

    @property
    def spread(self) -> tuple[int, int]:
        """The rows and columns that a phase has more than the result.

        The border after a row is that before the next one, where each column is in one phase.
        """
        rows, columns = (
            (side - 1) * gap // step for side, step, gap in zip(self.kernel, self.stride, self.dilation, strict=True)
        )
        if self.is_compact:
            return rows, 0
        return rows, columns - (min(self.padding[1], columns) if self.stride[1] == 1 else 0)

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
    tile = gemm.tile_for(places, outputs, along="k")
    if not g.is_pointwise:
        g = replace(g, is_compact=_vectors(positions, tile) > _WORTH * _vectors(places, tile))
        places = places if g.is_compact else positions
        tile = replace(gemm.tile_for(places, outputs, along="k"), reaches=True)
        is_shared = g.kernel[1] >= 2 * len(g.columns)
        tile = tile if is_shared else replace(tile, depth=_DEPTHS[current().registers])
    block = gemm.block_for(outputs, tile, -(-_PARTS // -(-places // tile.width)))
    return replace(g, tile=tile, block=block)


def _vectors(columns: int, tile: Tile) -> int:
    return -(-columns // tile.lanes)


_WORTH: Final = 1.05
"""Vectors, for each that places need, up to which all positions are computed rather than columns copied again."""
_DEPTHS: Final = {16: 128, 32: 256}
"""By the number of registers the elements of k in a block, of which each reads other lines of memory: few for small
tiles, which are soon back at a line."""
_PARTS: Final = 16
"""Parts that products are in at least, so that threads share them evenly."""
_MANY_GROUPS: Final = 8
"""Groups from which on each is one thread's."""


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
    more = index(g.padding[1] + g.tile.width)  # which the last panel may reach
    before = (
        allocate("padded", "f32", add(size, more)),
        *_beyond(size, more),
        allocate("reach", "i64", multiply(_i("inputs"), index(elements))),
        For("channel", index(0), _i("inputs"), tuple(_reaches(g))),
    )
    planes = (*_phases(g, multiply(_i("channel"), _i("area"))),)
    return before, (For("channel", index(0), _i("c"), planes, kind="parallel"), *_groups(g, put))


def _beyond(first: Expression, more: Expression) -> tuple[Statement, ...]:
    """Zeros at the end of "padded"."""
    return (For("j", index(0), more, (Store("padded", (add(first, _i("j")),), constant(0, "f32")),), kind="vector"),)


def _reaches(g: Geometry) -> Iterator[Statement]:
    """The distance of each element of the kernel from the first one of all channels."""
    size = g.kernel[0] * g.kernel[1]
    for i in range(size):
        target = add(multiply(_i("channel"), index(size)), index(i))
        yield Store("reach", (target,), add(multiply(_i("channel"), _i("area")), _reach(g, i)))


def _reach(g: Geometry, element: int) -> Expression:
    """The distance of an element of the kernel from the first one of its channel."""
    down, right = (i * gap for i, gap in zip(divmod(element, g.kernel[1]), g.dilation, strict=True))
    first = right if g.is_compact else right % g.stride[1]
    phase = g.phases.index((down % g.stride[0], first))
    row = multiply(index(down // g.stride[0]), _i("width"))
    return _sum(multiply(index(phase), _i("plane")), row, index((right - first) // g.stride[1]))


def _phases(g: Geometry, first: Expression) -> Iterator[Statement]:
    """The phases of a channel, from `first` on: those of the same rows together."""
    for number, row in enumerate(dict.fromkeys(row for row, _ in g.phases)):
        origin = add(first, multiply(index(number * len(g.columns)), _i("plane")))
        yield _planes_of(g, origin, row, g.columns, g.stride)


def _planes_of(
    g: Geometry, first: Expression, start: int = 0, columns: Sequence[int] = (0,), stride: tuple[int, int] = (1, 1),
    border: float = 0,
) -> Statement:  # fmt: skip
    """Planes of a channel with its border, at "padded" from `first` on: from a row on, one for each first column."""
    (down, right), across = stride, multiply(_i("j"), index(stride[1]))
    source = add(multiply(add(multiply(_i("image"), _i("c")), _i("channel")), _i("h")), _i("source_row"))
    is_inside = apply("bitand", apply("ge", _i("source_row"), index(0)), apply("lt", _i("source_row"), _i("h")))
    lefts = [g.padding[1] - each for each in columns]
    begin = apply("minimum", index(max(0, -(-max(lefts) // right))), _i("width"))
    end = apply("quotient", apply("maximum", add(_i("w"), index(min(lefts) + right - 1)), index(0)), index(right))
    end = apply("maximum", apply("minimum", end, _i("width")), _i("begin"))
    lines = [
        add(first, multiply(add(multiply(index(p), _i("height")), _i("row")), _i("width"))) for p in range(len(lefts))
    ]

    def at(phase: int, value: Expression) -> Store:
        return Store("padded", (add(_i(f"line{phase}"), _i("j")),), value)

    def shown(left: int) -> Load:
        return _load("x", _sum(_i("source"), across, index(-left)))

    def edge(start: Expression, stop: Expression) -> For:
        body: list[Statement] = [at(phase, constant(border, "f32")) for phase in range(len(lefts))]
        for phase, left in enumerate(lefts) if len(lefts) > 1 else ():
            column = add(across, index(-left))
            is_column = apply("bitand", apply("ge", column, index(0)), apply("lt", column, _i("w")))
            body.append(If(apply("bitand", is_inside, is_column), (at(phase, shown(left)),)))
        return For("j", start, stop, tuple(body))

    copied = tuple(at(phase, shown(left)) for phase, left in enumerate(lefts))
    row: tuple[Statement, ...] = (
        *(Let(f"line{phase}", line) for phase, line in enumerate(lines)),
        Let("source_row", add(multiply(_i("row"), index(down)), index(start - g.padding[0]))),
        Let("source", multiply(source, _i("w"))),
        Let("begin", begin), Let("end", apply("select", is_inside, end, _i("begin"))),
        edge(index(0), _i("begin")),
        For("j", _i("begin"), _i("end"), copied, kind="vector"),
        edge(_i("end"), _i("width")),
    )  # fmt: skip
    return For("row", index(0), _i("height"), row)


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
        allocate("padded", "f32", add(_i("area"), index(g.padding[1]))),
        *_beyond(_i("area"), index(g.padding[1])),
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
    border = (padded, _planes_of(g, index(0), border=what.border if what else 0)) if g.is_padded else ()
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
    of = partial(gemm.product, rows, k=k, a=a, tile=g.tile, block=g.block)

    def element(row: Expression, column: Expression, value: Expression) -> Sequence[Statement]:
        return (Let("column_", column), *put(add(_i("into"), row), value))

    if g.is_pointwise and g.block < gemm.BLOCK:  # which several blocks of rows use
        packed = allocate("packed", "f32", gemm.packed_size(k, places, g.tile))
        filling = gemm.packing(places, k, _pointwise_fill(g.tile), "packed", g.tile)
        return (packed, filling, *of(places, put=element, packed="packed"))
    if g.is_pointwise:
        return of(places, put=element, fill=_pointwise_fill(g.tile))
    b = Matrix("padded", index(0), first=_i("origin"), reach="reach")
    if g.is_compact:
        return of(places, put=element, b=b)

    def at_place(row: Expression, position: Expression, value: Expression) -> Sequence[Statement]:
        return element(row, add(position, _i("shift")), value)

    return of(_positions(), put=at_place, b=b, columns=Columns(_each_run, partial(_runs, tile=g.tile)))


def _pointwise_fill(tile: Tile) -> gemm.Fill:
    def element(depth: Expression, column: Expression) -> Expression:
        return _load("x", add(add(_i("origin"), multiply(depth, _i("places"))), column))

    return gemm.filled(element, _i("places"), tile)


def _load_whole(buffer: str, at: Expression) -> Load:
    return Load(buffer, (at,), "i64")


def _runs(first: Expression, tile: Tile) -> tuple[Statement, ...]:
    """Of the columns of a panel, which are positions: those of one row each, as far as they are places, and their shift
    to places."""
    row, column = (apply(each, add(first, _i("start")), _i("width")) for each in ("quotient", "rest"))
    left = apply("sub", _i("ow"), _i("across"))  # nothing where the column is no place
    body: tuple[Statement, ...] = (
        Let("across", column),
        Store("starts", (_i("runs"),), _i("start")),
        Store("ends", (_i("runs"),), apply("minimum", add(_i("start"), left), _i("columns"))),
        Store("shifts", (_i("runs"),), multiply(row, apply("sub", _i("ow"), _i("width")))),
        Assign("start", add(_i("start"), apply("sub", _i("width"), _i("across")))),
        Assign("runs", add(_i("runs"), index(1))),
    )
    return (
        *(allocate(each, "i64", index(tile.width)) for each in ("starts", "ends", "shifts")),
        Declare("start", index(0)),
        Declare("runs", index(0)),
        While(apply("lt", _i("start"), _i("columns")), body),
    )


def _each_run(width: int, body: Callable[[Expression], Sequence[Statement]]) -> Statement:
    """The loop over the columns of all runs."""
    start, end = (_load_whole(each, _i("run")) for each in ("starts", "ends"))
    shift = Let("shift", _load_whole("shifts", _i("run")))
    run = (shift, For("j", start, end, tuple(body(_i("j"))), kind="vector"))
    whole = (Let("run", index(0)), shift, gemm.columns_loop(index(width), body))
    is_whole = apply("eq", _load_whole("ends", index(0)), index(width))
    return If(is_whole, whole, (For("run", index(0), _i("runs"), run),))
