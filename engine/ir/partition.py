"""Finds nodes that may run as one, and brings them together.

In: a graph, and which nodes may be in a group.  Out: groups, each a node with a subgraph (see `subgraphs`).

    %1 = neg(%x)                                   %3, %1 = Group(%x)      the producers of what a group takes join it,
    %2 = mm(%1, %y)            (neg, exp)    →     %2 = mm(%1, %y)         where nodes on the way can make room: `mm`
    %3 = exp(%1)                                                           needs %1 alone, and goes behind the group

Nodes only move where nobody can tell: past what neither needs them nor touches memory that they touch.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.ir.alias import AliasDb
from engine.ir.graph import Block, Graph, Node
from engine.ir.subgraphs import group_nodes

Choice = Callable[[Node], bool]


def create_groups(graph: Graph, kind: str, may_join: Choice, min_size: int) -> bool:
    """Let nodes be groups of that kind, of at least so many nodes; was there one?"""
    db = AliasDb(graph)
    groups = [group for block in _blocks(graph.block) for group in _find_groups(block, db, may_join)]
    wanted = [group for group in groups if len(group) >= min_size]
    for group in wanted:
        group_nodes(kind, group)
    return bool(wanted)


def _blocks(block: Block) -> list[Block]:
    inner = [each for node in block.nodes() for nested in node.blocks for each in _blocks(nested)]
    return [*inner, block]


def _find_groups(block: Block, db: AliasDb, may_join: Choice) -> list[list[Node]]:
    """Neighbours that belong together, the group that ends last first; each group in its order."""
    grouped: set[Node] = set()
    groups: list[list[Node]] = []
    for node in list(block.reversed_nodes()):
        if node in grouped or not may_join(node):
            continue
        group = [node]
        _grow(group, db, lambda other: other not in grouped and may_join(other))
        grouped.update(group)
        groups.append(group)
    return groups


def _grow(group: list[Node], db: AliasDb, may_join: Choice) -> None:
    """Take in producers, nearest first, until none can come."""
    refused: set[Node] = set()
    while True:
        members = set(group)
        made = {value.node for node in group for value in node.inputs if value.node.block is group[0].block}
        waiting = [node for node in made - members - refused if node.next is not None and may_join(node)]
        if not waiting:
            return
        nearest = max(waiting, key=lambda node: node._position)
        if _bring(nearest, group, db):
            group.insert(0, nearest)
        else:
            refused.add(nearest)


def _bring(node: Node, group: list[Node], db: AliasDb) -> bool:
    """Put the node right before the group, and what is between and depends on it behind; false where that cannot be."""
    followers: list[Node] = []
    at = node.next
    while at is not None and at is not group[0]:
        if any(db.must_stay_after(at, each) for each in (node, *followers)):
            followers.append(at)
        at = at.next
    if any(db.must_stay_after(member, each) for each in followers for member in group):
        return False
    node.move_before(group[0])
    last = group[-1]
    for follower in followers:
        last = follower.move_after(last)
    return True
