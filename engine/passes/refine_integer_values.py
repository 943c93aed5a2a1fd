"""Uses the number where a branch knows that a value equals it.

    if x == 4:                                            if x == 4:
        z = x + y                                   →         z = 4 + y

`!=` tells the other branch, `not`, `and` and `or` pass on what their operands tell.  Bodies of loops are left
alone, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.ir.constants import insert_constant
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.match import constant_bool, constant_int, is_int_arithmetic
from engine.ir.rewrites import allowed
from engine.ir.views import IfView

_Facts = Mapping[Value, int]


def refine_integer_values(graph: Graph) -> bool:
    """Replace the values where they are known."""
    return _refine_block(graph.block, {})


def _refine_block(block: Block, facts: _Facts) -> bool:
    changed = False
    for node in block.nodes():
        changed |= _use_facts(node, facts)
        if node.kind == "prim::If":
            for inner in node.blocks:
                more = _facts_of(IfView(node).condition, inner is node.blocks[0])
                changed |= _refine_block(inner, {**facts, **more})
    return _use_facts(block.return_node, facts) or changed


def _use_facts(node: Node, facts: _Facts) -> bool:
    known = [v for v in dict.fromkeys(node.inputs) if v in facts and allowed(node, f"{facts[v]} for %{v.debug_name}")]
    for value in known:
        with node.graph.inserting_at(node):
            node.replace_input_with(value, insert_constant(node.graph, facts[value]))
    return bool(known)


def _facts_of(condition: Value, truth: bool) -> _Facts:
    """The facts that hold when the condition is (or is not) true."""
    node = condition.node
    if node.kind == ("aten::eq" if truth else "aten::ne"):
        return _equal(node)
    if node.kind == "aten::__not__":
        return _facts_of(node.inputs[0], not truth)
    return _facts_of_both(IfView(node), condition.offset, truth) if node.kind == "prim::If" else {}


def _facts_of_both(view: IfView, offset: int, truth: bool) -> _Facts:
    """`a and b` is `b if a else False`; `a or b` is `True if a else b`."""
    then, otherwise = view.then_outputs[offset], view.else_outputs[offset]
    if truth and constant_bool(otherwise) is False:
        return {**_facts_of(view.condition, True), **_facts_of(then, True)}
    if not truth and constant_bool(then) is True:
        return {**_facts_of(view.condition, False), **_facts_of(otherwise, False)}
    return {}


def _equal(node: Node) -> _Facts:
    if not is_int_arithmetic(node):
        return {}
    for value, other in (node.inputs, reversed(node.inputs)):
        number = constant_int(other)
        if number is not None and constant_int(value) is None:
            return {value: number}
    return {}
