"""Which nodes of a plan's graph are differentiated together.

In: a node of a plan whose operators may be recorded.  Out: True where its gradient is a formula that compiles; else the
reason why it stays outside.
"""

from __future__ import annotations

from collections.abc import Callable
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
    return not why_outside(node)


def why_outside(node: Node) -> str:
    """The reason why the node can be part of no differentiable graph; empty if it can."""
    if not all(_may_be_given(value.type) or is_differentiable(value.node) for value in node.inputs):
        return "it takes what no graph of tensors and numbers can be given"
    if node.kind in _LISTS:
        return "" if all(_is_simple(value.type) for value in (*node.inputs, *node.outputs)) else _HOLDS_OTHERS
    op = op_of(node)
    if op is None:
        return "it is no operator"
    found = next((why for is_so, why in _OUTSIDE if is_so(op)), "")
    if found or op.name in OF_FORMS:
        return found or ("" if all(_is_simple(value.type) for value in node.inputs) else _HOLDS_OTHERS)
    return _why_no_formulas(op) or ("" if may_require_grad(node) else "nothing that it takes requires grad")


_HOLDS_OTHERS: Final = "it holds other things than tensors and numbers"
_OUTSIDE: Final[tuple[tuple[Callable[[Op], bool], str], ...]] = (
    (lambda op: op.is_mutable, "it writes to memory"),
    (lambda op: op.nondeterministic, "it is random"),
    (lambda op: op.data_dependent, "what it gives depends on elements"),
    (lambda op: op.side_effects, "it does more than to give a result"),
)


def _why_no_formulas(op: Op) -> str:
    if op.dtype == "bool":
        return ""
    if op.composite is not None and not (op.gradient or op.recorded_as):
        return ""
    op = owner_of_formulas(op)
    if not op.gradient:
        return "there is no formula for its gradient"
    compile = all(formula_graph(op, place) is not None for place in differentiable_arguments(op))
    return "" if compile else "the formula for its gradient is no TorchScript"


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
