"""Convolutions of images of float32 in kernel IR, as products (see Note [Tiles of products]).

In: `Geometry`, which is known when compiling.  Out: statements.  The weights (rows: channels of the result) are
multiplied with what the windows show (columns: places of the result), which is laid out panel by panel while a panel is
in the cache; images with a border are copied with it first.  Where every channel has a kernel of its own there is no
product: each place is a sum over the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import inf
from typing import Final

from engine.fuser.groups import gemm
from engine.fuser.groups.gemm import Matrix, Tile
from engine.fuser.ir.kernel import (
    Assign,
    Buffer,
    Declare,
    Expression,
    For,
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


def tile_for(outputs: int, places: int) -> tuple[Tile, int]:
    """The tile and the block for products of so many rows and columns."""
    tile = gemm.tile_for(places, outputs, along="k")
    if outputs > gemm.BLOCK or -(-places // tile.width) <= _FEW:
        return tile, -(-_SMALL_BLOCK // tile.rows) * tile.rows
    return tile, 0


@dataclass(frozen=True, slots=True)
class Pooling:
    """`function`: "max", of which what is beyond the border takes no part, or "mean", in which it counts as 0."""

    function: str

    @property
    def border(self) -> float:
        return -inf if self.function == "max" else 0


def pooling(g: Geometry, what: Pooling, put: Put) -> tuple[Statement, ...]:
    """All windows of all channels of all images."""
    return _images(g, _channel_by_channel(g, put, what))


def convolution(g: Geometry, put: Put) -> tuple[Statement, ...]:
    """All images, one after the other."""
    return _images(g, _channel_by_channel(g, put) if g.is_depthwise else _products(g, put))


def _images(g: Geometry, image: Image) -> tuple[Statement, ...]:
    height, width = (add(_i(each), index(2 * p)) for each, p in zip("hw", g.padding, strict=True))
    before, inside = image
    return (
        Let("places", multiply(_i("oh"), _i("ow"))),
        Let("height", height),
        Let("width", width),
        Let("inputs", apply("quotient", _i("c"), index(g.groups))),
        Let("outputs", apply("quotient", _i("o"), index(g.groups))),
        *before,
        For("image", index(0), _i("n"), inside),
    )


Image = tuple[tuple[Statement, ...], tuple[Statement, ...]]
"""Statements before all images and for one."""


def _products(g: Geometry, put: Put) -> Image:
    if not g.is_padded:
        return (), _groups(g, put, "x")
    padded = allocate("padded", "f32", multiply(_i("c"), multiply(_i("height"), _i("width"))))
    border = For("channel", index(0), _i("c"), _padded(g, multiply(_i("channel"), _i("height"))), kind="parallel")
    return (padded,), (border, *_groups(g, put, "padded"))


def _padded(g: Geometry, first: Expression, border: float = 0) -> tuple[Statement, ...]:
    """A channel of the image with its border, from the row `first` on."""
    top, left = g.padding
    line = multiply(add(first, _i("row")), _i("width"))
    source = multiply(
        _sum(multiply(add(multiply(_i("image"), _i("c")), _i("channel")), _i("h")), _i("row"), index(-top)), _i("w")
    )
    is_inside = apply("bitand", apply("ge", _i("row"), index(top)), apply("lt", _i("row"), add(_i("h"), index(top))))
    left_end = apply("select", is_inside, index(left), _i("width"))

    def beyond(start: Expression, stop: Expression) -> For:
        return For("j", start, stop, (Store("padded", (add(_i("line"), _i("j")),), constant(border, "f32")),))

    copy = Store("padded", (_sum(_i("line"), index(left), _i("j")),), _load("x", add(_i("source"), _i("j"))))
    length = apply("select", is_inside, _i("w"), index(0))
    row = (
        Let("line", line), Let("source", source), Let("border", left_end), beyond(index(0), _i("border")),
        For("j", index(0), length, (copy,), kind="vector"),
        beyond(add(_i("border"), _i("w")), _i("width")),
    )  # fmt: skip
    return (For("row", index(0), _i("height"), row),)


def _channel_by_channel(g: Geometry, put: Put, pooling: Pooling | None = None) -> Image:
    """Each channel by itself, which gets its border while it is in the cache."""
    padded = allocate("padded", "f32", multiply(_i("height"), _i("width")))
    beyond = pooling.border if pooling is not None else 0
    border = (padded, *_padded(g, index(0), beyond)) if g.is_padded else ()
    place = add(multiply(_i("image"), _i("c")), _i("channel"))
    first = index(0) if g.is_padded else multiply(multiply(place, _i("height")), _i("width"))
    source, of = "padded" if g.is_padded else "x", add(multiply(_i("channel"), _i("outputs")), _i("of"))
    plane: tuple[Statement, ...]
    if pooling is not None:
        plane = (Let("into", _i("channel")), *_plane(g, put, source, pooling))
    else:
        plane = (For("of", index(0), _i("outputs"), (Let("into", of), *_plane(g, put, source))),)
    channel: tuple[Statement, ...] = (*border, Let("origin", first), *plane)
    return (), (For("channel", index(0), _i("c"), channel, kind="parallel"),)


def _plane(g: Geometry, put: Put, source: str, pooling: Pooling | None = None) -> tuple[Statement, ...]:
    """The channel `into` of the result from the elements of `source` after `from`."""
    rows, columns = g.kernel
    size, across = rows * columns, multiply(_i("j"), index(g.stride[1]))
    weights = [
        Let(f"weight{i}", _load("weight", add(multiply(_i("into"), index(size)), index(i)))) for i in range(size)
    ]
    weights = weights if pooling is None else []
    starts: list[Let] = []
    total: Expression = constant(0 if pooling is None else pooling.border, "f32")
    for i in range(size):
        down = add(multiply(_i("row"), index(g.stride[0])), index(i // columns * g.dilation[0]))
        start = _sum(_i("origin"), multiply(down, _i("width")), index(i % columns * g.dilation[1]))
        starts.append(Let(f"start{i}", start))
        element = _load(source, add(_i(f"start{i}"), across))
        if pooling is None:
            total = apply("fma", Name(f"weight{i}", "f32"), element, total)
        else:
            total = apply("maximum" if pooling.function == "max" else "add", element, total)
    if pooling is not None and pooling.function == "mean":
        total = apply("div", total, constant(size, "f32"))
    value = (Let("sum", total), Let("column_", add(multiply(_i("row"), _i("ow")), _i("j"))))
    body: tuple[Statement, ...] = (*value, *put(_i("into"), Name("sum", "f32")))
    row: tuple[Statement, ...] = (*starts, For("j", index(0), _i("ow"), body, kind="vector"))
    return (*weights, For("row", index(0), _i("oh"), row))


def _groups(g: Geometry, put: Put, source: str) -> tuple[Statement, ...]:
    channels = multiply(_i("group"), _i("inputs"))
    begin = channels if source == "padded" else add(multiply(_i("image"), _i("c")), channels)
    rows = multiply(_i("group"), _i("outputs"))
    body = (Let("origin", begin), Let("into", rows), *_product(g, put, source))
    return (For("group", index(0), index(g.groups), body),)


def _product(g: Geometry, put: Put, source: str) -> tuple[Statement, ...]:
    k = multiply(_i("inputs"), index(g.kernel[0] * g.kernel[1]))
    pixels = _i("places")
    fill = _pointwise_fill(g.tile) if g.is_pointwise else _window_fill(g, source)

    a = Matrix("weight", _i("k"), first=multiply(_i("into"), _i("k")))

    def element(row: Expression, column: Expression, value: Expression) -> Sequence[Statement]:
        return (Let("column_", column), *put(add(_i("into"), row), value))

    if not g.block:
        return (Let("k", k), *gemm.product(_i("outputs"), pixels, _i("k"), a, element, fill=fill, tile=g.tile))
    packed = allocate("packed", "f32", gemm.packed_size(_i("k"), pixels, g.tile))
    return (
        Let("k", k), packed, gemm.packing(pixels, _i("k"), fill, "packed", g.tile),
        *gemm.product(_i("outputs"), pixels, _i("k"), a, element, packed="packed", tile=g.tile, block=g.block),
    )  # fmt: skip


def _pointwise_fill(tile: Tile) -> gemm.Fill:
    def element(depth: Expression, column: Expression) -> Expression:
        return _load("x", add(multiply(add(_i("origin"), depth), _i("places")), column))

    return gemm.filled(element, _i("places"), tile)


def _window_fill(g: Geometry, source: str) -> gemm.Fill:
    """Panels of what windows show: runs of places in one row of the result are runs in one row of the image."""
    width = index(g.tile.width)

    def fill(
        first: Expression, depth: Expression, deep: Expression, buffer: str, at: Expression
    ) -> Sequence[Statement]:
        run = _sum(_i("base"), _load_whole("offsets", _i("run")), multiply(_i("j"), index(g.stride[1])))
        target = _sum(at, multiply(_i("at"), width), _i("j"))
        copy = For(
            "j", _load_whole("starts", _i("run")), _load_whole("starts", add(_i("run"), index(1))),
            (Store(buffer, (target,), _load(source, run)),), kind="vector",
        )  # fmt: skip
        zeros = For("j", _i("inside"), width, (Store(buffer, (target,), constant(0, "f32")),), kind="vector")
        line = (*_window(g, add(depth, _i("at"))), For("run", index(0), _i("runs"), (copy,)), zeros)
        return (*_runs(g, first), For("at", index(0), deep, line))

    return fill


def _load_whole(buffer: str, at: Expression) -> Load:
    return Load(buffer, (at,), "i64")


def _runs(g: Geometry, first: Expression) -> tuple[Statement, ...]:
    """Of the panel's places: where each run starts, and its place in the image less that of the first column."""
    here = add(first, _i("start"))
    row, column = apply("quotient", here, _i("ow")), apply("rest", here, _i("ow"))
    shown = add(
        multiply(multiply(row, index(g.stride[0])), _i("width")),
        multiply(apply("sub", _i("across"), _i("start")), index(g.stride[1])),
    )
    length = apply("minimum", apply("sub", _i("ow"), _i("across")), apply("sub", _i("inside"), _i("start")))
    body: tuple[Statement, ...] = (
        Let("across", column), Store("starts", (_i("runs"),), _i("start")), Store("offsets", (_i("runs"),), shown),
        Assign("start", add(_i("start"), length)), Assign("runs", add(_i("runs"), index(1))),
    )  # fmt: skip
    width = index(g.tile.width)
    room = add(width, index(1))
    return (
        Let("inside", apply("minimum", apply("sub", _i("places"), first), width)),
        allocate("starts", "i64", room),
        allocate("offsets", "i64", room),
        Declare("start", index(0)),
        Declare("runs", index(0)),
        While(apply("lt", _i("start"), _i("inside")), body),
        Store("starts", (_i("runs"),), _i("inside")),
    )


def _window(g: Geometry, depth: Expression) -> tuple[Statement, ...]:
    """ "base": the place in the image of the first window's element number `depth`."""
    rows, columns = g.kernel
    inner = apply("rest", _i("element"), index(rows * columns))
    down = multiply(apply("quotient", _i("inner"), index(columns)), index(g.dilation[0]))
    right = multiply(apply("rest", _i("inner"), index(columns)), index(g.dilation[1]))
    channel = add(_i("origin"), apply("quotient", _i("element"), index(rows * columns)))
    line = add(multiply(channel, _i("height")), down)
    return (Let("element", depth), Let("inner", inner), Let("base", add(multiply(line, _i("width")), right)))
