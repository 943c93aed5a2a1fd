"""Writes all that is known of tensors into their types: dtype, sizes, strides, device, and that no gradient is needed.

graph(%x : Float(2, 3, strides=[3, 1])):                  graph(%x : Float(2, 3, strides=[3, 1])):
  %1 : Tensor = aten::t(%x)                       →         %1 : Float(3, 2, strides=[1, 3]) = aten::t(%x)
  return (%1)                                               return (%1)
"""

from __future__ import annotations

from engine.ir.facts.inference import apply_facts
from engine.ir.facts.rules import SHAPES
from engine.ir.graph import Graph


def propagate_input_shapes(graph: Graph) -> bool:
    """Write into tensor types what the inputs' types imply."""
    return apply_facts(graph, reading=SHAPES)
