"""Like `constant_propagation`, but leaves nodes alone that take or give a value of a mutable type.

    %3 : int = aten::mul(%1, %2)                          %5 : int = prim::Constant[value=6]()
    %4 : int[] = prim::ListConstruct(%1, %2)        →     %4 : int[] = prim::ListConstruct(%1, %2)

It needs no alias analysis, so freshly emitted graphs go through it.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewriting.constant_folding import fold_constants


def constant_propagation_immutable_types(graph: Graph, *, loops_run: bool = False) -> bool:
    """Fold constants of immutable types; dead code goes as with `loops_run` of `remove_dead_code`."""
    return fold_constants(graph, immutable_types_only=True, loops_run=loops_run)
