"""Operators on numbers as expressions of kernels: one row each.

In: an operator's qualified name.  Out: a `Rule`: the expression of its result over those of its inputs, written with a
`ScalarWriter`.  Rules give what the operator's own body gives, bit by bit but for the sign of NaN; functions of floats
are the C library's, as they are in Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from engine.aten.values.arithmetic import LOW
from engine.fuser.ir.kernel import Apply, Constant, Expression, apply, convert, index
from engine.fuser.scalars.scalar_writer import Operand, ScalarWriter, as_float, either
from engine.ir.graph import Node

Rule = Callable[[ScalarWriter, Node, list[Expression]], Operand]

_LARGE: Final = 2**62
"""From here on the rest of a division is what C's overflow makes of it, and the operator itself is asked."""


def _apply(function: str) -> Rule:
    return lambda w, _, v: apply(function, *v)


def _of_floats(function: str) -> Rule:
    return lambda w, _, v: apply(function, *map(as_float, v))


def _converted(type: str) -> Rule:
    return lambda w, _, v: convert(v[0], type)


def _same(w: ScalarWriter, _: Node, v: list[Expression]) -> Expression:
    return v[0]


# ------------------------------------------------------------------ whole numbers


def _is(value: Expression, number: int) -> Expression:
    """The condition that a whole number is this one."""
    if isinstance(value, Constant):
        return Constant(value.value == number, "bool")
    return apply("eq", value, index(number))


def _exponent_of_two(value: Expression) -> int | None:
    if not isinstance(value, Constant) or value.value <= 0 or int(value.value) & (int(value.value) - 1):
        return None
    return int(value.value).bit_length() - 1


def _quotient_and_rest(w: ScalarWriter, a: Expression, b: Expression) -> tuple[Expression, Expression]:
    """Of a division that rounds down, by what is not zero."""
    shift = _exponent_of_two(b)
    if shift is not None:
        return apply("shift_right", a, index(shift)), apply("bitand", a, index(2**shift - 1))
    negates = _is(b, -1)
    if isinstance(negates, Constant):
        return (apply("neg", a), index(0)) if negates.value else _rounded_down(w, a, b)
    quotient, rest = _rounded_down(w, a, w.choose(negates, index(1), b))  # the least number divided by -1 would trap
    return apply("select", negates, apply("neg", a), quotient), rest


def _rounded_down(w: ScalarWriter, a: Expression, b: Expression) -> tuple[Expression, Expression]:
    rest = w.let(apply("rest", a, b))
    w.cost += 8
    signs_differ = apply("lt", apply("bitxor", rest, b), index(0))
    is_above = w.let(apply("bitand", apply("ne", rest, index(0)), signs_differ))
    quotient = apply("sub", apply("quotient", a, b), convert(is_above, "i64"))
    return quotient, apply("select", is_above, apply("add", rest, b), rest)


def _floordiv(w: ScalarWriter, node: Node, v: list[Expression]) -> Expression:
    w.fail_if(_is(v[1], 0), node)
    return _quotient_and_rest(w, *v)[0]


def _remainder(w: ScalarWriter, node: Node, v: list[Expression]) -> Expression:
    b = v[1]
    if isinstance(b, Constant):
        w.fail_if(Constant(not 0 < abs(b.value) < _LARGE, "bool"), node)
    else:
        w.fail_if(either(_is(b, 0), apply("le", b, index(-_LARGE)), apply("ge", b, index(_LARGE))), node)
    return _quotient_and_rest(w, *v)[1]


def _divmod(w: ScalarWriter, node: Node, v: list[Expression]) -> Operand:
    w.fail_if(_is(v[1], 0), node)
    quotient, rest = _quotient_and_rest(w, *v)
    return w.let(quotient), w.let(rest)


def _truncdiv(w: ScalarWriter, node: Node, v: list[Expression]) -> Expression:
    a, b = v
    w.fail_if(_is(b, 0), node)
    negates = apply("eq", b, index(-1))
    return apply("select", negates, apply("neg", a), apply("quotient", a, w.choose(negates, index(1), b)))


def _abs(w: ScalarWriter, _: Node, v: list[Expression]) -> Expression:
    return apply("select", apply("lt", v[0], index(0)), apply("neg", v[0]), v[0])


def _shift(function: str) -> Rule:
    return lambda w, _, v: apply(function, v[0], apply("bitand", v[1], index(63)))


