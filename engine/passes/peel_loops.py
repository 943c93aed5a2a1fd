"""Puts the first iteration of a loop before it.

    %r : int = prim::Loop(%n, %c, %x)                     %1 : int = prim::min(%n, %one)
      block0(%i : int, %y : int):                         %2 : bool, %3 : int = prim::Loop(%1, %c, %c, %x)
        %z : int = aten::add(%y, %i)                        block0(%i : int, %4 : bool, %y : int):
        -> (%d, %z)                                           %z : int = aten::add(%y, %i)
                                                    →         -> (%d, %d, %z)
                                                          %5 : int = aten::sub(%n, %1)
                                                          %r : int = prim::Loop(%5, %2, %3)
                                                            block0(%6 : int, %7 : int):
                                                              %8 : int = aten::add(%6, %1)
                                                              %9 : int = aten::add(%7, %8)
                                                              -> (%d, %9)

What holds from the first iteration on (sizes, that something is defined) can then be told apart from what the loop
begins with.  Loops that hold other loops, and loops that surely run once at most, stay.
"""

from __future__ import annotations

from engine.ir.clone import copy_node
from engine.ir.graph import Graph, Node
from engine.ir.insert import insert_op
from engine.ir.match import constant_int
from engine.ir.rewrites import allowed
from engine.ir.views import LoopView
from engine.lang.types import BOOL


def peel_loops(graph: Graph, *, times: int = 1) -> bool:
    """Peel iterations off the innermost loops."""
    loops = [
        node
        for node in graph.find_all_nodes("prim::Loop")
        if _is_worth_it(LoopView(node), times) and allowed(node, "its first iterations and the rest")
    ]
    for node in loops:
        _peel(LoopView(node), times)
    return bool(loops)


def _is_worth_it(view: LoopView, times: int) -> bool:
    count = constant_int(view.max_trip_count)
    return (count is None or count > times) and not any(map(_holds_loop, view.body.nodes()))


def _holds_loop(node: Node) -> bool:
    return node.kind == "prim::Loop" or any(_holds_loop(inner) for block in node.blocks for inner in block.nodes())


def _peel(view: LoopView, times: int) -> None:
    node, graph = view.node, view.node.graph
    first = copy_node(node, graph, {})
    with graph.inserting_at(node, node.range):
        count = insert_op(graph, "prim::min", view.max_trip_count, times)
        graph.insert_node(first)
        rest = insert_op(graph, "aten::sub", view.max_trip_count, count)
    first.replace_input(0, count)
    _carry_condition(first)
    node.replace_input(0, rest)
    for offset, value in enumerate(first.outputs):
        node.replace_input(offset + 1, value)
    if view.trip_number.has_uses:
        users = view.trip_number.uses
        with graph.inserting_at(next(view.body.nodes()) if not view.body.is_empty() else view.body, node.range):
            number = insert_op(graph, "aten::add", view.trip_number, count)
        for user, offset in users:
            user.replace_input(offset, number)


def _carry_condition(loop: Node) -> None:
    """Make the loop's final condition its first result."""
    view = LoopView(loop)
    condition = view.next_condition
    loop.insert_input(2, view.initial_condition)
    loop.insert_output(0, BOOL)
    loop.blocks[0].insert_input(1, BOOL)
    loop.blocks[0].insert_output(1, condition)
