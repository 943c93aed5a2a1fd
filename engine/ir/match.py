"""Small questions that passes ask of values.

In: a value or node.  Out: what is known of it without running anything.
"""

from __future__ import annotations

from typing import Any

from engine.ir.constants import constant_value
from engine.ir.graph import Graph, Node, Value
from engine.ir.ops import op_of
from engine.ir.unit import Function
from engine.lang.types import (
    ANY,
    INT,
    NONE,
    ClassType,
    FunctionType,
    OptionalType,
    Type,
    UnionType,
    VarType,
    members_of,
)


def constant_int(value: Value) -> int | None:
    """The int that the value always is, or None."""
    found = constant_value(value)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def constant_bool(value: Value) -> bool | None:
    """The bool that the value always is, or None."""
    found = constant_value(value)
    return found if isinstance(found, bool) else None


def must_be_none(value: Value) -> bool:
    """True if the value is always None."""
    return value.type == NONE or constant_value(value) is None


def may_be_none(type: Type) -> bool:
    return isinstance(type, VarType) or type == ANY or NONE in members_of(type)


def cannot_be_none(value: Value) -> bool:
    return not may_be_none(value.type) and not isinstance(value.type, (OptionalType, UnionType))


def is_int_arithmetic(node: Node) -> bool:
    """True if the node takes two ints."""
    return len(node.inputs) == 2 and all(value.type == INT for value in node.inputs)


def asks_only(node: Node, *looked_at: str) -> bool:
    """True if the node is an operator whose arguments, but for those that are looked at, are what they are by default.

    Rules that match operators by name ask it for the arguments that they understand: a form that also writes to `out`,
    has a dtype of its own or another argument that only later versions know is then none of theirs.
    """
    op = op_of(node)
    if op is None or op.schema.is_vararg:
        return False
    pairs = zip(op.schema.arguments, node.inputs, strict=True)
    return all(a.name in looked_at or (a.has_default and _is(value, a.default)) for a, value in pairs)


def _is(value: Value, wanted: Any) -> bool:
    found = constant_value(value)
    return type(found) is type(wanted) and found == wanted


def callee_of(node: Node) -> Function | None:
    """The function that the node calls; None for other nodes, and where only the run tells."""
    if node.kind == "prim::CallFunction":
        type = node.inputs[0].type
        found = type.function if isinstance(type, FunctionType) else None
    elif node.kind == "prim::CallMethod" and isinstance(node.inputs[0].type, ClassType):
        found = node.inputs[0].type.methods.get(node.attr("name"))
    else:
        return None
    return found if isinstance(found, Function) else None


def callees_in(graph: Graph) -> list[Function]:
    """The functions that nodes of the graph call, each once; what they call is not looked into."""
    return [*dict.fromkeys(filter(None, map(callee_of, graph.all_nodes())))]
