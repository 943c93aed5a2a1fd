"""Moves what both branches of an If compute alike out of it.

    %r : Tensor = prim::If(%c)                            %1 : Tensor = aten::neg(%x)
      block0():                                           %r : Tensor = prim::If(%c)
        %1 : Tensor = aten::neg(%x)                         block0():
        %2 : Tensor = aten::exp(%1)                 →         %2 : Tensor = aten::exp(%1)
        -> (%2)                                               -> (%2)
      block1():                                             block1():
        %3 : Tensor = aten::neg(%x)                           -> (%1)
        -> (%3)

Only the nodes before the first side effect or write of each branch, with values from before the If.  What is random, or
touches memory that anybody writes to, stays, and so does what only one branch computes.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Mapping

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.graph import Block, Graph, Node
from engine.ir.rewrites import allowed
from engine.ir.rewriting.equality import node_key
from engine.ir.views import IfView


def hoist_common_nodes(graph: Graph) -> bool:
    """Hoist out of inner Ifs first, so that their common nodes can go further."""
    choices = graph.find_all_nodes("prim::If")
    db = AliasDb(graph) if choices else None
    changed = False
    for node in reversed(choices):
        assert db is not None
        changed |= _hoist(IfView(node), db)
    return changed


def _hoist(view: IfView, db: AliasDb) -> bool:
    """Hoist in one walk: once a node is hoisted, its users in both branches become equal."""
    others = dict.fromkeys(_quiet_nodes(view.else_block, db))
    constants = {node_key(node): node for node in others if not node.inputs}
    changed = False
    for node in _quiet_nodes(view.then_block, db):
        equal = _equal_node(node, others, constants)
        if equal is not None and allowed(equal, node):
            node.move_before(view.node)
            del others[equal]
            constants.pop(node_key(equal), None)
            equal.replace_all_uses_with(node)
            equal.destroy()
            changed = True
    return changed


def _quiet_nodes(block: Block, db: AliasDb) -> Iterator[Node]:
    """The movable nodes before the first with side effects."""
    for node in block.nodes():
        if db.has_side_effects(node) or db.is_mutable(node):
            return
        if not (node.blocks or db.is_nondeterministic(node) or db.has_writers(node)):
            yield node


def _equal_node(node: Node, others: Container[Node], constants: Mapping[Hashable, Node]) -> Node | None:
    """The node of the other branch that does the same with values from before the If."""
    key = node_key(node)
    if key is None or any(value.node.block is node.block for value in node.inputs):
        return None
    if not node.inputs:
        return constants.get(key)
    users = (user for user, offset in node.inputs[0].uses if offset == 0 and user in others)
    return next((user for user in users if node_key(user) == key), None)
