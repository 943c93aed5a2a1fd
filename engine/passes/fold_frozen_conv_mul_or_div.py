"""Folds multiplication and division by constants into the weights of convolutions before them.

    %1 : Tensor = aten::conv2d(%x, %w, %b, …)
    %2 : Tensor = aten::mul(%1, %c)                 →     %1 : Tensor = aten::conv2d(%x, %w * %c, %b * %c, …)

A constant that is no number for each channel stays, and so does one that would make another dtype.
"""

from __future__ import annotations

import numpy as np

from engine.aten.values.xp import Array
from engine.ir.graph import Graph, Node
from engine.ir.match import asks_only
from engine.ir.rewriting.weight_folding import CONVOLUTIONS, Layer, per_channel, rewrite


def fold_frozen_conv_mul_or_div(graph: Graph) -> bool:
    """Fold every product and quotient that can be."""
    return rewrite(graph, ("aten::mul", "aten::div"), CONVOLUTIONS, _fold)


def _fold(node: Node, layer: Layer) -> tuple[str, Array, Array] | None:
    operand = per_channel(node.inputs[1], layer) if asks_only(node, "self", "other") else None
    if operand is None:
        return None
    shaped = layer.along_channels(operand)
    bias = np.zeros(layer.channels, layer.weight.dtype) if layer.bias is None else layer.bias
    if node.kind == "aten::div":
        return "fused_mul", layer.weight / shaped, bias / operand
    return "fused_mul", layer.weight * shaped, bias * operand
