"""Sampling images at places of their own: grids, antialiased resizing, unpooling, random windows, segments.

In: tensors (batch, channels, *space).  Out: tensors.  All but the random windows are made of other operators, from
which their gradients come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import product
from operator import add
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.compose import cast, run, where, widened
from engine.aten.dispatch.grad_mode import MODE
from engine.aten.dispatch.table import describe, op, out_form
from engine.aten.kernels.interpolation import numbered, weighted
from engine.aten.kernels.refusals import no_code
from engine.aten.ops.grid_sample_sums import around, around_grid
from engine.aten.values import xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.promotion import wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorDtypeError, OperatorError

BILINEAR, NEAREST, BICUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2

# ------------------------------------------------------------------ grids


def _in_pixels(x: Tensor, size: int, align: bool) -> Tensor:
    """Places from -1 to 1 as places from 0 to size - 1."""
    pixels: Tensor = (x + 1) * ((size - 1) / 2) if align else ((x + 1) * size - 1) / 2
    return pixels


def _padded(x: Tensor, size: int, padding: int, align: bool) -> Tensor:
    """Places outside brought inside, by the rule of the padding."""
    if padding == ZEROS:
        return x
    if padding == REFLECTION:
        low, span = (0.0, float(size - 1)) if align else (-0.5, float(size))
        x = _reflected(x, low, span)
    clamped: Tensor = run("clamp", x, 0, size - 1)
    return clamped


def _reflected(x: Tensor, low: float, span: float) -> Tensor:
    if span == 0:
        return x * 0
    distance = (x - low).abs()
    flips = run("floor", distance / span)
    extra = distance - flips * span
    return where(run("eq.Scalar", run("remainder.Scalar", flips, 2), 0), extra + low, span - extra + low)


def _at(input: Tensor, places: Sequence[Tensor]) -> Tensor:
    """(batch, channels, *out): elements at whole places (batch, *out), 0 outside."""
    sizes = input.shape[2:]
    flat, inside = numbered([place.array for place in places], sizes)
    batch, channels = input.shape[:2]
    wanted = np.broadcast_to(flat.reshape(batch, 1, -1), (batch, channels, flat[0].size))
    found = input.reshape([batch, channels, -1]).gather(2, Tensor(np.ascontiguousarray(wanted)))
    return where(Tensor(inside[:, None]), found.reshape([batch, channels, *flat.shape[1:]]), 0.0)


def _linear_weights(x: Tensor) -> tuple[Tensor, list[tuple[int, Tensor]]]:
    low = run("floor", x.detach())
    part = x - low
    return low, [(0, 1 - part), (1, part)]


def _cubic_weights(x: Tensor) -> tuple[Tensor, list[tuple[int, Tensor]]]:
    low = run("floor", x.detach())
    part = x - low
    a = -0.75

    def near(t: Tensor) -> Tensor:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    def far(t: Tensor) -> Tensor:
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    return low, [(-1, far(part + 1)), (0, near(part)), (1, near(1 - part)), (2, far(2 - part))]


def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align: bool) -> Tensor:
    """`input` at the places that `grid` (batch, *out, n) names, in order x, y, z and from -1 to 1."""
    n = input.ndim - 2
    _check_grid(input, grid, interpolation_mode)
    sizes = input.shape[2:]
    if n == 2 and (interpolation_mode, padding_mode) == (BILINEAR, ZEROS) and HOOKS.trace is None:
        is_alike = grid.array.dtype is input.array.dtype and not grid.requires_grad and input.array.size
        found = around_grid(grid.array, sizes[0], sizes[1], align) if is_alike else None
        if found is not None:
            return _summed(input, found[0], Tensor(found[1]))
    # Half types are rounded after every step, as they are where single elements are worked on.
    places = [_in_pixels(grid.select(-1, n - 1 - i), sizes[i], align) for i in range(n)]
    x = input
    if interpolation_mode != BICUBIC:
        places = [_padded(place, size, padding_mode, align) for place, size in zip(places, sizes, strict=True)]
    if interpolation_mode == NEAREST:
        taken = _at(x, [run("round", place) for place in places])
        return cast(run("_level", taken, grid) if grid.requires_grad else taken, input.array.dtype)
    is_plain = x.array.dtype in xp.FLOATS and grid.array.dtype is x.array.dtype and x.array.size and grid.array.size
    is_recorded = MODE.enabled and (x.requires_grad or grid.requires_grad)
    if is_plain and HOOKS.trace is None and interpolation_mode == BILINEAR and n == 2 and not places[0].requires_grad:
        found = around(places[0].array, places[1].array, *sizes)
        if found is not None:
            return _summed(x, found[0], Tensor(found[1]))
    taps = [(_cubic_weights if interpolation_mode == BICUBIC else _linear_weights)(place) for place in places]
    corners = _corners(taps, sizes if interpolation_mode == BICUBIC else None, padding_mode, align)
    if is_plain and HOOKS.trace is None and is_recorded:
        spots, weights = zip(*corners, strict=True)
        return _summed(x, np.stack([_in_memory_order(each, sizes) for each in spots]), run("stack", list(weights), 0))
    if is_plain and HOOKS.trace is None:
        arrays = [([spot.array for spot in spots], weight.array) for spots, weight in corners]
        return Tensor(xp.silently(weighted, x.array, arrays))
    parts = (_at(x, spots) * weight.unsqueeze(1) for spots, weight in corners)
    return cast(reduce(add, parts), input.array.dtype)


def _in_memory_order(spots: Sequence[Tensor], sizes: Sequence[int]) -> Array:
    """Whole places as numbers of the flat image, -1 outside."""
    flat, inside = numbered([spot.array for spot in spots], sizes)
    return np.where(inside, flat, -1)


def _summed(images: Tensor, places: Array, weights: Tensor) -> Tensor:
    """Elements at places (corners, batch, *out) of an image, weighted and added up."""
    corners, batch, *out = places.shape
    spots, shares = Tensor(places.reshape(corners, batch, -1)), weights.reshape([corners, batch, -1])
    flat = images.reshape([*images.shape[:2], -1])
    found: Tensor = run("_corner_sums", flat, spots, shares).reshape([*images.shape[:2], *out])
    return found


def _corners(
    taps: Sequence[tuple[Tensor, list[tuple[int, Tensor]]]], sizes: Sequence[int] | None, padding_mode: int, align: bool
) -> Iterator[tuple[list[Tensor], Tensor]]:
    """The places around each place, padded within `sizes` where these are given, and their weights."""
    for corner in product(*(weights for _, weights in taps)):
        spots = [low + step for (low, _), (step, _) in zip(taps, corner, strict=True)]
        if sizes is not None:
            spots = [_padded(spot, size, padding_mode, align) for spot, size in zip(spots, sizes, strict=True)]
        weight = corner[0][1]
        for _, factor in corner[1:]:
            weight = weight * factor
        yield spots, weight


def _check_grid(input: Tensor, grid: Tensor, mode: int) -> None:
    if input.ndim and grid.ndim and input.shape[0] != grid.shape[0]:
        raise OperatorError(
            "grid_sampler(): expected grid and input to have same batch size, "
            f"but got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if input.ndim not in (4, 5) or input.ndim != grid.ndim:
        raise OperatorError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, "
            f"but got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.shape[-1] != input.ndim - 2:
        raise OperatorError(
            f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, "
            f"but got grid with sizes {list(grid.shape)}"
        )
    if 0 in input.shape[2:]:
        raise OperatorError("grid_sampler(): expected input to have non-empty spatial dimensions, "
                            f"but input has sizes {list(input.shape)}")  # fmt: skip
    if input.ndim == 5 and mode == BICUBIC:
        raise OperatorError("grid_sampler(): bicubic interpolation only supports 4D input")


def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """The grid of an affine map (batch, n, n + 1) of an image of that size."""
    n = len(size) - 2
    if n not in (2, 3):
        raise OperatorDtypeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    if tuple(theta.shape) != (size[0], n, n + 1):
        raise OperatorError(f"Expected a batch of {n}x{n + 1} affine matrices, got {list(theta.shape)}")
    space = list(size[2:])
    d = theta.array.dtype
    axes = [np.linspace(-1, 1, count) if count > 1 else np.zeros(1) for count in space]
    if not align_corners:
        axes = [axis * ((len(axis) - 1) / len(axis)) for axis in axes]
    mesh = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(space)], axis=-1)
    base = Tensor(mesh.astype(d).reshape(1, -1, n + 1)).expand([size[0], -1, -1])
    grid: Tensor = base.bmm(theta.transpose(1, 2)).reshape([size[0], *space, n])
    return grid


op("aten::_level(Tensor self, Tensor places) -> Tensor", kernel=lambda self, places: self.copy(),
   gradient={"self": "grad", "places": "zeros_like(places)"})  # fmt: skip
_GRID: Final = "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor"
op(f"aten::grid_sampler{_GRID}", python=grid_sampler, autocast="full")
for _n in (2, 3):
    op(f"aten::grid_sampler_{_n}d{_GRID}", python=grid_sampler, variants="function out", autocast="full")
op("aten::affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
   python=affine_grid_generator, variants="function out")  # fmt: skip

# ------------------------------------------------------------------ antialiased resizing


def _triangle(x: Array) -> Array:
    return np.asarray(np.maximum(1 - np.abs(x), 0))


def _cubic(x: Array) -> Array:
    a, t = -0.5, np.abs(x)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t < 1, near, np.where(t < 2, far, 0))


def _lanczos(x: Array) -> Array:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


def _filter_matrix(
    size: int, count: int, align: bool, scale: float | None, shape: Callable[[Array], Array], reach: int
) -> Array:
    """Matrix (count, size) of the weights of the input's elements in each output element."""
    if align:
        step = (size - 1) / (count - 1) if count > 1 else 0.0
    else:
        step = 1 / scale if scale is not None and scale > 0 else size / count
    stretch = max(step, 1.0)
    centre = step * (np.arange(count) + 0.5)[:, None]
    start = np.maximum((centre - reach * stretch + 0.5).astype(np.int64), 0)
    end = np.minimum((centre + reach * stretch + 0.5).astype(np.int64), size)
    places = np.arange(size)[None, :]
    weights = np.where((places >= start) & (places < end), shape((places - centre + 0.5) / stretch), 0.0)
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(weights / np.where(total == 0, 1, total))


