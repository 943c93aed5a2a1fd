"""Takes tuples apart that were only just put together.

    %t : (int, int) = prim::TupleConstruct(%a, %b)
    %c : int, %d : int = prim::TupleUnpack(%t)            →   %e : int = aten::add(%a, %b)
    %e : int = aten::add(%c, %d)

`prim::TupleIndex` with a constant index and `prim::TupleSlice` likewise.  Tuples that come from elsewhere stay.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewriting.dead_code import remove_dead_code
from engine.ir.rewriting.tuples import lower_use


def lower_simple_tuples(graph: Graph, *, loops_run: bool = False) -> bool:
    """Let users of tuple elements use what the tuple was made of; dead code goes as `remove_dead_code` says."""
    changed = False
    for node in graph.all_nodes():
        changed |= lower_use(node)
    return remove_dead_code(graph, loops_run=loops_run) or changed