def _range_length(w: ScalarWriter, node: Node, v: list[Expression]) -> Expression:
    low, high, step = v
    if step == index(1):
        return apply("select", apply("lt", low, high), apply("sub", high, low), index(0))
    w.fail_if(either(_is(step, 0), _is(step, LOW)), node)
    rises = w.let(apply("gt", step, index(0)))
    begin, end = w.choose(rises, low, high), w.choose(rises, high, low)
    some = w.let(apply("lt", begin, end))
    span = w.let(apply("sub", apply("sub", end, begin), index(1)))
    w.fail_if(apply("bitand", some, apply("lt", span, index(0))), node)  # longer than 63 bits tell
    stride = w.choose(rises, step, apply("neg", step))
    steps = apply("add", apply("quotient", span, w.choose(_is(step, 0), index(1), stride)), index(1))
    return apply("select", some, steps, index(0))


def _derive_index(w: ScalarWriter, _: Node, v: list[Expression]) -> Expression:
    place, start, step = v
    return apply("add", start, place if step == index(1) else apply("mul", place, step))


def _least(comparison: str) -> Rule:
    return lambda w, _, v: apply("select", apply(comparison, v[0], v[1]), v[0], v[1])


def _least_float(comparison: str) -> Rule:
    return lambda w, node, v: _least(comparison)(w, node, [*map(as_float, v)])


# ------------------------------------------------------------------ floats


def _fits(value: Expression) -> Expression:
    """The condition that the whole part of a float is an i64."""
    limit = 2.0**63
    return apply("bitand", apply("ge", value, Constant(-limit, "f64")), apply("lt", value, Constant(limit, "f64")))


def _int_of_float(w: ScalarWriter, _: Node, v: list[Expression]) -> Expression:
    return apply("select", _fits(v[0]), convert(v[0], "i64"), index(LOW))


def _rounded_to_int(function: str) -> Rule:
    def rule(w: ScalarWriter, node: Node, v: list[Expression]) -> Expression:
        w.fail_if(apply("bitnot", _fits(v[0])), node)
        return convert(apply(function, v[0]), "i64")

    return rule


def _floordiv_float(w: ScalarWriter, _: Node, v: list[Expression]) -> Expression:
    return apply("floor", apply("div", *map(as_float, v)))


def _fmod(w: ScalarWriter, a: Expression, b: Expression) -> Expression:
    return w.call("fmod", (a, b), "f64")


def _remainder_float(w: ScalarWriter, _: Node, v: list[Expression]) -> Expression:
    a, b = map(as_float, v)
    return _fmod(w, apply("add", b, _fmod(w, a, b)), b)


def _pow(w: ScalarWriter, node: Node, v: list[Expression]) -> Expression:
    a, b = map(as_float, v)
    zero = Constant(0.0, "f64")
    w.fail_if(apply("bitand", apply("eq", a, zero), apply("lt", b, zero)), node)
    return w.call("pow", (a, b), "f64")


def _pow_int(w: ScalarWriter, node: Node, v: list[Expression]) -> Expression:
    return _int_of_float(w, node, [_pow(w, node, v)])


def _library(function: str) -> Rule:
    return lambda w, _, v: w.call(function, [*map(as_float, v)], "f64")


def _log(name: str) -> Rule:
    """A logarithm, whose NaN has no sign."""
    return lambda w, _, v: _logarithm(w, name, v[0])


def _logarithm(w: ScalarWriter, name: str, value: Expression) -> Expression:
    found = w.call(name, (as_float(value),), "f64")
    return w.choose(apply("ne", found, found), Constant(math.nan, "f64"), found)


def _log_base(w: ScalarWriter, _: Node, v: list[Expression]) -> Expression:
    return apply("div", _logarithm(w, "log", v[0]), _logarithm(w, "log", v[1]))


def _scaled(factor: float) -> Rule:
    return lambda w, _, v: apply("mul", as_float(v[0]), Constant(factor, "f64"))


def _is_finite(value: Expression) -> Expression:
    return apply("lt", apply("abs", value), Constant(math.inf, "f64"))


# ------------------------------------------------------------------ the table

_PAIRS: Final = ("int_float", "float_int")
_COMPARISONS: Final = ("eq", "ne", "lt", "le", "gt", "ge")
_LIBRARY: Final = "exp expm1 log1p sin cos tan atan sinh cosh tanh asinh acosh atanh".split()
_UNSIGNED: Final = ("log", "log10", "asin", "acos")


