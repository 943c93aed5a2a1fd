"""Nodes to inline: those written inside the expression that uses them, not as statements of their own.

In: a block.  Out: the set of such nodes.  A node is inlined when its one value has one use, no name the
author gave it, and it stands exactly where a reader evaluating the expression would come to it, so that
nothing changes its place:

    %3 = aten::mul(%x, %y)
    %4 = aten::add(%3, %z)      ->      _0 = torch.add(torch.mul(x, y), z)
"""

from __future__ import annotations

from typing import Final

from engine.ir.graph import Block, Node, Value

_NEVER: Final = frozenset({"prim::isinstance"})
"""A test of a type as a condition would refine types a second time when read back."""
_NO_ARGUMENTS: Final = frozenset({"prim::fork", "prim::awaitable"})
"""Kinds whose inputs are not inlined, since their blocks may use them more than once."""


def inlined_nodes(block: Block, inlined: set[Node]) -> None:
    """Add the nodes of `block`, and of the blocks in it, that are to be inlined."""
    _scan_node(block.return_node, inlined)
    for node in block.reversed_nodes():
        _scan_node(node, inlined)


def _scan_node(node: Node, inlined: set[Node]) -> Node:
    """Walk the node's inputs from the last to the first; the node before which they all stand."""
    if node in inlined:
        return node
    for block in node.blocks:
        inlined_nodes(block, inlined)
    point = _before(node)
    for value in reversed(node.inputs):
        point = _scan_value(point, value, inlined)
    return point


def _scan_value(point: Node, value: Value, inlined: set[Node]) -> Node:
    node = value.node
    if node is point and _may_inline(value):
        point = _scan_node(point, inlined)
        inlined.add(node)
    elif node.kind == "prim::Constant":
        inlined.add(node)
    return point


def _before(node: Node) -> Node:
    """The node before this one that is no constant."""
    while True:
        assert node.prev is not None
        node = node.prev
        if node.kind != "prim::Constant":
            return node


def _may_inline(value: Value) -> bool:
    node, uses = value.node, value.uses
    if len(node.outputs) != 1 or len(uses) != 1 or node.blocks or node.kind in _NEVER:
        return False
    user, offset = uses[0]
    if value.has_debug_name and user.kind != "prim::Return":
        return False
    if user.kind == "prim::Loop" and offset >= 2:
        return False
    return user.kind not in _NO_ARGUMENTS
