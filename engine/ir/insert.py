"""Inserting operators by name, as one writes a call.

In: a graph, an operator's name, values or Python constants.  Out: the node's output, at the graph's insert
point.  Constants become nodes before it; arguments left out get their defaults, also as constants.
"""

from __future__ import annotations

from typing import Any

from engine.aten.dispatch.table import overloads
from engine.ir.constants import insert_constant, type_of
from engine.ir.graph import Graph, Node, Value
from engine.ir.ops import accepts
from engine.lang.schema import FunctionSchema
from engine.lang.types import ListType, Type, VarType


def insert_op(graph: Graph, name: str, *arguments: Any, type: Type | None = None) -> Value:
    """The output of `name(*arguments)`, the first overload that fits; of that type if given."""
    values = [a if isinstance(a, Value) else insert_constant(graph, a) for a in arguments]
    for op in overloads(name):
        wanted = op.schema.arguments
        if len(values) > len(wanted) or not all(argument.has_default for argument in wanted[len(values) :]):
            continue
        node = graph.create(name, values)
        if accepts(_shortened(op.schema, len(values)), node):
            return _finished(graph, node, op.schema, type)
        node.destroy()
    raise AssertionError(f"no overload of {name} fits {', '.join(str(value.type) for value in values)}")


def _shortened(schema: FunctionSchema, count: int) -> FunctionSchema:
    """The schema as a call with `count` arguments sees it."""
    return FunctionSchema(schema.name, schema.overload, schema.arguments[:count], schema.returns)


def _finished(graph: Graph, node: Node, schema: FunctionSchema, type: Type | None) -> Value:
    for argument in schema.arguments[len(node.inputs) :]:
        default = None if argument.default is None else type_of(argument.default)
        node.add_input(insert_constant(graph, argument.default, default))
    graph.insert_node(node)
    return node.output.set_type(type or _result_type(schema.returns[0].type, node))


def _result_type(declared: Type, node: Node) -> Type:
    """The declared type; a type variable is what the first input's elements are."""
    if not isinstance(declared, VarType):
        return declared
    first = node.inputs[0].type
    return first.element if isinstance(first, ListType) else first