def _rows() -> dict[str, Rule]:
    rows: dict[str, Rule] = {
        "aten::neg.int": _apply("neg"), "aten::neg.float": _apply("neg"),
        "prim::abs.int": _abs, "prim::abs.float": _apply("abs"),
        "aten::floordiv.int": _floordiv, "aten::remainder.int": _remainder, "aten::divmod.int": _divmod,
        "aten::__round_to_zero_floordiv.int": _truncdiv,
        "aten::__lshift__.int": _shift("shift_left"), "aten::__rshift__.int": _shift("shift_right"),
        "aten::gcd.int": lambda w, _, v: w.help("gcd", *v, cost=100),
        "aten::__range_length": _range_length, "aten::__derive_index": _derive_index,
        "aten::__not__": lambda w, _, v: apply("bitnot", v[0]),
        "aten::Float.int": _converted("f64"), "aten::Float.bool": _converted("f64"),
        "aten::Float.Scalar": _converted("f64"),
        "aten::Int.bool": _converted("i64"), "aten::Int.float": _int_of_float,
        "aten::Bool.int": lambda w, _, v: apply("ne", v[0], index(0)),
        "aten::Bool.float": lambda w, _, v: apply("ne", v[0], Constant(0.0, "f64")),
        "aten::ceil.int": _same, "aten::floor.int": _same,
        "aten::ceil.float": _rounded_to_int("ceil"), "aten::floor.float": _rounded_to_int("floor"),
        "aten::pow.int_to_int": _pow_int,
        "aten::isnan.float": lambda w, _, v: apply("ne", v[0], v[0]),
        "aten::isinf.float": lambda w, _, v: apply("eq", apply("abs", v[0]), Constant(math.inf, "f64")),
        "aten::isfinite.float": lambda w, _, v: _is_finite(v[0]),
        "prim::unchecked_cast": _same,
    }  # fmt: skip
    for name in ("add", "sub", "mul"):
        rows[f"aten::{name}.int"] = _apply(name)
    for overload in ("float", *_PAIRS):
        for name in ("add", "sub", "mul"):
            rows[f"aten::{name}.{overload}"] = _of_floats(name)
        rows[f"aten::floordiv.{overload}"] = _floordiv_float
        rows[f"aten::remainder.{overload}"] = _remainder_float
    for overload in ("int", "float", *_PAIRS):
        rows[f"aten::pow.{overload}"] = _pow
        rows[f"aten::fmod.{overload}"] = _library("fmod")
        rows[f"aten::mathremainder.{overload}"] = _library("remainder")
        rows[f"aten::copysign.{overload}"] = _of_floats("copysign")
        rows[f"aten::atan2.{overload}"] = _library("atan2")
    for overload in ("int_int", "float_float", *_PAIRS):
        rows[f"aten::log.{overload}"] = _log_base
    for kind in ("int", "float"):
        rows[f"aten::div.{kind}"] = _of_floats("div")
        rows.update({f"aten::{name}.{kind}": _library(name) for name in _LIBRARY})
        rows.update({f"aten::{name}.{kind}": _log(name) for name in _UNSIGNED})
        rows[f"aten::sqrt.{kind}"], rows[f"aten::fabs.{kind}"] = _of_floats("sqrt"), _of_floats("abs")
        rows[f"aten::round.{kind}"] = _of_floats("round")
        rows[f"aten::degrees.{kind}"], rows[f"aten::radians.{kind}"] = (
            _scaled(180.0 / math.pi),
            _scaled(math.pi / 180.0),
        )
    for name in _COMPARISONS:
        rows.update({f"aten::{name}.{kind}": _apply(name) for kind in ("int", "float")})
        rows.update({f"aten::{name}.{kind}": _of_floats(name) for kind in _PAIRS})
    for name, comparison in (("min", "lt"), ("max", "gt")):
        rows.update({f"prim::{name}.{kind}": _least(comparison) for kind in ("int", "float")})
        rows.update({f"prim::{name}.{kind}": _least_float(comparison) for kind in _PAIRS})
    for kind in ("int", "bool"):
        for name, function in (("__and__", "bitand"), ("__or__", "bitor"), ("__xor__", "bitxor")):
            rows[f"aten::{name}.{kind}"] = _apply(function)
    rows["aten::eq.bool"], rows["aten::ne.bool"] = _apply("eq"), _apply("ne")
    return rows


RULES: Final[dict[str, Rule]] = _rows()
SLOW: Final = ("div", "quotient", "rest", "sqrt")
"""Functions of kernels that take several nanoseconds."""


def cost_of(value: Expression) -> int:
    """The estimated nanoseconds of an expression, whose parts count as well."""
    if not isinstance(value, Apply):
        return 0
    return (8 if value.function in SLOW else 1) + sum(map(cost_of, value.operands))
