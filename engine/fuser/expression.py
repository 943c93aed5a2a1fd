"""Scalar expressions of the operator table, typed: what a fused loop computes for one element.

In: the text of an expression, which of its names are elements of tensors and which are numbers, and the kind of
element (`f32`, `f64`, `i64`, `i32`, `i1`).  Out: a tree of typed nodes.  What `engine.aten.kernels.pointwise` makes of
several steps (`sigmoid`, `softplus`) is written out, in the same order of roundings; conversions of numbers, which
numpy does unseen, are nodes.  What has no meaning of this form raises `Unsupported`: whoever asked goes the long way.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.aten.kernels.expression import OPERATORS
from engine.aten.kernels.special import ERF_SINGLE_ABOVE, ERF_SINGLE_BELOW, ERF_SINGLE_END

FLOATS: Final = ("f32", "f64")
HALVES: Final = ("f16", "bf16")
"""Kinds that are computed in `f32`."""
WHOLE: Final = ("i64", "i32")
KINDS: Final = (*FLOATS, *WHOLE, "i1")
"""Kinds of element; numbers are `f64` among floats and `i64` among whole numbers until an element meets them."""


class Unsupported(Exception):
    """The expression does not have this form for this kind of element."""


@dataclass(frozen=True, slots=True)
class Element:
    """An element of the tensor of this name."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number that comes with each call, the same for all elements."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A number that is known."""

    value: int | float
    kind: str


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of typed operands; `convert` is the one from one kind to another."""

    function: str
    operands: tuple[Value, ...]
    kind: str


Value = Element | Number | Literal | Apply


def typed(
    text: str, tensors: Collection[str], numbers: Collection[str], kind: str, masks: Collection[str] = ()
) -> Value:
    """The expression for elements of one kind, those of masks truth values; raises Unsupported."""
    reader = _Reader(frozenset(tensors), frozenset(numbers), "f32" if kind in HALVES else kind, frozenset(masks))
    value = reader.read(ast.parse(text, mode="eval").body)
    return _rounded(_widened(value, kind), kind) if kind in HALVES else value


def _widened(value: Value, kind: str) -> Value:
    """With elements of halves, which are made wide."""
    match value:
        case Element(name, "f32"):
            return Apply("widen", (Element(name, kind),), "f32")
        case Apply(function, operands, result):
            return Apply(function, tuple(_widened(each, kind) for each in operands), result)
    return value


def _rounded(value: Value, kind: str) -> Value:
    return Apply("narrow", (value,), kind) if value.kind == "f32" else value


@dataclass(frozen=True, slots=True)
class _Plain:
    """Something made of numbers only."""

    value: Value


@dataclass(frozen=True, slots=True)
class _Reader:
    tensors: frozenset[str]
    numbers: frozenset[str]
    kind: str
    masks: frozenset[str]

    def read(self, node: ast.expr) -> Value:
        found = self._visit(node)
        if isinstance(found, _Plain):
            raise Unsupported("no tensor decides the shape")
        return found

    @property
    def number_kind(self) -> str:
        return "f64" if self.kind in FLOATS else "i64"

    def _visit(self, node: ast.expr) -> Value | _Plain:
        match node:
            case ast.Name(id=name) if name in self.masks:
                return Element(name, "i1")
            case ast.Name(id=name) if name in self.tensors:
                return Element(name, self.kind)
            case ast.Name(id=name) if name in self.numbers:
                return _Plain(Number(name, self.number_kind))
            case ast.Constant(value=int() | float() as value):
                return _Plain(Literal(value, self.number_kind))
            case ast.BinOp(left=left, op=op, right=right):
                return self._apply(OPERATORS[type(op)], [self._visit(left), self._visit(right)])
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._apply(OPERATORS[type(op)], [self._visit(left), self._visit(right)])
            case ast.UnaryOp(op=op, operand=operand):
                return self._apply(OPERATORS[type(op)], [self._visit(operand)])
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._apply(name, [self._visit(each) for each in args])
        raise Unsupported(ast.unparse(node))

    def _apply(self, name: str, operands: list[Value | _Plain]) -> Value | _Plain:
        if all(isinstance(each, _Plain) for each in operands):
            return _Plain(_of_numbers(name, [each.value for each in operands if isinstance(each, _Plain)]))
        kind = next(each.kind for each in reversed(operands) if not isinstance(each, _Plain))
        return call(name, *(_fitted(each.value, kind) if isinstance(each, _Plain) else each for each in operands))


_FOLDED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
}  # fmt: skip


def _of_numbers(name: str, operands: list[Value]) -> Value:
    """Arithmetic on numbers: what is known is computed as Python does."""
    if name not in _FOLDED or len(operands) != 2:
        raise Unsupported(f"{name} of numbers")
    a, b = operands
    if isinstance(a, Literal) and isinstance(b, Literal):
        return Literal(_FOLDED[name](a.value, b.value), a.kind)
    if name == "div" and a.kind != "f64":
        raise Unsupported("a quotient of whole numbers")
    return Apply(name, (a, b), a.kind)


