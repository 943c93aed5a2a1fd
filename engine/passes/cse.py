"""Computes equal things once.

    %2 : Tensor = aten::tanh(%x)
    %3 : Tensor = aten::tanh(%x)                    →     %2 : Tensor = aten::tanh(%x)
    %4 : Tensor = aten::mul(%2, %3)                       %4 : Tensor = aten::mul(%2, %2)

A node in a block may use an equal one from the blocks around it.  What has side effects, is random, or may be
written to stays, and two results that both leave the graph stay apart.  What gradients are recorded for is not equal to
that for which they are not.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.graph import Block, Graph, Node
from engine.ir.ops import has_side_effects, is_nondeterministic
from engine.ir.rewrites import allowed
from engine.ir.rewriting.equality import node_key

_Known = dict[Hashable, Node]
_IDENTITY: Final = frozenset({"aten::__is__", "aten::__isnot__"})


def cse(graph: Graph) -> bool:
    """Merge equal nodes."""
    return _merge_equal(graph.block, AliasDb(graph), {})


def _merge_equal(block: Block, db: AliasDb, outer: _Known) -> bool:
    known, changed = dict(outer), False
    for node in block.nodes():
        if db.switches_gradients(node):
            known.clear()
        for inner in node.blocks:
            changed |= _merge_equal(inner, db, known)
        if node.blocks or has_side_effects(node) or is_nondeterministic(node) or db.has_writers(node):
            continue
        key = node_key(node)
        found = known.setdefault(key, node) if key is not None else node
        if found is not node and _may_share(db, node, found) and allowed(node, found):
            node.replace_all_uses_with(found)
            node.destroy()
            changed = True
    return changed


def _may_share(db: AliasDb, node: Node, found: Node) -> bool:
    """True unless a caller, or an `is` in the program, could tell that two results became one."""
    users = [use.user for value in node.outputs for use in value.uses]
    if any(user.kind in _IDENTITY and not {*user.inputs}.isdisjoint(found.outputs) for user in users):
        return False
    return not all(any(db.escapes(v) or db.is_given_away(v) for v in each.outputs) for each in (node, found))
