"""Taking tuples apart, for the passes that lower them.

In: nodes that use tuples.  Out: the same graph with the elements used directly.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Node, Value
from engine.ir.rewrites import allowed
from engine.lang.types import TupleType


def lower_use(node: Node) -> bool:
    """If the node unpacks, indexes or slices a `prim::TupleConstruct`, let its users have the elements; did it?

    Destroys the node.
    """
    if node.kind not in ("prim::TupleUnpack", "prim::TupleIndex", "prim::TupleSlice"):
        return False
    made = node.inputs[0].node
    if made.kind != "prim::TupleConstruct":
        return False
    if not allowed(node, made):
        return False
    elements = made.inputs
    if node.kind == "prim::TupleUnpack":
        replacements = elements
    elif node.kind == "prim::TupleSlice":
        replacements = [create_tuple(node, elements[node.attr("beg") : node.attr("end")]).output]
    else:
        index = constant_value(node.inputs[1])
        if index is NOT_CONSTANT:
            return False
        replacements = [elements[index]]
    for output, element in zip(node.outputs, replacements, strict=True):
        output.replace_all_uses_with(element)
    node.destroy()
    return True


def create_tuple(before: Node, elements: Sequence[Value], type: TupleType | None = None) -> Node:
    """A `prim::TupleConstruct` of the values, put before the node."""
    type = type or TupleType(tuple(value.type for value in elements))
    return before.graph.create("prim::TupleConstruct", elements, [type]).insert_before(before)
