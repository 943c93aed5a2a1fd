"""Removes operators that compute nothing, for frozen modules.

    %y : Tensor = aten::detach(%x)
    %z : Tensor = aten::mul(%y, %y)     →     %z : Tensor = aten::mul(%x, %x)

The value is the same and gradients are not, which modules that are frozen do without.  Where the graph asks whether two
tensors are one and the same, everything stays.
"""

from __future__ import annotations

from engine.ir.graph import Graph, Node
from engine.ir.rewrites import allowed
from engine.lang.types import TensorType


def eliminate_no_ops(graph: Graph) -> bool:
    """Replace the results of such operators by their arguments."""
    nodes = [*graph.all_nodes()]
    if any(map(_compares_identity, nodes)):
        return False
    idle = [node for node in nodes if node.kind == "aten::detach" and allowed(node, node.inputs[0])]
    for node in idle:
        node.output.replace_all_uses_with(node.inputs[0])
        node.destroy()
    return bool(idle)


def _compares_identity(node: Node) -> bool:
    return node.kind in ("aten::__is__", "aten::__isnot__") and all(
        isinstance(value.type, TensorType) for value in node.inputs
    )
