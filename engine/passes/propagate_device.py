"""Writes the devices of tensors into their types, as far as the inputs' types and constants tell them.

graph(%x : Tensor(device=cpu)):                           graph(%x : Tensor(device=cpu)):
  %1 : Tensor = aten::relu(%x)                    →         %1 : Tensor(device=cpu) = aten::relu(%x)
  return (%1)                                               return (%1)
"""

from __future__ import annotations

from engine.ir.facts.inference import apply_facts
from engine.ir.facts.rules import KINDS
from engine.ir.graph import Graph


def propagate_device(graph: Graph) -> bool:
    """Write devices into tensor types: none where an operand may be anywhere, `cuda` where only the run tells which."""
    return apply_facts(graph, ("device",), reading=KINDS)
