"""Pointwise operators on floats, written out as calls of numpy's functions.

In: a node whose operands are arrays of one dtype of floats, or numbers.  Out: an expression over arrays.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.unboxed import kind_of
from engine.aten.kernels.expression import array_tree
from engine.aten.kernels.pointwise import FLOAT_FORMS, FUNCTIONS, OF_FLOATS
from engine.aten.values import xp
from engine.ir.constants import constant_value
from engine.ir.graph import Node, Value
from engine.lang.python_syntax import parse_python_expression
from engine.lang.schema import Argument
from engine.lang.types import TensorType

Name = Callable[[str, Any], str]
"""Binds an object in the environment of the generated code; the first argument says what it is."""
Operand = Callable[[Value], str]

_FUNCTIONS: Final = {**FUNCTIONS, **OF_FLOATS}


def has_pointwise_expression(op: Op) -> bool:
    """True for a pointwise operator whose expression holds unchanged for arrays of one floating dtype."""
    return (
        op.scalar is not None
        and ":" not in str(op.dtype)
        and isinstance(op.schema.arguments[0].type, TensorType)
        and all(kind_of(a.type) in ("tensor", "") for a in op.schema.arguments)
    )


def pointwise_expression(op: Op, node: Node, dtype: xp.NumpyDtype, array: Operand, value: Operand, name: Name) -> str:
    assert op.scalar is not None
    known: dict[str, Any] = {}
    texts: dict[str, str] = {}
    arrays: list[str] = []
    for argument, v in zip(op.schema.arguments, node.inputs, strict=True):
        constant = constant_value(v)
        if isinstance(v.type, TensorType):
            arrays.append(argument.name)
            texts[argument.name] = array(v)
        elif type(constant) in (int, float) and constant == constant and abs(constant) != np.inf:
            known[argument.name] = 1 if _is_unit(argument, constant) else constant
        else:
            texts[argument.name] = value(v)
    return ast.unparse(_Numpy(dtype, texts, name).visit(array_tree(op.scalar, arrays, known)))


def _is_unit(argument: Argument, constant: float) -> bool:
    return argument.kwarg_only and argument.default == 1 and constant == 1


class _Numpy(ast.NodeTransformer):
    """Puts numpy's functions, the operands and constant arrays into an expression."""

    def __init__(self, dtype: xp.NumpyDtype, texts: dict[str, str], name: Name) -> None:
        self.dtype, self.texts, self.name = dtype, texts, name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        text = self.texts.get(node.id, node.id)
        return ast.Name(text, ast.Load()) if text.isidentifier() else parse_python_expression(text)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        assert isinstance(node.func, ast.Name)
        arguments: list[Any] = [self.visit(argument) for argument in node.args]
        form = FLOAT_FORMS.get(node.func.id)
        if form is None:
            return self._call(_FUNCTIONS[node.func.id], arguments)
        expanded: ast.AST = self._expand(_parsed_form(form), dict(zip("xy", arguments, strict=False)))
        return expanded

    def _expand(self, form: Any, arguments: dict[str, Any]) -> Any:
        if isinstance(form, ast.Name):
            return arguments[form.id]
        if isinstance(form, ast.Constant):
            return form
        return self._call(getattr(np, form.func.id), [self._expand(part, arguments) for part in form.args])

    def _call(self, function: Any, arguments: list[Any]) -> ast.Call:
        if isinstance(function, np.ufunc):
            arguments = [self._constant(each) if _is_number(each) else each for each in arguments]
        bound = self.name(getattr(function, "__name__", "function"), function)
        return ast.Call(ast.Name(bound, ast.Load()), arguments, [])

    def _constant(self, number: Any) -> ast.AST:
        """The number as an array of the dtype, which numpy takes without a detour, if that is just the same."""
        value = ast.literal_eval(number)
        with np.errstate(over="ignore"):
            held = np.array(value, self.dtype)
        exact = type(value) is float or held.item() == value
        constant: ast.AST = ast.Name(self.name("constant", held), ast.Load()) if exact else number
        return constant


_parsed_form: Final = cache(parse_python_expression)
"""Trees that nobody changes: `_expand` builds others of them."""


def _is_number(node: Any) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)
