"""Writes the sizes of tensors into their types, as far as the inputs' types and constants tell them.

graph(%x : Float(2, 3), %w : Float(3, 4)):                graph(%x : Float(2, 3), %w : Float(3, 4)):
  %1 : Tensor = aten::mm(%x, %w)                  →         %1 : Tensor(2, 4) = aten::mm(%x, %w)
  return (%1)                                               return (%1)

Sizes alone: dtypes and devices are left to `propagate_dtype` and `propagate_device`.
"""

from __future__ import annotations

from engine.ir.facts.inference import apply_facts
from engine.ir.graph import Graph


def propagate_shapes_on_graph(graph: Graph) -> bool:
    """Write sizes into tensor types."""
    return apply_facts(graph, ("sizes",))
