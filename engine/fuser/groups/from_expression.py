"""Expressions of operators in kernel IR: the element that a pointwise operator computes.

In: the text of a row of the operator table (`Op.scalar` or `Op.expression`), and for its names elements of tensors,
numbers that come with each call, or constants.  Out: an expression.  Raises `Unsupported` for what has no meaning here.

All is computed in one type, which the caller chooses by the operator's dtype rule; halves are computed in f32.  What
`engine.aten.kernels.pointwise` makes of several steps (`softplus`) is made of the same steps.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import pi
from typing import Any, Final

from engine.aten.kernels.expression import OPERATORS
from engine.aten.kernels.pointwise import POWERS
from engine.fuser.ir.kernel import (
    BOOL,
    FLOATS,
    FUNCTIONS,
    WHOLE,
    Address,
    Apply,
    Constant,
    Expression,
    Load,
    Name,
    apply,
    constant,
    convert,
)
from engine.lang.python_syntax import parse_python_expression

Operand = Expression | int | float | bool | str | None
"""An element or a number of a call; or a constant."""
_EXPRESSION: Final = (Constant, Name, Load, Apply, Address)


class Unsupported(Exception):
    """There is no kernel of this form; the message says why."""


def element(text: str, operands: Mapping[str, Operand], type: str) -> Expression:
    """The value of the expression, computed in `type`; of predicates it is a bool."""
    return _typed(Reader(operands, type).read(parsed(text)), type)


@cache
def parsed(text: str) -> ast.expr:
    return parse_python_expression(text)


def _typed(value: Operand, type: str) -> Expression:
    """A constant in the type in which it meets elements."""
    if isinstance(value, _EXPRESSION):
        return value
    if not isinstance(value, (int, float)):
        raise Unsupported(f"{value!r} is no number")
    if type in WHOLE and isinstance(value, float):
        raise Unsupported(f"{value} among whole numbers")
    return constant(value, type)


class Reader:
    """Reads the text with these operands, in one type."""

    def __init__(self, operands: Mapping[str, Operand], type: str) -> None:
        self.operands, self.type = operands, type

    def read(self, node: ast.expr) -> Operand:
        match node:
            case ast.Name(id=name):
                return self.operand(name)
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return value
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.read(body if self.read(test) else orelse)
            case ast.BinOp(left=left, op=op, right=right):
                return self.call(OPERATORS[type(op)], self.read(left), self.read(right))
            case ast.Compare(left=left, ops=[ast.Is()], comparators=[right]):
                return self.read(left) is self.read(right)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                if isinstance(found := self.read(right), str):
                    return bool(self.read(left) == found)
                return self.call(OPERATORS[type(op)], self.read(left), self.read(right))
            case ast.UnaryOp(op=op, operand=of):
                return self.call(OPERATORS[type(op)], self.read(of))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self.call(name, *map(self.read, args))
        raise Unsupported(ast.unparse(node))

    def operand(self, name: str) -> Operand:
        if name not in self.operands:
            raise Unsupported(f"{name} has no value")
        value = self.operands[name]
        return convert(value, self.type) if isinstance(value, _EXPRESSION) and value.type != BOOL else value

    def call(self, name: str, *given: Operand) -> Operand:
        if not any(isinstance(each, _EXPRESSION) for each in given):
            return folded(name, given)  # type: ignore[no-any-return]  # a constant
        if name == "where":
            return self.where(*given)
        if name in _LOGICAL:
            return _LOGICAL[name](*(_truth(each, self.type) for each in given))
        operands = [_typed(each, self.type) for each in given]
        if any(each.type == BOOL for each in operands) and not all(each.type == BOOL for each in operands):
            operands = [convert(each, self.type) for each in operands]
        try:
            return _applied(name, operands)
        except Unsupported:  # of bools are functions of the numbers that they stand for
            if operands[-1].type != BOOL:
                raise
            return _applied(name, [convert(each, "u8" if self.type == BOOL else self.type) for each in operands])

    def where(self, condition: Operand, yes: Operand, no: Operand) -> Expression:
        a, b = (_typed(each, self.type) for each in (yes, no))
        if a.type != b.type:
            a, b = convert(a, self.type), convert(b, self.type)
        return apply("select", _truth(condition, self.type), a, b)


def _applied(name: str, operands: Sequence[Expression]) -> Expression:
    if name in COMPOSED:
        return COMPOSED[name](*operands)
    return primitive(_NAMES.get(name, name), *operands)


_FOLDED: Final[dict[str, Callable[..., Any]]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
    "abs": abs,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def folded(name: str, given: tuple[Any, ...]) -> Any:
    """A function of constants."""
    if name not in _FOLDED or any(each is None for each in given):
        raise Unsupported(f"{name} of constants")
    try:
        return _FOLDED[name](*given)
    except ArithmeticError as error:
        raise Unsupported(str(error)) from error


def _truth(value: Operand, type: str) -> Expression:
    found = constant(bool(value), BOOL) if isinstance(value, bool) else _typed(value, type)
    return convert(found, BOOL)


def primitive(name: str, *operands: Expression) -> Expression:
    """A function of `kernel.FUNCTIONS`, if it is for operands of this type."""
    type = operands[-1].type
    name = _OF_TRUTH.get(name, name) if type == BOOL else _OF_WHOLE.get(name, name) if type in WHOLE else name
    row = FUNCTIONS.get(name)
    if row is None or type not in row.types or row.operands != len(operands):
        raise Unsupported(f"{name} of {type}")
    if name == "mul" and isinstance(operands[0], Constant) and operands[0].value == 1:
        return operands[1]
    if name in ("floordiv", "mod", "rest") and type in WHOLE and not _is_divisor(operands[1]):
        raise Unsupported("a divisor that may be 0 or -1")
    return apply(name, *operands)


def _is_divisor(value: Expression) -> bool:
    return isinstance(value, Constant) and value.value not in (0, -1)


_NAMES: Final = {
    "bitwise_and": "bitand", "bitwise_or": "bitor", "bitwise_xor": "bitxor", "bitwise_not": "bitnot",
    "floor_divide": "floordiv", "remainder": "mod",
}  # fmt: skip
"""Functions that kernel IR has by another name."""
_OF_TRUTH: Final = {"add": "bitor", "mul": "bitand", "maximum": "bitor", "minimum": "bitand"}
"""Arithmetic of truth values."""
_OF_WHOLE: Final = {"fmod": "rest"}
_LOGICAL: Final[dict[str, Callable[..., Expression]]] = {
    "logical_not": lambda x: apply("bitnot", x),
    "logical_and": lambda a, b: apply("bitand", a, b),
    "logical_or": lambda a, b: apply("bitor", a, b),
    "logical_xor": lambda a, b: apply("bitxor", a, b),
}


def _one(like: Expression) -> Constant:
    return constant(1, like.type)


def _zero(like: Expression) -> Constant:
    return constant(0, like.type)


def _rounded(name: str) -> Callable[[Expression], Expression]:
    """A rounding function, which leaves whole numbers as they are."""
    return lambda x: primitive(name, x) if x.type in FLOATS else x


def _log_of_more(x: Expression) -> Expression:
    return primitive("log1p", primitive("exp", primitive("neg", primitive("abs", x))))


def _sign(x: Expression) -> Expression:
    """0 for NaN."""
    positive = apply("select", primitive("gt", x, _zero(x)), _one(x), _zero(x))
    return apply("select", primitive("lt", x, _zero(x)), constant(-1, x.type), positive)


def _angle(x: Expression) -> Expression:
    """Of a number on the real line; NaN of NaN."""
    found = apply("select", primitive("lt", x, _zero(x)), constant(pi, x.type), _zero(x))
    return apply("select", primitive("ne", x, x), x, found)


def _is_infinite(x: Expression) -> Expression:
    return primitive("eq", primitive("abs", x), constant(float("inf"), x.type)) if x.type in FLOATS else _never(x)


def _never(x: Expression) -> Expression:
    return constant(False, BOOL)


def _is_finite(x: Expression) -> Expression:
    if x.type not in FLOATS:
        return constant(True, BOOL)
    return primitive("lt", primitive("abs", x), constant(float("inf"), x.type))


def _root(x: Expression) -> Expression:
    lowest = constant(float("-inf"), x.type)
    found = primitive("abs", primitive("sqrt", x))
    return apply("select", primitive("eq", x, lowest), constant(float("inf"), x.type), found)


def _power(x: Expression, exponent: Expression) -> Expression:
    wanted = float(exponent.value) if isinstance(exponent, Constant) else None
    names = POWERS.get(wanted) if wanted is not None and (x.type in FLOATS or wanted in _PRODUCTS) else None
    if names is None:
        return primitive("pow", x, exponent)
    for name in names:
        x = COMPOSED[name](x)
    return x


_PRODUCTS: Final = (2.0, 3.0)
"""Exponents whose powers are products, of whole numbers, too."""
COMPOSED: Final[dict[str, Callable[..., Expression]]] = {
    "square": lambda x: primitive("mul", x, x),
    "cube": lambda x: primitive("mul", primitive("mul", x, x), x),
    "root": _root,
    "reciprocal": lambda x: primitive("div", _one(x), x),
    "relu": lambda x: primitive("maximum", x, _zero(x)),
    "softplus": lambda x: primitive("add", primitive("maximum", x, _zero(x)), _log_of_more(x)),
    "log_sigmoid": lambda x: primitive("sub", primitive("minimum", x, _zero(x)), _log_of_more(x)),
    "sign": _sign,
    "sgn": _sign,
    "angle": _angle,
    "conj": lambda x: x,
    "isnan": lambda x: primitive("ne", x, x) if x.type in FLOATS else _never(x),
    "isinf": _is_infinite,
    "isfinite": _is_finite,
    "pow": _power,
    **{name: _rounded(name) for name in ("floor", "ceil", "trunc", "round")},
}
"""Functions that are made of others."""
