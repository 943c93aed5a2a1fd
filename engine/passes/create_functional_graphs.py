"""Gathers what neither writes nor is written to in graphs of its own.

    %b : Tensor = aten::mul(%a, %y)                       %e : Tensor = prim::FunctionalGraph_0(%a, %y)
    %c : Tensor = aten::sigmoid(%b)                       %w : Tensor = aten::relu_(%z)
    %w : Tensor = aten::relu_(%z)                   →     …
    %d : Tensor = aten::exp(%c)                           with prim::FunctionalGraph_0 = graph(%a : Tensor,
    …                                                           %y : Tensor):
    %e : Tensor = aten::tanh(%d)                            …

In such a graph every rewrite is safe; `inline_functional_graphs` ends it.  A node moves up to its group if nothing in
between minds.  Groups of fewer than six nodes are only moved together.  What leaves the graph, side effects and control
flow stay outside; branches and bodies have groups of their own.
"""

from __future__ import annotations

from typing import Final

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.graph import Block, Graph, Node
from engine.ir.rewrites import allowed
from engine.ir.rewriting.subgraphs import group_nodes

SMALLEST_GROUP: Final = 6
_KIND: Final = "prim::FunctionalGraph"


def create_functional_graphs(graph: Graph) -> bool:
    """Gather the nodes in functional graphs."""
    groups: list[_Group] = []
    _find_groups(graph.block, AliasDb(graph), groups)
    changed = False
    for group in groups:
        changed |= group.gather()
    for group in groups:
        if len(group.members) >= SMALLEST_GROUP and group.is_together() and allowed(group.members[-1], _KIND):
            group_nodes(_KIND, group.members)
            changed = True
    return changed


def _find_groups(block: Block, db: AliasDb, groups: list[_Group]) -> None:
    group = _Group(db)
    for node in block.nodes():
        for inner in node.blocks:
            _find_groups(inner, db, groups)
        if node.kind == "prim::Constant":
            continue
        if not _is_functional(node, db):
            group.pass_by(node)
        elif not group.take(node):
            groups.append(group)
            group = _Group(db)
            group.take(node)
    groups.append(group)


def _is_functional(node: Node, db: AliasDb) -> bool:
    if node.blocks or "Subgraph" in node.attributes or db.has_side_effects(node) or db.is_mutable(node):
        return False
    return not db.has_output_writers(node) and not any(map(db.escapes, node.outputs))


class _Group:
    """Nodes that can stand together where the first of them stands, and those that they have to pass for it."""

    def __init__(self, db: AliasDb) -> None:
        self.db = db
        self.members: list[Node] = []
        self._passed: set[Node] = set()
        self._written = 0
        self._is_closed = self._is_random = False

    def pass_by(self, node: Node) -> None:
        """Note that the node stays in place, between the group and nodes that join it later."""
        self._passed.add(node)
        self._written |= self.db.writes_of(node)
        self._is_closed = self._is_closed or self.db.has_side_effects(node)
        self._is_random = self._is_random or self.db.is_nondeterministic(node)

    def take(self, node: Node) -> bool:
        """Let the node belong to the group, if it can come up to it."""
        if not self.members:
            self._passed.clear()
            self._written, self._is_closed, self._is_random = 0, False, False
        if self._is_closed or any(value.node in self._passed for value in node.inputs):
            return False
        if self._written & self.db.reads_of(node) or (self._is_random and self.db.is_nondeterministic(node)):
            return False
        self.members.append(node)
        return True

    def gather(self) -> bool:
        """Move the members together; True if any moved."""
        changed = False
        for before, node in zip(self.members, self.members[1:], strict=False):
            if _next_but_constants(before) is not node and allowed(node, f"a part of {_KIND}"):
                self._bring_constants(node)
                node.move_after(before)
                changed = True
        return changed

    def is_together(self) -> bool:
        """True if the nodes stand one directly behind the other."""
        return all(_next_but_constants(a) is b for a, b in zip(self.members, self.members[1:], strict=False))

    def _bring_constants(self, node: Node) -> None:
        first = self.members[0]
        for value in node.inputs:
            constant = value.node
            if constant.kind == "prim::Constant" and constant.block is first.block and first.is_before(constant):
                constant.move_before(first)


def _next_but_constants(node: Node) -> Node | None:
    following = node.next
    while following is not None and following.kind == "prim::Constant":
        following = following.next
    return following
