"""Convolutions and pooling of images and of rows of float32 as stages of a kernel.

In: descriptions of the operands.  Out: the description of the result; `WINDOWS` has a function for each operator, by
name.  The loops are templates over `convolution`: norms, activations and residuals are done where they hand over an
element.  Kernels, steps and borders are known when compiling; other sizes are those of the call.  Rows, (images,
channels, columns), are images of one row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from engine.fuser.groups import convolution as convolutions
from engine.fuser.groups.convolution import Geometry, Pooling
from engine.fuser.groups.extents import ONE, Extent, known
from engine.fuser.groups.from_expression import Unsupported
from engine.fuser.groups.fusion_group import Group, Handler, Lowered, Operands, shown
from engine.fuser.groups.products import contiguous, place_in, template_stage
from engine.fuser.groups.reductions import mapped, mean_of
from engine.fuser.groups.schedule import PUT, Indices, Scheduler, Template, Value, split
from engine.fuser.ir.kernel import (
    Buffer,
    Constant,
    Expression,
    Kernel,
    Name,
    Parameter,
    Statement,
    Store,
    add,
    apply,
    index,
    multiply,
)

Given = Operands
_PLACE: Final = (Name("image", "i64"), Name("column_", "i64"))


def _images(value: Lowered, sides: Sequence[int]) -> Value:
    """Images, channels and so many sides."""
    if not isinstance(value, Value) or value.type != "f32" or len(value.shape) - 2 not in sides:
        raise Unsupported("other than images of float32")
    return value


def _with_rows(shape: Sequence[Extent]) -> tuple[Extent, ...]:
    """Images, channels, rows and columns."""
    return (*shape[:2], *([ONE] if len(shape) == 3 else []), *shape[2:])


def _pair(given: Given, name: str, sides: int, otherwise: int) -> tuple[int, int]:
    """The setting for rows and for columns; where there are no rows, the one that does nothing."""
    sizes = given[name]
    sizes = [sizes] if isinstance(sizes, int) else sizes
    if not isinstance(sizes, list) or not all(type(each) is int for each in sizes) or len(sizes) not in (1, sides):
        raise Unsupported(f"{name} is not known")
    if min(sizes) < otherwise:
        raise Unsupported(f"{name} is too small")
    return (otherwise if sides == 1 else sizes[0]), sizes[-1]


def _known(group: Group, extent: Extent) -> int:
    """A size, which it then has to be in each call."""
    group.extents.require(extent, known(extent.example))
    return extent.example


def _positions(extent: Extent, kernel: int, stride: int, padding: int, dilation: int, ceil: bool = False) -> Extent:
    """The number of places that a window has along a dimension."""
    less = 2 * padding - dilation * (kernel - 1) - 1 + (stride - 1 if ceil else 0)
    found = (extent.example + less) // stride + 1
    if found < 1 or extent.example + less < 0:
        raise Unsupported("windows that are too large")
    if isinstance(extent.size, Constant):
        return known(found)
    return Extent(add(apply("quotient", add(extent.size, index(less)), index(stride)), index(1)), found)


def _guard_room(group: Group, extent: Extent, kernel: int, padding: int, dilation: int) -> None:
    """Guard that a window fits in, in each call."""
    group.extents.guard("ge", add(extent.size, index(2 * padding)), index(dilation * (kernel - 1) + 1))


# ------------------------------------------------------------------ templates


def _put(channel: Expression, value: Expression) -> Sequence[Statement]:
    image, place = _PLACE
    return [Store(PUT, (image, channel, place), value)]


_RESULT: Final = Buffer(PUT, "f32", None, access="out")


@cache
def _convolving(g: Geometry) -> Kernel:
    parameters: tuple[Parameter, ...] = (*convolutions.SIZES, *convolutions.operands(), _RESULT)
    return Kernel("convolution", parameters, convolutions.convolution(g, _put), helpers=convolutions.helpers(g))


@cache
def _pooling(g: Geometry, pooling: Pooling) -> Kernel:
    parameters: tuple[Parameter, ...] = (*convolutions.SIZES, convolutions.operands()[0], _RESULT)
    return Kernel("pooling", parameters, convolutions.pooling(g, pooling, _put))


def _windows(
    group: Group,
    name: str,
    x: Value,
    weight: Value | None,
    kernel: Kernel,
    shape: Sequence[Extent],
    work: Sequence[Extent],
) -> Value:
    extents = group.extents
    given, made = _with_rows(x.shape), _with_rows(shape)
    sizes = [extents.canonical(each) for each in (*given, *made[1:])]
    width = extents.canonical(shape[-1]).size

    def operands(scheduler: Scheduler) -> tuple[Mapping[str, Expression], Mapping[str, str]]:
        numbers = {each.name: size.size for each, size in zip(convolutions.SIZES, sizes, strict=True)}
        buffers = {"x": place_in(scheduler, x)}
        if weight is not None:
            buffers["weight"] = place_in(scheduler, weight)
        return numbers, buffers

    def indices(given: Indices) -> Indices:
        return given if len(shape) == 3 else (*given[:2], *split(given[2], width))

    read = [x] if weight is None else [x, weight]
    return template_stage(group, name, tuple(shape), tuple(work), read, Template(kernel, operands, indices))


# ------------------------------------------------------------------ operators


def _convolution(group: Group, name: str, given: Given, sample: Any) -> Value:
    x = contiguous(group, _images(given["input"], (1, 2)))
    rank = len(x.shape)
    weight = contiguous(group, _images(given["weight"], (rank - 2,)))
    if given.get("transposed", False) is not False or type(given["groups"]) is not int:
        raise Unsupported("a convolution that is turned round")
    given.without_effect("output_padding")  # of those that are turned round
    settings = {"stride": 1, "padding": 0, "dilation": 1}
    stride, padding, dilation = (_pair(given, name, rank - 2, none) for name, none in settings.items())
    groups, extents = given["groups"], group.extents
    n, c, h, w = (extents.canonical(each) for each in _with_rows(x.shape))
    o, inputs, *kernel = (extents.canonical(each) for each in _with_rows(weight.shape))
    sides = [_known(group, each) for each in kernel]
    if inputs.example * groups != c.example or o.example % groups or 0 in (c.example, o.example, *sides):
        raise Unsupported("channels that do not fit")
    extents.guard("eq", multiply(inputs.size, index(groups)), c.size)
    if groups > 1:
        extents.guard("eq", apply("rest", o.size, index(groups)), index(0))
    is_depthwise = 1 < groups == c.example
    if is_depthwise:
        extents.require(c, known(groups))
    for each, side, p, d in zip((h, w), sides, padding, dilation, strict=True):
        _guard_room(group, each, side, p, d)
    oh, ow = (_positions(*each) for each in zip((h, w), sides, stride, padding, dilation, strict=True))
    g = Geometry((sides[0], sides[1]), stride, padding, dilation, groups, is_depthwise=is_depthwise)
    if not is_depthwise:
        g = convolutions.fitted(g, o.example // groups, (oh.example, ow.example))
    shape = (n, o, ow) if rank == 3 else (n, o, oh, ow)
    found = _windows(group, name, x, weight, _convolving(g), shape, (inputs, *kernel))
    bias = given["bias"]
    if bias is None:
        return found
    if not isinstance(bias, Value) or bias.type != "f32" or len(bias.shape) != 1:
        raise Unsupported("a bias of another dtype")
    extents.require(bias.shape[0], o)
    spread = shown(bias, bias.name, (bias.shape[0], *[ONE] * (rank - 2)), lambda at: at[:1])
    return mapped(group, name, lambda a, b: apply("add", a, b), found, spread)


def _pool(function: str, sides: int = 2) -> Handler:
    """The largest element, or the mean, of each window."""

    def handler(group: Group, name: str, given: Given, sample: Any) -> Value:
        x = contiguous(group, _images(given["self"], (sides,)))
        kernel, padding = _pair(given, "kernel_size", sides, 1), _pair(given, "padding", sides, 0)
        stride = _pair(given, "stride", sides, 1) if given["stride"] else kernel
        dilation = _pair(given, "dilation", sides, 1) if "dilation" in given else (1, 1)
        if given["ceil_mode"] is not False or given.get("divisor_override") is not None:
            raise Unsupported("windows that stand over")
        if any(2 * p > d * (k - 1) + 1 for k, p, d in zip(kernel, padding, dilation, strict=True)):
            raise Unsupported("windows that are mostly border")
        if function == "mean" and given["count_include_pad"] is not True and padding != (0, 0):
            raise Unsupported("means that leave out the border")
        n, c, h, w = (group.extents.canonical(each) for each in _with_rows(x.shape))
        for each, side, p, d in zip((h, w), kernel, padding, dilation, strict=True):
            _guard_room(group, each, side, p, d)
        oh, ow = (_positions(*each) for each in zip((h, w), kernel, stride, padding, dilation, strict=True))
        g = Geometry(kernel, stride, padding, dilation, 1)
        inner = (known(kernel[0]), known(kernel[1]))
        shape = (n, c, ow) if sides == 1 else (n, c, oh, ow)
        return _windows(group, name, x, None, _pooling(g, Pooling(function)), shape, inner)

    return handler


def _whole_mean(group: Group, name: str, given: Given, sample: Any) -> Value:
    """The mean of each channel, where a single one is wanted."""
    x = _images(given["self"], (1, 2))
    sides = len(x.shape) - 2
    if _pair(given, "output_size", sides, 1) != (1, 1):
        raise Unsupported("several means of each channel")
    return mean_of(group, name, x, [*range(2, 2 + sides)])


WINDOWS: Final[dict[str, Handler]] = {
    **dict.fromkeys(("aten::conv1d", "aten::conv2d", "aten::convolution", "aten::_convolution"), _convolution),
    "aten::max_pool1d": _pool("max", 1), "aten::max_pool2d": _pool("max"),
    "aten::avg_pool1d": _pool("mean", 1), "aten::avg_pool2d": _pool("mean"),
    **dict.fromkeys(("aten::adaptive_avg_pool1d", "aten::adaptive_avg_pool2d"), _whole_mean),
}  # fmt: skip
