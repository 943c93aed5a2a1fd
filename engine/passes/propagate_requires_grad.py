"""Writes into the types which tensors may need gradients.

graph(%x : Float(2, requires_grad=0)):                    graph(%x : Float(2, requires_grad=0)):
  %1 : Tensor = aten::exp(%x)                     →         %1 : Tensor(requires_grad=0) = aten::exp(%x)
  return (%1)                                               return (%1)

Only that none is needed is sure: whether one is recorded depends on the mode that the program runs in.
"""

from __future__ import annotations

from engine.ir.facts.inference import apply_facts
from engine.ir.graph import Graph


def propagate_requires_grad(graph: Graph) -> bool:
    """Mark the types of tensors that need no gradient."""
    return apply_facts(graph, ("requires_grad",))
