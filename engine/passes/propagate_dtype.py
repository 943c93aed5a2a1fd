"""Writes the dtypes of tensors into their types, as far as the inputs' types tell them.

graph(%x : Float(2, 3), %n : Long()):                     graph(%x : Float(2, 3), %n : Long()):
  %1 : Tensor = aten::mul(%x, %n)                 →         %1 : Float = aten::mul(%x, %n)
  return (%1)                                               return (%1)

Whether a tensor has dimensions counts: one that has none gives way to the others.
"""

from __future__ import annotations

from engine.ir.facts.inference import apply_facts
from engine.ir.graph import Graph


def propagate_dtype(graph: Graph) -> bool:
    """Write dtypes into tensor types."""
    return apply_facts(graph, ("dtype",))
