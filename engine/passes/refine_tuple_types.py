"""Refines types of tuples by the types of their elements.

    %1 : (Tensor, int) = prim::TupleConstruct(%x, %n)     →     %1 : (Float(2), int) = prim::TupleConstruct(%x, %n)

Where `%x : Float(2)`.  Names and fields of named tuples stay.
"""

from __future__ import annotations

from engine.ir.constants import constant_value, type_of
from engine.ir.facts.inference import refined_tuple
from engine.ir.graph import Graph, Node
from engine.ir.rewrites import retype
from engine.lang.types import TensorType, TupleType, Type


def refine_tuple_types(graph: Graph) -> bool:
    """Take the element types of tuples from what they are made of."""
    changed = False
    for node in graph.all_nodes():
        type = _refined(node)
        changed |= type is not None and retype(node.output, type)
    return changed


def _refined(node: Node) -> Type | None:
    if node.kind == "prim::TupleConstruct":
        return refined_tuple(node.output, [value.type for value in node.inputs])
    if node.kind != "prim::Constant" or not isinstance(node.output.type, TupleType):
        return None
    elements, found = node.output.type.elements, constant_value(node.output)
    types = [type_of(v) if isinstance(t, TensorType) else t for t, v in zip(elements, found, strict=True)]
    return refined_tuple(node.output, types)
