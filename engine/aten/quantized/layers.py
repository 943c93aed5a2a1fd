"""Linear layers and convolutions over integers.

In: arrays and packed weights.  Out: arrays, quantized or of numbers.  Sums of products are exact, as those of PyTorch's
32-bit integers are; what comes of them is scaled, and rounded once.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.aten.dispatch.compose import run
from engine.aten.kernels.affine import above_zero_of, channels_last, chosen, dequantize, limited, rounded
from engine.aten.quantized.packed import Conv, Linear, Weight
from engine.aten.values.quantizer import Quantizer, integers_of, per_tensor, quantizer_of, wrapped
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang import scalars
from engine.lang.errors import OperatorError

_EXACT: Final = 1 << 24
"""Whole numbers up to here are exact in float32."""
_QUINT8: Final = scalars.DTYPE_WORDS["quint8"]


def above_zero(x: Array) -> tuple[Array, Quantizer]:
    """A quantized array's integers minus the zero point, in float32, and its quantizer."""
    how = quantizer_of(x)
    if how.axis is not None or how.dtype.name == "qint32":
        raise OperatorError("the input of a quantized layer must be of torch.quint8 or torch.qint8, with one scale")
    return np.asarray(integers_of(x).astype(np.float32) - np.float32(how.zero_point), np.float32), how


def product(x: Array, columns: Array, largest: int) -> Array:
    """`x @ columns` of whole numbers, exact; those of x are below 256, those of columns not above `largest`."""
    step = max(1, _EXACT // (255 * max(1, largest)))
    if x.shape[-1] <= step:
        return x @ columns
    total = np.zeros((*x.shape[:-1], columns.shape[1]), np.float64)
    for start in range(0, x.shape[-1], step):
        total += x[..., start : start + step] @ columns[start : start + step]
    return total


def requantized(
    total: Array, scales: Any, bias: Array | None, source: Quantizer, scale: float, zero_point: int, relu: bool
) -> Array:
    """Sums of products as integers with another scale; `scales` and `bias` meet the outputs."""
    to = per_tensor(source.dtype, scale, zero_point)
    product_scale = np.float32(source.scale) * scales
    exact = total.astype(np.float32)
    if bias is not None:
        exact = exact + bias / product_scale
    whole = np.rint(exact * (product_scale / np.float32(scale)))
    integers = limited(whole, zero_point, to)
    if relu:
        integers = np.maximum(integers, to.integer.type(zero_point))
    return wrapped(integers, to)


def _quantized_weight(layer: Linear) -> Weight:
    if not isinstance(layer.weight, Weight):
        raise OperatorError("this layer's weight is one of float16, and the operator wants one of int8")
    return layer.weight


def _check_features(x: Array, layer: Linear) -> None:
    wanted = layer.original.array.shape[1]
    if x.ndim == 0 or x.shape[-1] != wanted:
        raise OperatorError(
            f"The number of columns in the input should be equal to that of the weight, which is {wanted}"
        )


def linear(x: Array, layer: Linear, scale: float, zero_point: int, relu: bool = False) -> Array:
    _check_features(x, layer)
    weight = _quantized_weight(layer)
    above, how = above_zero(x)
    total = product(above, layer.columns, weight.largest)
    return requantized(total, weight.scales, layer.bias_array, how, scale, zero_point, relu)


def linear_of_numbers(x: Array, layer: Linear, how: Quantizer, relu: bool = False) -> Array:
    """Quantize the input, and give numbers."""
    _check_features(x, layer)
    weight = _quantized_weight(layer)
    total = product(above_zero_of(x, how), layer.columns, weight.largest)
    result = total.astype(np.float32) * (np.float32(how.scale) * weight.scales)
    if layer.bias_array is not None:
        result = result + layer.bias_array
    return np.maximum(result, np.float32(0)) if relu else result


def linear_dynamic(x: Array, layer: Linear, reduce_range: bool, relu: bool = False) -> Array:
    """The input's scale is that of its own smallest and largest number."""
    if x.dtype != np.float32:
        raise OperatorError(f"the input of a dynamically quantized layer must be of float32, not {x.dtype}")
    return linear_of_numbers(x, layer, chosen(x, _QUINT8, reduce_range), relu)


def linear_halves(x: Array, layer: Linear, relu: bool = False) -> Array:
    """A weight that was rounded to float16, and numbers."""
    _check_features(x, layer)
    if isinstance(layer.weight, Weight):
        raise OperatorError("this layer's weight is one of int8, and the operator wants one of float16")
    result = np.asarray(x, np.float32) @ layer.columns
    if layer.bias_array is not None:
        result = result + layer.bias_array
    return np.maximum(result, np.float32(0)) if relu else result


# ------------------------------------------------------------------ convolutions


def _sums(above: Array, layer: Conv) -> Array:
    """Sums of products, exact."""
    wide = np.float32 if layer.reach * 255 * layer.weight.largest < _EXACT else np.float64
    shape = (layer.stride, layer.padding, layer.dilation, layer.transposed, layer.output_padding, layer.groups)
    x, w = (Tensor(each.astype(wide, copy=False)) for each in (above, layer.weight.above))
    result: Tensor = run("convolution", x, w, None, *shape)
    return result.array


def _check_space(x: Array, layer: Conv) -> None:
    if x.ndim != layer.n + 2:
        raise OperatorError(f"Expected {layer.n + 2} dimensional input of a quantized convolution, got {x.ndim}")


def _by_output(values: Any, layer: Conv) -> Any:
    """One value for each output, shaped to meet them; those of a transposed convolution are for each of a group."""
    if values.size == 1:
        return values.reshape(())
    if layer.transposed and values.size != layer.weight.tensor.array.shape[1] * layer.groups:
        values = np.tile(values, layer.groups)
    return values.reshape(-1, *[1] * layer.n)


def conv(x: Array, layer: Conv, scale: float, zero_point: int, relu: bool = False) -> Array:
    _check_space(x, layer)
    above, how = above_zero(x)
    scales = _by_output(layer.weight.scales, layer)
    bias = None if layer.bias_array is None else layer.bias_array.reshape(-1, *[1] * layer.n)
    return channels_last(requantized(_sums(above, layer), scales, bias, how, scale, zero_point, relu))


def conv_numbers(x: Array, layer: Conv) -> Array:
    """The numbers that a convolution of a quantized array gives."""
    _check_space(x, layer)
    above, how = above_zero(x)
    result: Array = _sums(above, layer).astype(np.float32) * (
        np.float32(how.scale) * _by_output(layer.weight.scales, layer)
    )
    return result if layer.bias_array is None else result + layer.bias_array.reshape(-1, *[1] * layer.n)


def conv_dynamic(x: Array, layer: Conv, reduce_range: bool) -> Array:
    """The input's scale is that of its own smallest and largest number, and so is the result's."""
    how = chosen(x, _QUINT8, reduce_range)
    return dequantize(conv(wrapped(rounded(x, how), how), layer, how.scale, how.zero_point))
