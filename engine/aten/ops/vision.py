"""Operators of the `torchvision` namespace that exported detectors call: boxes, regions, bent convolutions.

In: images (batch, channels, rows, columns), boxes as corners (x1, y1, x2, y2), regions as boxes with the number of
their image before them.  Out: images' parts, or which boxes stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from engine.aten.dispatch.compose import cast, run, where, widened
from engine.aten.dispatch.table import op
from engine.aten.kernels.rules import no_kernel
from engine.aten.values import xp
from engine.aten.values.promotion import wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

# ------------------------------------------------------------------ boxes


def nms(dets: Array, scores: Array, iou_threshold: float) -> Array:
    """Numbers of the boxes that stay, best first: none overlaps a better one by more than the threshold."""
    if dets.ndim != 2 or dets.shape[1] != 4:
        raise OperatorError(f"boxes should be a 2D tensor of 4 columns, got {list(dets.shape)}")
    if scores.ndim != 1:
        raise OperatorError(f"scores should be a 1d tensor, got {scores.ndim}D")
    if len(dets) != len(scores):
        raise OperatorError(
            f"boxes and scores should have same number of elements in dimension 0, got {len(dets)} and {len(scores)}"
        )
    if dets.dtype != scores.dtype:
        raise OperatorError(
            f"dets should have the same type as scores, got {xp.ir_name(dets.dtype)} and {xp.ir_name(scores.dtype)}"
        )
    if dets.dtype not in xp.FLOATING:
        raise no_kernel("nms_kernel", dets.dtype)
    order = np.argsort(-scores.astype(wide(scores.dtype)), kind="stable")
    boxes = dets[order].astype(wide(dets.dtype), copy=False)
    return np.asarray(order[list(_kept(boxes, iou_threshold))], np.int64)


def _kept(boxes: Array, threshold: float) -> Iterator[int]:
    """Indices of the boxes, best first, that no earlier kept box suppresses."""
    x1, y1, x2, y2 = boxes.T
    areas = (x2 - x1) * (y2 - y1)
    alive = np.ones(len(boxes), np.bool_)
    for i in range(len(boxes)):
        if not alive[i]:
            continue
        yield i
        wide_by = np.maximum(np.minimum(x2[i], x2[i + 1 :]) - np.maximum(x1[i], x1[i + 1 :]), 0)
        high_by = np.maximum(np.minimum(y2[i], y2[i + 1 :]) - np.maximum(y1[i], y1[i + 1 :]), 0)
        shared = wide_by * high_by
        alive[i + 1 :] &= ~(shared / (areas[i] + areas[i + 1 :] - shared) > threshold)


# ------------------------------------------------------------------ regions

_ELEMENTS: Final = 1 << 22
"""The most numbers that regions may take up at a time."""


def _weights(start: Array, size: Array, counts: Array, pooled: int, extent: int) -> Array:
    """(regions, pooled, extent): how much each row (or column) of the image counts for each of the region's bins.

    Each bin is the mean of `counts` places, each of which lies between two rows; places off the image count nothing.
    """
    regions, most = len(start), max(1, int(counts.max())) if counts.size else 1
    step = size / pooled
    bins, parts = np.arange(pooled)[:, None], np.arange(most)
    places = start[:, None, None] + bins * step[:, None, None] + (
        (parts + np.asarray(0.5, start.dtype)) * (step / np.maximum(counts, 1))[:, None, None].astype(start.dtype)
    )  # fmt: skip
    used = (parts < counts[:, None, None]) & (places >= -1) & (places <= extent)
    inside = np.maximum(places, 0)
    low = np.minimum(inside.astype(np.int64), extent - 1)
    inside = np.where(low >= extent - 1, low.astype(places.dtype), inside)
    share = inside - low
    weights = np.zeros((regions, pooled, extent), places.dtype)
    region, row = np.arange(regions)[:, None, None], np.arange(pooled)[:, None]
    for taken, weight in ((low, 1 - share), (np.minimum(low + 1, extent - 1), share)):
        np.add.at(weights, (region, row, np.where(used, taken, 0)), np.where(used, weight, 0))
    return weights


def region_weights(
    rois: Array, scale: float, pooled: Sequence[int], sizes: Sequence[int], sampling_ratio: int, aligned: bool
) -> tuple[Array, Array]:
    """The weights of rows and of columns, the former divided by the number of places of a bin."""
    d = rois.dtype.type
    start, end = (rois[:, i : i + 2] * d(scale) - d(0.5 if aligned else 0) for i in (1, 3))
    extent = end - start if aligned else np.maximum(end - start, 1)
    counts = []
    for axis, bins in ((1, pooled[0]), (0, pooled[1])):
        taken = np.ceil(extent[:, axis] / bins) if sampling_ratio <= 0 else np.full(len(rois), sampling_ratio)
        counts.append(taken.astype(np.int64))
    rows = _weights(start[:, 1], extent[:, 1], counts[0], pooled[0], sizes[0])
    columns = _weights(start[:, 0], extent[:, 0], counts[1], pooled[1], sizes[1])
    total = np.maximum(counts[0] * counts[1], 1)
    return rows / total[:, None, None].astype(rows.dtype), columns


def _check_regions(input: Array, rois: Array) -> None:
    if input.ndim != 4:
        raise OperatorError(f"roi_align: expected an input of 4 dimensions, got {list(input.shape)}")
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise OperatorError("rois must have shape as Tensor[K, 5]")
    if input.dtype != rois.dtype:
        raise OperatorError(
            "Expected tensor for argument #1 'input' to have the same type as tensor for argument #2 'rois'; but type "
            f"{xp.ir_name(input.dtype)} does not equal {xp.ir_name(rois.dtype)}"
        )
    if input.dtype not in xp.FLOATING:
        raise no_kernel("roi_align_forward_kernel", input.dtype)
    images = rois[:, 0]
    if images.size and not (images.min() >= 0 and images.max() < len(input)):
        raise OperatorError(f"roi_align: a region's image is not among the {len(input)} of the input")


def roi_align(
    input: Array, rois: Array, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int,
    aligned: bool,
) -> Array:  # fmt: skip
    """(regions, channels, pooled_height, pooled_width)."""
    _check_regions(input, rois)
    pooled, used = (pooled_height, pooled_width), wide(input.dtype)
    x, boxes = input.astype(used, copy=False), rois.astype(used, copy=False)
    rows, columns = region_weights(boxes, spatial_scale, pooled, x.shape[2:], sampling_ratio, aligned)
    result = np.empty((len(boxes), x.shape[1], *pooled), used)
    for part in _parts(len(boxes), math.prod(x.shape[1:])):
        images = x[boxes[part, 0].astype(np.int64)]
        narrowed = np.matmul(images, columns[part].swapaxes(1, 2)[:, None])
        result[part] = np.matmul(rows[part][:, None], narrowed)
    return result.astype(input.dtype, copy=False)


def roi_align_backward(
    grad: Array, rois: Array, spatial_scale: float, pooled_height: int, pooled_width: int, size: Sequence[int],
    sampling_ratio: int, aligned: bool,
) -> Array:  # fmt: skip
    """Gradient of roi_align for its input images."""
    used = wide(grad.dtype)
    boxes = rois.astype(used, copy=False)
    rows, columns = region_weights(
        boxes, spatial_scale, (pooled_height, pooled_width), size[2:], sampling_ratio, aligned
    )
    result = np.zeros(tuple(size), used)
    for part in _parts(len(boxes), math.prod(size[1:])):
        widened_ = np.matmul(grad[part].astype(used, copy=False), columns[part][:, None])
        np.add.at(
            result, boxes[part, 0].astype(np.int64), np.matmul(rows[part].swapaxes(1, 2)[:, None], widened_)
        )  # fmt: skip
    return result.astype(grad.dtype, copy=False)


def _parts(count: int, each: int) -> Iterator[slice]:
    step = max(_ELEMENTS // max(each, 1), 1)
    return (slice(start, start + step) for start in range(0, count, step))


_REGIONS: Final = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_SAMPLED: Final = "spatial_scale, pooled_height, pooled_width"
op(f"aten::_roi_align(Tensor input, Tensor rois, {_REGIONS}, int sampling_ratio, bool aligned) -> Tensor",
   kernel=roi_align,
   gradient={"input": f"_roi_align_backward(grad, rois, {_SAMPLED}, input.size(), sampling_ratio, aligned)"}
   )  # fmt: skip
op(f"aten::_roi_align_backward(Tensor grad, Tensor rois, {_REGIONS}, int[] size, int sampling_ratio, bool aligned) "
   "-> Tensor", kernel=roi_align_backward,
   gradient={"grad": f"_roi_align(grad, rois, {_SAMPLED}, sampling_ratio, aligned)"})  # fmt: skip
op("torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", kernel=nms)
op(f"torchvision::roi_align(Tensor input, Tensor rois, {_REGIONS}, int sampling_ratio, bool aligned) -> Tensor",
   python=lambda *args: run("_roi_align", *args))  # fmt: skip

# ------------------------------------------------------------------ bent convolutions


def deform_conv2d(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int, stride_w: int,
    pad_h: int, pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int, use_mask: bool,
) -> Tensor:  # fmt: skip
    """Deformable convolution: each kernel element has an offset and a weight at every output position."""
    steps = ((stride_h, pad_h, dilation_h), (stride_w, pad_w, dilation_w))
    places = _check_bent(input, weight, offset, mask, steps, groups, offset_groups, use_mask)
    batch, taps = input.shape[0], weight.shape[2] * weight.shape[3]
    moves = widened(offset).reshape([batch, offset_groups, taps, 2, *places])
    grids = _grids(weight.shape[2:], places, steps, moves.array.dtype)
    rows, columns = (moves.select(3, i) + grids[i] for i in (0, 1))
    x = widened(input).reshape([batch, offset_groups, input.shape[1] // offset_groups, -1])
    seen = _bilinear(x, rows, columns, input.shape[2], input.shape[3])
    if use_mask:
        seen = seen * widened(mask).reshape([batch, offset_groups, 1, taps, *places])
    columns_ = seen.reshape([batch, groups, input.shape[1] // groups * taps, places[0] * places[1]])
    matrix = widened(weight).reshape([groups, weight.shape[0] // groups, -1])
    result = matrix.matmul(columns_).reshape([batch, weight.shape[0], *places])
    return cast(result + widened(bias).reshape([-1, 1, 1]), input.array.dtype)


def _check_bent(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, steps: Sequence[tuple[int, int, int]], groups: int,
    offset_groups: int, use_mask: bool,
) -> list[int]:  # fmt: skip
    """Output sizes of the convolution along each dimension.  Raises OperatorError."""
    for name, tensor in (("input", input), ("offset", offset), ("weight", weight)):
        if tensor.ndim != 4:
            raise OperatorError(f"deform_conv2d: expected {name} to have 4 dimensions, got {tensor.ndim}")
    if any(stride <= 0 or pad < 0 or dilation <= 0 for stride, pad, dilation in steps):
        raise OperatorError("deform_conv2d: stride and dilation must be positive, padding not negative")
    if groups < 1 or offset_groups < 1 or input.shape[1] % offset_groups:
        raise OperatorError("deform_conv2d: the input's channels must divide into the groups of offsets")
    if weight.shape[1] * groups != input.shape[1] or weight.shape[0] % groups:
        raise OperatorError(
            f"deform_conv2d: Given groups={groups}, weight of size {list(weight.shape)}, expected input"
            f"{list(input.shape)} to have {weight.shape[1] * groups} channels"
        )
    spans = zip(input.shape[2:], weight.shape[2:], steps, strict=True)
    places = [(size + 2 * pad - (dil * (kernel - 1) + 1)) // stride + 1 for size, kernel, (stride, pad, dil) in spans]
    if min(places) < 1:
        raise OperatorError(f"deform_conv2d: Calculated output size too small - out_h: {places[0]} out_w: {places[1]}")
    taps = weight.shape[2] * weight.shape[3]
    wanted = [input.shape[0], 2 * offset_groups * taps, *places]
    if list(offset.shape) != wanted:
        raise OperatorError(f"deform_conv2d: expected offset of the shape {wanted}, got {list(offset.shape)}")
    wanted[1] = offset_groups * taps
    if use_mask and list(mask.shape) != wanted:
        raise OperatorError(f"deform_conv2d: expected mask of the shape {wanted}, got {list(mask.shape)}")
    return places


def _grids(
    kernel: Sequence[int], places: Sequence[int], steps: Sequence[tuple[int, int, int]], d: xp.NumpyDtype
) -> list[Tensor]:
    """Rows and columns that a convolution looks at: (taps, *places)."""
    lines = [
        (np.arange(n) * dilation)[:, None] + np.arange(count) * stride - pad
        for n, count, (stride, pad, dilation) in zip(kernel, places, steps, strict=True)
    ]
    shape = (kernel[0], kernel[1], *places)
    rows = np.broadcast_to(lines[0][:, None, :, None], shape)
    columns = np.broadcast_to(lines[1][None, :, None, :], shape)
    return [Tensor(np.array(grid, d).reshape(-1, *places)) for grid in (rows, columns)]


def _bilinear(x: Tensor, rows: Tensor, columns: Tensor, height: int, width: int) -> Tensor:
    """Images (batch, groups, channels, rows * columns) between their elements; zero outside."""
    low = [run("floor", t).detach() for t in (rows, columns)]
    part = [rows - low[0], columns - low[1]]
    total: Tensor | None = None
    for down in (0, 1):
        for right in (0, 1):
            row, column = low[0] + down, low[1] + right
            share = (part[0] if down else 1 - part[0]) * (part[1] if right else 1 - part[1])
            term = _corner(x, row, column, height, width) * share.unsqueeze(2)
            total = term if total is None else total + term
    assert total is not None
    return total


def _corner(x: Tensor, row: Tensor, column: Tensor, height: int, width: int) -> Tensor:
    """(batch, groups, channels, taps, *places): the elements at whole rows and columns, zero outside."""
    r, c = row.array, column.array
    inside = (r >= 0) & (r < height) & (c >= 0) & (c < width)
    place = np.where(inside, r * width + c, 0).astype(np.int64)
    batch, groups, channels = x.shape[:3]
    index = Tensor(np.ascontiguousarray(np.broadcast_to(
        place.reshape(batch, groups, 1, -1), (batch, groups, channels, place[0, 0].size)
    )))  # fmt: skip
    taken = x.gather(-1, index).reshape([batch, groups, channels, *place.shape[2:]])
    return where(Tensor(inside[:, :, None]), taken, 0.0)


op("torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
   "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
   "SymInt offset_groups, bool use_mask) -> Tensor", python=deform_conv2d)  # fmt: skip
