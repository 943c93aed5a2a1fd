"""The order of nodes across nested blocks.

In: nodes, blocks.  Out: who runs first, all nodes one after the other, and what they use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from engine.ir.graph import Block, Node, Value


def is_before(node: Node, other: Node) -> bool:
    """Does `node` run before `other`?  Nodes of nested blocks compare by where their blocks hang."""
    if node is other:
        return False
    mine, theirs = _path(node), _path(other)
    for a, b in zip(mine, theirs, strict=False):
        if a is b:
            continue
        if a.block is b.block:
            return a._position < b._position
        assert a.block is not None
        assert b.block is not None
        assert a.block.owner is not None
        return a.block.owner.blocks.index(a.block) < a.block.owner.blocks.index(b.block)
    return len(mine) < len(theirs)


def is_inside(node: Node, block: Block) -> bool:
    """True if the node is in the block or in a block nested in it."""
    outer = node.block
    while outer is not None and outer is not block:
        outer = outer.owner.block if outer.owner is not None else None
    return outer is block


def walk(block: Block) -> Iterator[Node]:
    """Every node, those of nested blocks after the node that holds them; the current one may be removed."""
    stack = [block.nodes()]
    while stack:
        for node in stack[-1]:
            yield node
            if node.blocks:
                stack.extend(inner.nodes() for inner in reversed(node.blocks))
                break
        else:
            stack.pop()


def walk_inside(node: Node) -> Iterator[Node]:
    """The node, then every node in its blocks."""
    yield node
    for block in node.blocks:
        yield from walk(block)


def inputs_inside(node: Node) -> Iterator[Value]:
    """The inputs of the node, and those of the nodes and results of its blocks."""
    yield from node.inputs
    stack = list(node.blocks)
    while stack:
        block = stack.pop()
        yield from block.outputs
        for inner in block.nodes():
            yield from inner.inputs
            stack += inner.blocks


def _path(node: Node) -> list[Node]:
    """The node and those whose blocks hold it, outermost first."""
    path = [node]
    while path[-1].block is not None and path[-1].block.owner is not None:
        path.append(path[-1].block.owner)
    return path[::-1]


def make_room(node: Node, gap: int) -> None:
    """Spread the positions of the nodes around this one, of as few as have room between them; `gap` is ample room.

    To spread all of a block each time would take forever where thousands of nodes are put in one place.
    """
    block = node.block
    assert block is not None
    first = last = node
    count, step = 1, 0
    while step < _ROOM:
        for _ in range(count):
            if first.prev is not block.param_node:
                first, count = _neighbour(first.prev), count + 1
            if last.next is not block.return_node:
                last, count = _neighbour(last.next), count + 1
        low, high = _neighbour(first.prev)._position, _neighbour(last.next)._position
        if last.next is block.return_node:
            low = 0 if first.prev is block.param_node else low
            high = low + (count + 1) * gap
        elif first.prev is block.param_node:
            low = high - (count + 1) * gap
        step = (high - low) // (count + 1)
    position = low
    while True:
        position += step
        first._position = position
        if first is last:
            return
        first = _neighbour(first.next)


def _neighbour(node: Node | None) -> Node:
    assert node is not None
    return node


_ROOM: Final = 1 << 8
