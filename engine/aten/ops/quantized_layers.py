"""`quantized::`: layers with packed weights.

In: tensors, quantized or not, and objects that hold weights.  Out: tensors, such objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.table import op
from engine.aten.kernels.affine import limited
from engine.aten.quantized import layers
from engine.aten.quantized.packed import CONV, LINEAR, Conv, Linear, packed
from engine.aten.quantized.packed import conv as make_conv
from engine.aten.quantized.packed import linear as make_linear
from engine.aten.values.ivalue import CustomObject
from engine.aten.values.quantizer import (
    Quantizer,
    integers_of,
    is_quantized,
    per_tensor,
    present,
    quantizer_of,
    wrapped,
)  # fmt: skip
from engine.aten.values.tensor import Tensor
from engine.lang import scalars
from engine.lang.errors import OperatorError

_LARGEST_HALF: Final = 65504.0


def content_of(object_: CustomObject) -> Any:
    """The unpacked content of a custom object.  Raises OperatorError for an empty one."""
    if object_.content is None:
        raise OperatorError(f"a '{object_.type.qualname}' has no weights: it was made without a state")
    return object_.content


def shown(tensor: Tensor) -> Tensor:
    """A weight as a program sees it."""
    if is_quantized(tensor.array):
        present()
    return tensor


# ------------------------------------------------------------------ linear


def linear_prepack(weight: Tensor, bias: Tensor | None) -> CustomObject:
    if not is_quantized(weight.array):
        raise OperatorError("linear_prepack wants a quantized weight", hints=("torch.quantize_per_tensor makes one",))
    return packed(LINEAR, make_linear(weight, bias))


def linear_prepack_fp16(weight: Tensor, bias: Tensor | None) -> CustomObject:
    """The weight rounded to float16, clamped to its finite range."""
    if weight.array.dtype != np.float32:
        raise OperatorError(f"linear_prepack_fp16 wants a weight of float32, not {weight.dtype}")
    rounded = np.clip(weight.array, -_LARGEST_HALF, _LARGEST_HALF).astype(np.float16).astype(np.float32)
    return packed(LINEAR, make_linear(Tensor(rounded), bias))


def linear_unpack(object_: CustomObject) -> tuple[Tensor, Tensor | None]:
    layer: Linear = content_of(object_)
    return shown(layer.original), layer.bias


def _linear(relu: bool) -> Callable[..., Tensor]:
    return lambda x, w, scale, zero: Tensor(layers.linear(x.array, content_of(w), scale, int(zero), relu))


def _dynamic(relu: bool) -> Callable[..., Tensor]:
    return lambda x, w, reduce_range: Tensor(layers.linear_dynamic(x.array, content_of(w), reduce_range, relu))


def _halves(relu: bool) -> Callable[..., Tensor]:
    return lambda x, w: Tensor(layers.linear_halves(x.array, content_of(w), relu))


def _of_numbers(relu: bool) -> Callable[..., Tensor]:
    def run(x: Tensor, scale: float, zero_point: int, w: CustomObject) -> Tensor:
        how = per_tensor(scalars.DTYPE_WORDS["quint8"], scale, zero_point)
        return Tensor(layers.linear_of_numbers(x.array, content_of(w), how, relu))

    return run


_W: Final = f"{LINEAR.qualname} W_prepack"
_OUT: Final = "float Y_scale_i, int Y_zero_point_i"
op(f"quantized::linear_prepack(Tensor W, Tensor? B=None) -> {_W}", python=linear_prepack)
op(f"quantized::linear_prepack_fp16(Tensor W, Tensor? B=None) -> {_W}", python=linear_prepack_fp16)
for _name in ("linear_unpack", "linear_unpack_fp16"):
    op(f"quantized::{_name}({_W}) -> (Tensor W_origin, Tensor? B_origin)", python=linear_unpack)
for _name, _relu in (("linear", False), ("linear_relu", True)):
    op(f"quantized::{_name}(Tensor X, {_W}, {_OUT}) -> Tensor Y", python=_linear(_relu))
    op(f"quantized::{_name}_dynamic(Tensor X, {_W}, bool reduce_range=False) -> Tensor Y", python=_dynamic(_relu))
    op(f"quantized::{_name}_dynamic_fp16(Tensor X, {_W}) -> Tensor Y", python=_halves(_relu))
for _name, _relu in (("", False), ("relu_", True)):
    op(f"quantized::linear_with_input_q_dq_qweight_dq_{_name}output_fp32(Tensor X, float X_scale, int X_zero_point, "
       f"{_W}) -> Tensor Y", python=_of_numbers(_relu))  # fmt: skip

# ------------------------------------------------------------------ convolutions


def _prepack(n: int, transposed: bool) -> Callable[..., CustomObject]:
    """The object of a convolution; one over a single dimension is kept as one over two, the first of size 1."""

    def prepack(weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], *rest: Any) -> CustomObject:
        output_padding, dilation, groups = rest if transposed else ([0] * n, *rest)
        if n == 1:
            weight = _lifted(weight)
            stride, padding, dilation, output_padding = (
                [1, *stride],
                [0, *padding],
                [1, *dilation],
                [0, *output_padding],
            )
        made = make_conv(max(n, 2), weight, bias, stride, padding, dilation, output_padding, groups, transposed)
        return packed(CONV[max(n, 2)], made)

    return prepack


def _lifted(x: Tensor) -> Tensor:
    """Lines as images of one row."""
    array = x.array
    return Tensor(array.reshape((*array.shape[:2], 1, *array.shape[2:])))


def _lowered(x: Tensor) -> Tensor:
    array = x.array
    return Tensor(array.reshape((*array.shape[:2], *array.shape[3:])))


def _unpack(n: int) -> Callable[[CustomObject], tuple[Tensor, Tensor | None]]:
    def unpack(object_: CustomObject) -> tuple[Tensor, Tensor | None]:
        layer: Conv = content_of(object_)
        return (_lowered(shown(layer.original)) if n == 1 else shown(layer.original)), layer.bias

    return unpack


def _conv(n: int, relu: bool) -> Callable[..., Tensor]:
    def run(x: Tensor, w: CustomObject, scale: float, zero_point: int) -> Tensor:
        if n == 1:
            return _lowered(Tensor(layers.conv(_lifted(x).array, content_of(w), scale, zero_point, relu)))
        return Tensor(layers.conv(x.array, content_of(w), scale, zero_point, relu))

    return run


def _conv_old(relu: bool) -> Callable[..., Tensor]:
    """With numbers that the weight's object has as well."""
    return lambda x, w, stride, padding, dilation, groups, scale, zero: Tensor(
        layers.conv(x.array, content_of(w), scale, zero, relu)
    )


