"""Functions of numbers that are no primitives, written in kernel IR.

In: a name of `kernel.FUNCTIONS` and the type of its operands.  Out: a `Function` of straight lines, which loops that
apply it are vectorized with; None where the C library's function is called instead.

| function | type | greatest error, in units in the last place |
| --- | --- | --- |
| exp, expm1, log, log1p, tanh, sigmoid, erf | f32 | 2 (3 for sigmoid and erf) |
| exp, sigmoid | f64 | 2 |
| floordiv, mod | all | exact, or as fmod |

The polynomials are fits with the least greatest relative error, on the numbers that are left once powers of two are
taken out.  Powers of two are made of bits, in two steps, so that results may be denormal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import factorial, inf
from typing import Final

from engine.fuser.kernel import (
    FLOATS,
    WHOLE,
    Constant,
    Expression,
    Function,
    Let,
    Name,
    Scalar,
    apply,
    constant,
    convert,
)


@cache
def function(name: str, type: str) -> Function | None:
    """The function for operands of a type; None where the C library's is called."""
    write = _FUNCTIONS.get((name, type)) or (_WHOLE.get(name) if type in WHOLE else None)
    if write is None:
        return None
    count = write.__code__.co_argcount - 1
    parameters = tuple(Scalar(each, type) for each in ("x", "y")[:count])
    lines = Lines(type)
    result = write(lines, *(Name(each.name, type) for each in parameters))
    return Function(name, parameters, tuple(lines.lets), result)


@dataclass(slots=True)
class Lines:
    """The lets of a function of one type while they are written."""

    type: str
    lets: list[Let] = field(default_factory=list)

    def let(self, value: Expression) -> Expression:
        name = f"t{len(self.lets)}"
        self.lets.append(Let(name, value))
        return Name(name, value.type)

    def number(self, value: float, type: str = "") -> Constant:
        return constant(value, type or self.type)

    def do(self, name: str, *operands: Expression | float) -> Expression:
        """A function of operands; numbers are of the type of those that are not."""
        type = next(each.type for each in reversed(operands) if not isinstance(each, (int, float)))
        return self.let(apply(name, *(self.number(o, type) if isinstance(o, (int, float)) else o for o in operands)))

    def select(self, condition: Expression, yes: Expression | float, no: Expression | float) -> Expression:
        a, b = (self.number(each) if isinstance(each, (int, float)) else each for each in (yes, no))
        return self.let(apply("select", condition, a, b))

    def polynomial(self, x: Expression, coefficients: Sequence[float]) -> Expression:
        """The sum of coefficients times powers of x, from the lowest."""
        total: Expression = self.number(coefficients[-1])
        for each in reversed(coefficients[:-1]):
            total = self.do("fma", total, x, each)
        return total


# ------------------------------------------------------------------ single precision

_EXP: Final = (
    0.5000000096259245, 0.16666517705578762, 0.04166620236160863, 0.008369025405710894, 0.0013950720342878282,
)  # fmt: skip
_EXPM1: Final = (
    0.4999999999320535, 0.16666667671529392, 0.04166666996595694, 0.008333107956390718,
    0.001388848468462445, 0.00019984890095887023, 2.4984051318832034e-05,
)  # fmt: skip
_TANH: Final = (
    -0.333333296132817, 0.1333315788495435, -0.05394056198934071, 0.021666341489641534, -0.008091956941902307,
    0.002064656196325642,
)  # fmt: skip
_LOG: Final = (
    0.33333310375932507, -0.24999986444353692, 0.20002231335901066, -0.16669263390027161, 0.14218564306728473,
    -0.12384054373343314, 0.11873422209991359, -0.11791860699403311, 0.06916856809271948,
)  # fmt: skip
_ERF_NEAR: Final = (
    1.128379167063156, -0.3761263848380273, 0.11283782747100239, -0.026865445815380102, 0.005221074860940712,
    -0.0008484711198881949, 0.00011270542683459378, -9.680131277951646e-06,
)  # fmt: skip
_ERF_FAR: Final = (
    0.00019901167768284162, -1.1296342204364804, -0.6330979419736232, -0.10856810941164043, 0.025320699981433985,
    -0.004257634977471014, 0.0004566853487748655, -2.4172746284343084e-05, 1.725789599041081e-07,
)  # fmt: skip
_LOG2_E: Final = 1.4426950408889634
_LOG_2: Final = 0.6931471805599453
_HIGH, _LOW = 0.693145751953125, 1.42860682030941723e-06
"""log(2) in two parts, of which a whole number times the first is exact in single precision."""


