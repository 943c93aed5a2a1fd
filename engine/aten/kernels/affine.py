"""Affine quantization of arrays: numbers to integers and back.

In: arrays and quantizers.  Out: arrays.  Everything is rounded as PyTorch rounds on x86: scales are float32 where they
meet numbers, halves go to the even neighbour, what is out of range goes to the limit.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from engine.aten.values.quantizer import Quantizer, integers_of, per_tensor, quantizer_of, wrapped
from engine.aten.values.xp import Array, silently
from engine.lang import scalars

_LEAST_SCALE: Final = 6.1e-5
"""Smaller scales of observed numbers are not taken."""
_NO_SCALE: Final = 0.1


def quantize(values: Array, quantizer: Quantizer) -> Array:
    """The numbers as a quantized array."""
    return wrapped(silently(rounded, values, quantizer), quantizer)


def quantized_late(values: Array, quantizer: Quantizer) -> Array:
    """The same as operators on vectors do it: rounded before the zero point is added, which matters for halves."""
    scaled = silently(np.multiply, np.asarray(values, np.float32), np.float32(1) / np.float32(quantizer.scale))
    return wrapped(limited(np.rint(scaled), quantizer.zero_point, quantizer), quantizer)


def rounded(values: Array, quantizer: Quantizer) -> Array:
    """The integers that come nearest to the numbers."""
    values = np.asarray(values, np.float32)
    scale = quantizer.spread(np.asarray(quantizer.scale, np.float32), values.ndim)
    zero = quantizer.spread(quantizer.zero_point, values.ndim)
    moved = np.asarray(values * (np.float32(1) / scale) + np.asarray(zero, np.float32), np.float32)
    return limited(np.rint(moved), 0, quantizer)


def limited(scaled: Array, zero: Any, quantizer: Quantizer) -> Array:
    """Rounded numbers plus the zero point, as integers; NaN becomes the lower limit."""
    low, high = quantizer.limits
    wide = scaled if quantizer.integer.itemsize == 1 else scaled.astype(np.float64)  # float32 holds all bytes
    return np.asarray(np.fmin(np.fmax(wide + zero, low), high)).astype(quantizer.integer)


def above_zero_of(values: Array, quantizer: Quantizer) -> Array:
    """The quantized integers of `values` minus the zero point, as float32, for a per-tensor quantizer."""
    zero = np.float32(quantizer.zero_point)
    low, high = quantizer.limits
    moved = np.rint(values * (np.float32(1) / np.float32(quantizer.scale)) + zero)
    return np.asarray(np.fmin(np.fmax(moved, np.float32(low)), np.float32(high)) - zero)


def dequantize(array: Array) -> Array:
    """The numbers that a quantized array stands for, in float32."""
    quantizer = quantizer_of(array)
    integers = integers_of(array)
    scale = quantizer.spread(np.asarray(quantizer.scale, np.float32), array.ndim)
    zero = quantizer.spread(quantizer.zero_point, array.ndim)
    if getattr(zero, "dtype", None) == np.float32:
        return np.asarray((integers.astype(np.float32) - zero) * scale, np.float32)
    return np.asarray((integers.astype(np.int64) - zero).astype(np.float32) * scale, np.float32)


def fused(array: Array) -> Array:
    """The same of one scale, as operators on vectors do it: `scale * integer - scale * zero_point`, rounded once."""
    quantizer = quantizer_of(array)
    scale = np.float32(quantizer.scale)
    offset = np.float32(scale * np.float32(-quantizer.zero_point))
    return np.asarray(integers_of(array).astype(np.float64) * np.float64(scale) + np.float64(offset), np.float32)


def chosen(values: Array, d: scalars.dtype, reduce_range: bool) -> Quantizer:
    """The quantizer for numbers that are seen now, from the smallest and the largest one."""
    low, high = (0, 255) if d.name == "quint8" else (-128, 127)
    if reduce_range:
        low, high = int(low / 2), int(high / 2)
    least, most = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    return per_tensor(d, *chosen_between(least, most, low, high))


def chosen_between(least: float, most: float, low: int, high: int, symmetric: bool = False) -> tuple[float, int]:
    """Scale and zero point so that the integers from `low` to `high` reach from the least number to the most."""
    least, most = min(least, 0.0), max(most, 0.0)
    if not (math.isfinite(least) and math.isfinite(most)):
        return _NO_SCALE, low
    balanced = symmetric and least < 0 < most
    if balanced:
        half = (high - low) // 2
        widest = max(abs(least / (half + 1)), abs(most / half))
        least, most = -widest * (half + 1), widest * half
    scale = (most - least) / (high - low)
    if np.float32(scale) == 0.0 or math.isinf(float(silently(np.divide, np.float32(1), np.float32(scale)))):
        scale = _NO_SCALE
    if scale < _LEAST_SCALE:
        least, most, scale = _widened(least, most, scale, high - low)
    from_low, from_high = low - least / scale, high - most / scale
    is_low_better = abs(low) - abs(least / scale) < abs(high) - abs(most / scale)
    start = (low + high) / 2 if balanced else from_low if is_low_better else from_high
    return scale, low if start < low else high if start > high else round(start)


def _widened(least: float, most: float, scale: float, steps: int) -> tuple[float, float, float]:
    """The limits of numbers so close together that the scale would be too small, for the least scale."""
    if least == 0.0:
        return least, _LEAST_SCALE * steps, _LEAST_SCALE
    if most == 0.0:
        return -_LEAST_SCALE * steps, most, _LEAST_SCALE
    factor = _LEAST_SCALE / scale
    return least * factor, most * factor, _LEAST_SCALE


def channels_last(array: Array) -> Array:
    """The same images, or volumes, with the channels of a place beside each other."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


def is_channels_last(array: Array) -> bool:
    """True if the array is dense in channels-last order and not C-contiguous as well."""
    return array.ndim > 3 and not array.flags.c_contiguous and bool(np.moveaxis(array, 1, -1).flags.c_contiguous)


def laid_out_like(array: Array, source: Array) -> Array:
    """The result of an operator that preserves the memory format of its input."""
    return channels_last(array) if is_channels_last(source) and array.ndim == source.ndim else array
