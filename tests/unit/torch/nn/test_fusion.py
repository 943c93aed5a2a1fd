"""Batch normalization folded into the layer before it."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch
from engine.torch import nn
from engine.torch.nn.utils import fusion


def _learned(bn: Any) -> Any:
    with torch.no_grad():
        for tensor in (bn.weight, bn.bias, bn.running_mean):
            tensor.uniform_(-1.0, 1.0)
        bn.running_var.uniform_(0.5, 2.0)
    return bn.eval()


@pytest.mark.parametrize(
    ("layer", "bn", "shape"),
    [
        (nn.Conv1d(3, 4, 2), nn.BatchNorm1d(4), (2, 3, 5)),
        (nn.Conv2d(3, 4, 2, bias=False), nn.BatchNorm2d(4), (2, 3, 5, 5)),
        (nn.ConvTranspose2d(3, 4, 2), nn.BatchNorm2d(4), (2, 3, 5, 5)),
        (nn.Linear(3, 4), nn.BatchNorm1d(4), (5, 3)),
        (nn.Linear(3, 4), nn.BatchNorm1d(1), (5, 1, 3)),
    ],
)
def test_one_layer_does_the_work_of_both(layer: Any, bn: Any, shape: tuple[int, ...]) -> None:
    bn, x = _learned(bn), torch.rand(shape)
    layer = layer.eval()
    if isinstance(layer, nn.Linear):
        fused = fusion.fuse_linear_bn_eval(layer, bn)
    else:
        fused = fusion.fuse_conv_bn_eval(layer, bn, transpose=isinstance(layer, nn.ConvTranspose2d))
    assert type(fused) is type(layer)
    assert torch.allclose(fused(x), bn(layer(x)), atol=1e-5)


def test_only_layers_that_no_longer_learn_are_fused() -> None:
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        fusion.fuse_conv_bn_eval(nn.Conv1d(3, 4, 2), nn.BatchNorm1d(4).eval())
    with pytest.raises(AssertionError, match=r"linear\.out_features == bn\.num_features"):
        fusion.fuse_linear_bn_eval(nn.Linear(3, 4).eval(), nn.BatchNorm1d(2).eval())
