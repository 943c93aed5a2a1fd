"""Ends the groups that `create_functional_graphs` made.

    %b : Tensor = prim::FunctionalGraph_0(%a)             %c : Tensor = aten::sigmoid(%a)
    with prim::FunctionalGraph_0 = graph(%x : Tensor):    %b : Tensor = aten::tanh(%c)
      %1 : Tensor = aten::sigmoid(%x)               →
      %2 : Tensor = aten::tanh(%1)
      return (%2)

Other subgraphs (forked ones, fused ones) stay.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewrites import allowed
from engine.ir.rewriting.subgraphs import ungroup


def inline_functional_graphs(graph: Graph) -> bool:
    """Replace each functional graph by its body."""
    groups = [n for n in graph.find_all_nodes("prim::FunctionalGraph") if allowed(n, "what it does")]
    for node in groups:
        ungroup(node)
    return bool(groups)
