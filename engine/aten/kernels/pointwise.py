"""The functions that scalar expressions may call, on arrays.

In: arrays of one dtype (and Python numbers).  Out: arrays of that dtype, or of bool for predicates.
Everything else that compiles scalar expressions gives these names the same meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.aten.kernels import special
from engine.aten.kernels.blocks import choose
from engine.aten.values.xp import BOOL, FLOATING, INTEGERS, INTEGRAL, Array
from engine.lang.errors import OperatorError

ZERO_DIVISION: Final = "ZeroDivisionError"


def _is_int(value: Any) -> bool:
    return isinstance(value, int) if not isinstance(value, (np.ndarray, np.generic)) else value.dtype in INTEGRAL


def check_divisor(dividend: Any, divisor: Any) -> None:
    """Raise OperatorError if integers are divided by zero."""
    is_nonzero = divisor.all() if hasattr(divisor, "all") else bool(divisor)
    if not is_nonzero and _is_int(divisor) and np.size(dividend):
        raise OperatorError(ZERO_DIVISION, hints=("an integer tensor was divided by zero",))


def floor_divide(a: Any, b: Any) -> Any:
    if _is_int(a):
        check_divisor(a, b)
        return np.floor_divide(a, b)
    quotient = np.floor_divide(a, b)
    return np.where(np.equal(b, 0), np.divide(a, b), quotient)


def trunc_divide(a: Any, b: Any) -> Any:
    if not _is_int(a):
        return np.trunc(np.divide(a, b))
    check_divisor(a, b)
    quotient = np.floor_divide(a, b)
    inexact = np.not_equal(np.multiply(quotient, b), a)
    return np.add(quotient, np.logical_and(inexact, np.less(quotient, 0)).astype(np.asarray(quotient).dtype))


def remainder(a: Any, b: Any) -> Any:
    if _is_int(a):
        check_divisor(a, b)
        return np.remainder(a, b)
    rest = np.fmod(a, b)
    wrong_side = np.logical_and(np.not_equal(rest, 0), np.not_equal(np.less(rest, 0), np.less(b, 0)))
    return np.where(wrong_side, np.add(rest, b), rest)


def fmod(a: Any, b: Any) -> Any:
    if _is_int(a):
        check_divisor(a, b)
    return np.fmod(a, b)


def power(a: Any, b: Any) -> Any:
    if _is_int(a) and not isinstance(b, np.ndarray) and b < 0:
        raise OperatorError("Integers to negative integer powers are not allowed.")
    if _is_int(a) and isinstance(b, np.ndarray) and b.dtype in INTEGERS and np.any(np.less(b, 0)):
        return _power_of_any_sign(a, b)
    return _power_of_floats(a, b)


def _power_of_floats(a: Any, b: Any) -> Any:
    """Powers as IEEE 754 has them.

    Where numpy finds one exponent for many elements it takes the square root for 0.5, which is another function of -0.0
    and minus infinity; which these are depends on strides.
    """
    if type(b) is float or type(b) is int:
        names = POWERS.get(b)
        if names is not None and np.asarray(a).dtype in FLOATING:
            for name in names:
                a = FUNCTIONS[name](a)
            return a
    found, is_half = np.power(a, b), np.equal(b, 0.5)
    return np.where(is_half & (np.equal(a, 0) | np.equal(a, -np.inf)), np.abs(a), found) if is_half.any() else found


def _root(x: Any) -> Any:
    found, is_lowest = np.abs(np.sqrt(x)), np.equal(x, -np.inf)
    return np.where(is_lowest, np.abs(x), found) if is_lowest.any() else found


POWERS: Final[dict[float, tuple[str, ...]]] = {
    2: ("square",), 3: ("cube",), 0.5: ("root",), -1: ("reciprocal",), -0.5: ("root", "reciprocal"),
    -2: ("square", "reciprocal"),
}  # fmt: skip
"""Powers of floats that are taken by other functions, one after the other; `root` is the square root but of -0.0 and
minus infinity, where it is as IEEE's power: 0.0 and infinity."""


def _power_of_any_sign(a: Any, b: Array) -> Array:
    """Integer powers as integer arithmetic gives them: 1/n is 0 unless n is 1 or -1."""
    positive = np.power(a, np.maximum(b, 0))
    sign = np.where(np.equal(np.remainder(b, 2), 0), 1, a)
    inverse = np.where(np.equal(a, 1), 1, np.where(np.equal(a, -1), sign, 0))
    return np.where(np.less(b, 0), inverse, positive)


def sigmoid(x: Any) -> Any:
    return np.reciprocal(np.add(np.exp(np.negative(x)), 1))


