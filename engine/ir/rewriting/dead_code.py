"""Finds what lives in a graph, and removes the rest.

In: a graph.  Out: the same graph without nodes that nobody needs.  A node lives if it has side effects, writes
to memory that lives or that the graph does not own, or gives a live value.  What a loop carries lives when it is
used after the loop or in its body; so a loop that carries a used value stays even when its results are unused.

Passes that leave dead nodes behind call this themselves, as PyTorch's do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.aliasing.analysis import may_write_silently
from engine.ir.aliasing.mutability import is_mutable_type
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.ops import has_side_effects, writes
from engine.ir.rewrites import allowed
from engine.ir.views import LoopView
from engine.lang.types import ListType

_WITHOUT_RESULT: Final = "the same without a result that nobody uses"


def remove_dead_code(graph: Graph, *, keep_writes: bool = False, loops_run: bool = False) -> bool:
    """Remove dead nodes and dead results of control flow; was there anything?

    With `keep_writes` every operator that writes to an input lives, whoever sees the write.  With `loops_run` a
    write goes that only a loop that does not run lets anybody see.
    """
    if keep_writes or not may_write_silently(graph):
        return _sweep(graph.block, _Staying(graph))
    return _sweep(graph.block, _liveness(graph, AliasDb(graph, loops_run=loops_run)).nodes.__contains__)


def lost_writes(graph: Graph) -> list[Node]:
    """The nodes whose writes somebody may see, and that `remove_dead_code` removes with `loops_run`."""
    if not any(_is_read_otherwise(node) for node in graph.all_nodes()):
        return []
    kept = _liveness(graph, AliasDb(graph, loops_run=True)).nodes
    dead = [node for node in graph.all_nodes() if node not in kept and writes(node)]
    if not dead:
        return []
    needed = _liveness(graph, AliasDb(graph)).nodes
    return [node for node in dead if node in needed]


def _is_read_otherwise(node: Node) -> bool:
    """True if `loops_run` matters for the node: a loop that carries memory, or `list += more`."""
    if node.kind == "aten::add_":
        return isinstance(node.output.type, ListType)
    return node.kind == "prim::Loop" and any(is_mutable_type(value.type) for value in node.outputs)


class _Staying:
    """Nodes that are live without uses, by effects of their own or of their blocks; every write is such an effect.

    Where no memory is looked at that is all there is to know: from the end to the start, what is unused then is dead.
    What gives the condition of a loop, or a carried value that its body uses, lives whether the loop does or not; what
    a loop that lives begins with lives, too, even if the loop does not carry it any more in the end.
    """

    def __init__(self, graph: Graph) -> None:
        self._known: dict[Node, bool] = {}
        for node in graph.find_all_nodes("prim::Loop"):
            for value in _kept_by(LoopView(node)):
                giver: Node | None = value.node
                while giver is not None and giver.kind != "prim::Param" and giver not in self._known:
                    self._known[giver] = True
                    giver = giver.block.owner if giver.block is not None else None

    def __call__(self, node: Node) -> bool:
        stays = self._stays(node)
        if node.kind == "prim::Loop" and (stays or any(value.has_uses for value in node.outputs)):
            self._known.update((value.node, True) for value in node.inputs)
        return stays

    def _stays(self, node: Node) -> bool:
        found = self._known.get(node)
        if found is None:
            found = _has_effects(node) or writes(node)
            found = found or any(map(self._stays, (inner for block in node.blocks for inner in block.nodes())))
            self._known[node] = found
        return found


def _kept_by(loop: LoopView) -> Iterator[Value]:
    yield loop.next_condition
    for inner, given in zip(loop.body_carried_inputs, loop.body_carried_outputs, strict=True):
        if inner.has_uses:
            yield given


def _liveness(graph: Graph, db: AliasDb) -> _Liveness:
    live = _Liveness(db)
    live.mark_node(graph.return_node)
    live.mark_block(graph.block)
    return live


def remove_unused_nodes(block: Block) -> None:
    """Remove the nodes of this block (not those of nested ones) that have no uses and no effects."""
    for node in block.reversed_nodes():
        if not any(value.has_uses for value in node.outputs) and not _must_run(node):
            node.destroy()


class _Liveness:
    """The nodes and values known to be live so far."""

    def __init__(self, db: AliasDb) -> None:
        self.db = db
        self.nodes: set[Node] = set()
        self.values: set[Value] = set()
        self._memory = 0
        self._runs: dict[Node, bool] = {}
        """True for nodes that must run whatever else is live."""
        self._settled: dict[Block, int] = {}
        """Blocks that had nothing to mark when so much was known to live."""

    def mark_node(self, node: Node) -> bool:
        """The node lives, and with it its inputs and the nodes around it."""
        if node in self.nodes:
            return False
        self.nodes.add(node)
        self._keep(node.inputs)
        if node.block is not None and node.block.owner is not None:
            self.mark_node(node.block.owner)
        return True

    def _keep(self, values: Iterable[Value]) -> None:
        """The values live, and so does the memory that they may be or hold."""
        new = [value for value in values if value not in self.values]
        self.values.update(new)
        self._memory |= self.db.memory_of(new)

    def mark_block(self, block: Block) -> bool:
        """Mark live nodes from the end to the start; True if anything changed."""
        known = len(self.nodes) + len(self.values)
        if self._settled.get(block) == known:
            return False
        changed = False
        for node in block.nodes():
            if node not in self.nodes and self._must_run(node):
                changed |= self.mark_node(node)
        changed |= self._mark_results(block)
        for node in block.reversed_nodes():
            changed |= self._mark_inside(node)
            if self._gives_live_value(node):
                changed |= self.mark_node(node)
        if not changed:
            self._settled[block] = known
        return changed

    def _must_run(self, node: Node) -> bool:
        """True if the node, or one in its blocks, has effects or writes to memory the graph does not own."""
        found = self._runs.get(node)
        if found is None:
            found = self.db.writes_to_wildcard(node) or _has_effects(node)
            found = found or any(self._must_run(inner) for block in node.blocks for inner in block.nodes())
            self._runs[node] = found
        return found

    def _gives_live_value(self, node: Node) -> bool:
        if node in self.nodes:
            return False
        if not self.values.isdisjoint(node.outputs):
            return True
        return self.db.writes_to_memory(node, self._memory)

    def _mark_inside(self, node: Node) -> bool:
        changed = False
        for block in node.blocks:
            changed |= self.mark_block(block)
        # What lives in the next iteration may be what this one gives.
        while node.kind == "prim::Loop" and self.mark_block(node.blocks[0]):
            changed = True
        return changed

    def _mark_results(self, block: Block) -> bool:
        """The results of a nested block live where those of its owner do."""
        owner = block.owner
        if owner is None:
            return self.mark_node(block.return_node)
        before = len(self.values)
        if owner.kind == "prim::Loop":
            loop = LoopView(owner)
            carried = zip(loop.outputs, loop.body_carried_inputs, loop.body_carried_outputs, strict=True)
            self._keep(given for out, inner, given in carried if out in self.values or inner.has_uses)
            self._keep([loop.next_condition])
        else:
            pairs = zip(owner.outputs, block.outputs, strict=True)
            self._keep(given for out, given in pairs if out in self.values)
        return len(self.values) > before


def _must_run(node: Node) -> bool:
    """True if the node, or one in its blocks, has effects or writes to anything (without alias analysis)."""
    if _has_effects(node) or writes(node):
        return True
    return any(_must_run(inner) for block in node.blocks for inner in block.nodes())


def _has_effects(node: Node) -> bool:
    return has_side_effects(node) and not (node.kind == "prim::SetAttr" and _is_unseen(node.inputs[0], set()))


def _is_unseen(object: Value, asked: set[Value]) -> bool:
    """True for an object made here of which nothing is read: its attributes are set, and those of objects like it."""
    if object.node.kind != "prim::CreateObject":
        return False
    asked.add(object)
    return all(
        user.kind == "prim::SetAttr" and (user.inputs[0] in asked or _is_unseen(user.inputs[0], asked))
        for user, _ in object.uses
    )


def _sweep(block: Block, lives: Callable[[Node], bool]) -> bool:
    changed = False
    for node in block.reversed_nodes():
        stays = lives(node)
        if node.blocks:
            changed |= _remove_dead_results(node)
            for inner in node.blocks:
                changed |= _sweep(inner, lives)
        if not stays and not any(value.has_uses for value in node.outputs) and allowed(node):
            node.destroy()
            changed = True
    return changed


def _remove_dead_results(node: Node) -> bool:
    before = len(node.outputs)
    for offset in reversed(range(before)):
        if node.outputs[offset].has_uses or node.kind not in ("prim::If", "prim::Loop"):
            continue
        if node.kind == "prim::If" and allowed(node, _WITHOUT_RESULT):
            for block in node.blocks:
                block.erase_output(offset)
            node.erase_output(offset)
        elif (
            node.kind == "prim::Loop"
            and not LoopView(node).body_carried_inputs[offset].has_uses
            and allowed(node, _WITHOUT_RESULT)
        ):
            LoopView(node).remove_carried(offset)
    return len(node.outputs) < before
