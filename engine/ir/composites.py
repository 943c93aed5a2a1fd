"""Graphs of operators that are made of others.

In: an entry of the operator table.  Out: the graph of its `composite` text, which nobody may change.  It is the way of
kernels and gradients to what an operator is made of.
"""

from __future__ import annotations

from engine.aten.dispatch.compile import composite_function
from engine.aten.dispatch.op import Op
from engine.ir.graph import Graph


def composite_graph(op: Op) -> Graph | None:
    """The graph over the operator's arguments, in their order; None where it is made of nothing."""
    if op.composite is None:
        return None
    graph: Graph = composite_function(op).graph
    return graph
