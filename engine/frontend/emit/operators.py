"""Operators: `a + b`, `-a`, `~a`, `a in b`, `a if c else b`.

In: operator trees.  Out: calls of the `aten::` operators, or of the methods that a class defines for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from engine.aten.dispatch.op import Op
from engine.frontend.emit.arguments import actuals_of, values_of
from engine.frontend.emit.conditions import condition, if_value
from engine.frontend.emit.emitter import Emitter
from engine.frontend.matching.convert import unpack_tuple
from engine.frontend.matching.schema_match import Actual
from engine.frontend.names.globals import Magic
from engine.frontend.sugared.sugared_value import SugaredValue
from engine.frontend.sugared.values import BuiltinFunction, SimpleValue
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import TernaryIf
from engine.ir.constants import constant_inputs
from engine.ir.graph import Value
from engine.lang.errors import OperatorError
from engine.lang.types import STR, ClassType, TupleType, Type

BINARY: Final = {
    "+": ("aten::add", "__add__"), "-": ("aten::sub", "__sub__"), "*": ("aten::mul", "__mul__"),
    "/": ("aten::div", "__truediv__"), "%": ("aten::remainder", "__mod__"), "//": ("aten::floordiv", "__floordiv__"),
    "**": ("aten::pow", "__pow__"), "@": ("aten::matmul", "__matmul__"), "&": ("aten::__and__", "__and__"),
    "|": ("aten::__or__", "__or__"), "^": ("aten::__xor__", "__xor__"), "<<": ("aten::__lshift__", "__lshift__"),
    ">>": ("aten::__rshift__", "__rshift__"), "==": ("aten::eq", "__eq__"), "!=": ("aten::ne", "__ne__"),
    "<": ("aten::lt", "__lt__"), "<=": ("aten::le", "__le__"), ">": ("aten::gt", "__gt__"),
    ">=": ("aten::ge", "__ge__"), "in": ("aten::__contains__", "__contains__"),
}  # fmt: skip
UNARY: Final = {"unary_minus": ("aten::neg", "__neg__"), "~": ("aten::bitwise_not", "__invert__")}


def binary(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    """`a <op> b`; `a in b` is a method of `b`."""
    operator, method = BINARY[tree.kind]
    operands = actuals_of(e, tree.trees, unpack=False)
    if tree.kind == "in":
        operands.reverse()
    if tree.kind == "+" and all(isinstance(operand.value.type, TupleType) for operand in operands):
        return SimpleValue(e.tuple([part for operand in operands for part in unpack_tuple(e.graph, operand.value)]))
    if tree.kind == "!=" and _inverts(operands[0].value.type):
        same = call_operator(e, "aten::eq", "__eq__", operands, tree).as_value(e, tree.range)
        return SimpleValue(e.insert("aten::__not__", [same], tree.range))
    return call_operator(e, operator, method, operands, tree)


def _inverts(type: Type) -> bool:
    """True for a class without `__ne__` of its own, which Python then takes to be the opposite of `__eq__`."""
    return isinstance(type, ClassType) and "__ne__" not in type.methods and "__eq__" in type.methods


def remainder(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    """`a % b`, which formats when `a` is a string."""
    if e.expression(tree.trees[0]).type is not STR:
        return binary(e, tree, hint)
    return SimpleValue(e.value("aten::percentFormat", values_of(e, tree.trees), STR, tree.range))


def unary(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    """`-a` and `~a`, folded if `a` is a constant."""
    operator, method = UNARY[tree.kind]
    value = call_operator(e, operator, method, actuals_of(e, tree.trees, unpack=False), tree).as_value(e, tree.range)
    return SimpleValue(folded(e, value, operator))


def ternary(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    """`a if c else b`; of a condition known while compiling only the branch that is taken."""
    view = TernaryIf(tree)
    test = condition(e, view.condition)
    if test.static is not None:
        return SimpleValue(e.expression(view.true_value if test.static else view.false_value, hint))
    branches: Sequence[Callable[[], Value]] = (
        lambda: e.expression(view.true_value, hint),
        lambda: e.expression(view.false_value, hint),
    )
    return SimpleValue(if_value(e, tree.range, test, *branches))


def call_operator(e: Emitter, operator: str, method: str, operands: list[Actual], tree: Tree) -> SugaredValue:
    """Call an operator, or the method of a class that stands for it."""
    return Magic(method, BuiltinFunction(operator)).call(e, operands, (), tree.range)


def folded(e: Emitter, value: Value, operator: str) -> Value:
    """The value as a constant, where the node that makes it is that operator applied to constants."""
    node = value.node
    inputs = constant_inputs(node) if node.kind == operator else None
    entry = node.op
    if inputs is None or not isinstance(entry, Op):
        return value
    try:
        return e.constant(entry.run(*inputs), node.range)
    except (OperatorError, ArithmeticError):
        return value
