"""Arithmetic on single numbers as TorchScript has it: 64-bit integers that wrap, C's floating point.

In: Python ints, floats, complexes.  Out: the same.  Where Python raises (overflow, a pole, a domain error)
C answers inf or nan, and so do these; what C leaves undefined raises OperatorError.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.lang.errors import OperatorError

LOW: Final = -(2**63)
HIGH: Final = 2**63
Number = int | float | complex


def wrap(value: int) -> int:
    """The integer's low 64 bits, signed."""
    return value if LOW <= value < HIGH else (value + HIGH) % (2 * HIGH) - HIGH


def wrap32(value: int) -> int:
    """The integer's low 32 bits, signed: C's int, which a few operators go through."""
    return (value + 2**31) % 2**32 - 2**31


def single(value: float) -> float:
    """The number rounded to float32."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


# ------------------------------------------------------------------ integers


def add_int(a: int, b: int) -> int:
    r = a + b
    return r if LOW <= r < HIGH else wrap(r)


def sub_int(a: int, b: int) -> int:
    r = a - b
    return r if LOW <= r < HIGH else wrap(r)


def mul_int(a: int, b: int) -> int:
    r = a * b
    return r if LOW <= r < HIGH else wrap(r)


def neg_int(a: int) -> int:
    return -a if a != LOW else a


def abs_int(a: int) -> int:
    return abs(a) if a != LOW else a


def floordiv_int(a: int, b: int) -> int:
    if b == 0:
        raise OperatorError("division by 0")
    return wrap(a // b)


def remainder_int(a: int, b: int) -> int:
    if b == 0:
        raise OperatorError("modulo by 0", hints=("the right side of % must not be zero",))
    return a % b if -(2**62) < b < 2**62 else _remainder_wrapping(a, b)


def _remainder_wrapping(a: int, b: int) -> int:
    """C's `(b + a % b) % b`, whose sum wraps for a huge b."""
    total = wrap(b + a - b * truncdiv_int(a, b))
    return total - b * truncdiv_int(total, b)


def truncdiv_int(a: int, b: int) -> int:
    """Division that rounds to zero, as C's does."""
    if b == 0:
        raise OperatorError("division by 0")
    q = abs(a) // abs(b)
    return wrap(q if (a < 0) == (b < 0) else -q)


def divmod_int(a: int, b: int) -> tuple[int, int]:
    if b == 0:
        raise OperatorError("ZeroDivisionError: integer division or modulo by zero")
    q, r = divmod(a, b)
    return wrap(q), r


def lshift(a: int, b: int) -> int:
    return wrap(a << (b & 63))


def rshift(a: int, b: int) -> int:
    return a >> (b & 63)


def gcd(a: int, b: int) -> int:
    return wrap(math.gcd(a, b))


def factorial(n: int) -> int:
    if n < 0:
        raise OperatorError("factorial() not defined for negative values")
    return wrap(math.factorial(n)) if n < 66 else 0


def int_of_float(a: float) -> int:
    """A C cast: to zero, and the lowest integer where that does not fit."""
    if LOW <= a < HIGH:
        return int(a)
    return LOW


def int_rounded_by(rounding: Callable[[float], int]) -> Callable[[float], int]:
    """`math.ceil` or `math.floor`, refusing what 64 bits do not hold."""

    def rounded(a: float) -> int:
        if LOW <= a < HIGH:
            return rounding(a)
        raise OperatorError(f"Cannot convert float {a:f} to integer")

    return rounded


ceil: Final = int_rounded_by(math.ceil)
floor: Final = int_rounded_by(math.floor)

# ------------------------------------------------------------------ floats

_NEGATIVE_NAN: Final = math.copysign(math.nan, -1.0)
"""The NaN that processors return for invalid operations; C prints its sign."""


