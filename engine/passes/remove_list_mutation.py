"""Puts what is appended to a list, or assigned in it, where the list is made.

    %l : int[] = prim::ListConstruct(%a)                  %l : int[] = prim::ListConstruct(%a, %b)
    %2 : int[] = aten::append(%l, %b)               →

This is one half of `remove_mutation`, with its conditions; writes to tensors stay.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewriting.mutation_removal import remove_list_writes


def remove_list_mutation(graph: Graph) -> bool:
    """Remove writes to lists."""
    return remove_list_writes(graph)
