"""Moving a node to another place in its block such that nobody can tell.

In: what may alias what, a node, and the point that it is to stand before or after.  Out: the node moved there, with the
nodes on its way that it cannot pass; or nothing moved, where there is no such way.

    %a = neg(%x)                    %c = exp(%x)        move %a before %d:
    %b = tanh(%a)           →       %a = neg(%x)        %b needs %a and goes behind %d, %c stays,
    %c = exp(%x)                    %d = sin(%x)        and were %d to use %b, nothing would move
    %d = sin(%x)                    %b = tanh(%a)

Writes to one memory keep their order, reads pass no writes to what they read, nodes that draw random numbers pass each
other not, and nothing passes a node with side effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from engine.ir.graph import Node
from engine.ir.order import inputs_inside

if TYPE_CHECKING:
    from engine.ir.aliasing.alias_db import AliasDb

BEFORE: Final = "before"
AFTER: Final = "after"


def move(db: AliasDb, node: Node, point: Node, side: str) -> bool:
    """Move the node, and the nodes that must go with it, to that side of `point`; True if it was possible."""
    plan = _plan(db, node, point, side)
    if plan is None:
        return False
    first, second = plan
    _put(first, point, side)
    _put(second, point, AFTER if side == BEFORE else BEFORE)
    return True


def could_move(db: AliasDb, node: Node, point: Node, side: str) -> bool:
    """True if `move` would succeed."""
    return _plan(db, node, point, side) is not None


_Plan = tuple[list[Node], list[Node]]
"""Nodes that go to the side of the point that was asked for, and nodes that go to the other, nearest first."""


def _plan(db: AliasDb, node: Node, point: Node, side: str) -> _Plan | None:
    if node.block is None or node.block is not point.block:
        return None
    if node is point:
        return [], []
    forward = node.is_before(point)
    # The node stays on its side of the point: what depends on it has to make room.
    stays = forward == (side == BEFORE)
    between = list(_between(node, point, forward))
    if stays and not between:
        return [], []
    if any(map(db.has_side_effects, (node, *between))):
        return None
    group = Together(db, [node])
    for other in between:
        if group.depends_on(other):
            group.add(other)
    movers = group.nodes[1:] if stays else group.nodes
    if movers and not _may_pass(db, Together(db, movers), point):
        return None
    return ([node], movers) if stays else (movers, [])


def _between(node: Node, point: Node, forward: bool) -> Iterator[Node]:
    at = node.next if forward else node.prev
    while at is not None and at is not point:
        yield at
        at = at.next if forward else at.prev


def _may_pass(db: AliasDb, group: Together, point: Node) -> bool:
    if point.kind in ("prim::Param", "prim::Return"):
        return False
    return not db.has_side_effects(point) and not group.depends_on(point)


def _put(nodes: Iterable[Node], point: Node, side: str) -> None:
    """Put the nodes, nearest first, on that side of the point."""
    at = point
    for node in nodes:
        if side == BEFORE:
            node.move_before(at)
        else:
            node.move_after(at)
        at = node


class Together:
    """Nodes that go together, and what they use, give, read and write."""

    def __init__(self, db: AliasDb, nodes: Iterable[Node]) -> None:
        self.db = db
        self.nodes: list[Node] = []
        self._members: set[Node] = set()
        self._needed: set[Node] = set()
        self._reads = self._writes = 0
        self._is_random = self._has_effects = False
        for node in nodes:
            self.add(node)

    def add(self, node: Node) -> None:
        self.nodes.append(node)
        self._members.add(node)
        self._needed.update(value.node for value in inputs_inside(node))
        self._reads |= self.db.reads_of(node)
        self._writes |= self.db.writes_of(node)
        self._is_random = self._is_random or self.db.is_nondeterministic(node)
        self._has_effects = self._has_effects or self.db.has_side_effects(node)

    def depends_on(self, node: Node) -> bool:
        """True if the node must keep its order with some node of the group."""
        if node in self._needed or any(value.node in self._members for value in inputs_inside(node)):
            return True
        if self._is_random and self.db.is_nondeterministic(node):
            return True
        if self._has_effects and self.db.has_side_effects(node):
            return True
        writes = self.db.writes_of(node)
        if writes & (self._writes | self._reads):
            return True
        return bool(self._writes and self._writes & self.db.reads_of(node))