def slice_of(start: int | None, stop: int | None, step: int) -> slice:
    """Python's slice for the bounds of a list, string or tuple; the largest integer is one that is left out."""
    if step == 0:
        raise OperatorError("List slice should have non-zero step")
    if step == LOW:
        raise OperatorError("List slice step is out of bounds")
    return slice(None if start == HIGH - 1 else start, None if stop == HIGH - 1 else stop, step)


def is_negative_nan(value: float) -> bool:
    """True for a NaN with its sign bit set, such as `0.0 / 0.0`, and False for `float("nan")`."""
    return value != value and math.copysign(1.0, value) < 0


def div(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        if a != a:
            return a
        return _NEGATIVE_NAN if a == 0 else math.copysign(math.inf, a) * math.copysign(1.0, b)


def div_int(a: int, b: int) -> float:
    """The quotient of the nearest floats, where Python's is the float nearest to the quotient."""
    return div(float(a), float(b))


def floordiv_float(a: float, b: float) -> float:
    q = div(a, b)
    return float(math.floor(q)) if q - q == 0 and q != 0 else q


def fmod(a: float, b: float) -> float:
    try:
        return math.fmod(a, b)
    except ValueError:
        return _NEGATIVE_NAN


def remainder_float(a: float, b: float) -> float:
    return fmod(b + fmod(a, b), b)


def ieee_remainder(a: float, b: float) -> float:
    try:
        return math.remainder(a, b)
    except ValueError:
        return _NEGATIVE_NAN


def divmod_float(a: float, b: float) -> tuple[float, float]:
    if b == 0:
        raise OperatorError("ZeroDivisionError: float divmod()")
    r = fmod(a, b)
    if r and (r < 0) != (b < 0):
        r += b
    return (a - r) / b, r


def divmod_mixed(a: float, b: float) -> tuple[float, float]:
    """`divmod` of an int and a float, which goes through C's int and float."""
    x, y = (wrap32(v) if isinstance(v, int) else single(v) for v in (a, b))
    if y == 0:
        raise OperatorError("ZeroDivisionError: float divmod()")
    q = float(floor(single(x / y)))
    return q, x - q * y


def pow_float(a: float, b: float) -> float:
    if a == 0 and b < 0:
        raise OperatorError("0.0 cannot be raised to a negative power")
    return pow_c(a, b)


def pow_c(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        return math.inf if a == 0 else _NEGATIVE_NAN


def round_float(a: float) -> float:
    """The nearest whole number, halves to even."""
    return math.copysign(float(round(a)), a) if a - a == 0 else a


def modf(a: float) -> tuple[float, float]:
    return math.modf(a)


def ldexp(a: float, exponent: int) -> float:
    try:
        return math.ldexp(a, (exponent + 2**31) % 2**32 - 2**31)
    except OverflowError:
        return math.copysign(math.inf, a)


def log_base(a: Number, base: Number) -> Any:
    """Logarithm to a base: a quotient of logarithms, each in its own kind."""
    x = log_complex(a) if isinstance(a, complex) else log_float(a)
    y = log_complex(base) if isinstance(base, complex) else log_float(base)
    if isinstance(y, complex):
        return div_complex(x, y)
    return complex(div(x.real, y), div(x.imag, y)) if isinstance(x, complex) else div(x, y)


def angle(a: float) -> float:
    return math.pi if a < 0 or (a == 0 and math.copysign(1.0, a) < 0) else 0.0


def min_of(a: Any, b: Any) -> Any:
    return a if a < b else b


def max_of(a: Any, b: Any) -> Any:
    return a if a > b else b


def like_c(python: Callable[[float], float], c: Callable[[float], Any]) -> Callable[[float], float]:
    """A function of Python's `math`, with C's answer where that raises."""

    def function(a: float) -> float:
        try:
            return python(a)
        except (ValueError, OverflowError):
            with np.errstate(all="ignore"):
                answer = float(c(float(a)))
            return math.nan if answer != answer and python in _UNSIGNED else answer

    return function


_UNSIGNED: Final = (math.log, math.log10, math.asin, math.acos)
"""Functions whose nan has no sign."""


def _gamma_at_pole(a: float) -> float:
    if a - a == 0 and (a == 0 or abs(a) < 1):
        return math.copysign(math.inf, a)
    return math.inf if a > 0 else math.nan


FLOAT_FUNCTIONS: Final[dict[str, Callable[[float], float]]] = {
    **{
        name: like_c(getattr(math, name), getattr(np, c_name))
        for name, c_name in {
            "sqrt": "sqrt", "exp": "exp", "log": "log", "log10": "log10", "log1p": "log1p", "expm1": "expm1",
            "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
            "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
        }.items()
    },
    "gamma": like_c(math.gamma, _gamma_at_pole),
    "lgamma": like_c(math.lgamma, lambda a: math.inf),
    "erf": math.erf,
    "erfc": math.erfc,
    "fabs": math.fabs,
    "degrees": lambda a: a * (180.0 / math.pi),
    "radians": lambda a: a * (math.pi / 180.0),
    "round": round_float,
}  # fmt: skip
"""Functions of one float or int that give a float."""

log_float: Final = FLOAT_FUNCTIONS["log"]

# ------------------------------------------------------------------ complex


def _complex_like_c(name: str, c_name: str) -> Callable[[complex], complex]:
    python, c = getattr(cmath, name), getattr(np, c_name)

    def function(a: complex) -> complex:
        try:
            return complex(python(a))
        except (ValueError, OverflowError, ZeroDivisionError):
            with np.errstate(all="ignore"):
                return complex(c(complex(a)))

    return function


COMPLEX_FUNCTIONS: Final[dict[str, Callable[[complex], complex]]] = {
    name: _complex_like_c(name, c_name)
    for name, c_name in {
        "sqrt": "sqrt", "exp": "exp", "log": "log", "log10": "log10", "sin": "sin", "cos": "cos", "tan": "tan",
        "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
        "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    }.items()
}  # fmt: skip
log_complex: Final = COMPLEX_FUNCTIONS["log"]


def mul(a: Any, b: Any) -> Any:
    """A product of numbers; a real factor scales both parts of a complex one."""
    if isinstance(a, complex) and not isinstance(b, complex):
        return complex(a.real * b, a.imag * b)
    if isinstance(b, complex) and not isinstance(a, complex):
        return complex(a * b.real, a * b.imag)
    return a * b


def div_complex(a: complex, b: complex) -> complex:
    try:
        return a / b
    except (ZeroDivisionError, OverflowError):
        with np.errstate(all="ignore"):
            return complex(np.complex128(a) / np.complex128(b))


def polar(length: float, angle: float) -> complex:
    return complex(length * math.cos(angle), length * math.sin(angle)) if angle - angle == 0 else complex("nan+nanj")


def pow_complex(a: Number, b: Number) -> complex:
    """exp(b log a), as C++ computes it: nan for most powers of zero."""
    return COMPLEX_FUNCTIONS["exp"](b * log_complex(complex(a)))


# ------------------------------------------------------------------ any number


def by_kind(
    int_: Callable[..., Any], float_: Callable[..., Any], complex_: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """One function of numbers whose kind is known only when it runs."""

    def function(*args: Number) -> Any:
        kinds = {type(a) for a in args}
        if complex in kinds:
            if complex_ is None:
                raise OperatorError("complex numbers are not supported here")
            return complex_(*args)
        return float_(*args) if float in kinds else int_(*args)

    return function


def through_c(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of a number of unknown kind, whose result C stores as int, float or single-precision complex."""

    def narrowed(a: Number) -> Number:
        result: Number = function(a)
        if isinstance(result, complex):
            return complex(single(result.real), single(result.imag))
        return single(result) if isinstance(result, float) else wrap32(result)

    return narrowed
