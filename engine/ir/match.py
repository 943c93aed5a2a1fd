"""Small questions that passes ask of values.

In: a value or node.  Out: what is known of it without running anything.
"""

from __future__ import annotations

from engine.ir.constants import constant_value
from engine.ir.graph import Node, Value
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
