"""Folds batch normalization into the constant weights of linear layers before it.

    %1 : Tensor = aten::linear(%x, %w, %b)
    %2 : Tensor = aten::batch_norm(%1, …)           →     %1 : Tensor = aten::linear(%x, %w, %b)    with other constants

Normalization that trains, or whose layer's result is used elsewhere, stays.  Results differ by rounding.
"""

from __future__ import annotations

from engine.ir.frozen import LINEAR, fold_batch_norm, rewrite
from engine.ir.graph import Graph


def fold_frozen_linear_bn(graph: Graph) -> bool:
    """Fold every normalization that can be."""
    return rewrite(graph, ("aten::batch_norm",), LINEAR, fold_batch_norm)
