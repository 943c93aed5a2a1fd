"""Operators of plain tensors, on quantized ones: element by element, and joined.

In: arrays, some of them quantized.  Out: arrays.  Results keep the quantizer where that is what PyTorch does; a few
functions whose values have known limits have a quantizer of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.compose import run
from engine.aten.dispatch.quantized_forms import form
from engine.aten.kernels.affine import dequantize, fused, laid_out_like, quantize, quantized_late, rounded
from engine.aten.values.quantizer import (
    Quantizer,
    described,
    integers_of,
    is_quantized,
    per_tensor,
    quantizer_of,
    wrapped,
)  # fmt: skip
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import FROM_NUMPY, INTEGERS, Array
from engine.lang.errors import OperatorError


def rewrapped(integers: Array, like: Array) -> Array:
    """Integers with the quantizer of another array."""
    return wrapped(integers.astype(integers_of(like).dtype, copy=False), quantizer_of(like))


def bound(value: Any, quantizer: Quantizer) -> int:
    """The integer of one number."""
    return int(rounded(np.asarray(float(value), np.float32), quantizer))


@form("relu")
def relu(x: Array) -> Array:
    quantizer = uniform(x)
    return rewrapped(np.maximum(integers_of(x), quantizer.integer.type(quantizer.zero_point)), x)


@form("clamp", "hardtanh", "clip")
def clamp(x: Array, low: Any = None, high: Any = None) -> Array:
    quantizer = uniform(x)
    if low is None and high is None:
        raise OperatorError("torch.clamp: At least one of 'min' or 'max' must not be None")
    integers = integers_of(x)
    if low is not None:
        integers = np.maximum(integers, quantizer.integer.type(bound(low, quantizer)))
    if high is not None:
        integers = np.minimum(integers, quantizer.integer.type(bound(high, quantizer)))
    return rewrapped(integers, x)


@form("clamp_min")
def clamp_min(x: Array, low: Any) -> Array:
    return clamp(x, low, None)


@form("clamp_max")
def clamp_max(x: Array, high: Any) -> Array:
    return clamp(x, None, high)


@form("relu6")
def relu6(x: Array) -> Array:
    return clamp(x, 0.0, 6.0)


@form("threshold")
def threshold(x: Array, limit: Any, value: Any) -> Array:
    numbers = dequantize(x)
    return quantized_late(np.where(numbers > np.float32(limit), numbers, np.float32(value)), uniform(x))


def through_numbers(x: Array, name: str, *args: Any, to: Quantizer | None = None) -> Array:
    """Apply an operator to the dequantized numbers, and quantize its result (by default with the quantizer of `x`)."""
    numbers = fused(x) if quantizer_of(x).axis is None else dequantize(x)
    result: Tensor = run(name, Tensor(numbers), *args)
    return quantized_late(result.array, to or quantizer_of(x))


def uniform(x: Array) -> Quantizer:
    """The quantizer of an operand.  Raises OperatorError for one that has several scales."""
    found = quantizer_of(x)
    if found.axis is not None:
        raise OperatorError("Expected quantizer->qscheme() == kPerTensorAffine to be true, but got false.")
    return found


_SMALL: Final = 1 / 256
_LIMITED: Final[dict[str, dict[str, tuple[float, int]]]] = {
    "sigmoid": {"quint8": (_SMALL, 0), "qint8": (_SMALL, -128), "qint32": (2.0**-32, -(1 << 31))},
    "hardsigmoid": {"quint8": (_SMALL, 0), "qint8": (_SMALL, -128), "qint32": (2.0**-32, -(1 << 31))},
    "tanh": {"quint8": (2 / 256, 128), "qint8": (2 / 256, 0), "qint32": (2.0**-31, 0)},
}
"""Bounded functions -> dtype -> the scale and zero point of their results."""


def _limited(name: str) -> Callable[[Array], Array]:
    def apply(x: Array) -> Array:
        d = quantizer_of(x).dtype
        return through_numbers(x, name, to=per_tensor(d, *_LIMITED[name][d.name]))

    return apply


for _name in _LIMITED:
    form(_name)(_limited(_name))


def _kept(name: str) -> Callable[..., Array]:
    return lambda x, *args: through_numbers(x, name, *args)


for _name in ("leaky_relu", "gelu"):
    form(_name)(_kept(_name))


# ------------------------------------------------------------------ compared


def _numbers(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    return Tensor(dequantize(value) if is_quantized(value) else value)


def _compared(name: str) -> Callable[[Array, Any], Array]:
    def apply(x: Any, y: Any) -> Array:
        overload = "Tensor" if isinstance(y, np.ndarray) else "Scalar"
        result: Tensor = run(f"{name}.{overload}", _numbers(x), _numbers(y))
        return result.array

    return apply


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    form(_name)(_compared(_name))


@form("equal")
def equal(x: Array, y: Array) -> bool:
    if not (is_quantized(x) and is_quantized(y) and quantizer_of(x).same(quantizer_of(y))):
        return False
    return bool(np.array_equal(integers_of(x), integers_of(y)))


# ------------------------------------------------------------------ joined, written


@form("cat", "concat", "concatenate")
def cat(arrays: Sequence[Array], dim: int) -> Array:
    """The numbers of all with the quantizer of the first one."""
    return joined(arrays, dim, quantizer_of(arrays[0]))


def joined(arrays: Sequence[Array], dim: int, quantizer: Quantizer) -> Array:
    if any(quantizer_of(each).axis is not None for each in arrays):
        raise OperatorError("Only per-tensor quantization is supported in 'cat'!")
    if any(quantizer_of(each).dtype is not quantizer.dtype for each in arrays):
        raise OperatorError("all tensors that are put together must have the same dtype")
    parts = [
        integers_of(each) if quantizer_of(each).same(quantizer) else rounded(fused(each), quantizer) for each in arrays
    ]
    result: Tensor = run("cat", [Tensor(part) for part in parts], dim)
    return laid_out_like(wrapped(result.array, quantizer), arrays[0])


@form("stack")
def stack(arrays: Sequence[Array], dim: int) -> Array:
    wide = [np.expand_dims(each, dim if dim >= 0 else dim + each.ndim + 1) for each in arrays]
    return cat(wide, dim if dim >= 0 else dim + arrays[0].ndim + 1)


@form("fill")
def fill(x: Array, value: Any) -> Array:
    number = value.item() if isinstance(value, np.ndarray) else value
    return rewrapped(np.full_like(integers_of(x), bound(number, quantizer_of(x))), x)


@form("zero")
def zero(x: Array) -> Array:
    return fill(x, 0.0)


@form("masked_fill")
def masked_fill(x: Array, mask: Array, value: Any) -> Array:
    number = value.item() if isinstance(value, np.ndarray) else value
    return rewrapped(np.where(mask, integers_of(x).dtype.type(bound(number, quantizer_of(x))), integers_of(x)), x)


@form("constant_pad_nd")
def constant_pad(x: Array, pad: Sequence[int], value: Any) -> Array:
    result: Tensor = run("constant_pad_nd", Tensor(integers_of(x)), list(pad), bound(value, quantizer_of(x)))
    return rewrapped(result.array, x)


@form("pad")
def pad(x: Array, sizes: Sequence[int], mode: str, value: float | None) -> Array:
    if mode == "constant":
        return constant_pad(x, sizes, value or 0.0)
    result: Tensor = run("pad", Tensor(integers_of(x).astype(np.float64)), list(sizes), mode, None)
    return rewrapped(result.array, x)


@form("copy_", "copy")
def copy(x: Array, source: Array, *_: Any) -> Array:
    """`source` converted to the quantizer of `x`."""
    if not is_quantized(x):
        raise OperatorError(
            "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize"
        )
    quantizer = quantizer_of(x)
    if is_quantized(source) and quantizer_of(source).same(quantizer):
        return np.broadcast_to(source, x.shape)
    if is_quantized(source):
        raise OperatorError(
            "a quantized tensor takes only numbers, and quantized tensors with its own scale and zero point",
            hints=("copy y.dequantize()",),
        )
    return quantize(np.broadcast_to(source, x.shape), quantizer)


@form("to", "type_as", "_to_copy")
def to(x: Array, *args: Any) -> Array:
    """A quantized tensor can be brought to its own dtype alone."""
    d = quantizer_of(x).dtype
    wanted = next((a for a in args if isinstance(a, (int, np.ndarray)) and not isinstance(a, bool)), None)
    number = FROM_NUMPY[wanted.dtype].number if isinstance(wanted, np.ndarray) else wanted
    if number not in (None, d.number):
        raise OperatorError(
            "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize",
            hints=("x.dequantize()",),
        )
    return x


@form("select")
def select(x: Array, dim: int, index: int) -> Array:
    """One of several scales, where it is taken along their dimension."""
    how = quantizer_of(x)
    taken: Array = run("select.int", Tensor(integers_of(x)), dim, index).array
    if how.axis is None:
        return described(taken, how)
    dim %= x.ndim
    if dim != how.axis:
        return described(taken, Quantizer(how.dtype, how.scale, how.zero_point, how.axis - (dim < how.axis)))
    if how.zero_point.dtype not in INTEGERS:
        raise OperatorError("a row whose zero point is no integer cannot be taken out of a quantized tensor")
    return described(taken, Quantizer(how.dtype, float(np.float32(how.scale[index])), int(how.zero_point[index])))


# ------------------------------------------------------------------ ordered


def _picked(name: str) -> Callable[..., Any]:
    """An operator whose values are some of the numbers: it runs on the integers."""

    def apply(x: Array, *args: Any) -> Any:
        uniform(x)
        result = run(name, Tensor(integers_of(x)), *args)
        if isinstance(result, tuple):
            return (rewrapped(result[0].array, x), *(each.array for each in result[1:]))
        return rewrapped(result.array, x)

    return apply


for _name in ("sort", "sort.stable", "topk", "max", "min", "max.dim", "min.dim", "where.self"):
    form(_name)(_picked(_name))


@form("mean", "mean.dim")
def mean(x: Array, *args: Any) -> Array:
    args = args or (None,)
    if len(args) == 1:
        return _early(x, "mean", None)
    return _early(x, "mean.dim", args[0], args[1], None)


def _early(x: Array, name: str, *args: Any) -> Array:
    """Apply an operator to the numbers, made of the tensor before, and quantize what it gives."""
    result: Tensor = run(name, Tensor(dequantize(x)), *args)
    return quantize(result.array, uniform(x))


@form("std", "std.dim", "std.correction")
def std(x: Array, *args: Any) -> Array:
    names = {1: "std", 3: "std.correction" if not isinstance(args[1], bool) else "std.dim"}
    return _early(x, names.get(len(args), "std.dim"), *args)


@form("item", "Float", "FloatImplicit", "ScalarImplicit")
def item(x: Array) -> float:
    if x.size != 1:
        raise OperatorError(f"a Tensor with {x.size} elements cannot be converted to Scalar")
    return float(dequantize(x).item())
