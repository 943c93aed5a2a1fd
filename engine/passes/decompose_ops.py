"""Splits operators that fusion and differentiation know better in parts.

    %r : Tensor = aten::addmm(%c, %a, %b, %1, %1)         %m : Tensor = aten::mm(%a, %b)
                                                    →     %r : Tensor = aten::add(%c, %m, %1)

Only where both factors are the constant 1.
"""

from __future__ import annotations

from engine.ir.constants import constant_value, insert_constant
from engine.ir.graph import Graph, Node
from engine.ir.insert import insert_op
from engine.ir.match import asks_only
from engine.ir.rewrites import allowed
from engine.ir.rewriting.dead_code import remove_dead_code


def decompose_ops(graph: Graph) -> bool:
    """Split such operators, and remove dead code if there were any."""
    found = [node for node in graph.find_all_nodes("aten::addmm") if _has_no_factors(node)]
    found = [node for node in found if allowed(node, "aten::mm and aten::add")]
    for node in found:
        _split(node)
    if found:
        remove_dead_code(graph)
    return bool(found)


def _has_no_factors(node: Node) -> bool:
    understood = asks_only(node, "self", "mat1", "mat2", "beta", "alpha")
    return understood and all(constant_value(factor) == 1 for factor in node.inputs[3:])


def _split(node: Node) -> None:
    graph = node.graph
    with graph.inserting_at(node, node.range):
        one = insert_constant(graph, 1)
        product = insert_op(graph, "aten::mm", *node.inputs[1:3])
        total = insert_op(graph, "aten::add", node.inputs[0], product, one)
    node.output.replace_all_uses_with(total)
    node.destroy()
