"""Unrolling loops.

In: a graph with loops that only a count ends.  Out: the bodies repeated: fully where the count is a small
constant, else eight at a time with a loop for what is left over.

    for i in range(n):        for i in range(n / 8):
        body                      body; body; …               the trip number becomes a carried value
                              for i in range(n - n / 8 * 8):
                                  body
"""

from __future__ import annotations

from typing import Final

from engine.ir.clone import ValueMap, clone_nodes, copy_node
from engine.ir.constants import insert_constant
from engine.ir.graph import Block, Graph, Value
from engine.ir.insert import insert_op
from engine.ir.match import constant_int
from engine.ir.rewrites import allowed
from engine.ir.rewriting.dead_code import remove_dead_code, remove_unused_nodes
from engine.ir.views import LoopView
from engine.lang.types import INT

UNROLL_FACTOR: Final = 8
MAX_BODY_SIZE: Final = 32
MAX_REPEATS: Final = 64


def unroll_loops(graph: Graph, *, constant_only: bool = False) -> bool:
    """Unroll the loops, inner ones first, and remove dead code; True if there were any."""
    changed = _unroll_in(graph.block, constant_only)
    if changed:
        remove_dead_code(graph)
    return changed


def _unroll_in(block: Block, constant_only: bool) -> bool:
    changed = False
    for node in list(block.nodes()):
        if node.block is None:
            continue  # it was dead, and went with a loop before it
        for inner in node.blocks:
            changed |= _unroll_in(inner, constant_only)
        if node.kind == "prim::Loop" and LoopView(node).is_for():
            changed |= _unroll(LoopView(node), constant_only)
    return changed


def _unroll(view: LoopView, constant_only: bool) -> bool:
    if _size_up_to(view.body, MAX_BODY_SIZE + 1) > MAX_BODY_SIZE:
        return False
    count = constant_int(view.max_trip_count)
    is_small = count is not None and count < MAX_REPEATS
    if constant_only and not is_small:
        return False
    if not allowed(view.node, "its body, repeated"):
        return False
    _carry_trip_number(view)
    if count is not None and is_small:
        _replace_by_copies(view, count)
    else:
        _split_off_rest(view)
    return True


def _size_up_to(block: Block, limit: int) -> int:
    """The number of nodes, nested ones too; any number from `limit` on stands for many."""
    size = 0
    for node in block.nodes():
        size += 1 + sum(_size_up_to(inner, limit - size) for inner in node.blocks)
        if size >= limit:
            break
    return size


def _carry_trip_number(view: LoopView) -> None:
    """Count by a carried value, so that the count goes on from one repetition, and from one loop, to the next."""
    node, body = view.node, view.body
    if not view.trip_number.has_uses:
        return
    with node.graph.inserting_at(node):
        node.insert_input(2, insert_constant(node.graph, 0))
    node.insert_output(0, INT)
    counter = body.insert_input(1, INT)
    view.trip_number.replace_all_uses_with(counter)
    with node.graph.inserting_at(body):
        body.insert_output(1, insert_op(node.graph, "aten::add", counter, 1))


def _replace_by_copies(view: LoopView, times: int) -> None:
    """Put so many copies of the body in place of the loop."""
    node, results = view.node, view.carried_inputs
    with node.graph.inserting_at(node):
        for _ in range(times):
            results = _copy_body(view.body, results)
    for output, result in zip(node.outputs, results, strict=True):
        output.replace_all_uses_with(result)
    block = node.block
    node.destroy()
    assert block is not None
    # Dead nodes would count when a loop around this one is measured.
    remove_unused_nodes(block)


def _copy_body(body: Block, carried: list[Value]) -> list[Value]:
    """Insert one copy, fed with `carried`; what it gives."""
    values: ValueMap = dict(zip(body.inputs[1:], carried, strict=True))
    clone_nodes(body.nodes(), body.graph, values)
    return [values.get(value, value) for value in body.outputs[1:]]


def _split_off_rest(view: LoopView) -> None:
    """Let the loop do eight rounds at a time, and a copy of it after it the rounds that are left."""
    node, graph = view.node, view.node.graph
    rest = copy_node(node, graph, {}).insert_after(node)
    node.replace_all_uses_with(rest)
    for offset, output in enumerate(node.outputs):
        rest.replace_input(offset + 2, output)
    _repeat_body(view)
    with graph.inserting_at(node):
        rounds = insert_op(graph, "aten::__round_to_zero_floordiv", view.max_trip_count, UNROLL_FACTOR)
        done = insert_op(graph, "aten::mul", rounds, UNROLL_FACTOR)
        left = insert_op(graph, "aten::sub", view.max_trip_count, done)
    node.replace_input(0, rounds)
    rest.replace_input(0, left)


def _repeat_body(view: LoopView) -> None:
    """Let the body be eight copies of itself, each fed with what the one before gives."""
    old, new = view.body, view.node.add_block()
    inputs = [new.add_input(value.type).copy_metadata(value) for value in old.inputs]
    results = inputs[1:]
    with new.graph.inserting_at(new):
        for _ in range(UNROLL_FACTOR):
            results = _copy_body(old, results)
    for value in (old.outputs[0], *results):
        new.register_output(value)
    view.node.erase_block(0)
    remove_unused_nodes(new)
