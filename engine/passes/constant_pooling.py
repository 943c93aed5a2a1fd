"""Keeps one of each constant, at the start of the graph.

    graph(%c : bool):                                     graph(%c : bool):
      %1 : int = prim::Constant[value=1]()                  %2 : int = prim::Constant[value=2]()
      %r : int = prim::If(%c)                       →       %1 : int = prim::Constant[value=1]()
        block0():                                           %r : int = prim::If(%c)
          %2 : int = prim::Constant[value=2]()                block0():
          -> (%2)                                               -> (%2)
        block1():                                             block1():
          %3 : int = prim::Constant[value=1]()                  -> (%1)
          -> (%3)                                           return (%r)
      return (%r)

The constants found first go to the very start one after the other, so that they stand in reverse order.
Constants that are written to stay apart.
"""

from __future__ import annotations

from collections.abc import Hashable

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.aliasing.mutability import is_mutable_type
from engine.ir.constants import constant_key
from engine.ir.graph import Graph, Node
from engine.ir.rewrites import allowed


def constant_pooling(graph: Graph) -> bool:
    """Merge equal constants and gather them at the start."""
    constants = graph.find_all_nodes("prim::Constant")
    db = AliasDb(graph) if any(is_mutable_type(node.output.type) for node in constants) else None
    first: dict[Hashable, Node] = {}
    changed = False
    for node in constants:
        key = constant_key(node)
        found = first.get(key) if key is not None else None
        if found is None:
            if graph.block.param_node.next is not node and not allowed(node, "the same at the start"):
                continue
            if key is not None:
                first[key] = node
            changed |= _move_to_start(node, graph)
        elif (db is None or _may_merge(db, node, found)) and allowed(node, found):
            _merge(node, found)
            changed = True
    return changed


def _may_merge(db: AliasDb, node: Node, found: Node) -> bool:
    """True unless the constants are written to, or both escape, where `is` would tell them apart."""
    if not is_mutable_type(node.output.type):
        return True
    return not any(map(db.has_writers, (node.output, found.output)))


def _merge(node: Node, found: Node) -> None:
    if node.output.has_debug_name and not found.output.has_debug_name:
        name = node.output.name
        node.output.set_debug_name("")
        found.output.set_debug_name(name)
    node.replace_all_uses_with(found)
    node.destroy()


def _move_to_start(node: Node, graph: Graph) -> bool:
    if graph.block.param_node.next is node:
        return False
    node.move_after(graph.param_node)
    return True