def _in_fractions(weights: Array) -> Array:
    """The weights as 16-bit numbers of some power of two, the finest that the largest of them allows."""
    bits, largest = 0, float(weights.max(initial=0))
    while bits < 22 and int(0.5 + largest * 2 ** (bits + 1)) < 2**15:
        bits += 1
    parts = np.trunc(weights * 2**bits + np.where(weights < 0, -0.5, 0.5))
    return np.asarray(parts / 2**bits)


def antialiased(shape: Callable[[Array], Array], reach: int) -> Callable[..., Tensor]:
    def body(
        self: Tensor, output_size: Sequence[int], align_corners: bool, scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Tensor:  # fmt: skip
        if self.ndim != 4 or len(output_size) != 2:
            raise OperatorError(f"It is expected input_size equals to 4, but got size {self.ndim}")
        d = self.array.dtype
        whole = d in xp.INTEGERS
        x = cast(self, xp.FLOAT64) if whole else widened(self)
        for axis, scale in ((3, scales_w), (2, scales_h)):
            matrix = _filter_matrix(x.shape[axis], output_size[axis - 2], align_corners, scale, shape, reach)
            weights = Tensor(_in_fractions(matrix) if whole else matrix.astype(x.array.dtype))
            x = x.matmul(weights.t()) if axis == 3 else weights.matmul(x)
            x = run("clamp", run("floor", x + 0.5), 0, 255) if whole else x
        return cast(x, d)

    return body


def vector_form(body: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def resize(
        input: Tensor, output_size: Sequence[int] | None, align: bool, factors: Sequence[float] | None
    ) -> Tensor:
        if (output_size is None) == (factors is None):
            raise OperatorError("Must specify exactly one of output_size and scale_factors")
        sizes = output_size or [int(n * f) for n, f in zip(input.shape[2:], factors or (), strict=True)]
        return body(input, sizes, align, *(factors or (None, None)))

    return resize


_FILTERS: Final = (("bilinear", _triangle, 1), ("bicubic", _cubic, 2), ("lanczos", _lanczos, 3))
for _name, _shape, _reach in _FILTERS:
    _body = antialiased(_shape, _reach)
    _name = f"_upsample_{_name}2d_aa"
    op(f"aten::{_name}.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
       python=vector_form(_body))  # fmt: skip
    op(f"aten::{_name}(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, "
       "float? scales_w=None) -> Tensor", python=_body, variants="function out")  # fmt: skip

# ------------------------------------------------------------------ pooling undone, pooling at random


def unpool(n: int) -> Callable[..., Tensor]:
    def body(
        self: Tensor, indices: Tensor, output_size: Sequence[int], stride: Any = None, padding: Any = None
    ) -> Tensor:
        if indices.array.dtype != np.int64:
            raise OperatorError(f"elements in indices should be type int64 but got: {xp.ir_name(indices.array.dtype)}")
        if self.shape != indices.shape:
            raise OperatorError(
                f"Expected shape of indices to be same as that of the input tensor ({list(self.shape)}) but got "
                f"indices tensor with shape: {list(indices.shape)}"
            )
        lead, count = list(self.shape[:-n]), int(np.prod(output_size))
        places = indices.reshape([*lead, -1])
        if places.array.size and (places.array.min() < 0 or places.array.max() >= count):
            wrong = places.array[(places.array < 0) | (places.array >= count)].flat[0]
            raise OperatorError(f"Found an invalid max index: {wrong} (output volumes are of size {list(output_size)})")
        zeros = Tensor(np.zeros((*lead, count), self.array.dtype))
        spread: Tensor = zeros.scatter(-1, places, self.reshape([*lead, -1])).reshape([*lead, *output_size])
        return spread

    return body


op("aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor", python=unpool(2),
   variants="function out", autocast="full")  # fmt: skip
op("aten::max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
   python=unpool(3), variants="function out", autocast="full")  # fmt: skip


def fractional_max_pool(
    self: Array, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: Array
) -> tuple[Array, Array]:
    """Greatest of windows whose places the samples (batch, channels, dimensions of space) shift."""
    n = len(output_size)
    if self.ndim not in (n + 1, n + 2):
        raise OperatorError(f"fractional_max_pool{n}d(): Expected {n + 1}D or {n + 2}D tensor, but got: {self.shape}")
    space = self.shape[-n:]
    planes = self.reshape(-1, math.prod(space))
    samples = random_samples.reshape(-1, n).astype(np.float64)
    order = (1, 0) if n == 2 else tuple(range(n))  # of an image, the first sample shifts columns
    flat: Any = 0
    for d, (size, count, kernel) in enumerate(zip(space, output_size, kernel_size, strict=True)):
        window = _starts(samples[:, order[d]], size, count, kernel)[:, :, None] + np.arange(kernel)
        shape = [len(planes), *[1] * (2 * n)]
        shape[1 + d], shape[1 + n + d] = count, kernel
        flat = flat * size + window.reshape(shape)
    flat = flat.reshape(len(planes), math.prod(output_size), -1)
    seen = np.take_along_axis(planes[:, None], flat, 2)
    best = np.argmax(seen.astype(wide(self.dtype)), axis=2)[..., None]
    shape = [*self.shape[:-n], *output_size]
    return np.take_along_axis(seen, best, 2).reshape(shape), np.take_along_axis(flat, best, 2).reshape(shape)


def _starts(sample: Array, size: int, count: int, kernel: int) -> Array:
    """(planes, count): where each plane's windows begin."""
    if kernel > size - count + 1:
        raise OperatorError("fractional_max_pool: pool size too large relative to input size")
    step = (size - kernel) / (count - 1) if count > 1 else 0.0
    i = np.arange(count)
    places = ((i + sample[:, None]) * step).astype(np.int64) - (sample[:, None] * step).astype(np.int64)
    places[:, -1] = size - kernel
    return places


for _n in (2, 3):
    out_form(op(f"aten::fractional_max_pool{_n}d(Tensor self, int[{_n}] kernel_size, int[{_n}] output_size, "
                "Tensor random_samples) -> (Tensor, Tensor)", kernel=fractional_max_pool, gradient={
                    "self": f"_put_back(grad, self, result1, {_n})"},
   autocast="full"), "output", "output indices")  # fmt: skip

# ------------------------------------------------------------------ segments

_SEGMENT: Final = {"sum": ("sum", 0.0), "mean": ("sum", 0.0), "max": ("amax", -np.inf), "min": ("amin", np.inf),
                   "prod": ("prod", 1.0)}  # fmt: skip


def segment_reduce(
    data: Tensor, reduce: str, lengths: Tensor | None, indices: Tensor | None, offsets: Tensor | None, axis: int,
    unsafe: bool, initial: Any,
) -> Tensor:  # fmt: skip
    """Stretches of a dimension reduced to one element each."""
    if reduce not in _SEGMENT:
        raise OperatorError(f"Unsupported reduction '{reduce}'", hints=(f"there are {', '.join(_SEGMENT)}",))
    if lengths is None and offsets is None:
        raise OperatorError("Currently only lengths-based or offsets-based reduction is supported!")
    axis = axis + data.ndim if axis < 0 else axis
    sizes = lengths.array if lengths is not None else np.diff(offsets.array if offsets is not None else [], axis=-1)
    if not unsafe and np.any(sizes.sum(axis=-1) != data.shape[axis]):
        raise OperatorError(f"segment_reduce(): Expected all rows of lengths along axis to sum to data.size(axis) = "
                            f"{data.shape[axis]}")  # fmt: skip
    count = sizes.shape[-1]
    rows = sizes.reshape(-1, count)
    used = int(rows[0].sum()) if len(rows) else 0
    data = data if used == data.shape[axis] else data.narrow(axis, 0, used)
    segment = np.stack([np.repeat(np.arange(count), row) for row in rows])
    rest = data.ndim - axis - 1
    places = segment.reshape(*data.shape[: axis + 1], *[1] * rest)
    places = np.ascontiguousarray(np.broadcast_to(places, data.shape))
    how, neutral = _SEGMENT[reduce]
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    base = Tensor(np.full(shape, neutral if initial is None else initial, data.array.dtype))
    result: Tensor = run("scatter_reduce.two", base, axis, Tensor(places), data, how, True)
    if reduce != "mean":
        return result
    divisor = sizes.reshape(*sizes.shape, *[1] * rest).astype(data.array.dtype)
    mean: Tensor = result / Tensor(divisor if initial is None else np.maximum(divisor, 1))
    return mean


op("aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, "
   "int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor", python=segment_reduce,
   variants="function out")  # fmt: skip


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("max_unpool2d", refuses=no_code("bic", "max_unpool2d"))
describe("max_unpool3d", refuses=no_code("bic", "max_unpool3d"))
describe("grid_sampler_2d grid_sampler", refuses=no_code("bic", "grid_sampler_2d_cpu_kernel_impl"))
describe("grid_sampler_3d", refuses=no_code("bic", "grid_sampler3d_cpu"))
describe(
    "_upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa",
    refuses=no_code("shc", "compute_index_ranges_weights"),
)
describe("segment_reduce", refuses=no_code("bic", "_segment_reduce_cpu"))
describe(
    "_upsample_bicubic2d_aa.out _upsample_bilinear2d_aa.out affine_grid_generator.out grid_sampler_2d.out "
    "grid_sampler_3d.out segment_reduce.out",
    out_check=out_checks.check_same,
)
describe("fractional_max_pool2d", refuses=no_code("bic", "fractional_max_pool2d_out_frame"))
describe("fractional_max_pool3d", refuses=no_code("bic", "fractional_max_pool3d_out_frame"))
