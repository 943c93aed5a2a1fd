"""Alias analysis: which values may share memory, which nodes write to it, and which nodes may change places.

In: a graph.  Out: `AliasDb`, which answers for values and nodes.  Conservative: where it cannot tell, values may alias
and nodes may write.  Values of immutable types (numbers, strings, tuples of such) alias nothing; everything whose
origin is not seen may be any other such value of its type (see `alias_facts`).

The analysis walks the graph once and does not care where in its block a node stands.  Moving nodes inside of their
block keeps it true; for new and replaced values and for nodes that come and go there are verbs to tell it.  Whoever
moves nodes from block to block makes a new one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine.ir.aliasing import moves
from engine.ir.aliasing.analysis import analyze, analyze_node
from engine.ir.aliasing.mutability import is_mutable_type
from engine.ir.graph import Graph, Node, Use, Value
from engine.ir.ops import SWITCHES_GRADIENTS, has_side_effects, is_nondeterministic, schema_of
from engine.ir.order import walk_inside
from engine.lang.deferred import deferred

if TYPE_CHECKING:
    from engine.ir.aliasing import text
else:
    text = deferred("engine.ir.aliasing.text")


class AliasDb:
    """Alias relations between the values of one graph; `str(db)` lists them.

    With `loops_run` every loop is taken to run at least once, as the reference does it (see Note [Loops that do not
    run]).  With `into_calls` a call does what its callee does; without, it may do anything to what it is given.
    """

    def __init__(self, graph: Graph, *, loops_run: bool = False, into_calls: bool = False) -> None:
        self.graph = graph
        self._loops_run = loops_run
        self._facts = analyze(graph, loops_run=loops_run, into_calls=into_calls)
        self._forget_masks()

    # -- asking about values

    def may_alias(self, a: Value | Iterable[Value], b: Value | Iterable[Value]) -> bool:
        """True if a value of the first may share memory with a value of the second."""
        return bool(self._facts.mask(_several(a)) & self._facts.mask(_several(b)))

    def may_contain_alias(self, a: Value | Iterable[Value], b: Value | Iterable[Value]) -> bool:
        """True if the values, or anything they contain at any depth, may share memory."""
        return bool(self._facts.contained_mask(_several(a)) & self._facts.contained_mask(_several(b)))

    def may_alias_wildcard(self, values: Value | Iterable[Value]) -> bool:
        """True if the values, or anything they contain, may be memory that is held outside the graph."""
        return bool(self._facts.contained_mask(_several(values)) & self._wildcards)

    def has_writers(self, what: Node | Value) -> bool:
        """True if some node may write to the value, or to an input or output of the node."""
        if isinstance(what, Node):
            return self.has_input_writers(what) or self.has_output_writers(what)
        return bool(self._facts.mask([what]) & self._written)

    def has_input_writers(self, node: Node) -> bool:
        """True if some node may write to an input of this node."""
        return bool(self._facts.mask(node.inputs) & self._written)

    def has_output_writers(self, node: Node) -> bool:
        """True if some node may write to an output of this node."""
        return bool(self._facts.mask(node.outputs) & self._written)

    def escapes(self, values: Value | Iterable[Value]) -> bool:
        """True if the values, or anything they contain, may be (or be contained in) an output of the graph."""
        return self.may_contain_alias(values, self.graph.outputs)

    def is_given_away(self, value: Value) -> bool:
        """True if the value may be stored into something that the graph does not own."""
        return any(_is_stored(use) and self.writes_to_wildcard(use.user) for use in value.uses)

    def safe_to_change_aliasing_relationship(self, a: Value | Iterable[Value], b: Value | Iterable[Value]) -> bool:
        """True if sharing memory between the two groups of values, or not, is unobservable.

        It is observable if the graph writes to them, or if both are visible outside the graph, where others may write.
        """
        both = tuple(_several(a)), tuple(_several(b))
        if any(self.has_writers(value) for values in both for value in values):
            return False
        return not all(self.escapes(values) or self.may_alias_wildcard(values) for values in both)

    def memory_of(self, values: Iterable[Value]) -> int:
        """Bit mask of the memory the values may be or contain, for `writes_to_memory`; masks combine with `|`."""
        return self._facts.contained_mask(values)

    # -- asking about nodes

    def writes_to_alias(self, node: Node, values: Iterable[Value]) -> bool:
        """True if the node, or one in its blocks, may write to one of the values or to anything they contain."""
        mask = self.writes_of(node)
        return bool(mask and mask & self._facts.contained_mask(values))

    def writes_to_memory(self, node: Node, memory: int) -> bool:
        """True if the node, or one in its blocks, may write to that memory."""
        return bool(self.writes_of(node) & memory)

    def writes_to_wildcard(self, node: Node) -> bool:
        """True if the node may write to memory that the graph does not own."""
        return bool(self.writes_of(node) & self._wildcards)

    def is_mutable(self, node: Node) -> bool:
        """True if the node may write to any memory."""
        return bool(self.writes_of(node))

    def writes_of(self, node: Node) -> int:
        """The memory that the node, or one in its blocks, may write to."""
        mask = self._write_masks.get(node)
        if mask is None:
            mask = self._facts.write_mask(node)
            for block in node.blocks:
                for inner in block.nodes():
                    mask |= self.writes_of(inner)
            self._write_masks[node] = mask
        return mask

    def reads_of(self, node: Node) -> int:
        """The memory that the node, or one in its blocks, may look at; handing a value on is not looking."""
        mask = 0
        for inner in walk_inside(node):
            mask |= self._facts.contained_mask(inner.inputs)
        return mask

    def has_side_effects(self, node: Node) -> bool:
        """True if the node, or one in its blocks, has effects beyond its results and writes to memory."""
        return any(map(has_side_effects, walk_inside(node)))

    def switches_gradients(self, node: Node) -> bool:
        """True if gradients may be recorded behind the node that are not before it, or the other way round."""
        return any(inner.kind in SWITCHES_GRADIENTS for inner in walk_inside(node))

    def is_nondeterministic(self, node: Node) -> bool:
        """True if the node, or one in its blocks, draws random numbers."""
        return any(map(is_nondeterministic, walk_inside(node)))

    # -- moving nodes

    def move_after_topologically_valid(self, node: Node, point: Node) -> bool:
        """Move the node right behind `point` if that keeps the graph's meaning; True if it was moved.

        Nodes between them that depend on the node, or that it depends on, come along: all that go one way end up on
        the other side of `point`, in their order.
        """
        return moves.move(self, node, point, moves.AFTER)

    def move_before_topologically_valid(self, node: Node, point: Node) -> bool:
        """Move the node right before `point` if that keeps the graph's meaning; True if it was moved."""
        return moves.move(self, node, point, moves.BEFORE)

    def could_move_after_topologically(self, node: Node, point: Node) -> bool:
        """True if `move_after_topologically_valid` would move the node."""
        return moves.could_move(self, node, point, moves.AFTER)

    def could_move_before_topologically(self, node: Node, point: Node) -> bool:
        """True if `move_before_topologically_valid` would move the node."""
        return moves.could_move(self, node, point, moves.BEFORE)

    def gives_fresh_memory(self, node: Node) -> bool:
        """True if the outputs of the node are fresh memory that shares nothing with its inputs."""
        if node.kind == "prim::Param" or node.blocks or "Subgraph" in node.attributes or has_side_effects(node):
            return False
        return node.kind == "prim::ListConstruct" or not self.may_contain_alias(node.inputs, node.outputs)

    def could_remove_write(self, write: Node) -> bool:
        """True if the in-place write (to the first input) can become a functional operator unobserved.

        That holds if the value is fresh, made in the same block, and can be made right before the write: nothing has
        then seen it without the write.  A value of a branch counts as made there if both branches give it fresh.
        """
        if not write.inputs or write.inputs[0].node.block is not write.block:
            return False
        written = write.inputs[0]
        if not self.gives_fresh_memory(written.node) and not self._is_fresh_from_branches(written):
            return False
        return self.could_move_before_topologically(written.node, write)

    def _is_fresh_from_branches(self, value: Value) -> bool:
        if value.node.kind != "prim::If":
            return False
        ends = [(block, block.outputs[value.offset]) for block in value.node.blocks]
        return all(
            end.node.block is block and len(end.uses) == 1 and self.gives_fresh_memory(end.node) for block, end in ends
        )

    def make_adjacent(self, write: Node) -> bool:
        """Move the node that makes the written value right before the write, if `could_remove_write`; True if so."""
        return self.could_remove_write(write) and self.move_before_topologically_valid(write.inputs[0].node, write)

    # -- keeping up with changes of the graph

    def create_value(self, value: Value) -> None:
        """A new value that has memory of its own, which nobody else holds."""
        if is_mutable_type(value.type):
            self._facts.elements[value] = self._facts.dag.fresh()

    def copy_value(self, value: Value, copy: Value) -> None:
        """`copy` may be all that `value` may be."""
        element = self._facts.elements.get(value)
        if element is not None and is_mutable_type(copy.type):
            self._facts.elements[copy] = element

    def replace_with_new_value(self, value: Value, new: Value) -> None:
        """`new` took the place of `value`, which is nothing any more."""
        self.copy_value(value, new)
        self._facts.elements.pop(value, None)

    def add_node(self, node: Node) -> None:
        """The node, with its blocks, is new in the graph.  All answers have to be found anew after it."""
        analyze_node(self._facts, node, loops_run=self._loops_run)
        self._forget_masks()

    def _forget_masks(self) -> None:
        self._wildcards = self._facts.wildcard_mask()
        self._written_mask: int | None = None
        self._write_masks: dict[Node, int] = {}

    def forget_node(self, node: Node) -> None:
        """The node is about to leave the graph: what it, or one in its blocks, wrote to is written to no more."""
        for inner in walk_inside(node):
            self._facts.writes.pop(inner, None)
        outer: Node | None = node
        while outer is not None:
            self._write_masks.pop(outer, None)
            outer = outer.block.owner if outer.block is not None else None
        self._written_mask = None

    @property
    def _written(self) -> int:
        """The memory that some node may write to."""
        if self._written_mask is None:
            self._written_mask = 0
            for node in self._facts.writes:
                self._written_mask |= self._facts.write_mask(node)
        return self._written_mask

    # -- showing

    def __str__(self) -> str:
        return text.text(self.graph, self._facts)

    def dump(self) -> None:
        """Print what the analysis found."""
        print(self)

    def to_graphviz_str(self) -> str:
        """The elements and their arrows in the language of Graphviz's `dot`."""
        return text.graphviz(self._facts)


def _is_stored(use: Use) -> bool:
    """True if the use stores the value into another input of its node."""
    if use.user.kind == "prim::SetAttr":
        return use.offset == 1
    schema = schema_of(use.user)
    if schema is None or use.offset >= len(schema.arguments):
        return False
    alias = schema.arguments[use.offset].alias
    return alias is not None and "*" in alias.after and "*" not in alias.before


def _several(values: Value | Iterable[Value]) -> Iterable[Value]:
    return (values,) if isinstance(values, Value) else values
