"""Gives each operator one name, whatever alias the program used.

    %y : Tensor = aten::absolute(%x)                      %y : Tensor = aten::abs(%x)
    %z : Tensor = aten::rsub(%x, %y, %1)            →     %z : Tensor = aten::sub(%y, %x, %1)
    %b : bool = aten::__is__(%p, %q)                      %b : bool = aten::eq(%p, %q)

`rsub` only of two tensors, identity only of two bools.  Names that are nobody's alias stay.
"""

from __future__ import annotations

from typing import Final

from engine.aten import op
from engine.ir.graph import Graph, Node
from engine.ir.operator_names import ALIASES
from engine.ir.rewrites import allowed
from engine.lang.types import BOOL, TensorType

_IDENTITY: Final = {"aten::__is__": "aten::eq", "aten::__isnot__": "aten::ne"}


def normalize_ops(graph: Graph) -> bool:
    """Rename them in place."""
    changed = False
    for node in graph.all_nodes():
        changed |= _normalize(node)
    return changed


def _normalize(node: Node) -> bool:
    if node.kind in ALIASES:
        if not allowed(node, ALIASES[node.kind]):
            return False
        node.kind, node.op = ALIASES[node.kind], None
    elif node.kind == "aten::rsub" and isinstance(node.inputs[1].type, TensorType):
        x, y = node.inputs[:2]
        node.replace_input(0, y)
        node.replace_input(1, x)
        node.kind, node.op = "aten::sub", op.find("aten::sub.Tensor")
    elif node.kind in _IDENTITY and [value.type for value in node.inputs] == [BOOL, BOOL]:
        node.kind = _IDENTITY[node.kind]
        node.op = op.find(f"{node.kind}.bool")
    else:
        return False
    return True