def _fitted(value: Value, kind: str) -> Value:
    """A number where elements of a kind are wanted."""
    if isinstance(value, Literal):
        if kind not in FLOATS and (isinstance(value.value, float) or kind == "i1"):
            raise Unsupported(f"{value.value} among elements of kind {kind}")
        return Literal(value.value, kind)
    if kind == "i1":
        raise Unsupported("a number among truth values")
    return value if value.kind == kind else Apply("convert", (value,), kind)


# ------------------------------------------------------------------ functions of elements


def call(name: str, *operands: Value) -> Value:
    """A function of elements, written out where it is made of others; raises Unsupported."""
    if name in _COMPOSED:
        return _COMPOSED[name](*operands)
    kind = operands[-1].kind
    where = PRIMITIVES.get(name)
    if where is None or kind not in where:
        raise Unsupported(f"{name} of {kind}")
    if name == "where" and (operands[0].kind != "i1" or operands[1].kind != kind):
        raise Unsupported("where of different kinds")
    if name != "where" and any(each.kind != kind for each in operands):
        raise Unsupported(f"{name} of different kinds")
    return Apply(name, operands, "i1" if name in ANSWERS else kind)


_NUMBERS: Final = (*FLOATS, *WHOLE)
ANSWERS: Final = frozenset(
    "eq ne lt le gt ge isnan isinf isfinite logical_not logical_and logical_or logical_xor".split()
)
"""Functions whose result is a truth value."""
LIBRARY: Final = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 fmod "
    "ufunc_floor_divide".split()
)
"""Functions whose results are not the nearest floats: which ones they are, a library decides."""
PRIMITIVES: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys("add sub mul".split(), _NUMBERS),
    **dict.fromkeys("div sqrt abs floor ceil trunc round isnan isinf isfinite".split(), FLOATS),
    **dict.fromkeys(LIBRARY, FLOATS),
    **dict.fromkeys("neg maximum minimum lt le gt ge sign".split(), _NUMBERS),
    **dict.fromkeys("where eq ne logical_not logical_and logical_or logical_xor".split(), KINDS),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor".split(), (*WHOLE, "i1")),
}
"""Functions that a loop computes itself, with their kinds."""


def _known(value: float, like: Value) -> Literal:
    return Literal(value, like.kind)


def _square(x: Value) -> Value:
    return call("mul", x, x)


def _reciprocal(x: Value) -> Value:
    return call("div", _known(1, x), x)


def _relu(x: Value) -> Value:
    return call("maximum", x, _known(0, x))


def _sigmoid(x: Value) -> Value:
    e = call("exp", call("neg", x))
    return _reciprocal(call("add", e, _known(1, e)))


def _softplus(x: Value) -> Value:
    return call("add", _relu(x), _log_of_more(x))


def _log_sigmoid(x: Value) -> Value:
    return call("sub", call("minimum", x, _known(0, x)), _log_of_more(x))


def _log_of_more(x: Value) -> Value:
    return call("log1p", call("exp", call("neg", call("abs", x))))


def _floor_divide(a: Value, b: Value) -> Value:
    return call("where", call("eq", b, _known(0, b)), call("div", a, b), call("ufunc_floor_divide", a, b))


def _remainder(a: Value, b: Value) -> Value:
    rest, zero = call("fmod", a, b), _known(0, b)
    is_wrong = call("bitwise_xor", call("lt", rest, zero), call("lt", b, zero))
    return call("where", call("bitwise_and", call("ne", rest, zero), is_wrong), call("add", rest, b), rest)


def _erf(x: Value) -> Value:
    """As `engine.aten.kernels.special` has it in single precision."""
    if x.kind != "f32":
        raise Unsupported(f"erf of {x.kind}")
    end, one = _known(float(ERF_SINGLE_END), x), _known(1, x)
    inside = call("minimum", call("maximum", x, _known(-float(ERF_SINGLE_END), x)), end)
    square = call("mul", inside, inside)
    above, below = (_polynomial(each, square) for each in (ERF_SINGLE_ABOVE, ERF_SINGLE_BELOW))
    quotient = call("div", call("mul", above, inside), below)
    return call("minimum", call("maximum", quotient, _known(-1, x)), one)


def _polynomial(coefficients: Sequence[Any], x: Value) -> Value:
    total = call("mul", x, _known(float(coefficients[-1]), x))
    for coefficient in coefficients[-2:0:-1]:
        total = call("mul", call("add", total, _known(float(coefficient), x)), x)
    return call("add", total, _known(float(coefficients[0]), x))


_COMPOSED: Final[dict[str, Callable[..., Value]]] = {
    "square": _square, "reciprocal": _reciprocal, "relu": _relu, "sigmoid": _sigmoid, "softplus": _softplus,
    "log_sigmoid": _log_sigmoid, "floor_divide": _floor_divide, "remainder": _remainder,
    "erf": _erf,
}  # fmt: skip
