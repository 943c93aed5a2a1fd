"""When two nodes compute the same.

In: a node.  Out: what it shares with the nodes that do the same with the same values, to look them up by.
"""

from __future__ import annotations

from collections.abc import Hashable

from engine.ir.attributes import Attr
from engine.ir.constants import constant_key
from engine.ir.graph import Node
from engine.ir.printer import attribute_text


def node_key(node: Node) -> Hashable | None:
    """Key that equal nodes share; None for nodes that equal no other."""
    if node.kind == "prim::Constant":
        return constant_key(node)
    if "Subgraph" in node.attributes:
        return None
    attributes = tuple(sorted((name, _attribute_key(attribute)) for name, attribute in node.attributes.items()))
    return (node.kind, tuple(node.inputs), tuple(value.type for value in node.outputs), attributes)


def _attribute_key(attribute: Attr) -> tuple[str, str]:
    return attribute.kind, attribute_text(attribute)
