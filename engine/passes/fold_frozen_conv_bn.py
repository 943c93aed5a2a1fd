"""Folds batch normalization into the constant weights of convolutions before it.

    %1 : Tensor = aten::conv2d(%x, %w, %b, …)
    %2 : Tensor = aten::batch_norm(%1, …)           →     %1 : Tensor = aten::conv2d(%x, %w, %b, …) with other constants

Normalization that trains, or whose layer's result is used elsewhere, stays.  Results differ by rounding.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewriting.weight_folding import CONVOLUTIONS, fold_batch_norm, rewrite


def fold_frozen_conv_bn(graph: Graph) -> bool:
    """Fold every normalization that can be."""
    return rewrite(graph, ("aten::batch_norm",), CONVOLUTIONS, fold_batch_norm)
