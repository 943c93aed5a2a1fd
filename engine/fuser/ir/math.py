"""Functions of numbers that are no primitives, written in kernel IR.

In: a name of `kernel.FUNCTIONS` and the type of its operands.  Out: a `Function` of straight lines, which loops that
apply it are vectorized with; None where the C library's function is called instead (`LIBM`).

Greatest error in units in the last place, as measured; floordiv and mod of floats are as exact as fmod.

| function | f32 | f64 |
| --- | --- | --- |
| exp, exp2 | 1.1 | 1.1 |
| expm1 | 1.7 | 1.9 |
| log, log1p | 1.5 | 1.1 |
| log2, log10 | 2.0 | 1.9 |
| sigmoid | 1.8 | 1.8 |
| tanh | 2.0 | 2.1 |
| erf | 1.9 | 1.0 |
| erfc | 0.51 | 3.1 |
| sinh, cosh, asinh, acosh, atanh, asin, acos, atan, atan2 | 0.51 | 2.0 |
| sin, cos, tan, pow | 0.51 | the C library's |
| lgamma, fmod | the C library's | the C library's |

Note [Written functions]
The numbers are reduced (to a fraction of log 2, of an octave, of a right angle), what is left goes through a
polynomial, and the leading term is added last, so that its rounding is all that counts.  Powers of two are made of
bits, in two steps where the result may be denormal.  Bounds are selects that let NaN through.  What is rarely used in
f32 is computed in f64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from inspect import signature
from math import e, inf, log, log2, nan, pi
from typing import Final

from engine.fuser.ir import math_coefficients as fits
from engine.fuser.ir.kernel import FLOATS, WHOLE, Expression, Function, Let, Name, Scalar, apply, constant, convert
from engine.lang.records import dataclass

LIBM: Final = frozenset(
    {(name, "f64") for name in ("sin", "cos", "tan", "pow")}
    | {(name, type) for name in ("lgamma", "fmod") for type in FLOATS}
)
"""Functions that are the C library's: of f64, exact reduction and powers take more than straight lines are good for."""


@cache
def function(name: str, type: str) -> Function | None:
    """The function for operands of a type; None for primitives and what is the C library's."""
    write = _FUNCTIONS.get((name, type))
    if write is None:
        return None
    parameters = tuple(Scalar(each, type) for each in signature(write).parameters)
    lets: list[Let] = []
    result = write(*(Number(Name(each.name, type), lets) for each in parameters))
    return Function(name, parameters, tuple(lets), result.expression)


# ------------------------------------------------------------------ writing


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A number in a function that is being written, whose lets are added to as operators are applied."""

    expression: Expression
    lets: list[Let]

    @property
    def type(self) -> str:
        return self.expression.type

    def do(self, name: str, *others: Number | float) -> Number:
        """A function of this and others; Python's numbers are of the type of this one."""
        return self.let(apply(name, self.expression, *(self.expression_of(each) for each in others)))

    def expression_of(self, value: Number | float) -> Expression:
        return value.expression if isinstance(value, Number) else constant(value, self.type)

    def of(self, value: float) -> Number:
        """A constant of this one's type."""
        return Number(constant(value, self.type), self.lets)

    def let(self, value: Expression) -> Number:
        name = f"t{len(self.lets)}"
        self.lets.append(Let(name, value))
        return Number(Name(name, value.type), self.lets)

    def to(self, type: str) -> Number:
        return self.let(convert(self.expression, type))

    def bits(self) -> Number:
        return self.do(f"bits_of_{self.type}")

    def as_float(self) -> Number:
        """The float that has these bits."""
        return self.do("bits_to_f32" if self.type == "i32" else "bits_to_f64")

    def equals(self, other: Number | float) -> Number:
        return self.do("eq", other)

    def __add__(self, other: Number | float) -> Number:
        return self.do("add", other)

    def __sub__(self, other: Number | float) -> Number:
        return self.do("sub", other)

    def __mul__(self, other: Number | float) -> Number:
        return self.do("mul", other)

    def __truediv__(self, other: Number | float) -> Number:
        return self.do("div", other)

    def __radd__(self, other: float) -> Number:
        return self.of(other) + self

    def __rsub__(self, other: float) -> Number:
        return self.of(other) - self

    def __rmul__(self, other: float) -> Number:
        return self * other

    def __rtruediv__(self, other: float) -> Number:
        return self.of(other) / self

    def __neg__(self) -> Number:
        return self.do("neg")

    def __abs__(self) -> Number:
        return self.do("abs")

    def __lt__(self, other: Number | float) -> Number:
        return self.do("lt", other)

    def __gt__(self, other: Number | float) -> Number:
        return self.do("gt", other)

    def __and__(self, other: Number | int) -> Number:
        return self.do("bitand", other)

    def __or__(self, other: Number | int) -> Number:
        return self.do("bitor", other)

    def __lshift__(self, other: int) -> Number:
        return self.do("shift_left", other)

    def __rshift__(self, other: int) -> Number:
        return self.do("shift_right", other)


