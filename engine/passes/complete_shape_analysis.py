"""Writes into the types what holds when the graph runs with these arguments.

graph(%x : Tensor):                                       graph(%x : Float(2, 3, strides=[3, 1], …)):
  %1 : Tensor = aten::t(%x)                       →         %1 : Float(3, 2, strides=[1, 3], …) = aten::t(%x)
  return (%1)                                               return (%1)

What the types told before is forgotten.  The graph is then one for such arguments only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.aten.values.tensor import Tensor
from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.constants import tensor_type_of
from engine.ir.facts.inference import apply_facts, resized_memory
from engine.ir.facts.rules import SHAPES
from engine.ir.facts.tensors import ranked
from engine.ir.graph import Graph
from engine.ir.rewrites import retype
from engine.lang.types import TENSOR, TensorType
from engine.passes.pipeline import find_pass


def complete_shape_analysis(
    graph: Graph, args: Sequence[Any] = (), with_grad: bool = True, *, with_sizes: bool = True
) -> bool:
    """Write into the types what the arguments imply; without arguments the inputs' types stand as they are.

    An input needs a gradient if its argument does; as in the reference `with_grad` makes no difference to the types.
    Without `with_sizes` only the arguments' ranks count.
    """
    before = [value.type for value in graph.inputs]
    if args:
        find_pass("erase_shape_information")(graph)
    for value, argument in zip(graph.inputs, args, strict=False):
        if isinstance(argument, Tensor) and isinstance(value.type, TensorType):
            type = tensor_type_of(argument)
            retype(value, type if with_sizes else ranked(type))
    _forget_resized(graph)
    changed = before != [value.type for value in graph.inputs]
    return apply_facts(graph, reading=SHAPES) or changed


def _forget_resized(graph: Graph) -> None:
    """An argument that the program may give another shape is any tensor."""
    db = AliasDb(graph)
    resized = resized_memory(graph, db)
    for value in graph.inputs:
        if isinstance(value.type, TensorType) and db.memory_of([value]) & resized:
            retype(value, TENSOR)
