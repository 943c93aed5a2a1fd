"""Which nodes of a plan's graph are differentiated together.

In: a node of a plan whose operators may be recorded.  Out: True where its gradient is a formula that compiles.
"""

from __future__ import annotations

from typing import Final

from engine.aten.dispatch.op import Op
from engine.executor.autodiff.formulas import differentiable_arguments, formula_graph, owner_of_formulas
from engine.executor.autodiff.specialising import OF_FORMS
from engine.ir.constants import constant_value
from engine.ir.graph import Node
from engine.ir.ops import op_of
from engine.lang.types import BOOL, DEVICE, FLOAT, INT, NONE, NUMBER, STR, ListType, OptionalType, TensorType, Type

_PLAIN: Final = (BOOL, DEVICE, FLOAT, INT, NONE, NUMBER, STR)
_LISTS: Final = ("prim::ListConstruct", "prim::ListUnpack")


def is_differentiable(node: Node) -> bool:
    """True if the node may be part of a differentiable graph."""
    if not all(_may_be_given(value.type) or is_differentiable(value.node) for value in node.inputs):
        return False
    if node.kind in _LISTS:
        return all(_is_simple(value.type) for value in (*node.inputs, *node.outputs))
    op = op_of(node)
    if op is None or op.side_effects or op.nondeterministic or op.data_dependent or op.schema.is_mutable:
        return False
    if op.name in OF_FORMS:
        return all(_is_simple(value.type) for value in node.inputs)
    return _has_formulas(op) and may_require_grad(node)


def _has_formulas(op: Op) -> bool:
    if op.dtype == "bool" or op.unfolds:
        return True
    op = owner_of_formulas(op)
    return bool(op.gradient) and all(formula_graph(op, place) is not None for place in differentiable_arguments(op))


def may_require_grad(node: Node) -> bool:
    """False if no tensor that the node takes requires grad."""
    types = [value.type for value in node.inputs if constant_value(value) is not None]
    return any(not isinstance(type, TensorType) or type.requires_grad is not False for type in types if _holds(type))


def _holds(type: Type) -> bool:
    return isinstance(type, TensorType) or any(map(_holds, type.contained()))


def _may_be_given(type: Type) -> bool:
    """True if a group may take such a value from outside."""
    if isinstance(type, OptionalType):
        return _may_be_given(type.element)
    return isinstance(type, TensorType) or type in _PLAIN or (isinstance(type, ListType) and type.element in _PLAIN)


def _is_simple(type: Type) -> bool:
    return _may_be_given(type) or (isinstance(type, ListType) and _may_be_given(type.element))
