"""Hands tensors to `cat` and `stack` without making a list of them, also where the list is filled step by step.

    %l : Tensor[] = prim::ListConstruct(%a)               %r : Tensor = prim::VarConcat(%a, %b, %dim)
    %1 : Tensor[] = aten::append(%l, %b)            →
    %r : Tensor = aten::cat(%l, %dim)

Each of the two steps has its conditions, see `remove_list_mutation` and `use_variadic`; they are repeated until neither
finds anything.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewriting.mutation_removal import remove_list_writes
from engine.ir.rewriting.variadic import use_variadic_operators


def remove_list_mutation_and_use_variadic(graph: Graph) -> bool:
    """Remove writes to lists, then the lists."""
    changed = False
    while remove_list_writes(graph) | use_variadic_operators(graph):
        changed = True
    return changed
