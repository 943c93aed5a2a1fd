"""Uses the number where a branch knows that a value equals it.

    if x == 4:                                            if x == 4:
        z = x + y                                   →         z = 4 + y

What branches know is told by `engine.ir.rewriting.number_facts`.
"""

from __future__ import annotations

from engine.ir.constants import insert_constant
from engine.ir.graph import Graph, Node, Value
from engine.ir.match import constant_int
from engine.ir.rewrites import allowed
from engine.ir.rewriting.number_facts import Facts, Refinement


def refine_integer_values(graph: Graph) -> bool:
    """Replace the values where they are known."""
    return Refinement(_unknown, _use_facts).run(graph)


def _unknown(value: Value) -> Value | None:
    return value if constant_int(value) is None else None


def _use_facts(node: Node, facts: Facts) -> bool:
    known = [v for v in dict.fromkeys(node.inputs) if v in facts and allowed(node, f"{facts[v]} for %{v.debug_name}")]
    for value in known:
        with node.graph.inserting_at(node):
            node.replace_input_with(value, insert_constant(node.graph, facts[value]))
    return bool(known)
