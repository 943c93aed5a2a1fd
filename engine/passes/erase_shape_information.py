"""Forgets what is known of single tensors: traces know it of their example, and it holds for no other input.

graph(%x : Float(2, 3, strides=[3, 1])):                   graph(%x : Tensor):
  %1 : Float(2, 3, strides=[3, 1]) = aten::neg(%x)    →      %1 : Tensor = aten::neg(%x)
  return (%1)                                                return (%1)

Subgraphs, such as those of forks, forget it, too.
"""

from __future__ import annotations

from dataclasses import replace

from engine.ir.clone import copy_graph
from engine.ir.graph import Block, Graph, Value
from engine.ir.rewrites import retype
from engine.lang.types import (
    TENSOR,
    DictType,
    LaterType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    union_of,
)


def erase_shape_information(graph: Graph) -> bool:
    """Replace every tensor type by plain `Tensor`."""
    return _erase_in(graph.block)


def unshaped(type: Type) -> Type:
    """The type with plain `Tensor` for every tensor type in it."""
    if isinstance(type, TensorType):
        return TENSOR
    if isinstance(type, TupleType):
        return TupleType(tuple(map(unshaped, type.elements)), type.name, type.fields, type.defaults)
    if isinstance(type, DictType):
        return DictType(type.key, unshaped(type.value))
    if isinstance(type, UnionType):
        return union_of(map(unshaped, type.members))
    if isinstance(type, (ListType, OptionalType, LaterType)):
        return replace(type, element=unshaped(type.element))
    return type


def _erase_in(block: Block) -> bool:
    changed = _erase(block.inputs)
    for node in block.nodes():
        changed |= _erase(node.outputs)
        for inner in node.blocks:
            changed |= _erase_in(inner)
        if "Subgraph" in node.attributes:
            body = copy_graph(node.attr("Subgraph"))  # others may hold the subgraph, too
            if _erase_in(body.block):
                node.set_attr("Subgraph", body)
                changed = True
    return changed


def _erase(values: list[Value]) -> bool:
    changed = False
    for value in values:
        changed |= retype(value, unshaped(value.type))
    return changed