def _powers(w: Lines, n: Expression, whole: str, bias: int, shift: int) -> tuple[Expression, Expression]:
    """Two powers of two whose product is 2 ** n."""
    half = w.do("shift_right", n, 1)
    rest = w.do("sub", n, half)
    to_float = "bits_to_f32" if whole == "i32" else "bits_to_f64"
    first, second = (w.do(to_float, w.do("shift_left", w.do("add", each, bias), shift)) for each in (half, rest))
    return first, second


def _exp_f32(w: Lines, x: Expression) -> Expression:
    inside = w.do("minimum", w.do("maximum", x, -104.0), 89.0)
    shifted = w.do("fma", inside, _LOG2_E, 12582912.0)  # whose last bits are the nearest whole number
    n = w.do("sub", shifted, 12582912.0)
    r = w.do("fma", n, -_LOW, w.do("fma", n, -_HIGH, inside))
    p = w.do("fma", w.do("mul", w.polynomial(r, _EXP), r), r, r)
    first, second = _powers(w, w.do("sub", w.do("bits_of_f32", shifted), 0x4B400000), "i32", 127, 23)
    return w.do("mul", w.do("mul", w.do("add", p, 1.0), first), second)


def _expm1_f32(w: Lines, x: Expression) -> Expression:
    near = w.do("fma", w.do("mul", w.polynomial(x, _EXPM1), x), x, x)
    far = w.do("sub", w.do("exp", x), 1.0)
    small = w.do("lt", w.do("abs", x), 0.5)
    tiny = w.do("lt", w.do("abs", x), 1e-20)
    return w.select(tiny, x, w.select(small, near, far))


def _tanh_f32(w: Lines, x: Expression) -> Expression:
    a = w.do("abs", x)
    s = w.do("mul", x, x)
    near = w.do("fma", w.do("mul", w.polynomial(s, _TANH), s), a, a)
    e = w.do("exp", w.do("add", a, a))
    far = w.do("sub", 1.0, w.do("div", 2.0, w.do("add", e, 1.0)))
    return w.do("copysign", w.select(w.do("lt", a, 0.65), near, far), x)


def _sigmoid(w: Lines, x: Expression) -> Expression:
    e = w.do("exp", w.do("neg", w.do("abs", x)))
    above = w.select(w.do("lt", x, 0.0), e, 1.0)
    return w.do("div", above, w.do("add", e, 1.0))


def _log_f32(w: Lines, x: Expression) -> Expression:
    is_small = w.do("lt", x, 1.17549435e-38)
    scaled = w.select(is_small, w.do("mul", x, 8388608.0), x)
    bits = w.do("sub", w.do("bits_of_f32", scaled), 0x3F3504F3)
    e = w.let(convert(w.do("shift_right", bits, 23), "f32"))
    m = w.do("bits_to_f32", w.do("add", w.do("bitand", bits, 0x7FFFFF), 0x3F3504F3))
    e = w.do("add", e, w.select(is_small, -23.0, 0.0))
    f = w.do("sub", m, 1.0)
    square = w.do("mul", f, f)
    tail = w.do("mul", w.polynomial(f, _LOG), w.do("mul", square, f))
    tail = w.do("fma", e, _LOW, tail)
    tail = w.do("fma", square, -0.5, tail)
    found = w.do("fma", e, _HIGH, w.do("add", f, tail))
    found = w.select(w.do("eq", x, inf), inf, found)
    found = w.select(w.do("eq", x, 0.0), -inf, found)
    wrong = w.do("div", w.do("sub", x, x), 0.0)
    return w.select(w.do("ge", x, 0.0), found, w.do("add", wrong, w.do("sub", x, x)))


def _log1p_f32(w: Lines, x: Expression) -> Expression:
    """log(1 + x), corrected for what the sum has lost of x."""
    shifted = w.do("add", x, 1.0)
    lost = w.do("sub", x, w.do("sub", shifted, 1.0))
    found = w.do("add", w.do("log", shifted), w.do("div", lost, shifted))
    found = w.select(w.do("lt", w.do("abs", x), 1e-5), w.do("fma", w.do("mul", x, x), -0.5, x), found)
    is_end = w.do("bitor", w.do("eq", x, inf), w.do("eq", shifted, 0.0))
    return w.select(is_end, w.do("log", shifted), found)


