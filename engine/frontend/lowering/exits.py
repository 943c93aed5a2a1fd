"""Remove early exits: `prim::ReturnStmt` and `prim::LoopContinuation`.

In: an SSA graph in which a block may be left early.  Out: one in which every block runs to its end:
a bool is true if an exit was hit, the nodes that would follow run only if not, and the exit's values become
the outputs of the block that it leaves to.

    if c:                          %hit : bool, %value : int = prim::If(%c)
        return 1                     block0(): -> (%true, %one)
    print(x)           becomes       block1(): -> (%false, %uninitialized)
    return 2                       %result : int = prim::If(%hit)
                                     block0(): -> (%value)
                                     block1(): … prim::Print(%x) … -> (%two)

An If on the outcome of the If before it is merged into that one.
Values that are never used are `prim::Uninitialized`.  Source: "Exit Transform" in the design overview.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import Enum, auto

from engine.frontend.lowering.with_blocks import from_with_blocks, to_with_blocks
from engine.ir.constants import constant_value, insert_constant
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.order import is_inside
from engine.lang.errors import CompileError
from engine.lang.interpreter_settings import MAX_BLOCKS
from engine.lang.records import dataclass
from engine.lang.types import BOOL, Type, unify


def transform_exits(graph: Graph) -> None:
    """Rewrite `graph` in place; afterwards it holds no ReturnStmt and no LoopContinuation."""
    to_with_blocks(graph)
    for kind in ("prim::LoopContinuation", "prim::ReturnStmt"):
        _Transform.of(graph, kind).block(graph.block)
    _merge_consecutive_ifs(graph.block)
    from_with_blocks(graph)


class Status(Enum):
    """The static knowledge about leaving a block early."""

    WONT = auto()
    MIGHT = auto()
    WILL = auto()
    THROWS = auto()


@dataclass(slots=True)
class Exit:
    """An exit of a block: `hit` is the bool value that is true if it was taken, `values` go to the exit's target."""

    status: Status
    hit: Value | None = None
    values: Sequence[Value] = ()


WONT, THROWS = Exit(Status.WONT), Exit(Status.THROWS)


