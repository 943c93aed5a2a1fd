"""Quantization, dequantization, and properties of quantized tensors.

In: tensors.  Out: tensors, quantized or not, numbers.  See Note [Quantized arrays].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.quantized_forms import form
from engine.aten.dispatch.table import op
from engine.aten.kernels import affine
from engine.aten.quantized import pointwise
from engine.aten.quantized import pooling as pooling
from engine.aten.values import xp
from engine.aten.values.quantizer import (
    BY_NUMBER,
    Quantizer,
    integers_of,
    is_quantized,
    per_channel,
    per_tensor,
    quantizer_of,
    wrapped,
)  # fmt: skip
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang import scalars
from engine.lang.errors import OperatorDtypeError, OperatorError


def quantized_dtype(number: int | None) -> scalars.dtype:
    """The dtype of that number.  Raises OperatorError for one that is not quantized."""
    found = None if number is None else BY_NUMBER.get(number)
    if found is None:
        shown = scalars.DTYPE_BY_NUMBER[number].ir_name if number in scalars.DTYPE_BY_NUMBER else number
        raise OperatorError(
            f"ScalarType {shown} is not supported in new_qtensor.",
            hints=("use torch.quint8, torch.qint8 or torch.qint32",),
        )
    return found


def _numbers(self: Tensor, name: str) -> Array:
    if self.array.dtype != xp.FLOAT32:
        raise OperatorError(
            f"Quantize only works on Float Tensor, got {self.dtype.ir_name}", hints=(f"{name}(x.float(), …)",)
        )
    return self.array


def _one(value: Tensor | float) -> Any:
    return value.item() if isinstance(value, Tensor) else value


# ------------------------------------------------------------------ made of numbers


def quantize_per_tensor(self: Tensor, scale: Any, zero_point: Any, dtype: int) -> Tensor:
    array = _numbers(self, "quantize_per_tensor")
    return Tensor(affine.quantize(array, per_tensor(quantized_dtype(dtype), float(_one(scale)), int(_one(zero_point)))))


def quantize_each(tensors: Sequence[Tensor], scales: Tensor, zero_points: Tensor, dtype: int) -> list[Tensor]:
    """Each tensor with a scale of its own."""
    pairs = zip(tensors, scales.array.ravel(), zero_points.array.ravel(), strict=True)
    return [quantize_per_tensor(t, scale, zero, dtype) for t, scale, zero in pairs]


def quantize_dynamic(self: Tensor, dtype: int, reduce_range: bool) -> Tensor:
    """With the scale that its own smallest and largest number call for."""
    array = _numbers(self, "quantize_per_tensor_dynamic")
    d = quantized_dtype(dtype)
    if d.name not in ("qint8", "quint8"):
        raise OperatorError(f"dtype {d!r} not supported", hints=("torch.quint8 and torch.qint8 are",))
    return Tensor(affine.quantize(array, affine.chosen(array, d, reduce_range)))


def quantize_per_channel(self: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: int) -> Tensor:
    array = _numbers(self, "quantize_per_channel")
    quantizer = per_channel(quantized_dtype(dtype), scales.array, zero_points.array, axis, array.shape)
    return Tensor(affine.quantize(array, quantizer))


op("aten::quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor",
   python=quantize_per_tensor)  # fmt: skip
op("aten::quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, ScalarType dtype) -> Tensor",
   python=quantize_per_tensor)  # fmt: skip
op("aten::quantize_per_tensor.tensors(Tensor[] tensors, Tensor scales, Tensor zero_points, ScalarType dtype) -> "
   "Tensor[]", python=quantize_each)  # fmt: skip
op("aten::quantize_per_tensor_dynamic(Tensor self, ScalarType dtype, bool reduce_range) -> Tensor",
   python=quantize_dynamic)  # fmt: skip
op("aten::quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype) -> Tensor",
   python=quantize_per_channel)  # fmt: skip

# ------------------------------------------------------------------ made of integers

_WHOLE: Final = {xp.QUANTIZED[name]: scalars.DTYPE_WORDS[name] for name in ("qint8", "quint8", "qint32")}


def _of_integers(self: Tensor) -> scalars.dtype:
    found = _WHOLE.get(self.array.dtype)
    if found is None:
        raise OperatorError(f"a tensor of int8, uint8 or int32 is wanted, not one of {self.dtype}")
    return found


def make_per_tensor(self: Tensor, scale: float, zero_point: int) -> Tensor:
    return Tensor(wrapped(self.array.copy(), per_tensor(_of_integers(self), scale, zero_point)))


def make_per_channel(self: Tensor, scale: Tensor, zero_point: Tensor, axis: int) -> Tensor:
    quantizer = per_channel(_of_integers(self), scale.array, zero_point.array, axis, self.array.shape)
    return Tensor(wrapped(self.array.copy(), quantizer))


def _empty(size: Sequence[int], quantizer: Quantizer) -> Tensor:
    if any(each < 0 for each in size):
        raise OperatorError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    return Tensor(wrapped(np.zeros(tuple(size), quantizer.integer), quantizer))


def empty_affine(
    size: list[int],
    dtype: int | None,
    layout: Any,
    device: Any,
    pin_memory: Any,
    scale: float,
    zero_point: int,
    *_: Any,
) -> Tensor:
    """Memory to be written to; zeros here."""
    return _empty(size, per_tensor(quantized_dtype(dtype), scale, zero_point))


def empty_per_channel(
    size: list[int], scales: Tensor, zero_points: Tensor, axis: int, dtype: int | None, *_: Any
) -> Tensor:
    return _empty(size, per_channel(quantized_dtype(dtype), scales.array, zero_points.array, axis, tuple(size)))


def empty_like(size: list[int], qtensor: Tensor, *_: Any) -> Tensor:
    return _empty(size, quantizer_of(qtensor.array))


op(
    "aten::_make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor",
    python=make_per_tensor,
)
op("aten::_make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, int axis) -> Tensor",
   python=make_per_channel)  # fmt: skip
_MADE: Final = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
op(f"aten::_empty_affine_quantized(SymInt[] size, *, {_MADE}, float scale=1., int zero_point=0, "
   "MemoryFormat? memory_format=0) -> Tensor", python=empty_affine)  # fmt: skip
op(f"aten::_empty_per_channel_affine_quantized(SymInt[] size, *, Tensor scales, Tensor zero_points, int axis, {_MADE}, "
   "MemoryFormat? memory_format=0) -> Tensor", python=empty_per_channel)  # fmt: skip
op(f"aten::empty_quantized(int[] size, Tensor qtensor, *, {_MADE}, MemoryFormat? memory_format=None) -> Tensor",
   python=empty_like)  # fmt: skip

# ------------------------------------------------------------------ made numbers again


def dequantize(self: Tensor) -> Tensor:
    """The numbers in float32."""
    if is_quantized(self.array):
        return Tensor(affine.dequantize(self.array))
    result: Tensor = self.to(xp.FROM_NUMPY[xp.FLOAT32])
    return result


def dequantize_each(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [dequantize(tensor) for tensor in tensors]


@form("dequantize")
def _dequantize(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_dequantize(each) for each in value]
    return affine.dequantize(value) if is_quantized(value) else value


op("aten::dequantize.self(Tensor self) -> Tensor", python=dequantize, variants="function method out",
   hands_on=True)  # fmt: skip
op("aten::dequantize.tensors(Tensor[] tensors) -> Tensor[]", python=dequantize_each, hands_on=True)
op("aten::dequantize.tensor(Tensor qtensor) -> Tensor", python=dequantize, hands_on=True)
op("aten::dequantize.list(Tensor[] qtensors) -> Tensor[]", python=dequantize_each, hands_on=True)

# ------------------------------------------------------------------ properties


def _asked(name: str, returned: str, answer: Callable[[Array], Any]) -> None:
    """A question to a quantized tensor."""

    def ask(self: Tensor) -> Any:
        if not is_quantized(self.array):
            raise OperatorDtypeError(f"Could not run 'aten::{name}' with arguments from the 'CPU' backend.",
                                     hints=("only quantized tensors can tell it",))  # fmt: skip
        found = answer(self.array)
        return Tensor(found) if isinstance(found, np.ndarray) else found

    def of_arrays(array: Array) -> Any:
        return answer(array)

    form(name)(of_arrays)
    op(f"aten::{name}(Tensor self) -> {returned}", python=ask, variants="function method")


def _by_channel(array: Array) -> Quantizer:
    found = quantizer_of(array)
    if found.axis is None:
        raise OperatorError(
            "Expected quantizer->qscheme() == kPerChannelAffine || quantizer->qscheme() == "
            "kPerChannelAffineFloatQParams to be true, but got false."
        )
    return found


def _integers(array: Array) -> Array:
    quantizer_of(array)
    return integers_of(array).copy()


_asked("int_repr", "Tensor", _integers)
_asked("q_scale", "float", lambda array: pointwise.uniform(array).scale)
_asked("q_zero_point", "int", lambda array: pointwise.uniform(array).zero_point)
_asked("q_per_channel_scales", "Tensor", lambda array: _by_channel(array).scale.copy())
_asked("q_per_channel_zero_points", "Tensor", lambda array: _by_channel(array).zero_point.copy())
_asked("q_per_channel_axis", "int", lambda array: _by_channel(array).axis)
_asked("qscheme", "QScheme", lambda array: quantizer_of(array).scheme)
