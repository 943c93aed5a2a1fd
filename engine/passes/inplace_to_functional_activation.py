"""Replaces in-place activations of fresh memory by functional ones.

    %y : Tensor = aten::add(%x, %x, %1)                   %y : Tensor = aten::add(%x, %x, %1)
    %z : Tensor = aten::relu_(%y)                   →     %2 : Tensor = aten::relu(%y)

With the conditions of `remove_mutation`, for activations alone: writes to inputs and through views stay, and so do
`add_`, `exp_` and all that is no activation.
"""

from __future__ import annotations

from typing import Final

from engine.ir.graph import Graph
from engine.ir.rewriting.mutation_removal import remove_tensor_writes

_ACTIVATIONS: Final = frozenset((
    "aten::celu_", "aten::elu_", "aten::gelu_", "aten::hardsigmoid_", "aten::hardswish_", "aten::hardtanh_",
    "aten::leaky_relu_", "aten::relu6_", "aten::relu_", "aten::rrelu_", "aten::selu_", "aten::sigmoid_",
    "aten::silu_", "aten::tanh_",
))  # fmt: skip


def inplace_to_functional_activation(graph: Graph) -> bool:
    """Replace in-place activations of fresh memory."""
    return remove_tensor_writes(graph, _ACTIVATIONS)
