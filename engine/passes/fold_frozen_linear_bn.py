"""Folds batch normalization into the constant weights of linear layers before it.

    %1 : Float(*, *) = aten::linear(%x, %w, %b)
    %2 : Tensor = aten::batch_norm(%1, …)           →     %1 : Float(*, *) = aten::linear(%x, %v, %c)

    %1 : Tensor = aten::linear(%x, %w, %b)                %3 : bool = aten::eq(%dimensions, %two)
    %2 : Tensor = aten::batch_norm(%1, …)                 %4 : Tensor, %5 : Tensor? = prim::If(%3)
                                                            block0(): -> (%v, %c)
                                                            block1(): -> (%w, %b)
                                                    →     %1 : Tensor = aten::linear(%x, %4, %5)
                                                          %2 : Tensor = prim::If(%3)
                                                            block0(): -> (%1)
                                                            block1(): -> (batch_norm(%1, …))

Batch normalization goes along the second dimension, which is that of the features only where there are two: what is not
known when compiling is asked when running.  Normalization that trains, or whose layer's result is used elsewhere,
stays.  Results differ by rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.ir.constants import insert_constant
from engine.ir.graph import Graph, Node, Value
from engine.ir.insert import insert_op
from engine.ir.rewrites import allowed
from engine.ir.rewriting.weight_folding import LINEAR, Layer, fold_batch_norm, layer_before
from engine.lang.types import TENSOR, OptionalType, TensorType


def fold_frozen_linear_bn(graph: Graph) -> bool:
    """Fold every normalization that can be."""
    changed = False
    for node in graph.find_all_nodes("aten::batch_norm"):
        changed |= _fold(node)
    return changed


def _fold(node: Node) -> bool:
    layer = layer_before(node, LINEAR)
    if layer is None:
        return False
    folded, rank = fold_batch_norm(node, layer), _rank(layer)
    if folded is None or rank not in (None, 2) or not allowed(node, layer.node):
        return False
    before = layer.node.inputs[1:]
    layer.put(*folded)
    if rank is None:
        _ask(node, layer.node, before)
    else:
        node.output.replace_all_uses_with(layer.node.output)
        node.destroy()
    return True


def _rank(layer: Layer) -> int | None:
    for value in (layer.node.output, layer.node.inputs[0]):
        if isinstance(value.type, TensorType) and value.type.sizes is not None:
            return len(value.type.sizes)
    return None


def _ask(node: Node, linear: Node, before: Sequence[Value]) -> None:
    """Choose at run time: folded weights for two dimensions, else the original ones and the normalization."""
    graph = node.graph
    with graph.inserting_at(linear, linear.range):
        dimensions = insert_op(graph, "aten::dim", linear.inputs[0])
        is_matrix = insert_op(graph, "aten::eq", dimensions, insert_constant(graph, 2))
    weights = graph.create("prim::If", [is_matrix], [TENSOR, OptionalType(TENSOR)]).insert_before(linear)
    for given in (linear.inputs[1:], before):
        block = weights.add_block()
        for value in given:
            block.register_output(value)
    for offset, output in enumerate(weights.outputs, 1):
        linear.replace_input(offset, output)
    choice = graph.create("prim::If", [is_matrix], [node.output.type]).insert_before(node)
    folded, plain = choice.add_block(), choice.add_block()
    folded.register_output(linear.output)
    node.output.replace_all_uses_with(choice.output)
    node.move_before(plain.return_node)
    plain.register_output(node.output)
