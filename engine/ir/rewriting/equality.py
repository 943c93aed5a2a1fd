"""The key under which nodes that compute the same are found.

In: a node.  Out: its key.  It stands alone since the passes that merge nodes share it, and no pass imports another.
"""

from __future__ import annotations

from collections.abc import Hashable

from engine.ir.constants import constant_key
from engine.ir.graph import Attr, Node
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
