"""Single operators as kernels, for calls from Python.

In: an operator and arguments of a call, in schema order.  Out: a `Binding` of all its arguments.

Tensors and numbers are arguments of the kernel; flags, dimensions and None are what it is made for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.fuser.binding import Argument, Binding, FixedArgument
from engine.fuser.from_graph import NotFused, is_fusible, lower
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph
from engine.lang.types import FLOAT, INT, Type


def binding_of(op: Op, args: Sequence[Any]) -> Binding:
    """A kernel of the operator for arguments like these; raises NotFused."""
    graph, examples, fixed = Graph(), [], {}
    inputs = []
    for i, (argument, value) in enumerate(zip(op.schema.arguments, args, strict=True)):
        if _is_given(argument.type, value):
            inputs.append(graph.add_input(argument.name, _type_of(value, argument.type)))
            examples.append(value)
        else:
            fixed[i] = FixedArgument(argument.name, value)
            inputs.append(insert_constant(graph, value))
    node = graph.append(op.name, inputs, [each.type for each in op.schema.returns])
    node.op = op
    if any(type(each.value) not in (int, bool, type(None)) for each in fixed.values()) or not is_fusible(node):
        raise NotFused(node, "no kernel holds this operator with such arguments")
    graph.register_output(node.output)
    found = lower(graph, examples)
    given = iter(found.arguments)
    arguments: list[Argument] = [fixed[i] if i in fixed else next(given) for i in range(len(args))]
    return replace(found, arguments=tuple(arguments))


def _is_given(type_: Type, value: Any) -> bool:
    """True for what calls give anew: tensors, floats, and ints that are operands."""
    return isinstance(value, Tensor) or type(value) is float or (type(value) is int and type_ != INT)


def _type_of(value: Any, declared: Type) -> Type:
    return {float: FLOAT, int: INT}.get(type(value), declared)
