"""Makes values that are written to right after they were made anew instead.

    %l : int[] = prim::ListConstruct(%a)                  %l : int[] = prim::ListConstruct(%a, %b)
    %2 : int[] = aten::append(%l, %b)               →

    %t : Tensor = aten::neg(%x)                           %t : Tensor = aten::neg(%x)
    %u : Tensor = aten::add_(%t, %1, %1)            →     %3 : Tensor = aten::add(%t, %1, %1)

Only where nobody else can hold the value: it was made by a node of the same block that gives fresh memory, and
nothing in between depends on it.  Writes to inputs of the graph, through views and in other blocks stay.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewriting.mutation_removal import remove_list_writes, remove_tensor_writes


def remove_mutation(graph: Graph) -> bool:
    """Remove writes to lists, then writes to tensors."""
    changed = remove_list_writes(graph)
    return remove_tensor_writes(graph) or changed
