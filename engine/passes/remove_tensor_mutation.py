"""Computes a new tensor where a fresh one is written to.

    %t : Tensor = aten::neg(%x)                           %t : Tensor = aten::neg(%x)
    %u : Tensor = aten::add_(%t, %1, %1)            →     %3 : Tensor = aten::add(%t, %1, %1)

This is one half of `remove_mutation`, with its conditions; writes to lists stay.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewriting.mutation_removal import remove_tensor_writes


def remove_tensor_mutation(graph: Graph) -> bool:
    """Remove writes to tensors."""
    return remove_tensor_writes(graph)