def fma(a: Number, b: Number | float, c: Number | float) -> Number:
    """a * b + c, rounded once."""
    return a.do("fma", b, c)


def select(condition: Number, yes: Number | float, no: Number | float) -> Number:
    """One of two, at least one of which has a type."""
    typed = yes if isinstance(yes, Number) else no
    assert isinstance(typed, Number)
    return condition.let(
        apply("select", condition.expression, typed.expression_of(yes), typed.expression_of(no)),
    )


def at_most(x: Number, bound: float) -> Number:
    """The lesser of both; NaN for NaN."""
    return select(x > bound, bound, x)


def at_least(x: Number, bound: float) -> Number:
    """The greater of both; NaN for NaN."""
    return select(x < bound, bound, x)


def polynomial(x: Number, coefficients: Sequence[float]) -> Number:
    """The sum of coefficients times powers of x, from that of the constant term.

    Even and odd powers are summed up by themselves, as each step of a sum waits for the one before.
    """
    if len(coefficients) < _LONG:
        return _horner(x, coefficients)
    square = x * x
    return fma(_horner(square, coefficients[1::2]), x, _horner(square, coefficients[::2]))


_LONG: Final = 5
"""Coefficients from which on two sums are faster than one."""


def _horner(x: Number, coefficients: Sequence[float]) -> Number:
    total = fma(x, coefficients[-1], coefficients[-2])
    for each in reversed(coefficients[:-2]):
        total = fma(total, x, each)
    return total


def with_sign_of(sign: Number, x: Number) -> Number:
    return x.do("copysign", sign)


# ------------------------------------------------------------------ formats


def _high(value: float, bits: int) -> float:
    """The value cut to so many bits of its fraction below the point."""
    return int(value * 2.0**bits) / 2.0**bits


@dataclass(frozen=True, slots=True)
class Format:
    """A type of floats: `shift` bits of fraction below the exponent, which is biased.

    `rounder`: added and subtracted rounds to whole numbers, which the last bits of the sum are.  `log_2`: log 2 in
    two parts, the first short enough for products with exponents to be exact.  `least`: the least normal number.
    `exp_range`: beyond it the exponential is 0 or infinite.
    """

    shift: int
    bias: int
    rounder: float
    rounder_bits: int
    root_half_bits: int
    log_2: tuple[float, float]
    least: float
    exp_range: tuple[float, float]
    exp: Sequence[float]


_LOG_2_REST: Final = 2.3190468138462996e-17
"""log 2 less the nearest f64."""
_FORMATS: Final[dict[str, Format]] = {
    "f32": Format(
        23, 127, 12582912.0, 0x4B400000, 0x3F3504F3, (_high(log(2), 15), log(2) - _high(log(2), 15)),
        2.0**-126, (-104.0, 89.0), fits.EXP_F32,
    ),
    "f64": Format(
        52, 1023, 6755399441055744.0, 0x4338000000000000, 0x3FE6A09E667F3BCD,
        (_high(log(2), 33), log(2) - _high(log(2), 33) + _LOG_2_REST), 2.0**-1022, (-746.0, 710.0), fits.EXP_F64,
    ),
}  # fmt: skip