def negative(x: Any) -> Any:
    if np.asarray(x).dtype == BOOL:
        raise OperatorError(
            "Negation, the `-` operator, on a bool tensor is not supported.",
            hints=("use the `~` or `logical_not()` operator to invert a mask",),
        )
    return np.negative(x)


def subtract(a: Any, b: Any) -> Any:
    if _is_bool(a) and _is_bool(b):
        raise OperatorError(
            "Subtraction, the `-` operator, with two bool tensors is not supported.",
            hints=("use the `^` or `logical_xor()` operator instead",),
        )
    return np.subtract(a, b)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, (np.ndarray, np.generic)) and value.dtype == BOOL)


def _rounding(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """A rounding function: whole numbers are copied."""
    return lambda x: np.array(x) if _is_int(x) else function(x)


def shift_left(a: Any, b: Any) -> Any:
    return np.left_shift(a, b)


def sign(x: Any) -> Any:
    if np.asarray(x).dtype == BOOL:
        return np.array(x)
    return np.where(np.isnan(x), np.zeros_like(x), np.sign(x)) if np.asarray(x).dtype in FLOATING else np.sign(x)


def where(condition: Any, a: Any, b: Any) -> Any:
    """Elements of `a` where the condition holds, else of `b`; numbers take the array's dtype."""
    if isinstance(a, (np.ndarray, np.generic)):
        b = b if isinstance(b, (np.ndarray, np.generic)) else a.dtype.type(b)
    elif isinstance(b, (np.ndarray, np.generic)):
        a = b.dtype.type(a)
    return choose(condition, a, b)


def relu(x: Any) -> Any:
    if _is_bool(x):
        raise OperatorError("Boolean inputs not supported for relu")
    return np.maximum(x, 0)


def softplus(x: Any) -> Any:
    """log(1 + exp(x)) without overflow."""
    return np.add(np.maximum(x, 0), np.log1p(np.exp(np.negative(np.abs(x)))))


def log_sigmoid(x: Any) -> Any:
    return np.subtract(np.minimum(x, 0), np.log1p(np.exp(np.negative(np.abs(x)))))


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    # arithmetic
    "add": np.add, "sub": subtract, "mul": np.multiply, "div": np.divide, "neg": negative,
    "floor_divide": floor_divide, "trunc_divide": trunc_divide, "remainder": remainder, "fmod": fmod, "pow": power,
    "abs": np.abs, "sign": sign, "square": np.square, "cube": lambda x: x * x * x, "reciprocal": np.reciprocal,
    "sqrt": np.sqrt, "root": _root,
    "maximum": np.maximum, "minimum": np.minimum, "where": where,
    # rounding
    "floor": _rounding(np.floor), "ceil": _rounding(np.ceil), "trunc": _rounding(np.trunc),
    "round": _rounding(np.rint),
    # exponentials
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sigmoid": sigmoid, "log_sigmoid": log_sigmoid, "softplus": softplus, "relu": relu,
    # trigonometry
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "atan2": np.arctan2,
    # special
    "erf": special.erf, "erfc": special.erfc,
    # predicates and logic
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "logical_not": np.logical_not, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert, "left_shift": shift_left, "right_shift": np.right_shift,
}  # fmt: skip


EXACT: Final = frozenset({
    "neg", "abs", "maximum", "minimum", "relu", "eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite",
    "logical_not", "logical_and", "logical_or", "logical_xor",
})  # fmt: skip
"""Functions whose results for floats are always exact: numpy never warns for them."""


def _relu_of_floats(x: Any) -> Any:
    return np.maximum(x, _ZEROS[x.dtype])


_ZEROS: Final = {np.dtype(kind): np.zeros((), kind) for kind in (np.float32, np.float64)}


def _sigmoid_of_floats(x: Any) -> Any:
    if not x.ndim:
        return sigmoid(x)
    result = np.negative(x)
    np.exp(result, result)
    np.add(result, 1, result)
    return np.reciprocal(result, result)


OF_FLOATS: Final[dict[str, Callable[..., Any]]] = {
    "neg": np.negative, "sub": np.subtract, "relu": _relu_of_floats, "pow": _power_of_floats,
    "sigmoid": _sigmoid_of_floats,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint,
}  # fmt: skip
"""The same functions of arrays of float32 or float64, where there is less to look at."""
FLOAT_FORMS: Final[dict[str, str]] = {
    "sub": "subtract(x, y)", "neg": "negative(x)", "relu": "maximum(x, 0)",
    "sigmoid": "reciprocal(add(exp(negative(x)), 1))",
    "fmod": "fmod(x, y)",
}  # fmt: skip
"""The same for code that is generated: what functions of arrays of floats come to, in calls of numpy's."""
