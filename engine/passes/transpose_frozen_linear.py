"""Multiplies by constant weights of linear layers that are transposed once, when compiling.

    %1 : Tensor = aten::linear(%x, %w, %b)                %2 : Tensor = aten::matmul(%x, %v)
                                                    →     %1 : Tensor = aten::add(%2, %b, %one)

%v is the transpose of the constant matrix %w.  Without a bias the product is the result.
"""

from __future__ import annotations

from engine.aten.values.tensor import Tensor, from_numpy
from engine.ir.constants import constant_value, insert_constant
from engine.ir.graph import Graph, Node
from engine.ir.insert import insert_op
from engine.ir.match import asks_only
from engine.ir.rewrites import allowed


def transpose_frozen_linear(graph: Graph) -> bool:
    """Rewrite every linear layer whose weight is a constant."""
    changed = False
    for node in graph.find_all_nodes("aten::linear"):
        weight = constant_value(node.inputs[1])
        if not asks_only(node, "input", "weight", "bias"):
            continue
        if isinstance(weight, Tensor) and weight.array.ndim == 2 and allowed(node, "a product"):
            _rewrite(node, weight)
            changed = True
    return changed


def _rewrite(node: Node, weight: Tensor) -> None:
    graph, (x, _, bias) = node.graph, node.inputs
    with graph.inserting_at(node, node.range):
        transposed = insert_constant(graph, from_numpy(weight.array.T.copy()))
        result = insert_op(graph, "aten::matmul", x, transposed, type=node.output.type)
        if constant_value(bias) is not None:
            result = insert_op(graph, "aten::add", result, bias, type=node.output.type)
    node.output.replace_all_uses_with(result)
    node.destroy()
