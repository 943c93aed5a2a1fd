"""Lifetimes of a graph's values, for generated code, whose blocks nest as the graph's do.

In: a graph.  Out: `Deaths`: which values are not needed any more behind a node, at the start of a branch, behind the
results of a block, or once a loop has taken its first values.  Only values that may hold memory are of interest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from engine.ir.aliasing.mutability import is_mutable_type
from engine.ir.graph import Block, Graph, Node, Value


class Deaths:
    """`after[node]` (a block's return node stands for its end), `at_start[block]`, `on_entry[loop]`."""

    def __init__(self, graph: Graph) -> None:
        self.after: defaultdict[Node, list[Value]] = defaultdict(list)
        self.at_start: defaultdict[Block, list[Value]] = defaultdict(list)
        self.on_entry: defaultdict[Node, list[Value]] = defaultdict(list)
        self._walk(graph.block)

    def _walk(self, block: Block) -> None:
        for value in _holding(block.inputs):
            self._settle(value, block, None)
        for node in block.nodes():
            for value in _holding(node.outputs):
                self._settle(value, block, node)
            for inner in node.blocks:
                self._walk(inner)

    def _settle(self, value: Value, block: Block, definition: Node | None) -> None:
        last = _last_user(value, block)
        if last is not None:
            self._place(value, block, last)
        elif definition is not None:
            self.after[definition].append(value)
        else:
            self.at_start[block].append(value)

    def _place(self, value: Value, block: Block, node: Node) -> None:
        """The value's last use in the block is in this node."""
        if node.kind == "prim::If":
            for branch in node.blocks:
                last = _last_user(value, branch)
                if last is None:
                    self.at_start[branch].append(value)
                else:
                    self._place(value, branch, last)
        elif node.kind == "prim::Loop" and _last_user(value, node.blocks[0]) is None:
            self.on_entry[node].append(value)
        else:
            self.after[node].append(value)


def _holding(values: Iterable[Value]) -> list[Value]:
    return [value for value in values if is_mutable_type(value.type)]


def _last_user(value: Value, block: Block) -> Node | None:
    """The last node of the block that uses the value, or holds one that does."""
    last: Node | None = None
    for user, _ in value.uses:
        inside = _within(user, block)
        if inside is not None and (last is None or inside.is_after(last)):
            last = inside
    return last


def _within(node: Node, block: Block) -> Node | None:
    """The node of this very block that is or holds the node."""
    at: Node | None = node
    while at is not None and at.block is not block:
        at = at.block.owner if at.block is not None else None
    return at
