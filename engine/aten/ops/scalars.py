"""Operators on numbers and bools: arithmetic, mathematics, comparison.

In: Python values.  Out: Python values.  Rows say which overloads share which body; the order of overloads is the
order in which a call tries them.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from engine.aten.dispatch.table import op
from engine.aten.formatting.hashing import hash_value
from engine.aten.kernels import rules
from engine.aten.values import arithmetic as a
from engine.lang.errors import OperatorError

Body = Callable[..., Any]

# ------------------------------------------------------------------ two numbers

_COMPLEX_PAIRS: Final = ("int_complex", "complex_int", "float_complex", "complex_float")
_REAL_PAIRS: Final = ("int_float", "float_int")


def _pair_types(overload: str) -> tuple[str, str]:
    first, _, second = overload.partition("_")
    return first, second or first


def _binary(name: str, overloads: Sequence[str], body: Body, result: str, x: str = "a", y: str = "b") -> None:
    for overload in overloads:
        left, right = _pair_types(overload)
        op(f"aten::{name}.{overload}({left} {x}, {right} {y}) -> {result}", python=body)


def _define_ring(name: str, int_body: Body, body: Body) -> None:
    """add, sub, mul: all pairs of int, float and complex."""
    _binary(name, ["int"], int_body, "int")
    _binary(name, ["complex"], body, "complex")
    _binary(name, ["float"], body, "float")
    _binary(name, _COMPLEX_PAIRS, body, "complex")
    _binary(name, _REAL_PAIRS, body, "float")
    op(f"aten::{name}(Scalar a, Scalar b) -> Scalar", python=a.by_kind(int_body, body, body))


_define_ring("add", a.add_int, operator.add)
_define_ring("sub", a.sub_int, operator.sub)
_define_ring("mul", a.mul_int, a.mul)

_binary("div", ["int"], a.div_int, "float")
_binary("div", ["complex"], a.div_complex, "complex")
_binary("div", ["float"], a.div, "float")
op("aten::div(Scalar a, Scalar b) -> float", python=a.div)

_body: Body
_int: Body
_float: Body
_complex: Body
for _name, _int, _float in (
    ("floordiv", a.floordiv_int, a.floordiv_float),
    ("remainder", a.remainder_int, a.remainder_float),
):
    _binary(_name, ["int"], _int, "int")
    _binary(_name, ["float", *_REAL_PAIRS], _float, "float")
    op(f"aten::{_name}(Scalar a, Scalar b) -> Scalar", python=a.by_kind(_int, _float))

op("aten::__round_to_zero_floordiv.int(int a, int b) -> int", python=a.truncdiv_int)

for _name, _float in (("mathremainder", a.ieee_remainder), ("copysign", math.copysign), ("fmod", a.fmod)):
    _binary(_name, ["int", "float", *_REAL_PAIRS], _float, "float")
    op(f"aten::{_name}(Scalar a, Scalar b) -> float", python=_float)

_binary("pow", ["int"], a.pow_float, "float")
_binary("pow", ["complex"], a.pow_complex, "complex")
_binary("pow", ["float", *_REAL_PAIRS], a.pow_float, "float")
_binary("pow", ["float_complex", "complex_float"], a.pow_complex, "complex")
op("aten::pow.Scalar_Scalar(Scalar a, Scalar b) -> float", python=a.pow_c)
op("aten::pow.int_to_int(int a, int b) -> int", python=lambda x, y: a.int_of_float(a.pow_float(x, y)))

_binary("divmod", ["int"], a.divmod_int, "(int, int)", "x", "y")
_binary("divmod", ["float"], a.divmod_float, "(float, float)", "x", "y")
_binary("divmod", _REAL_PAIRS, a.divmod_mixed, "(float, float)", "x", "y")

# ------------------------------------------------------------------ one number


def _unary(
    name: str, body: Body, result: str, kinds: Sequence[str] = ("int", "float"), scalar: Body | None = None
) -> None:
    for kind in kinds:
        op(f"aten::{name}.{kind}({kind} a) -> {result}", python=body)
    if scalar is not None:
        op(f"aten::{name}.Scalar(Scalar a) -> Scalar", python=a.through_c(scalar))


op("aten::neg.int(int a) -> int", python=a.neg_int)
op("aten::neg.float(float a) -> float", python=operator.neg)
op("aten::neg.complex(complex a) -> complex", python=operator.neg)
op("aten::neg.Scalar(Scalar a) -> Scalar", python=a.through_c(operator.neg))
op("prim::abs.int(int a) -> int", python=a.abs_int)
op("prim::abs.float(float a) -> float", python=abs)
op("prim::abs.complex(complex a) -> float", python=abs)
op("prim::abs.Scalar(Scalar a) -> Scalar", python=a.through_c(abs))
op("prim::abs(Tensor x) -> Tensor", python=lambda x: x.abs())

for _name, _rounded in (("ceil", a.ceil), ("floor", a.floor)):
    op(f"aten::{_name}.int(int a) -> int", python=operator.pos)
    op(f"aten::{_name}.float(float a) -> int", python=_rounded)
    op(f"aten::{_name}.Scalar(Scalar a) -> Scalar", python=a.through_c(_rounded))

for _name in ("round", "log1p", "degrees", "radians", "fabs", "gamma", "lgamma", "erf", "erfc", "expm1"):
    _unary(_name, a.FLOAT_FUNCTIONS[_name], "float", scalar=a.FLOAT_FUNCTIONS[_name])

for _name, _complex in a.COMPLEX_FUNCTIONS.items():
    _float = a.FLOAT_FUNCTIONS[_name]
    _unary(_name, _float, "float")
    _unary(_name, _complex, "complex", ["complex"], a.by_kind(_float, _float, _complex))

_binary("log", ["int_int", "float_float"], a.log_base, "float")
_binary("log", ["complex_complex"], a.log_base, "complex")
_binary("log", _REAL_PAIRS, a.log_base, "float")
_binary("log", _COMPLEX_PAIRS, a.log_base, "complex")
op("aten::log.Scalar_Scalar(Scalar a, Scalar b) -> float", python=a.log_base)

_binary("atan2", ["int", "float", *_REAL_PAIRS], math.atan2, "float")
op("aten::atan2.Scalar_Scalar(Scalar a, Scalar b) -> float", python=math.atan2)

_unary("angle", a.angle, "float")
op("aten::angle.complex(complex a) -> float", python=cmath.phase)
op("aten::angle.Scalar(Scalar a) -> Scalar", python=a.through_c(a.by_kind(a.angle, a.angle, cmath.phase)))
_binary("polar", ["int", "float", *_REAL_PAIRS], a.polar, "complex")
op("aten::polar.Scalar_Scalar(Scalar a, Scalar b) -> Scalar", python=a.polar)

op("aten::modf(float a) -> (float, float)", python=a.modf)
op("aten::frexp(float a) -> (float, int)", python=math.frexp)
op("aten::ldexp(float x, int i) -> float", python=a.ldexp)
for _name, _float, _complex in (
    ("isnan", math.isnan, cmath.isnan),
    ("isinf", math.isinf, cmath.isinf),
    ("isfinite", math.isfinite, cmath.isfinite),
):
    op(f"aten::{_name}.float(float a) -> bool", python=_float)
    op(f"aten::{_name}.complex(complex a) -> bool", python=_complex)

# ------------------------------------------------------------------ integers and bools

op("aten::factorial.int(int a) -> int", python=a.factorial)
op("aten::gcd.int(int a, int b) -> int", python=a.gcd)
op("aten::__lshift__.int(int a, int b) -> int", python=a.lshift)
op("aten::__rshift__.int(int a, int b) -> int", python=a.rshift)
for _name, _body in (("__and__", operator.and_), ("__or__", operator.or_), ("__xor__", operator.xor)):
    op(f"aten::{_name}.bool(bool a, bool b) -> bool", python=_body)
    op(f"aten::{_name}.int(int a, int b) -> int", python=_body)
op("aten::__not__(bool self) -> bool", python=operator.not_)
for _name, _body in (("bin", bin), ("hex", hex), ("oct", oct)):
    op(f"aten::{_name}(int i) -> str", python=_body)
op("aten::hash.generic(t value) -> int", python=hash_value)


def range_length(lo: int, hi: int, step: int) -> int:
    """Length of `range(lo, hi, step)`."""
    if step == 0:
        raise OperatorError("range() arg 3 must not be zero")
    if step > 0:
        return a.wrap((hi - lo - 1) // step + 1) if lo < hi else 0
    return a.wrap((lo - hi - 1) // -step + 1) if lo > hi else 0


def derive_index(index: int, start: int, step: int) -> int:
    return a.wrap(start + index * step)


op("aten::__range_length(int lo, int hi, int step) -> int", python=range_length)
op("aten::__derive_index(int index, int start, int step) -> int", python=derive_index)

# ------------------------------------------------------------------ least and greatest


def _float_of(choose: Body) -> Body:
    return lambda x, y: float(choose(x, y))


def _widened(choose: Body) -> Body:
    """A function of two Scalars: an int beside a float is converted to float."""
    return a.by_kind(choose, _float_of(choose))


def _least(name: str, choose: Body) -> Body:
    def of_list(values: list[Any]) -> Any:
        if not values:
            raise OperatorError(f"{name}() arg is an empty sequence")
        return choose(values)

    return of_list


for _name, _choose, _builtin in (("min", a.min_of, min), ("max", a.max_of, max)):
    op(f"prim::{_name}.int(int a, int b) -> int", python=_choose)
    op(f"prim::{_name}.float(float a, float b) -> float", python=_choose)
    op(f"prim::{_name}.int_float(int a, float b) -> float", python=_float_of(_choose))
    op(f"prim::{_name}.float_int(float a, int b) -> float", python=_float_of(_choose))
    op(f"prim::{_name}(Scalar a, Scalar b) -> Scalar", python=_widened(_choose))
    for _kind in ("int", "float", "bool"):
        op(f"prim::{_name}.{_kind}_list({_kind}[] l, {_kind}[] r) -> {_kind}[]", python=_choose)
        op(f"prim::{_name}.self_{_kind}({_kind}[] self) -> {_kind}", python=_least(_name, _builtin))

# ------------------------------------------------------------------ comparison


def _as_floats(compare: Body) -> Body:
    """int with float: both as floats, so that 2**53 + 1 equals 2.0**53."""
    return lambda x, y: compare(float(x), float(y))


def equal_lists(x: list[Any], y: list[Any]) -> bool:
    """Element by element; nan equals nothing, not even itself."""
    return len(x) == len(y) and all(map(operator.eq, x, y))


def unequal(equal: Body) -> Body:
    return lambda x, y: not equal(x, y)


def _define_equality(name: str, compare: Body, negate: Callable[[Body], Body]) -> None:
    exact = _as_floats(compare)
    op(f"aten::{name}.int_list(int[] a, int[] b) -> bool", python=compare)
    for overload, kind in (("device", "Device"), ("bool", "bool"), ("enum", "AnyEnumType"), ("int", "int")):
        op(f"aten::{name}.{overload}({kind} a, {kind} b) -> bool", python=compare)
    _binary(name, ["complex", "float"], compare, "bool")
    _binary(name, _REAL_PAIRS, exact, "bool")
    _binary(name, ["float_complex", "complex_float"], compare, "bool")
    op(f"aten::{name}(Scalar a, Scalar b) -> bool", python=a.by_kind(compare, exact, compare))
    op(f"aten::{name}.str(str a, str b) -> bool", python=compare)
    op(f"aten::{name}.float_list(float[] a, float[] b) -> bool", python=negate(equal_lists))
    op(f"aten::{name}.bool_list(bool[] a, bool[] b) -> bool", python=compare)
    op(f"aten::{name}.str_list(str[] a, str[] b) -> bool", python=compare)


_define_equality("eq", operator.eq, lambda equal: equal)
_define_equality("ne", operator.ne, unequal)

for _name in ("lt", "le", "gt", "ge"):
    _compare = getattr(operator, _name)
    _binary(_name, ["int", "float"], _compare, "bool")
    _binary(_name, _REAL_PAIRS, _as_floats(_compare), "bool")
    op(f"aten::{_name}(Scalar a, Scalar b) -> bool", python=a.by_kind(_compare, _as_floats(_compare)))
    op(f"aten::{_name}.str(str a, str b) -> bool", python=_compare)


def is_same(x: object, y: object) -> bool:
    """`is`: numbers and devices by kind and value, everything else by identity."""
    if x is y:
        return not (isinstance(x, float) and x != x)
    return type(x) is type(y) and type(x) in (int, float) and x == y


def broadcast_shapes(a: list[int], b: list[int]) -> list[int]:
    """The shape that tensors of both shapes have together."""
    return list(rules.broadcast_shapes(tuple(a), tuple(b)))


op("aten::broadcast_shapes(int[] a, int[] b) -> int[]", python=broadcast_shapes)
op("aten::__is__(t1 self, t2 obj) -> bool", python=is_same)
op("aten::__isnot__(t1 self, t2 obj) -> bool", python=unequal(is_same))
