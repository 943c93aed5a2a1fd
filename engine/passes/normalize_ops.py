"""Gives each operator one name, whatever alias the program used.

    %y : Tensor = aten::absolute(%x)                      %y : Tensor = aten::abs(%x)
    %z : Tensor = aten::rsub(%x, %y, %1)            →     %z : Tensor = aten::sub(%y, %x, %1)
    %b : bool = aten::__is__(%p, %q)                      %b : bool = aten::eq(%p, %q)

`rsub` only of two tensors, identity only of two bools.  Names that are nobody's alias stay.
"""

from __future__ import annotations

from typing import Final

from engine.aten.dispatch import table
from engine.ir.graph import Graph, Node
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
    name = _name_of(node)
    if name is None or not allowed(node, name):
        return False
    if name == table.first_name(node.kind):
        node.kind, node.op = name, None
    elif node.kind == "aten::rsub":
        x, y = node.inputs[:2]
        node.replace_input(0, y)
        node.replace_input(1, x)
        node.kind, node.op = "aten::sub", table.find("aten::sub.out" if len(node.inputs) > 3 else "aten::sub.Tensor")
    else:
        node.kind = name
        node.op = table.find(f"{name}.bool")
    return True


def _name_of(node: Node) -> str | None:
    """The normalized name, where it differs."""
    if node.kind == "aten::rsub":
        return "aten::sub" if isinstance(node.inputs[1].type, TensorType) else None
    if node.kind in _IDENTITY:
        return _IDENTITY[node.kind] if [value.type for value in node.inputs] == [BOOL, BOOL] else None
    first = table.first_name(node.kind)
    return None if first == node.kind else first
