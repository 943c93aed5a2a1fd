"""Puts decompositions in the place of operators that have one (`engine.ir.rewriting.decompositions`).

    %v : Tensor = aten::var(%x, %unbiased)          →     %m : Tensor = aten::mean(%x, %all, %yes, %none)
                                                          …
                                                          %v : Tensor = aten::div(%sum, %divisor)

Operators that a decomposition uses stay as they are.
"""

from __future__ import annotations

from functools import partial

from engine.ir.clone import inline_graph
from engine.ir.graph import Graph, Node
from engine.ir.rewrites import allowed
from engine.ir.rewriting.decompositions import decomposition_of


def run_decompositions(graph: Graph) -> bool:
    """Replace every operator that has a decomposition."""
    changed = False
    for node in list(graph.all_nodes()):
        decomposition = decomposition_of(node)
        if decomposition is not None and allowed(node, partial(str, decomposition)):
            _replace(node, decomposition)
            changed = True
    return changed


def _replace(node: Node, decomposition: Graph) -> None:
    with node.graph.inserting_at(node, node.range):
        results = inline_graph(node.graph, decomposition, node.inputs)
    for old, new in zip(node.outputs, results, strict=True):
        new.copy_metadata(old)
        old.replace_all_uses_with(new)
    node.destroy()