@dataclass(slots=True)
class _Transform:
    """One run over a graph, for exits of one `kind`."""

    graph: Graph
    kind: str
    true: Value
    false: Value
    depth: int = 0
    target: Block | None = None
    """The block whose outputs an exit found now would become."""
    _never: dict[int, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Graph, kind: str) -> _Transform:
        with graph.inserting_at(_first(graph)):
            transform = cls(graph, kind, insert_constant(graph, True), insert_constant(graph, False))
        transform.never(BOOL)  # PyTorch makes it first, and the order of such values shows in the graph's text
        return transform

    def never(self, type: Type) -> Value:
        """An uninitialised value of that very type object, at the graph's start."""
        if id(type) not in self._never:
            with self.graph.inserting_at(_first(self.graph)):
                self._never[id(type)] = self.graph.append("prim::Uninitialized", (), [type]).output
        return self._never[id(type)]

    def is_target(self, block: Block) -> bool:
        if self.kind == "prim::ReturnStmt":
            return block.owner is None or block.owner.kind == "prim::Closure"
        return block.owner is not None and block.owner.kind == "prim::Loop"

    def block(self, block: Block) -> Exit:
        """Transform a block; its exit, as seen from outside."""
        saved, self.target = self.target, block if self.is_target(block) else self.target
        self.depth += 1
        if self.depth > MAX_BLOCKS:
            raise _too_deep(block)
        exit = self.nodes_of(block)
        self.depth -= 1
        if self.target is block:
            self.set_target_outputs(block, exit)
            exit = WONT
        self.target = saved
        return exit

    def nodes_of(self, block: Block) -> Exit:
        """Transform the nodes up to the first that may exit; the rest is deleted or made conditional."""
        for node in block.nodes():
            exit = self.node(node)
            if exit.status in (Status.WILL, Status.THROWS):
                self.delete_after(node, block)
                if node.kind == self.kind:
                    block.return_node.range = node.range
                    node.destroy()
                return exit
            if exit.status is Status.MIGHT:
                return exit if node.next is block.return_node else self.guard_rest(block, node, exit)
        return WONT

    def node(self, node: Node) -> Exit:
        if node.kind == "prim::RaiseException":
            return THROWS
        if node.kind == self.kind:
            return Exit(Status.WILL, self.true, list(node.inputs))
        if node.kind == "prim::If":
            return self.if_node(node)
        if node.kind == "prim::Loop":
            return self.loop(node)
        if node.kind == "prim::With":
            return self.block(node.blocks[0])
        if node.kind == "prim::Closure":
            self.block(node.blocks[0])
        return WONT

    def if_node(self, node: Node) -> Exit:
        exits = [self.block(block) for block in node.blocks]
        statuses = {exit.status for exit in exits}
        if statuses == {Status.THROWS}:
            return THROWS
        if statuses <= {Status.WONT, Status.THROWS}:
            return WONT
        if Status.WONT not in statuses and Status.MIGHT not in statuses:
            return Exit(Status.WILL, self.true, self.join_values(node, exits))
        hit = self.add_if_outputs(node, *([self.hit_of(exit)] for exit in exits))[0]
        return Exit(Status.MIGHT, hit, self.join_values(node, exits))

    def hit_of(self, exit: Exit) -> Value:
        if exit.status is Status.THROWS:
            return self.never(BOOL)
        return exit.hit or self.false

    def join_values(self, node: Node, exits: Sequence[Exit]) -> list[Value]:
        """The values of whichever branch exits, as outputs of the If."""
        model = next(exit.values for exit in exits if exit.status in (Status.WILL, Status.MIGHT))
        left, right = (exit.values or [self.never(value.type) for value in model] for exit in exits)
        return self.add_if_outputs(node, left, right)

    def add_if_outputs(self, node: Node, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        added = []
        for pair in zip(left, right, strict=True):
            type = unify(pair[0].type, pair[1].type, default_to_union=True)
            assert type is not None
            for block, value in zip(node.blocks, pair, strict=True):
                block.register_output(value)
            added.append(node.add_output(type))
        return added

    def loop(self, node: Node) -> Exit:
        body = node.blocks[0]
        exit = self.block(body)
        if exit.status in (Status.WONT, Status.THROWS):
            return WONT  # the loop may never run, so an exception in its body implies nothing for the nodes that follow
        hit = self.hit_of(exit)
        with self.graph.inserting_at(body):
            again = self.append_if(hit, [self.false], [body.outputs[0]])
        body.replace_output(0, again[0])
        hit_after = self.carry(node, hit, self.false)
        values = [self.carry(node, value, self.never(value.type)) for value in exit.values]
        return Exit(Status.MIGHT, hit_after, values)

    def carry(self, loop: Node, value: Value, start: Value) -> Value:
        """Make `value` of the loop's body an output of the loop; `start` is its value if the body never runs."""
        body = loop.blocks[0]
        loop.add_input(start)
        body.add_input(value.type)
        body.register_output(value)
        return loop.add_output(value.type)

    def guard_rest(self, block: Block, node: Node, exit: Exit) -> Exit:
        """Run the nodes after `node` only if it did not exit."""
        assert exit.hit is not None and node.next is not None
        guard = self.graph.create("prim::If", [exit.hit], 0).insert_before(node.next)
        left, rest = guard.add_block(), guard.add_block()
        while (moved := guard.next) is not None and moved is not block.return_node:
            moved.move_before(rest.return_node)
        for offset, value in enumerate(list(block.outputs)):
            left.register_output(self.never(value.type))
            rest.register_output(value)
            block.replace_output(offset, guard.add_output(value.type))
        if block.owner is not None and block.owner.kind == "prim::With":
            self.hand_out(guard, left, rest)
        after = self.block(rest)
        if after.status in (Status.WILL, Status.THROWS):
            return Exit(Status.WILL, self.true, self.join_values(guard, [exit, after]))
        hit = self.add_if_outputs(guard, [self.true], [self.hit_of(after)])[0]
        return Exit(Status.MIGHT, hit, self.join_values(guard, [exit, after]))

    def hand_out(self, guard: Node, left: Block, rest: Block) -> None:
        """Make outputs of values that are used outside of `rest`: the body of a `with` has no outputs of its own."""
        for value in [value for node in rest.nodes() for value in node.outputs]:
            outside = [use for use in value.uses if not is_inside(use.user, rest)]
            if not outside:
                continue
            left.register_output(self.never(value.type))
            rest.register_output(value)
            given = guard.add_output(value.type).copy_metadata(value)
            for user, offset in outside:
                user.replace_input(offset, given)

    def set_target_outputs(self, block: Block, exit: Exit) -> None:
        """At the exit's target: its values are the block's outputs where it was hit."""
        if exit.status is Status.WILL:
            self.replace_outputs(block, exit.values)
        elif exit.status is Status.MIGHT:
            assert exit.hit is not None
            with self.graph.inserting_at(block):
                self.replace_outputs(block, self.append_if(exit.hit, exit.values, list(block.outputs)))

    def replace_outputs(self, block: Block, values: Sequence[Value]) -> None:
        block.return_node.remove_inputs_from(0)
        for value in values:
            block.register_output(value)

    def append_if(self, condition: Value, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        """An If at the insert point that only chooses between values."""
        node = self.graph.append("prim::If", [condition], 0)
        node.add_block()
        node.add_block()
        return self.add_if_outputs(node, left, right)

    def delete_after(self, node: Node, block: Block) -> None:
        """Delete the nodes that never run; block outputs that they made become uninitialised."""
        for dead in block.reversed_nodes():
            if dead is node:
                return
            for output in dead.outputs:
                if output.has_uses:
                    output.replace_all_uses_with(self.never(output.type))
            dead.destroy()


def _too_deep(block: Block) -> CompileError:
    return CompileError(
        f"control flow nests more than {MAX_BLOCKS} levels deep",
        block.owner.range if block.owner is not None else None,
        hints=("what follows an early `return`, `break` or `continue` counts as one level deeper: split the function",),
    )


def _first(graph: Graph) -> Node:
    first = graph.block.param_node.next
    assert first is not None
    return first


def _merge_consecutive_ifs(block: Block) -> None:
    """Merge an If whose condition is decided by the branches of the If before it into that one."""
    node = block.param_node.next
    while node is not None and node is not block.return_node:
        while _merge_with_next(node):
            pass
        for inner in node.blocks:
            _merge_consecutive_ifs(inner)
        node = node.next


def _merge_with_next(first: Node) -> bool:
    second = first.next
    if first.kind != "prim::If" or second is None or second.kind != "prim::If" or second.input.node is not first:
        return False
    told = [constant_value(block.outputs[second.input.offset]) for block in first.blocks]
    if not all(isinstance(value, bool) for value in told) or told[0] == told[1]:
        return False
    results = list(first.outputs)
    for block, value in zip(first.blocks, told, strict=True):
        chosen = second.blocks[0 if value else 1]
        for result, given in zip(results, list(block.outputs), strict=True):
            for use in result.uses:
                if is_inside(use.user, chosen):
                    use.user.replace_input(use.offset, given)
        for inner in chosen.nodes():
            inner.move_before(block.return_node)
        for output in chosen.outputs:
            block.register_output(output)
    for output in second.outputs:
        output.replace_all_uses_with(first.add_output(output.type).copy_metadata(output))
    second.destroy()
    return True
