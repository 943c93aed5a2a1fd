"""The functions of kernel IR in numpy's scalars: the definition of what each gives.

In: scalars of the numpy types that `NUMPY` has for kernel IR's.  Out: `NUMERIC`, a function for each of
`kernel.FUNCTIONS`, of scalars to a scalar; `converted`.  Functions of mathematics are those of the C library in the
next wider type, rounded once, which machine code only comes near to (see `math`).
"""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import ml_dtypes
import numpy as np

from engine.aten.values import xp
from engine.fuser.ir.kernel import BOOL, FUNCTIONS, HALVES, VECTORS, WHOLE, lanes_of, wrapped

Number = Any
"""A numpy scalar, or an array of a vector's elements."""
NUMPY: Final[dict[str, Any]] = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i64": np.int64,
    "i32": np.int32, "i16": np.int16, "i8": np.int8, "u8": np.uint8, "bool": np.bool_,
}  # fmt: skip
"""The numpy type of each type of kernel IR."""
_KERNEL: Final = {np.dtype(found): type for type, found in NUMPY.items()}


def converted(value: Number, type: str) -> Number:
    """The value in another type, see `kernel.FUNCTIONS`."""
    if type in VECTORS:
        return np.full(lanes_of(type), value)
    source = _KERNEL[value.dtype]
    if source == type:
        return value
    if source in HALVES or type in HALVES:
        value = value.astype(np.float32)
    if type == BOOL:
        return np.bool_(value != 0)
    if type not in WHOLE:
        return value.astype(NUMPY[type])
    is_whole = value.dtype in xp.INTEGRAL
    return NUMPY[type](wrapped(int(value), type) if is_whole else _nearest(float(value), type))


def _nearest(value: float, type: str) -> int:
    """Truncated, or the nearest end of the range of the type; 0 for NaN."""
    least, most = int(np.iinfo(NUMPY[type]).min), int(np.iinfo(NUMPY[type]).max)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return most if value > 0 else least
    return min(max(int(value), least), most)


# ------------------------------------------------------------------ whole numbers


def _quotient(a: Number, b: Number) -> Number:
    x, y = int(a), int(b)
    return _whole_like(a, abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1))


def _rest(a: Number, b: Number) -> Number:
    x, y = int(a), int(b)
    return _whole_like(a, abs(x) % abs(y) * (-1 if x < 0 else 1))


def _shift_right_logical(a: Number, b: Number) -> Number:
    return _whole_like(a, int(a) % (1 << 8 * a.itemsize) >> int(b))


def _whole_like(a: Number, value: int) -> Number:
    return a.dtype.type(wrapped(value, _KERNEL[a.dtype]))


# ------------------------------------------------------------------ floats


@cache
def _of_library(name: str, type: Any, operands: int) -> Callable[..., float]:
    """A function of the C library."""
    function = getattr(ctypes.CDLL(None), name)
    function.argtypes, function.restype = [type] * operands, type
    return function  # type: ignore[no-any-return]


def _fused(a: Number, b: Number, c: Number) -> Number:
    if a.ndim:
        return np.array([_fused(*each) for each in zip(a, b, c, strict=True)])
    name, type = ("fma", ctypes.c_double) if a.dtype.itemsize == 8 else ("fmaf", ctypes.c_float)
    return a.dtype.type(_of_library(name, type, 3)(a, b, c))


def _zipped(a: Number, b: Number) -> Number:
    return np.stack([a, b], axis=1).reshape(-1)


def _in_longest(name: str, operands: int = 1) -> Callable[..., Number]:
    """A function that numpy does not have, or not as C has it, in the C library's longest type."""

    def compute(*given: Number) -> Number:
        return np.float64(_of_library(f"{name}l", ctypes.c_longdouble, operands)(*given)).astype(given[0].dtype)

    return compute


def _in_wider(function: Callable[..., Any]) -> Callable[..., Number]:
    """The function computed in the next wider type."""

    def compute(*given: Number) -> Number:
        wider = np.longdouble if given[0].dtype.itemsize == 8 else np.float64
        return function(*(wider(each) for each in given)).astype(given[0].dtype)

    return compute


def _sigmoid(x: Number) -> Number:
    return 1 / (1 + np.exp(-x))


_INVERSES: Final = {f"a{name}": f"arc{name}" for name in "sin cos tan sinh cosh tanh tan2".split()}
"""Functions that numpy has by another name."""
_OF_NUMPY: Final = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2".split()
)
NUMERIC: Final[dict[str, Callable[..., Number]]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
    "abs": abs, "minimum": np.minimum, "maximum": np.maximum, "fma": _fused, "muladd": _fused,
    "zip_low": lambda a, b: _zipped(a, b)[: len(a)], "zip_high": lambda a, b: _zipped(a, b)[len(a) :],
    "quotient": _quotient, "rest": _rest,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "shift_left": np.left_shift, "shift_right": np.right_shift, "shift_right_logical": _shift_right_logical,
    "bitand": operator.and_, "bitor": operator.or_, "bitxor": operator.xor, "bitnot": operator.invert,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "sqrt": np.sqrt, "copysign": np.copysign,
    "select": lambda condition, a, b: a if condition else b, "convert": converted,
    "bits_to_f32": lambda x: x.view(np.float32), "bits_of_f32": lambda x: x.view(np.int32),
    "bits_to_f64": lambda x: x.view(np.float64), "bits_of_f64": lambda x: x.view(np.int64),
    **{name: _in_wider(getattr(np, _INVERSES.get(name, name))) for name in _OF_NUMPY},
    "sigmoid": _in_wider(_sigmoid), "pow": _in_longest("pow", 2), "erf": _in_longest("erf"),
    "erfc": _in_longest("erfc"), "lgamma": _in_longest("lgamma"), "fmod": np.fmod,
    "floordiv": np.floor_divide, "mod": np.remainder,
}  # fmt: skip
"""A Python function for each; they expect that numpy ignores floating-point errors."""
assert NUMERIC.keys() == FUNCTIONS.keys()
