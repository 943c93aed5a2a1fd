"""`prepacked::`: linear layers and convolutions with a clamp behind, whose weights an object holds.

In: float32 tensors, and objects made of weights.  Out: tensors, such objects.  PyTorch has these operators in builds
for phones, and puts them into programs with `optimize_for_mobile`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from engine.aten.dispatch import compose
from engine.aten.dispatch.table import op
from engine.aten.prepacked import CONV2D, CONV_TRANSPOSE2D, LINEAR, layer_of, prepacked
from engine.aten.values.ivalue import CustomObject
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError


def linear_clamp_prepack(weight: Tensor, bias: Tensor | None, low: Any, high: Any) -> CustomObject:
    return prepacked(LINEAR, (weight, bias, low, high))


def conv2d_clamp_prepack(
    weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    groups: int, low: Any, high: Any,
) -> CustomObject:  # fmt: skip
    return prepacked(CONV2D, (weight, bias, [*stride], [*padding], [*dilation], groups, low, high))


def conv2d_transpose_clamp_prepack(
    weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int], output_padding: Sequence[int],
    dilation: Sequence[int], groups: int, low: Any, high: Any,
) -> CustomObject:  # fmt: skip
    state = (weight, bias, [*stride], [*padding], [*output_padding], [*dilation], groups, low, high)
    return prepacked(CONV_TRANSPOSE2D, state)


def clamp_run(x: Tensor, packed: CustomObject) -> Tensor:
    """The layer's operators, one after the other."""
    for name, arguments in layer_of(packed).calls():
        x = compose.run(name, x, *arguments)
    return x


def unpack_prepacked_sizes(packed: Any) -> Any:
    """The sizes of weight and bias, and the settings of a convolution.  Raises OperatorError for another object."""
    if not isinstance(packed, CustomObject) or packed.type not in (LINEAR, CONV2D):
        raise OperatorError(f"a prepacked layer is wanted, and this is a {type(packed).__name__}")
    layer = layer_of(packed)
    bias = None if layer.bias is None else [*layer.bias.shape]
    if packed.type is LINEAR:
        return [*layer.weight.shape], bias
    return ([*layer.weight.shape], bias, *layer.settings)


_MADE: Final = "Scalar? output_min=None, Scalar? output_max=None) ->"
_WEIGHTS: Final = "Tensor W, Tensor? B, int[2] stride, int[2] padding"
op(f"prepacked::linear_clamp_prepack(Tensor W, Tensor? B=None, {_MADE} {LINEAR.qualname}", python=linear_clamp_prepack)
op(f"prepacked::conv2d_clamp_prepack({_WEIGHTS}, int[2] dilation, int groups, {_MADE} {CONV2D.qualname}",
   python=conv2d_clamp_prepack)  # fmt: skip
op(f"prepacked::conv2d_transpose_clamp_prepack({_WEIGHTS}, int[2] output_padding, int[2] dilation, int groups, "
   f"{_MADE} {CONV_TRANSPOSE2D.qualname}", python=conv2d_transpose_clamp_prepack)  # fmt: skip
for _name, _kind in (("linear", LINEAR), ("conv2d", CONV2D), ("conv2d_transpose", CONV_TRANSPOSE2D)):
    op(f"prepacked::{_name}_clamp_run(Tensor X, {_kind.qualname} W_prepack) -> Tensor Y", python=clamp_run)
for _name in ("linear", "conv2d"):
    op(f"prepacked::unpack_prepacked_sizes_{_name}(Any W_prepack) -> Any", python=unpack_prepacked_sizes)
