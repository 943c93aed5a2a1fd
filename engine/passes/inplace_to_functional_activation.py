"""Replaces in-place activations of fresh memory by functional ones.

    %y : Tensor = aten::add(%x, %x, %1)                   %y : Tensor = aten::add(%x, %x, %1)
    %z : Tensor = aten::relu_(%y)                   →     %2 : Tensor = aten::relu(%y)

With the conditions of `remove_mutation`, for activations alone: writes to inputs and through views stay, and so do
`add_`, `exp_` and all that is no activation.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.rewriting.mutation_removal import remove_tensor_writes


def inplace_to_functional_activation(graph: Graph) -> bool:
    """Remove the writes of activations."""
    return remove_tensor_writes(graph, activations_only=True)
