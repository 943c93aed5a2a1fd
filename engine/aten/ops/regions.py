"""More operators of the `torchvision` namespace: pooled regions, position-sensitive ones, turned boxes.

In: images (batch, channels, rows, columns), regions as boxes with the number of their image before them, turned boxes
as centre, width, height and an angle in degrees.  Out: parts of the images, and where they come from; how much boxes
overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from engine.aten.dispatch.compose import cast, where, widened
from engine.aten.dispatch.table import op
from engine.aten.kernels.rules import no_kernel
from engine.aten.ops.vision import region_weights
from engine.aten.values import xp
from engine.aten.values.promotion import wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

# ------------------------------------------------------------------ regions


def _images(name: str, input: Tensor, rois: Tensor, pooled: Sequence[int]) -> Array:
    """The numbers of the regions' images.  Raises OperatorError."""
    if input.ndim != 4:
        raise OperatorError(f"{name}: expected an input of 4 dimensions, got {list(input.shape)}")
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise OperatorError("Tensor rois should have shape as Tensor[K, 5]")
    d = input.array.dtype
    if d is not rois.array.dtype:
        raise OperatorError(
            "Expected tensor for argument #1 'input' to have the same type as tensor for argument #2 'rois'; but type "
            f"{xp.ir_name(d)} does not equal {xp.ir_name(rois.array.dtype)}"
        )
    if d not in xp.FLOATING:
        raise no_kernel(f"{name}_forward_kernel", d)
    if min(pooled) < 1:
        raise OperatorError(f"{name}: the pooled size must be positive, got {list(pooled)}")
    images = rois.array[:, 0]
    if images.size and not (images.min() >= 0 and images.max() < input.shape[0]):
        raise OperatorError(f"{name}: a region's image is not among the {input.shape[0]} of the input")
    return images.astype(np.int64)


def _rounded(x: Array) -> Array:
    """Halves go away from zero."""
    return np.asarray((np.sign(x) * np.floor(np.abs(x) + x.dtype.type(0.5))).astype(np.int64))


def _edges(
    rois: Array, scale: float, pooled: Sequence[int], sizes: Sequence[int], more: int
) -> list[tuple[Array, Array]]:
    """Starts and ends of the bins (regions, pooled), for rows and for columns.

    Bins are cut off at `sizes`; `more` counts the region's last place in.
    """
    d = rois.dtype.type
    first, last = (_rounded(rois[:, i : i + 2] * d(scale)) for i in (1, 3))
    extent = np.maximum(last - first + more, 1)
    edges = []
    for axis, bins, size in ((1, pooled[0], sizes[0]), (0, pooled[1], sizes[1])):
        step, numbers = (extent[:, axis].astype(d) / d(bins))[:, None], np.arange(bins).astype(d)
        start = np.floor(numbers * step).astype(np.int64) + first[:, axis, None]
        end = np.ceil((numbers + d(1)) * step).astype(np.int64) + first[:, axis, None]
        edges.append((np.clip(start, 0, size), np.clip(end, 0, size)))
    return edges


def _filled(edges: list[tuple[Array, Array]]) -> Iterator[tuple[int, int, int, slice, slice]]:
    """Every bin that is not empty: region, row and column of the bin, its rows and columns of the image."""
    (tops, bottoms), (lefts, rights) = edges
    for k, row, column in np.ndindex(len(tops), tops.shape[1], lefts.shape[1]):
        top, bottom, left, right = tops[k, row], bottoms[k, row], lefts[k, column], rights[k, column]
        if top < bottom and left < right:
            yield k, row, column, slice(top, bottom), slice(left, right)