def _format(x: Number) -> Format:
    return _FORMATS[x.type]


def _rounded(x: Number, factor: float) -> tuple[Number, Number]:
    """x times a factor, rounded to a whole number, as a float and as a whole number."""
    form = _format(x)
    shifted = fma(x, factor, form.rounder)
    return shifted - form.rounder, shifted.bits() - form.rounder_bits


def _power(n: Number, type: str) -> Number:
    """2 ** n as a float, for whole n within the exponents of normal numbers."""
    form = _FORMATS[type]
    return ((n + form.bias) << form.shift).as_float()


def _scaled(x: Number, n: Number) -> Number:
    """x * 2 ** n, rounded once, for n that are up to twice the exponents of normal numbers."""
    half = n >> 1
    return x * _power(half, x.type) * _power(n - half, x.type)


# ------------------------------------------------------------------ exponentials


def _reduced_exp(x: Number, low: Number | float = 0.0) -> tuple[Number, Number]:
    """Whole n, and p so that exp(x + low) = 2**n (1 + p); x is within `exp_range`."""
    form = _format(x)
    n, whole = _rounded(x, log2(e))
    high_log, low_log = form.log_2
    r = fma(n, -low_log, fma(n, -high_log, x))
    if isinstance(low, Number):
        r = r + low
    return whole, fma(polynomial(r, form.exp) * r, r, r)


def _bounded(x: Number) -> Number:
    low, high = _format(x).exp_range
    return at_least(at_most(x, high), low)


def _exp(x: Number) -> Number:
    n, p = _reduced_exp(_bounded(x))
    return _scaled(p + 1.0, n)


def _exp2(x: Number) -> Number:
    form = _format(x)
    x = at_least(at_most(x, form.bias + 2.0), -form.bias - form.shift - 2.0)
    n, whole = _rounded(x, 1.0)
    r = (x - n) * log(2)
    return _scaled(fma(polynomial(r, form.exp) * r, r, r) + 1.0, whole)


def _expm1(x: Number) -> Number:
    """Half of the result is scaled, as 2**n overflows before the result does."""
    form = _format(x)
    n, p = _reduced_exp(at_least(at_most(x, form.exp_range[1]), -form.shift - 2.0))
    half = _power(n - 1, x.type)
    found = fma(half, p, half - 0.5)
    return select(abs(x) < 2.0**-form.shift / 4, x, found + found)


