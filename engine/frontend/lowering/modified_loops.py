"""Make every loop either a `for` or a `while`.

In: loops that have both a trip count and a condition of their own, as a `for` with a `break` has.
Out: `while` loops that count iterations themselves, which is the only form the Python printer can write.

    = prim::Loop(%n, %true, …)             %some : bool = aten::gt(%n, %zero)
      block0(%i : int, …):          ->     … = prim::Loop(%max, %some, …, %zero)
        -> (%goes_on, …)                     block0(%unused : int, …, %i : int):
                                               %next : int = aten::add(%i, %one)
                                               %more : bool = aten::lt(%next, %n)
                                               %again : bool = aten::__and__(%more, %goes_on)
                                               -> (%again, …, %next)
"""

from __future__ import annotations

from typing import Final

from engine.aten.dispatch import table
from engine.ir.constants import constant_value, insert_constant
from engine.ir.graph import Block, Graph, Node, Value
from engine.lang.types import BOOL, INT, Type

FOREVER: Final = 2**63 - 1
"""The trip count of a `while`."""


def canonicalize_modified_loops(graph: Graph) -> None:
    """Rewrite in place."""
    for node in [node for node in graph.all_nodes() if node.kind == "prim::Loop"]:
        if constant_value(node.inputs[0]) != FOREVER and constant_value(node.blocks[0].outputs[0]) is not True:
            _count_by_itself(node)


def _count_by_itself(loop: Node) -> None:
    graph, body, trips = loop.graph, loop.blocks[0], loop.inputs[0]
    with graph.inserting_at(loop, loop.range):
        zero, one = insert_constant(graph, 0), insert_constant(graph, 1)
        enters = _append(graph, "aten::gt.int", [trips, zero], BOOL)
        loop.replace_input(0, insert_constant(graph, FOREVER))
        if constant_value(loop.inputs[1]) is not True:
            enters = _append(graph, "aten::__and__.bool", [enters, loop.inputs[1]], BOOL)
        loop.replace_input(1, enters)
    _carry_count(graph, loop, body, trips, zero, one)


def _carry_count(graph: Graph, loop: Node, body: Block, trips: Value, zero: Value, one: Value) -> None:
    loop.add_output(INT)
    loop.add_input(zero)
    count = body.add_input(INT)
    body.inputs[0].set_debug_name("").replace_all_uses_with(count)
    with graph.inserting_at(body, loop.range):
        following = _append(graph, "aten::add.int", [count, one], INT)
        body.register_output(following)
        more = _append(graph, "aten::lt.int", [following, trips], BOOL)
        body.replace_output(0, _append(graph, "aten::__and__.bool", [more, body.outputs[0]], BOOL))


def _append(graph: Graph, qualified_name: str, inputs: list[Value], type: Type) -> Value:
    node = graph.append(qualified_name.partition(".")[0], inputs, [type])
    node.op = table.find(qualified_name)
    return node.output
