"""Removes the expansions that tracing writes where an operator broadcasts.

    %2 : Tensor = aten::expand(%b, %size, %true)          %3 : Tensor = aten::add(%a, %b, %1)
    %3 : Tensor = aten::add(%a, %2, %1)             →

They hold for the sizes of the example only.  An expansion of the program itself (`implicit` is False) stays.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.match import constant_bool
from engine.ir.rewrites import allowed


def remove_expands(graph: Graph) -> bool:
    """Replace expanded values by the original ones."""
    implicit = [node for node in graph.find_all_nodes("aten::expand") if constant_bool(node.inputs[2]) is True]
    implicit = [node for node in implicit if allowed(node, node.inputs[0])]
    for node in implicit:
        node.output.replace_all_uses_with(node.inputs[0])
        node.destroy()
    return bool(implicit)
