"""The arguments of an operator that must be written, and the text of a parameter's default.

In: a node and its schema.  Out: how many arguments are left once trailing ones that equal their defaults
are dropped.
"""

from __future__ import annotations

from typing import Any

from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Node
from engine.lang.schema import Argument, FunctionSchema


def necessary_arguments(schema: FunctionSchema, node: Node) -> tuple[int, int]:
    """The number of leading arguments that must be written, and of trailing out arguments."""
    arguments = schema.arguments
    outs = 0
    while outs < len(arguments) and _is_out(arguments[-1 - outs]):
        outs += 1
    if len(arguments) < len(node.inputs):
        return len(node.inputs), outs
    index = len(arguments) - outs
    while index and index <= len(node.inputs) and _equals_default(arguments[index - 1], node, index - 1):
        index -= 1
    return index, outs


def _is_out(argument: Argument) -> bool:
    return argument.kwarg_only and argument.is_write


def _equals_default(argument: Argument, node: Node, index: int) -> bool:
    if not argument.has_default:
        return False
    value = constant_value(node.inputs[index])
    return value is not NOT_CONSTANT and _same(value, whole_default(argument))


def whole_default(argument: Argument) -> Any:
    """The default as a value of the argument's type: the `0` of an `int[2]` is `[0, 0]`."""
    default = argument.default
    if argument.broadcast and not isinstance(default, (list, tuple)) and default is not None:
        return [default] * argument.broadcast
    return default


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, (list, tuple)) and isinstance(default, (list, tuple)):
        return len(value) == len(default) and all(map(_same, value, default))
    if value is None or default is None or isinstance(value, str) or isinstance(default, str):
        return value is default or (isinstance(value, str) and value == default)
    return _kind(value) is _kind(default) and bool(value == default)


def _kind(value: Any) -> type:
    """A graph may hold a bool as 0 or 1."""
    return int if isinstance(value, bool) else type(value)
