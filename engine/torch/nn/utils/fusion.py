"""`torch.nn.utils.fusion`: batch normalization that no longer learns, folded into the layer before it.

In: a convolution or linear layer and the normalization behind it, both in eval mode; or their tensors.  Out: a copy of
the layer that does the work of both; or its weight and bias.
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from engine.aten.values.tensor import Tensor
from engine.torch.nn.parameter import Parameter

_Layer = TypeVar("_Layer")


def fuse_conv_bn_eval(conv: _Layer, bn: Any, transpose: bool = False) -> _Layer:
    """A copy of the convolution whose weight and bias contain the normalization; `transpose` for transposed ones.

    Raises AssertionError unless both are in eval mode and the normalization has running statistics.
    """
    return _fused(conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: _Layer, bn: Any) -> _Layer:
    """A copy of the linear layer whose weight and bias contain the normalization.

    Raises AssertionError unless both are in eval mode, the normalization has running statistics, and it is over the
    layer's features or a single one.
    """
    features: Any = linear
    assert bn.num_features in (features.out_features, 1), (
        "To fuse, linear.out_features == bn.num_features or bn.num_features == 1"
    )
    return _fused(linear, bn, 0)


def _fused(layer: _Layer, bn: Any, channels: int) -> _Layer:
    made: Any = copy.deepcopy(layer)
    assert not (made.training or bn.training), "Fusion only for eval!"
    assert bn.running_mean is not None and bn.running_var is not None
    made.weight, made.bias = _folded(
        made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, channels
    )
    result: _Layer = made
    return result


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a convolution that contain the normalization; `transpose` for transposed ones."""
    return _folded(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a linear layer that contain the normalization."""
    return _folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _folded(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    epsilon: float,
    scale: Tensor | None,
    shift: Tensor | None,
    channels: int,
) -> tuple[Parameter, Parameter]:
    """The weight and the bias, of the weight's dtype; `channels` is the dimension of the weight's output channels."""
    factor = (variance + epsilon).rsqrt()
    factor = factor if scale is None else scale * factor
    shape = [1] * weight.ndim
    shape[channels] = -1
    moved = (-mean if bias is None else bias - mean) * factor
    moved = moved if shift is None else moved + shift
    folded = weight * factor.reshape(shape)
    return (
        Parameter(folded.detach().to(weight.dtype), weight.requires_grad),
        Parameter(moved.detach().to(weight.dtype), weight.requires_grad if bias is None else bias.requires_grad),
    )