def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The largest element of each bin, and its place in the image; of empty bins 0 and -1."""
    pooled = [pooled_height, pooled_width]
    images, x = _images("roi_pool", input, rois, pooled), input.array
    channels, height, width = x.shape[1:]
    boxes = rois.array.astype(wide(rois.array.dtype), copy=False)
    places = np.full((len(images), channels, *pooled), -1, np.int64)
    for k, row, column, rows, columns in _filled(_edges(boxes, spatial_scale, pooled, (height, width), 1)):
        part = x[images[k], :, rows, columns]
        best = part.reshape(channels, -1).argmax(axis=1)
        down, right = np.divmod(best, part.shape[2])
        places[k, :, row, column] = (rows.start + down) * width + columns.start + right
    of_regions = input.reshape([input.shape[0], channels, -1])[Tensor(images)]
    index = Tensor(np.maximum(places, 0).reshape(len(images), channels, -1))
    taken = of_regions.gather(-1, index).reshape(list(places.shape))
    return where(Tensor(places >= 0), taken, 0.0), Tensor(places.astype(np.int32))


def _position_sensitive(
    name: str, input: Tensor, images: Array, rows: Array, columns: Array
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Each bin's own channels, weighted by its rows (regions, bins, rows) and columns, and which channels these are."""
    (regions, high, height), (_, across, width) = rows.shape, columns.shape
    if input.shape[1] % (high * across):
        raise OperatorError("input channels must be a multiple of pooling height * pooling width")
    channels, d = input.shape[1] // (high * across), wide(input.array.dtype)
    of_regions = widened(input).reshape([input.shape[0], channels, high, across, height, width])[Tensor(images)]
    down = Tensor(rows.astype(d).reshape(regions, 1, high, 1, 1, height))
    along = Tensor(columns.astype(d).reshape(regions, 1, 1, across, width, 1))
    found = down.matmul(of_regions).matmul(along).reshape([regions, channels, high, across])
    mapping = np.arange(input.shape[1], dtype=np.int32).reshape(1, channels, high, across)
    return cast(found, input.array.dtype), Tensor(np.repeat(mapping, regions, axis=0))


def ps_roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int
) -> tuple[Tensor, Tensor]:
    pooled = [pooled_height, pooled_width]
    images, boxes = _images("ps_roi_align", input, rois, pooled), rois.array.astype(wide(rois.array.dtype), copy=False)
    rows, columns = region_weights(boxes, spatial_scale, pooled, input.shape[2:], sampling_ratio, True)
    return _position_sensitive("ps_roi_align", input, images, rows, columns)


def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """Means of bins; the image's last row and column are left out."""
    pooled = [pooled_height, pooled_width]
    images, boxes = _images("ps_roi_pool", input, rois, pooled), rois.array.astype(wide(rois.array.dtype), copy=False)
    sizes = [max(size - 1, 0) for size in input.shape[2:]]
    weights = []
    for (start, end), size in zip(_edges(boxes, spatial_scale, pooled, sizes, 0), input.shape[2:], strict=True):
        places = np.arange(size)
        inside = (places >= start[..., None]) & (places < end[..., None])
        weights.append(inside / np.maximum(end - start, 1)[..., None])
    return _position_sensitive("ps_roi_pool", input, images, weights[0], weights[1])


_REGIONS: Final = "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
op(f"torchvision::roi_pool{_REGIONS}) -> (Tensor, Tensor)", python=roi_pool)
op(f"torchvision::ps_roi_align{_REGIONS}, int sampling_ratio) -> (Tensor, Tensor)", python=ps_roi_align)
op(f"torchvision::ps_roi_pool{_REGIONS}) -> (Tensor, Tensor)", python=ps_roi_pool)

# ------------------------------------------------------------------ turned boxes

_PAIRS: Final = 1 << 14
"""The number of pairs of boxes computed at a time."""


