"""Finds nodes that may run as one, and brings them together.

In: a graph, and which nodes may be in a group.  Out: groups, each a node with a subgraph (see `subgraphs`).

    %1 = neg(%x)                                   %3, %1 = Group(%x)      the producers of what a group takes join it,
    %2 = mm(%1, %y)            (neg, exp)    →     %2 = mm(%1, %y)         where nodes on the way can make room: `mm`
    %3 = exp(%1)                                                           needs %1 alone, and goes behind the group

Nodes only move where nobody can tell: past what neither needs them nor touches memory that they touch, and in the part
of the program in which gradients are recorded, or in that in which they are not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.aliasing.moves import Together
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.ops import op_of
from engine.ir.rewrites import allowed
from engine.ir.rewriting.subgraphs import group_nodes

Choice = Callable[[Node], bool]


def create_groups(
    graph: Graph,
    kind: str,
    may_join: Choice,
    min_size: int,
    may_end: Choice | None = None,
    *,
    apart: bool = False,
    widens: bool = False,
) -> bool:
    """Group nodes under nodes of that kind, at least `min_size` each; every member satisfies `may_join`, the last
    one `may_end`; True if the graph changed.

    With `apart`, no two results of a group share memory, and no group has views alone.  With `widens`, a group takes in
    the nodes right behind it that use what it gives, which may be results as well.
    """
    db, changed = AliasDb(graph), False
    for block in _blocks(graph.block):
        for group in _find_groups(block, db, kind, may_join, may_end or may_join, widens):
            changed |= len(group) > 1
            if apart:
                _put_sharers_behind(group, db)
            if apart and all(map(_gives_views, group)):
                continue
            if len(group) >= min_size and allowed(group[-1], kind):
                group_nodes(kind, group)
                changed = True
    return changed


def _gives_views(node: Node) -> bool:
    op = op_of(node)
    return op is not None and all(result.alias is not None for result in op.schema.returns)


def _put_sharers_behind(group: list[Node], db: AliasDb) -> None:
    """Drop members whose results share memory with results of members before them, and what depends on these."""
    behind: list[Node] = []
    while dropped := _sharers(group, db):  # what these take becomes a result
        behind = [*(node for node in group if node in dropped), *behind]
        group[:] = [node for node in group if node not in dropped]
    last = group[-1]
    for node in behind:
        last = node.move_after(last)


def _sharers(group: list[Node], db: AliasDb) -> set[Node]:
    """Members whose results share memory with results of members before them, and what depends on these."""
    members, kept, found = {*group}, list[Value](), Together(db, ())
    for node in group:
        wanted = [value for value in node.outputs if any(user not in members for user, _ in value.uses)]
        if found.depends_on(node) or any(db.may_contain_alias(value, kept) for value in wanted):
            found.add(node)
        else:
            kept += wanted
    return {*found.nodes}


def _blocks(block: Block) -> list[Block]:
    inner = [each for node in block.nodes() for nested in node.blocks for each in _blocks(nested)]
    return [*inner, block]


def _find_groups(
    block: Block, db: AliasDb, kind: str, may_join: Choice, may_end: Choice, widens: bool
) -> list[list[Node]]:
    """Neighbours that belong together, the group that ends last first; each group in its order."""
    grouped: set[Node] = set()
    groups: list[list[Node]] = []
    for node in list(block.reversed_nodes()):
        if node in grouped or not may_end(node):
            continue
        group = _Group(node, db, kind)
        group.grow(lambda other: other not in grouped and may_join(other))
        if widens:
            group.widen(lambda other: other not in grouped and may_end(other))
        grouped.update(group.nodes)
        groups.append(list(group.nodes))
    return groups


class _Group:
    """Nodes that stand one after the other, in their order."""

    def __init__(self, last: Node, db: AliasDb, kind: str) -> None:
        self.db, self.kind = db, kind
        self.nodes = deque([last])
        self._together = Together(db, [last])

    def grow(self, may_join: Choice) -> None:
        """Take in producers, nearest first, until none can come."""
        seen, waiting = {self.nodes[0]}, set[Node]()
        newest: Node | None = self.nodes[0]
        while newest is not None or waiting:
            if newest is not None:
                waiting |= {made for made in self._producers(newest) if made not in seen and may_join(made)}
            nearest = max(waiting, key=lambda node: node._position, default=None)
            if nearest is None:
                return
            seen.add(nearest)
            waiting.discard(nearest)
            newest = nearest if self._bring(nearest) else None

    def widen(self, may_end: Choice) -> None:
        """Take in the nodes right behind that use what the group gives."""
        at = self.nodes[-1].next
        while at is not None and (at.kind == "prim::Constant" or may_end(at)):
            if any(value.node in self.nodes for value in at.inputs) and allowed(at, f"a part of {self.kind}"):
                self.nodes.append(at)
                self._together.add(at)
            elif at.kind != "prim::Constant":
                return
            at = at.next

    def _producers(self, node: Node) -> Iterator[Node]:
        for value in node.inputs:
            if value.node.block is node.block and value.node.next is not None:
                yield value.node

    def _bring(self, node: Node) -> bool:
        """Put the node right before the group, and what is between and depends on it behind; false where that cannot
        be."""
        first, moving = self.nodes[0], Together(self.db, [node])
        at = node.next
        while at is not None and at is not first:
            if self.db.switches_gradients(at):
                return False
            if moving.depends_on(at):
                moving.add(at)
            at = at.next
        followers = moving.nodes[1:]
        if any(map(self._together.depends_on, followers)) or not allowed(node, f"a part of {self.kind}"):
            return False
        node.move_before(first)
        last = self.nodes[-1]
        for follower in followers:
            last = follower.move_after(last)
        self.nodes.appendleft(node)
        self._together.add(node)
        return True