def _conv_dynamic(n: int) -> Callable[..., Tensor]:
    def run(x: Tensor, w: CustomObject, reduce_range: bool) -> Tensor:
        if n == 1:
            return _lowered(Tensor(layers.conv_dynamic(_lifted(x).array, content_of(w), reduce_range)))
        return Tensor(layers.conv_dynamic(x.array, content_of(w), reduce_range))

    return run


def conv_add(relu: bool) -> Callable[..., Tensor]:
    """A convolution plus another tensor, rounded once."""

    def run(x: Tensor, added: Tensor, w: CustomObject, scale: float, zero_point: int) -> Tensor:
        layer: Conv = content_of(w)
        how = quantizer_of(x.array)
        numbers = layers.conv_numbers(x.array, layer)
        other = quantizer_of(added.array)
        more = (integers_of(added.array).astype(np.float32) - np.float32(other.zero_point)) * np.float32(other.scale)
        to: Quantizer = per_tensor(how.dtype, scale, zero_point)
        whole = limited(np.rint((numbers + more) / np.float32(scale)), zero_point, to)
        return Tensor(wrapped(np.maximum(whole, to.integer.type(zero_point)) if relu else whole, to))

    return run


_NUMBERS: Final[dict[str, tuple[str, Callable[[Conv], Any]]]] = {
    "stride": ("int[]", lambda c: [*c.stride]), "padding": ("int[]", lambda c: [*c.padding]),
    "output_padding": ("int[]", lambda c: [*c.output_padding]), "dilation": ("int[]", lambda c: [*c.dilation]),
    "groups": ("int", lambda c: c.groups), "transpose": ("int", lambda c: int(c.transposed)),
}  # fmt: skip


def _number(answer: Callable[[Conv], Any]) -> Callable[[CustomObject], Any]:
    return lambda object_: answer(content_of(object_))


_SHAPE: Final = "int[] stride, int[] padding, int[] dilation, int groups"
_SCALED: Final = "float output_scale, int output_zero_point"
for _n in (1, 2, 3):
    _P = f"{CONV[max(_n, 2)].qualname} packed_weight"
    _MADE = "Tensor weight, Tensor? bias, int[] stride, int[] padding"
    _new = "" if _n == 1 else ".new"
    op(f"quantized::conv{_n}d_prepack({_MADE}, int[] dilation, int groups) -> {CONV[max(_n, 2)].qualname}",
       python=_prepack(_n, False))  # fmt: skip
    op(f"quantized::conv_transpose{_n}d_prepack({_MADE}, int[] output_padding, int[] dilation, int groups) -> "
       f"{CONV[max(_n, 2)].qualname}", python=_prepack(_n, True))  # fmt: skip
    for _name in (f"conv{_n}d", f"conv_transpose{_n}d"):
        op(f"quantized::{_name}_unpack({_P}s) -> (Tensor unpacked_weights, Tensor? B_origin)", python=_unpack(_n))
        op(f"quantized::{_name}_dynamic(Tensor qx, {_P}, bool reduce_range=False) -> Tensor", python=_conv_dynamic(_n))
    op(f"quantized::conv{_n}d{_new}(Tensor qx, {_P}, {_SCALED}) -> Tensor", python=_conv(_n, False))
    op(f"quantized::conv{_n}d_relu{_new}(Tensor qx, {_P}, {_SCALED}) -> Tensor", python=_conv(_n, True))
    op(f"quantized::conv_transpose{_n}d(Tensor qx, {_P}, {_SCALED}) -> Tensor", python=_conv(_n, False))
    if _n == 1:
        continue
    for _name, _relu in ((f"conv{_n}d", False), (f"conv{_n}d_relu", True)):
        op(f"quantized::{_name}(Tensor qx, {CONV[_n].qualname} weight, {_SHAPE}, {_SCALED}) -> Tensor",
           python=_conv_old(_relu))  # fmt: skip
    for _name, (_type, _answer) in _NUMBERS.items():
        for _owner in (f"conv{_n}d", f"conv_transpose{_n}d"):
            op(f"quantized::{_owner}_{_name}({_P}s) -> {_type}", python=_number(_answer))
for _name, _relu in (("conv2d_add", False), ("conv2d_add_relu", True)):
    op(f"quantized::{_name}(Tensor qx, Tensor qaccum, {CONV[2].qualname} packed_weight, {_SCALED}) -> Tensor",
       python=conv_add(_relu))  # fmt: skip
op(f"quantized::conv_prepack(Tensor weight, Tensor? bias, {_SHAPE}) -> {CONV[2].qualname}", python=_prepack(2, False))
op(f"quantized::conv_unpack({CONV[2].qualname} packed_weights) -> (Tensor unpacked_weights, Tensor? B_origin)",
   python=_unpack(2))  # fmt: skip
