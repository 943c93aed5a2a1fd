"""Folds batch normalization into the constant weights of linear layers before it.

    %1 : Tensor = aten::linear(%x, %w, %b)
    %2 : Tensor = aten::batch_norm(%1, …)           →     %1 : Tensor = aten::linear(%x, %w, %b)    with other constants

Normalization that trains, or whose layer's result is used elsewhere, stays.  Results differ by rounding.
"""

from __future__ import annotations

import numpy as np

from engine.ir.constants import constant_value
from engine.ir.frozen import LINEAR, Layer, constant_array, rewrite
from engine.ir.graph import Graph, Node
from engine.ir.match import constant_bool


def fold_frozen_linear_bn(graph: Graph) -> bool:
    """Fold every normalization that can be."""
    return rewrite(graph, ("aten::batch_norm",), LINEAR, _fold)


def _fold(node: Node, layer: Layer) -> bool:
    mean, variance, epsilon = (constant_array(node.inputs[at]) for at in (3, 4, 7))
    if constant_bool(node.inputs[5]) is not False or mean is None or variance is None or epsilon is None:
        return False
    scale, shift = constant_value(node.inputs[1]), constant_value(node.inputs[2])
    gamma = np.ones_like(mean) if scale is None else constant_array(node.inputs[1])
    beta = np.zeros_like(mean) if shift is None else constant_array(node.inputs[2])
    if gamma is None or beta is None or any(each.size != layer.channels for each in (mean, variance, gamma, beta)):
        return False
    factor = gamma / np.sqrt(variance + epsilon.astype(variance.dtype))
    bias = np.zeros_like(mean) if layer.bias is None else layer.bias
    layer.put("fused_bn", layer.weight * layer.along_channels(factor), (bias - mean) * factor + beta)
    return True
