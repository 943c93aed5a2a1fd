"""Conditions of `while` loops, in terms of the values that the loop carries.

In: a `prim::Loop`.  Out: the two nodes that test it, where one text does for both.

Note [Loop conditions]
A `while` tests its condition before the loop and at the end of each iteration, two nodes of one operator.  Where they
say the same of what is carried, they become the one condition of Python's loop.
"""

from __future__ import annotations

from typing import Final

from engine.executor.bytecode.operations import CALLEES, OPERATIONS, op_of
from engine.executor.codegen.templates import ROWS
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Node, Value
from engine.lang.types import BOOL, FLOAT, INT, NONE, STR

ATOMS: Final = (INT, FLOAT, BOOL, NONE, STR)
"""Types whose values never change and hold no memory to speak of."""


def condition_of(loop: Node) -> tuple[Node, Node] | None:
    """The two nodes that give the loop's condition, if one text does for both.  See Note [Loop conditions]."""
    (body,) = loop.blocks
    first, again = loop.inputs[1].node, body.outputs[0].node
    if first.kind != again.kind or first.kind == "prim::Constant" or again.block is not body:
        return None
    if first.block is not loop.block or len(first.inputs) != len(again.inputs):
        return None
    if first.kind in OPERATIONS or any(len(n.outputs) != 1 or len(n.output.uses) != 1 for n in (first, again)):
        return None
    row = ROWS.get(qualified_name(first))
    if row is None or not row.is_plain or qualified_name(first) != qualified_name(again):
        return None
    pairs = list(zip(first.inputs, again.inputs, strict=True))
    return (first, again) if all(_corresponds(loop, a, b) for a, b in pairs) else None


def _corresponds(loop: Node, first: Value, again: Value) -> bool:
    """True if both are one value from before the loop, or the initial and the carried value of the loop."""
    if first.type not in ATOMS or again.type not in ATOMS:
        return False
    if first is again or carried_place(loop, first, again) is not None:
        return True
    one, other = constant_value(first), constant_value(again)
    return one is not NOT_CONSTANT and type(one) is type(other) and one == other


def carried_place(loop: Node, first: Value, again: Value) -> int | None:
    """The index of the body's input that is `first` initially and `again` after each iteration, or None."""
    if first is again:
        return None
    (body,) = loop.blocks
    pairs = enumerate(zip(loop.inputs[2:], body.outputs[1:], strict=True), 1)
    return next((place for place, (initial, given) in pairs if initial is first and given is again), None)


def qualified_name(node: Node) -> str:
    """The qualified name of the node's operator; empty if it has none."""
    if node.kind in CALLEES or node.kind in ("prim::If", "prim::Loop"):
        return ""
    op = op_of(node)
    return "" if op is None else op.qualified_name
