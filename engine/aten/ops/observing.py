"""Fake quantization for training: ranges are observed, numbers rounded to representable values.

In: tensors of numbers.  Out: such tensors; the observed ranges, scales and zero points are written where they lie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.aten.dispatch.compose import run
from engine.aten.dispatch.table import op
from engine.aten.kernels.affine import chosen_between
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError


def fake_channels_kernel(self: Array, scale: Array, zero: Array, axis: int, low: int, high: int) -> tuple[Array, Array]:
    """Rounded, each index along a dimension with its own scale; and which numbers were within the limits."""
    shape = [-1 if i == axis else 1 for i in range(self.ndim)]
    factor, moved = scale.astype(np.float32).reshape(shape), zero.reshape(shape)
    steps = moved + np.rint(self.astype(np.float32) * (np.float32(1) / factor))
    inside = (steps >= low) & (steps <= high)
    return ((np.clip(steps, low, high) - moved).astype(np.float32) * factor).astype(self.dtype), inside


def fake_channels(self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int) -> Tensor:
    if quant_min > quant_max:
        raise OperatorError("`quant_min` should be less than or equal to `quant_max`.")
    if not 0 <= axis < self.ndim:
        raise OperatorError("`axis` must be between 0 and number of dimensions of input")
    if scale.array.shape != (self.shape[axis],) or zero_point.array.shape != scale.array.shape:
        raise OperatorError("dimensions of scale and zero-point must be those of the channels")
    result: Tensor = run("_fake_quantize_channels", self, scale, zero_point, axis, quant_min, quant_max)[0]
    return result


op("aten::_fake_quantize_channels(Tensor self, Tensor scale, Tensor zero, int axis, int low, int high) -> "
   "(Tensor result, Tensor inside)", kernel=fake_channels_kernel, gradient={"self": "grad * result1"})  # fmt: skip
op("aten::fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, "
   "int quant_max) -> Tensor", python=fake_channels)  # fmt: skip


def _written(target: Tensor, values: Any) -> None:
    """Put values into a tensor, which takes their shape."""
    if target.array.shape != np.shape(values):
        target.array, target._storage = np.empty(np.shape(values), target.array.dtype), None
    target.array[...] = values
    target.bump_version()


def _observe(x: Array, running: Sequence[Tensor], share: float, axis: int | None) -> None:
    """Move the running least and greatest numbers by their share towards those that are seen now."""
    rows = x.reshape(1, -1) if axis is None else np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    for tensor, seen in zip(running, (rows.min(axis=1), rows.max(axis=1)), strict=True):
        now = seen.reshape(()) if axis is None else seen
        old = tensor.array if tensor.array.size else np.full(now.shape, math.inf, np.float32)
        moved = np.where(np.isinf(old), now, old + np.float32(share) * (now - old))
        _written(tensor, moved.reshape(old.shape) if old.size == moved.size else moved)


def observed_fake_quantize(
    self: Tensor, observer_on: Tensor, fake_quant_on: Tensor, running_min: Tensor, running_max: Tensor, scale: Tensor,
    zero_point: Tensor, averaging_const: float, quant_min: int, quant_max: int, ch_axis: int,
    per_row_fake_quant: bool, symmetric_quant: bool,
) -> Tensor:  # fmt: skip
    """Update the observed range, the scale and the zero point, and fake-quantize; each only if enabled."""
    axis = ch_axis if per_row_fake_quant else None
    if axis is not None and not 0 <= axis < self.ndim:
        raise OperatorError("Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()")
    if observer_on.item() and self.array.size:
        _observe(self.array, (running_min, running_max), averaging_const, axis)
        pairs = zip(running_min.array.ravel(), running_max.array.ravel(), strict=True)
        found = [chosen_between(float(a), float(b), quant_min, quant_max, symmetric_quant) for a, b in pairs]
        for target, values in zip((scale, zero_point), zip(*found, strict=True), strict=True):
            array = np.array(values, target.array.dtype)
            _written(target, array.reshape(target.array.shape) if array.size == target.array.size else array)
    if not fake_quant_on.item():
        unchanged: Tensor = self.clone()
        return unchanged
    if axis is not None:
        return fake_channels(self, scale, zero_point, axis, quant_min, quant_max)
    result: Tensor = run("_fake_quantize", self, float(scale.item()), int(zero_point.item()), quant_min, quant_max)[0]
    return result


op("aten::fused_moving_avg_obs_fake_quant(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) "
   "running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int "
   "quant_min, int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> Tensor",
   python=observed_fake_quantize)  # fmt: skip
