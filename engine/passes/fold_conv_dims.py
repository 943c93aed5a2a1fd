"""Assumes that convolutions return as many dimensions as their names say.

    %1 : Tensor = aten::conv2d(%x, …)                  %1 : Tensor = aten::conv2d(%x, …)
    %2 : int = aten::dim(%1)                      →     %2 : int = prim::Constant[value=4]()

For frozen modules only, as in the reference: a check of the dimensions of what has no batch would have raised.
"""

from __future__ import annotations

from typing import Final

from engine.ir.constants import insert_constant
from engine.ir.graph import Graph
from engine.ir.rewrites import allowed

_DIMENSIONS: Final = {"aten::conv1d": 3, "aten::conv2d": 4, "aten::conv3d": 5}


def fold_conv_dims(graph: Graph) -> bool:
    """Replace `dim()` of a convolution's result by a constant."""
    changed = False
    for node in graph.find_all_nodes("aten::dim"):
        dimensions = _DIMENSIONS.get(node.input.node.kind)
        if dimensions is None or not allowed(node, str(dimensions)):
            continue
        with graph.inserting_at(node):
            node.output.replace_all_uses_with(insert_constant(graph, dimensions))
        node.destroy()
        changed = True
    return changed
