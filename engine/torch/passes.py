"""Passes for users of graphs.

In: a graph and names of passes.  Out: the same graph, changed.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.ir.graph import Graph
from engine.passes import pipeline


def run_pass(name: str, graph: Graph) -> Graph:
    """Run the pass on the graph, and return the graph.  Raises CompileError when there is no such pass."""
    pipeline.run_pass(name, graph)
    return graph


def run_pipeline(names: Iterable[str], graph: Graph) -> Graph:
    """Run the passes in order, and return the graph."""
    pipeline.run_pipeline(names, graph)
    return graph
