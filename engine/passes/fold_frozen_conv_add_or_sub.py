"""Folds the addition of constants into the bias of convolutions before it.

    %1 : Tensor = aten::conv2d(%x, %w, %b, …)
    %2 : Tensor = aten::add(%1, %c, %one)           →     %1 : Tensor = aten::conv2d(%x, %w, %b + %c, …)

A constant that is no number for each channel stays, and so does one that would make another dtype.
"""

from __future__ import annotations

import numpy as np

from engine.aten.values.xp import Array
from engine.ir.constants import constant_value
from engine.ir.graph import Graph, Node
from engine.ir.match import asks_only
from engine.ir.rewriting.weight_folding import CONVOLUTIONS, Layer, per_channel, rewrite


def fold_frozen_conv_add_or_sub(graph: Graph) -> bool:
    """Fold every sum and difference that can be."""
    return rewrite(graph, ("aten::add", "aten::sub"), CONVOLUTIONS, _fold)


def _fold(node: Node, layer: Layer) -> tuple[str, Array, Array] | None:
    if not asks_only(node, "self", "other", "alpha"):
        return None
    operand = per_channel(node.inputs[1], layer)
    if operand is None or (len(node.inputs) > 2 and constant_value(node.inputs[2]) != 1):
        return None
    bias = np.zeros(layer.channels, layer.weight.dtype) if layer.bias is None else layer.bias
    return "fused_add", layer.weight, bias - operand if node.kind == "aten::sub" else bias + operand
