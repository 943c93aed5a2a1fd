"""Replaces writes to tensors by new tensors, without asking who else sees the write.

    %2 : Tensor = aten::add_(%x, %y, %1)                  %3 : Tensor = aten::add(%x, %y, %1)
    %4 : Tensor = aten::neg(%x)                     →     %4 : Tensor = aten::neg(%3)

Only for graphs in which no other value aliases what is written, as exporters know; `remove_mutation` is safe.
"""

from __future__ import annotations

from typing import Final

from engine.ir.constants import insert_constant
from engine.ir.graph import Graph, Node
from engine.ir.rewrites import allowed

_FUNCTIONAL: Final = {
    "aten::add_": "aten::add", "aten::sub_": "aten::sub", "aten::mul_": "aten::mul", "aten::div_": "aten::div",
    "aten::zero_": "aten::zeros_like", "aten::fill_": "aten::full_like",
}  # fmt: skip
_ARGUMENTS: Final = {"aten::zeros_like": 6, "aten::full_like": 7}


def remove_inplace_ops(graph: Graph) -> bool:
    """Replace the writes."""
    written = [node for node in graph.all_nodes() if node.kind in _FUNCTIONAL and allowed(node, _FUNCTIONAL[node.kind])]
    for node in written:
        _replace(node)
    return bool(written)


def _replace(node: Node) -> None:
    kind, graph = _FUNCTIONAL[node.kind], node.graph
    with graph.inserting_at(node, node.range):
        missing = _ARGUMENTS.get(kind, 0) - len(node.inputs)
        inputs = [*node.inputs, *(insert_constant(graph, None) for _ in range(missing))]
        new = graph.append(kind, inputs, [node.output.type])
    name = node.output.name
    node.output.set_debug_name("")
    new.output.set_debug_name(name)
    node.replace_all_uses_with(new)
    for user, offset in node.inputs[0].uses:
        if user is not node and user.is_after(new) and _sees(user, new):
            user.replace_input(offset, new.output)
    node.destroy()


def _sees(user: Node, new: Node) -> bool:
    """True if the user is in the block of the new node, or deeper; users behind that block keep the old value."""
    block = user.block
    while block is not None and block is not new.block:
        block = block.owner.block if block.owner is not None else None
    return block is not None