def _erf_f32(w: Lines, x: Expression) -> Expression:
    a = w.do("minimum", w.do("abs", x), 4.0)
    near = w.do("mul", a, w.polynomial(w.do("mul", a, a), _ERF_NEAR))
    far = w.do("sub", 1.0, w.do("exp", w.polynomial(a, _ERF_FAR)))
    return w.do("copysign", w.select(w.do("lt", a, 1.0), near, far), x)


# ------------------------------------------------------------------ double precision


def _exp_f64(w: Lines, x: Expression) -> Expression:
    inside = w.do("minimum", w.do("maximum", x, -746.0), 710.0)
    shifted = w.do("fma", inside, _LOG2_E, 6755399441055744.0)
    n = w.do("sub", shifted, 6755399441055744.0)
    high = 0.6931471803691238  # its lower bits are zero, so that a whole number times it is exact
    r = w.do("fma", n, -1.9082149292705877e-10, w.do("fma", n, -high, inside))
    p = w.polynomial(r, [1 / factorial(i) for i in range(2, 14)])
    p = w.do("fma", w.do("mul", p, r), r, r)
    first, second = _powers(w, w.do("sub", w.do("bits_of_f64", shifted), 0x4338000000000000), "i64", 1023, 52)
    return w.do("mul", w.do("mul", w.do("add", p, 1.0), first), second)


# ------------------------------------------------------------------ division


def _floor_divide(w: Lines, x: Expression, y: Expression) -> Expression:
    """The floor of the quotient, as the rest has it; x / 0 is what it is."""
    rest = w.do("fmod", x, y)
    quotient = w.do("div", w.do("sub", x, rest), y)
    is_below = w.do("bitand", w.do("ne", rest, 0.0), w.do("ne", _is_negative(w, rest), _is_negative(w, y)))
    quotient = w.select(is_below, w.do("sub", quotient, 1.0), quotient)
    floor = w.do("floor", quotient)
    floor = w.select(w.do("gt", w.do("sub", quotient, floor), 0.5), w.do("add", floor, 1.0), floor)
    zero = w.do("copysign", 0.0, w.do("div", x, y))
    found = w.select(w.do("eq", quotient, 0.0), zero, floor)
    return w.select(w.do("eq", y, 0.0), w.do("div", x, y), found)


def _modulo(w: Lines, x: Expression, y: Expression) -> Expression:
    rest = w.do("fmod", x, y)
    is_wrong = w.do("bitand", w.do("ne", rest, 0.0), w.do("ne", _is_negative(w, rest), _is_negative(w, y)))
    return w.select(is_wrong, w.do("add", rest, y), rest)


def _is_negative(w: Lines, x: Expression) -> Expression:
    return w.do("lt", x, 0.0)


def _whole_floor_divide(w: Lines, x: Expression, y: Expression) -> Expression:
    quotient, rest = w.do("quotient", x, y), w.do("rest", x, y)
    is_below = w.do("bitand", w.do("ne", rest, 0), w.do("lt", w.do("bitxor", rest, y), 0))
    return w.select(is_below, w.do("sub", quotient, 1), quotient)


def _whole_modulo(w: Lines, x: Expression, y: Expression) -> Expression:
    rest = w.do("rest", x, y)
    is_wrong = w.do("bitand", w.do("ne", rest, 0), w.do("lt", w.do("bitxor", rest, y), 0))
    return w.select(is_wrong, w.do("add", rest, y), rest)


_FUNCTIONS: Final[dict[tuple[str, str], Callable[..., Expression]]] = {
    ("exp", "f32"): _exp_f32, ("expm1", "f32"): _expm1_f32, ("tanh", "f32"): _tanh_f32, ("log", "f32"): _log_f32,
    ("log1p", "f32"): _log1p_f32, ("erf", "f32"): _erf_f32, ("exp", "f64"): _exp_f64,
    **{("sigmoid", type): _sigmoid for type in FLOATS},
    **{("floordiv", type): _floor_divide for type in FLOATS},
    **{("mod", type): _modulo for type in FLOATS},
}  # fmt: skip
_WHOLE: Final[dict[str, Callable[..., Expression]]] = {"floordiv": _whole_floor_divide, "mod": _whole_modulo}