def _cross(a: Array, b: Array) -> Array:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def _corners_of(boxes: Array) -> tuple[Array, Array]:
    """(boxes, 4, 2): the corners around each box; (boxes, 2, 2): its halves of width and height as vectors."""
    angle = np.deg2rad(boxes[:, 4])
    cos, sin = np.cos(angle), np.sin(angle)
    along = np.stack([cos, -sin], 1) * boxes[:, 2:3] / 2
    down = np.stack([sin, cos], 1) * boxes[:, 3:4] / 2
    centre = boxes[:, :2]
    around = [centre + along * i + down * j for i, j in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
    return np.stack(around, 1), np.stack([along, down], 1)


def _crossings(a: Array, b: Array) -> tuple[Array, Array]:
    """(pairs, 16, 2): where the sides of two boxes meet, and (pairs, 16) whether they do."""
    start, other = a[:, :, None], b[:, None]
    side, across = np.roll(a, -1, 1)[:, :, None] - start, np.roll(b, -1, 1)[:, None] - other
    slope, apart = _cross(side, across), other - start
    is_parallel = np.abs(slope) <= 1e-14
    divisor = np.where(is_parallel, 1, slope)
    on_side, on_other = _cross(apart, across) / divisor, _cross(apart, side) / divisor
    meets = ~is_parallel & (on_side >= 0) & (on_side <= 1) & (on_other >= 0) & (on_other <= 1)
    points = start + on_side[..., None] * side
    return points.reshape(len(a), 16, 2), meets.reshape(len(a), 16)


def _within(points: Array, centre: Array, halves: Array) -> Array:
    """Mask (pairs, points) of the points that lie in the boxes."""
    apart = points - centre[:, None]
    reach = (halves * halves).sum(-1)[:, None]
    along = (apart[:, :, None] * halves[:, None]).sum(-1)
    return np.asarray((np.abs(along) <= reach * (1 + 1e-9) + 1e-12).all(-1))


def _shared(first: Array, second: Array) -> Array:
    """The areas that pairs of turned boxes have in common: of the convex shape of crossings and corners inside."""
    (a, halves_a), (b, halves_b) = _corners_of(first), _corners_of(second)
    crossings, meets = _crossings(a, b)
    points = np.concatenate([crossings, a, b], 1)
    used = np.concatenate([meets, _within(a, second[:, :2], halves_b), _within(b, first[:, :2], halves_a)], 1)
    one = np.take_along_axis(points, used.argmax(1)[:, None, None], 1)
    points = np.where(used[..., None], points, one)
    points = points - (points * used[..., None]).sum(1, keepdims=True) / np.maximum(used.sum(1), 1)[:, None, None]
    order = np.argsort(np.arctan2(points[..., 1], points[..., 0]), 1)
    points = np.take_along_axis(points, order[..., None], 1)
    area = _cross(points, np.roll(points, -1, 1)).sum(1) / 2
    return np.where(used.sum(1) > 2, np.maximum(area, 0), 0)


def box_iou_rotated(boxes1: Array, boxes2: Array) -> Array:
    """Intersection over union (boxes1, boxes2)."""
    for name, boxes in (("boxes1", boxes1), ("boxes2", boxes2)):
        if boxes.ndim != 2 or boxes.shape[1] != 5:
            raise OperatorError(f"{name} should have shape (N, 5), got {list(boxes.shape)}")
    if boxes1.dtype is not boxes2.dtype:
        raise OperatorError("boxes1 and boxes2 must have the same dtype")
    if boxes1.dtype not in (xp.FLOAT32, xp.FLOAT64):
        raise no_kernel("box_iou_rotated_cpu", boxes1.dtype)
    first, second = (np.asarray(boxes, np.float64) for boxes in (boxes1, boxes2))
    result = np.zeros(len(first) * len(second))
    for at in range(0, len(result), _PAIRS):
        pairs = np.arange(at, min(at + _PAIRS, len(result)))
        a, b = first[pairs // len(second)], second[pairs % len(second)]
        shared, areas = _shared(a, b), a[:, 2] * a[:, 3] + b[:, 2] * b[:, 3]
        total = areas - shared
        result[pairs] = np.where(total > 0, shared / np.where(total > 0, total, 1), 0)
    return result.reshape(len(first), len(second)).astype(boxes1.dtype)


op("torchvision::box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor", kernel=box_iou_rotated)
op("torchvision::_cuda_version() -> int", python=lambda: -1)
