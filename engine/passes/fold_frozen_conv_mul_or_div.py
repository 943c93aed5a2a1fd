"""Folds multiplication and division by constants into the weights of convolutions before them.

    %1 : Tensor = aten::conv2d(%x, %w, %b, …)
    %2 : Tensor = aten::mul(%1, %c)                 →     %1 : Tensor = aten::conv2d(%x, %w * %c, %b * %c, …)

A constant that is no number for each channel stays, and so does one that would make another dtype.
"""

from __future__ import annotations

import numpy as np

from engine.ir.frozen import CONVOLUTIONS, Layer, per_channel, rewrite
from engine.ir.graph import Graph, Node


def fold_frozen_conv_mul_or_div(graph: Graph) -> bool:
    """Fold every product and quotient that can be."""
    return rewrite(graph, ("aten::mul", "aten::div"), CONVOLUTIONS, _fold)


def _fold(node: Node, layer: Layer) -> bool:
    operand = per_channel(node.inputs[1], layer) if len(node.inputs) == 2 else None
    if operand is None:
        return False
    divides = node.kind == "aten::div"
    shaped = layer.along_channels(operand)
    bias = np.zeros(layer.channels, layer.weight.dtype) if layer.bias is None else layer.bias
    layer.put("fused_mul", layer.weight / shaped if divides else layer.weight * shaped,
              bias / operand if divides else bias * operand)  # fmt: skip
    return True