def _sigmoid(x: Number) -> Number:
    """1 / (1 + exp(-x)), both parts of the quotient scaled down, since exp(-x) overflows before the result is 0."""
    form = _format(x)
    n, p = _reduced_exp(at_least(at_most(-x, -form.exp_range[0]), -form.shift - 2.0))
    unit = 2.0 ** -((form.bias + 1) // 2)
    scale = _power(n - (form.bias + 1) // 2, x.type)
    total = scale + unit
    lost = unit - (total - scale)
    return unit / (total + fma(scale, p, lost))


def _tanh(x: Number) -> Number:
    """(1 - t) / (1 + t) where t = exp(-2 |x|)."""
    n, p = _reduced_exp(at_most(abs(x), _format(x).shift / 2.0 - 1.0) * -2.0)
    scale = _power(n, x.type)
    return with_sign_of(x, -fma(scale, p, scale - 1.0) / fma(scale, p, scale + 1.0))


def _sinh(x: Number) -> Number:
    square = x * x
    near = fma(polynomial(square, fits.SINH) * square, x, x)
    half = _half_exp(abs(x))
    return select(abs(x) < 1.0, near, with_sign_of(x, half - 0.25 / half))


def _cosh(x: Number) -> Number:
    half = _half_exp(abs(x))
    return half + 0.25 / half


def _half_exp(x: Number) -> Number:
    """exp(x) / 2, which overflows only where the result does."""
    n, p = _reduced_exp(at_most(x, _format(x).exp_range[1] + 1.0))
    return _scaled(p + 1.0, n - 1)


# ------------------------------------------------------------------ logarithms


@dataclass(frozen=True, slots=True)
class Base:
    """Of logarithms: 1 / log(base) and log 2 / log(base), in two parts each."""

    unit: tuple[float, float]
    octave: tuple[float, float]


def _bases(type: str) -> dict[str, Base]:
    bits = 12 if type == "f32" else 33
    log2_e_rest, log10_e_rest, log10_2_rest = 2.0355273740931033e-17, 1.098319650216765e-17, -2.8037281277851704e-18
    log2_e, log10_e, log10_2 = 1.4426950408889634, 0.4342944819032518, 0.3010299956639812
    log2_e_high, log10_e_high, log10_2_high = (_high(each, bits) for each in (log2_e, log10_e, log10_2))
    return {
        "e": Base((1.0, 0.0), _FORMATS[type].log_2),
        "2": Base((log2_e_high, log2_e - log2_e_high + log2_e_rest), (1.0, 0.0)),
        "10": Base(
            (log10_e_high, log10_e - log10_e_high + log10_e_rest),
            (log10_2_high, log10_2 - log10_2_high + log10_2_rest),
        ),
    }


_BASES: Final = {type: _bases(type) for type in FLOATS}


def _log_of_sum(f: Number, exponent: Number, base: str = "e") -> Number:
    """The logarithm of (1 + f) * 2**exponent, for 1 + f between the roots of 1/2 and 2."""
    square = f * f
    if f.type == "f32":
        tail = fma(polynomial(f, fits.LOG_F32) * f, square, square * -0.5)
    else:
        z = f / (f + 2.0)
        z2 = z * z
        half = square * 0.5
        tail = fma(z, fma(polynomial(z2, fits.LOG_F64), z2, half), -half)
    known = _BASES[f.type][base]
    (unit, unit_low), (octave, octave_low) = known.unit, known.octave
    rest = tail if unit == 1.0 else fma(f, unit_low, tail * (unit + unit_low))
    rest = rest if octave_low == 0.0 else fma(exponent, octave_low, rest)
    whole = exponent * octave
    high = f * unit if unit != 1.0 else f
    total = whole + high
    return total + (rest + (high - (total - whole)))


def _exponent_and_rest(x: Number) -> tuple[Number, Number]:
    """Whole n and m between the roots of 1/2 and 2 so that x = m * 2**n, for normal x."""
    form = _format(x)
    bits = x.bits() - form.root_half_bits
    return bits >> form.shift, ((bits & ((1 << form.shift) - 1)) + form.root_half_bits).as_float()


def _ends_of_log(x: Number, found: Number) -> Number:
    """The logarithm, which was found for finite positive numbers, for all."""
    found = select(x < inf, found, x)
    return select(x > 0.0, found, select(x.equals(0.0), -inf, found.of(nan)))


def _log(x: Number, base: str) -> Number:
    form = _format(x)
    is_denormal = x < form.least
    scaled = select(is_denormal, x * 2.0**form.shift, x)
    n, m = _exponent_and_rest(scaled)
    exponent = n.to(x.type) - select(is_denormal, float(form.shift), x.of(0.0))
    return _ends_of_log(x, _log_of_sum(m - 1.0, exponent, base))


def _log1p(x: Number) -> Number:
    """The rest of 1 + x is computed from x itself, so that nothing that the sum rounds is lost."""
    form = _format(x)
    total = x + 1.0
    n, m = _exponent_and_rest(total)
    scale = _power(-n, x.type)
    rest = select(x > 2.0 ** (form.bias - 3), m - 1.0, fma(x, scale, scale - 1.0))
    found = _ends_of_log(total, _log_of_sum(rest, n.to(x.type)))
    return select(abs(x) < 2.0**-form.shift / 4, x, found)


def _asinh(x: Number) -> Number:
    """log1p(a + a² / (1 + sqrt(1 + a²))) for a = |x|; log(2a) where a² would overflow."""
    a = abs(x)
    is_large = a > 2.0**500
    small = select(is_large, 1.0, a)
    square = small * small
    near = (small + square / ((square + 1.0).do("sqrt") + 1.0)).do("log1p")
    return with_sign_of(x, select(is_large, a.do("log") + log(2), near))


def _acosh(x: Number) -> Number:
    """log1p(t + sqrt(2t + t²)) for t = x - 1."""
    is_large = x > 2.0**500
    t = select(is_large, 1.0, x) - 1.0
    near = (t + (fma(t, t, t + t)).do("sqrt")).do("log1p")
    return select(x < 1.0, nan, select(is_large, x.do("log") + log(2), near))


def _atanh(x: Number) -> Number:
    a = abs(x)
    return with_sign_of(x, ((a + a) / (1.0 - a)).do("log1p") * 0.5)


def _pow(x: Number, y: Number) -> Number:
    """exp2(y log2 |x|) with the sign of odd powers, in f64; NaN for broken powers of negative numbers."""
    a, b = abs(x).to("f64"), y.to("f64")
    exponent = b * a.do("log2")
    exponent = select(a.equals(1.0) & b.equals(b), 0.0, exponent)
    found = exponent.do("exp2").to("f32")
    is_whole = y.do("floor").equals(y)
    half = y * 0.5
    is_odd = is_whole & half.do("floor").do("ne", half)
    found = select(is_odd, with_sign_of(x, found), found)
    is_wrong = (x < 0.0) & (x > -inf) & y.do("floor").do("ne", y)
    found = select(is_wrong, nan, found)
    return select(x.equals(1.0) | y.equals(0.0), 1.0, found)


# ------------------------------------------------------------------ the error function


def _erf_f32(x: Number) -> Number:
    """Far from 0 it is 1 less the fourth power of a polynomial, which needs no exponential."""
    a = at_most(abs(x), 4.0)
    near = fma(a, polynomial(a * a, fits.ERF_F32), a)
    root = polynomial(a, fits.ROOT_ERFC_F32)
    square = root * root
    far = fma(-square, square, 1.0)
    return with_sign_of(x, select(a < 1.1875, near, far))


def _erf_f64(x: Number) -> Number:
    a = at_most(abs(x), 6.0)
    near = fma(a, polynomial(a * a, fits.ERF_F64), a)
    return with_sign_of(x, select(a < 1.0, near, 1.0 - _erfc_far(a)))


def _erfc(x: Number) -> Number:
    a = at_most(abs(x), 27.5)
    near = 1.0 - fma(x, polynomial(a * a, fits.ERF_F64), x)
    far = _erfc_far(a)
    return select(a < 0.5, near, select(x < 0.0, 2.0 - far, far))


def _erfc_far(a: Number) -> Number:
    """exp(-a²), with the square in two parts, times a function that varies slowly."""
    slow = polynomial((a - 3.75) / (a + 3.75), fits.ERFC) / fma(a, 2.0, 1.0)
    square = a * a
    n, p = _reduced_exp(at_least(-square, -746.0), -fma(a, a, -square))
    return _scaled(fma(p, slow, slow), n)


# ------------------------------------------------------------------ angles

_PI_REST: Final = 1.2246467991473532e-16
"""π less the nearest f64."""


def _quarter_turns(x: Number) -> tuple[Number, Number]:
    """Whole n and an angle r up to π/4, in f64, so that x = n π/2 + r, for any finite x in f32.

    x 2/π is summed exactly: products with 28 bits of 2/π at a time are exact, and of each only the rest by 4 counts.
    """
    wide = x.to("f64")
    total, low = _rest_by_four(wide, fits.TWO_OVER_PI[0]), wide.of(0.0)
    for i, part in enumerate(fits.TWO_OVER_PI[1:7], 1):
        term = _rest_by_four(wide, part) if i < 5 else wide * part
        new = total + term
        low = low + (term - (new - total))
        total = new
    n, whole = _rounded(total, 1.0)
    return whole, ((total - n) + low) * (pi / 2)


def _rest_by_four(x: Number, factor: float) -> Number:
    return fma((x * (factor / 4)).do("round"), -4.0, x * factor)


def _sine(r: Number) -> Number:
    square = r * r
    return fma(polynomial(square, fits.SIN) * square, r, r)


def _cosine(r: Number) -> Number:
    square = r * r
    return fma(polynomial(square, fits.COS), square, 1.0)


def _turned(n: Number, sine: Number, cosine: Number) -> Number:
    """The sine of n quarter turns more."""
    found = select((n & 1).equals(0), sine, cosine)
    return (found.bits().do("bitxor", (n & 2) << 62)).as_float().to("f32")


def _sin(x: Number) -> Number:
    n, r = _quarter_turns(x)
    return select(x.equals(0.0), x, _turned(n, _sine(r), _cosine(r)))


def _cos(x: Number) -> Number:
    n, r = _quarter_turns(x)
    return _turned(n + 1, _sine(r), _cosine(r))


def _tan(x: Number) -> Number:
    n, r = _quarter_turns(x)
    sine, cosine = _sine(r), _cosine(r)
    is_even = (n & 1).equals(0)
    found = select(is_even, sine, -cosine) / select(is_even, cosine, sine)
    return select(x.equals(0.0), x, found.to("f32"))


def _angle(high: Number, low: Number) -> Number:
    """The angle whose tangent is high / low, neither of them negative, from 0 to π/2."""
    is_steep, is_flat = high > low * 2.414213562373095, high.do("le", low * 0.41421356237309503)
    above = select(is_steep, -low, select(is_flat, high, high - low))
    below = select(is_steep, high, select(is_flat, low, high + low))
    z = above / select(below.equals(0.0), 1.0, below)
    square = z * z
    base = select(is_steep, pi / 2, select(is_flat, 0.0, z.of(pi / 4)))
    base_low = select(is_steep, _PI_REST / 2, select(is_flat, 0.0, z.of(_PI_REST / 4)))
    return base + (z + fma(polynomial(square, fits.ATAN) * square, z, base_low))


def _atan(x: Number) -> Number:
    a = abs(x)
    return with_sign_of(x, _angle(select(a > 2.0**60, 2.0**60, a), x.of(1.0)))


def _atan2(y: Number, x: Number) -> Number:
    a, b = abs(y), abs(x)
    are_infinite = a.equals(inf) & b.equals(inf)
    size = select(a > b, a, b)
    scale = select(size > 2.0**1000, 2.0**-60, select(size < 2.0**-900, 2.0**100, x.of(1.0)))
    angle = _angle(select(are_infinite, 1.0, a * scale), select(are_infinite, 1.0, b * scale))
    angle = select(x.bits() < 0, pi - (angle - _PI_REST), angle)
    return with_sign_of(y, angle)


def _arc(x: Number) -> tuple[Number, Number, Number]:
    """The condition |x| < 1/2; z, and z³ times a polynomial, whose sum is asin |x| or else π/4 - asin |x| / 2."""
    a = abs(x)
    is_near = a < 0.5
    half = (1.0 - a) * 0.5
    square = select(is_near, a * a, half)
    z = select(is_near, a, half.do("sqrt"))
    return is_near, z, polynomial(square, fits.ASIN) * square * z


def _asin(x: Number) -> Number:
    is_near, z, tail = _arc(x)
    far = pi / 2 - (fma(z, 2.0, fma(tail, 2.0, -_PI_REST / 2)))
    return with_sign_of(x, select(is_near, z + tail, far))


def _acos(x: Number) -> Number:
    is_near, z, tail = _arc(x)
    is_negative = x < 0.0
    signed_z, signed_tail = select(is_negative, -z, z), select(is_negative, -tail, tail)
    near = pi / 2 - (signed_z + (signed_tail - _PI_REST / 2))
    twice = z + z + (tail + tail)
    far = select(is_negative, pi - (fma(z, 2.0, fma(tail, 2.0, -_PI_REST))), twice)
    return select(is_near, near, far)


# ------------------------------------------------------------------ division


def _have_other_signs(a: Number, b: Number) -> Number:
    return (a < 0.0).do("ne", b < 0.0)


def _floor_divide(x: Number, y: Number) -> Number:
    """The floor of the quotient, as the rest has it; x / 0 is what it is."""
    rest = x.do("fmod", y)
    quotient = (x - rest) / y
    quotient = select(rest.do("ne", 0.0) & _have_other_signs(rest, y), quotient - 1.0, quotient)
    floor = quotient.do("floor")
    floor = select(quotient - floor > 0.5, floor + 1.0, floor)
    found = select(quotient.equals(0.0), with_sign_of(x / y, x.of(0.0)), floor)
    return select(y.equals(0.0), x / y, found)


def _modulo(x: Number, y: Number) -> Number:
    rest = x.do("fmod", y)
    return select(rest.do("ne", 0.0) & _have_other_signs(rest, y), rest + y, rest)


def _whole_floor_divide(x: Number, y: Number) -> Number:
    quotient, rest = x.do("quotient", y), x.do("rest", y)
    is_below = rest.do("ne", 0) & (rest.do("bitxor", y) < 0)
    return select(is_below, quotient - 1, quotient)


def _whole_modulo(x: Number, y: Number) -> Number:
    rest = x.do("rest", y)
    return select(rest.do("ne", 0) & (rest.do("bitxor", y) < 0), rest + y, rest)


# ------------------------------------------------------------------ the table


def _in_double(name: str) -> Callable[[Number], Number]:
    """The function of f32, computed in f64."""
    return lambda x: x.to("f64").do(name).to("f32")


def _atan2_f32(y: Number, x: Number) -> Number:
    return y.to("f64").do("atan2", x.to("f64")).to("f32")


Write = Callable[..., Number]
_BOTH: Final[dict[str, Write]] = {
    "exp": _exp, "exp2": _exp2, "expm1": _expm1, "log": lambda x: _log(x, "e"), "log2": lambda x: _log(x, "2"),
    "log10": lambda x: _log(x, "10"), "log1p": _log1p, "sigmoid": _sigmoid, "tanh": _tanh,
    "floordiv": _floor_divide, "mod": _modulo,
}  # fmt: skip
_DOUBLE: Final[dict[str, Write]] = {
    "sinh": _sinh, "cosh": _cosh, "asinh": _asinh, "acosh": _acosh, "atanh": _atanh, "erfc": _erfc,
    "asin": _asin, "acos": _acos, "atan": _atan,
}  # fmt: skip
_FUNCTIONS: Final[dict[tuple[str, str], Write]] = {
    **{(name, type): write for name, write in _BOTH.items() for type in FLOATS},
    **{(name, "f64"): write for name, write in _DOUBLE.items()},
    **{(name, "f32"): _in_double(name) for name in _DOUBLE},
    **{("floordiv", type): _whole_floor_divide for type in WHOLE},
    **{("mod", type): _whole_modulo for type in WHOLE},
    ("erf", "f32"): _erf_f32, ("erf", "f64"): _erf_f64, ("pow", "f32"): _pow, ("atan2", "f64"): _atan2,
    ("atan2", "f32"): _atan2_f32, ("sin", "f32"): _sin, ("cos", "f32"): _cos, ("tan", "f32"): _tan,
}  # fmt: skip
