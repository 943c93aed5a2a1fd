"""Type promotion: the dtype of a result from those of its operands.

Categories rank bool < int < float < complex.  Tensors with dimensions decide; 0-dim tensors and then
Python numbers only raise the category.  In: arrays and numbers.  Out: a numpy dtype.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from engine.aten.values import xp
from engine.aten.values.libraries import ARRAYS
from engine.aten.values.xp import Array, NumpyDtype
from engine.lang.errors import OperatorError, OperatorTypeError, OperatorValueError
from engine.lang.records import dataclass
from engine.lang.scalars import dtype

_WIDE: Final = {xp.FLOAT16: xp.FLOAT32, xp.BFLOAT16: xp.FLOAT32, xp.COMPLEX32: xp.COMPLEX64}
_pairs: dict[tuple[NumpyDtype, NumpyDtype], NumpyDtype] = {}


@dataclass(slots=True)
class Defaults:
    """Defaults that programs may change."""

    floating: NumpyDtype = xp.FLOAT32


DEFAULTS: Final = Defaults()


def default_dtype() -> NumpyDtype:
    """The dtype of tensors made of Python floats."""
    return DEFAULTS.floating


def set_default_dtype(d: dtype) -> None:
    """Make Python floats become `d`; raises OperatorError unless it is a floating point type."""
    if not d.is_floating_point:
        raise OperatorError(f"only floating-point types are supported as the default type, not {d!r}")
    DEFAULTS.floating = xp.TO_NUMPY[d]


def default_complex() -> NumpyDtype:
    return xp.COMPLEX_OF.get(DEFAULTS.floating, xp.COMPLEX64)


def rank(d: NumpyDtype) -> int:
    """bool 0, integers 1, floats (and integers that stand for such) 2, complex 3."""
    return 3 if d in xp.COMPLEX else 1 if d in xp.INTEGERS else 0 if d == xp.BOOL else 2


def dtype_of_number(value: Any) -> NumpyDtype:
    """The dtype of a tensor made of a Python number."""
    if isinstance(value, bool):
        return xp.BOOL
    if isinstance(value, int):
        return xp.INT64
    return default_complex() if isinstance(value, complex) else DEFAULTS.floating


def promote_types(a: NumpyDtype, b: NumpyDtype) -> NumpyDtype:
    """The least dtype that holds both; integers never widen a float."""
    if a is b:
        return a
    known = _pairs.get((a, b))
    if known is None:
        known = _pairs[a, b] = _promote(a, b)
    return known


def result_type(values: Iterable[Any]) -> NumpyDtype:
    """The common dtype of arrays and Python numbers (None is skipped)."""
    if type(values) is tuple and len(values) == 2:
        a, b = values
        if type(a) is np.ndarray and type(b) is np.ndarray and a.dtype is b.dtype:
            common: NumpyDtype = a.dtype
            return common
    found: list[NumpyDtype | None] = [None, None, None]
    for value in values:
        if value is None:
            continue
        if isinstance(value, np.ndarray) or type(value) in ARRAYS:
            level, d = (0 if value.ndim else 1), value.dtype
        else:
            level, d = 2, dtype_of_number(value)
        before = found[level]
        found[level] = d if before is None else promote_types(before, d)
    result: NumpyDtype | None = None
    for d_or_none in found:
        if d_or_none is not None:
            result = d_or_none if result is None else raised(result, d_or_none)
    assert result is not None, "no value to take a dtype from"
    return result


def to_float(d: NumpyDtype) -> NumpyDtype:
    """The dtype itself if it has fractions, else the default one."""
    return d if rank(d) >= 2 else DEFAULTS.floating


def wide(d: NumpyDtype) -> NumpyDtype:
    """The dtype to compute in: float32 for half types, complex64 for complex numbers of such, else the same."""
    return _WIDE.get(d, d)


def can_cast(source: NumpyDtype, target: NumpyDtype) -> bool:
    """True if a result of dtype `source` may be stored into a tensor of dtype `target`."""
    return rank(source) <= rank(target)


def check_cast(source: NumpyDtype, target: NumpyDtype) -> None:
    """Raise OperatorError unless a `source` result can go into a `target` tensor."""
    if source is not target and not can_cast(source, target):
        names = xp.ir_name(source), xp.ir_name(target)
        raise OperatorError(
            f"result type {names[0]} can't be cast to the desired output type {names[1]}",
            hints=("use the form that returns a new tensor", f"or convert: x.to(torch.{xp.FROM_NUMPY[source].name})"),
        )


def fit(value: Any, d: NumpyDtype) -> Any:
    """A Python number as one of dtype `d`: integers wrap around, as in C."""
    if d in xp.INTEGERS:
        bits = 8 * d.itemsize
        wrapped = int(value.real if isinstance(value, complex) else value) & ((1 << bits) - 1)
        return wrapped - (1 << bits) if d in xp.SIGNED_INTEGERS and wrapped >> (bits - 1) else wrapped
    if d == xp.BOOL:
        return bool(value)
    return complex(value) if d in xp.COMPLEX else value


def rounded(value: Any, d: NumpyDtype) -> Any:
    """A Python number as an operand of dtype `d`: wrapped or rounded to it, as a number to compute with."""
    if d in xp.INTEGERS:
        return d.type(fit(value, d))
    if d in xp.FLOATING:
        return float(d.type(value if d is xp.FLOAT64 else np.float32(value)))
    return fit(value, d)


def operand(value: Any, d: NumpyDtype, keeps: bool = False) -> Any:
    """A number or an array in the dtype in which `d` is computed.

    Beside half types it is rounded to them first, unless it is one number that the operator `keeps` as it is.
    """
    used = wide(d)
    if not isinstance(value, np.ndarray) and type(value) not in ARRAYS:
        return fit(value, d) if keeps else rounded(value, d)
    if value.dtype is not d and not (keeps and value.size == 1):
        value = xp.cast(value, d)
    return xp.cast(value, used)


def stored(values: list[Any], d: NumpyDtype) -> Array:
    """Python numbers as an array, which rounds them once; raises OperatorError, OperatorTypeError or OperatorValueError
    for those that the dtype has no place for."""
    if d in xp.INTEGERS:
        return _whole(values, d)
    if d in xp.REAL and complex in set(map(type, values)):
        raise OperatorTypeError("must be real number, not complex")
    if d == xp.BOOL:
        return np.array(values, d)
    exact = np.array(values, xp.COMPLEX128 if d in xp.COMPLEX else xp.FLOAT64)
    array: Array = xp.silently(lambda: exact.astype(wide(d), copy=False).astype(d, copy=False))
    return array


def _whole(values: list[Any], d: NumpyDtype) -> Array:
    if not set(map(type, values)) <= {int, bool}:
        if complex in set(map(type, values)):
            raise OperatorTypeError("'complex' object cannot be interpreted as an integer")
        return np.array([converted(value, d) for value in values], d)
    try:
        array = np.array(values, xp.INT64)
    except OverflowError:
        raise OperatorValueError("Overflow when unpacking long long", hints=("integers have 64 bits",)) from None
    if d is not xp.INT64 and array.size and not (_has_place(int(array.min()), d) and _has_place(int(array.max()), d)):
        raise _overflow(d)
    return array.astype(d, copy=False)


def converted(value: Any, d: NumpyDtype) -> Any:
    """A number to be stored as `d`; raises OperatorError when it has no place there."""
    if type(value) is float and d in xp.FLOATS and -_SMALL < value < _SMALL:
        return value
    if d == xp.BOOL:
        return bool(value)
    if isinstance(value, complex) and d not in xp.COMPLEX:
        if value.imag:
            raise _overflow(d)
        value = value.real
    if type(value) is not bool and not _has_place(value, d):
        raise _overflow(d)
    return fit(value, d)


def element(value: Any, d: NumpyDtype) -> Any:
    """A number to be stored as the only element, where half types hold infinity for what is beyond them."""
    return converted(value, xp.FLOAT64 if d in xp.HALVES else d)


def _has_place(value: Any, d: NumpyDtype) -> bool:
    """True if the dtype's range holds the number; negative integers wrap around in unsigned ones, inf is a float."""
    if d in xp.INTEGERS:
        low, high = _RANGES[d]
        return bool((-high if d not in xp.SIGNED_INTEGERS and isinstance(value, int) else low) <= value <= high)
    limit = _LARGEST[d]
    if isinstance(value, complex):
        return all(math.isinf(part) or not abs(part) > limit for part in (value.real, value.imag))
    return not abs(value) > limit or math.isinf(value)


_SMALL: Final = 1e38
"""Floats below have a place in all dtypes that need no conversion."""
_RANGES = {d: (int(np.iinfo(d).min), int(np.iinfo(d).max)) for d in xp.TO_NUMPY.values() if d in xp.INTEGERS}
_LARGEST = {d: float(xp.limits(d).max) for d in xp.TO_NUMPY.values() if d not in xp.INTEGRAL}
_C_TYPES = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "complex64": "c10::complex<float>", "complex32": "c10::complex<c10::Half>", "complex128": "c10::complex<double>",
}  # fmt: skip


def _overflow(d: NumpyDtype) -> OperatorError:
    name = _C_TYPES.get(d.name, f"{d.name}_t")
    return OperatorError(f"value cannot be converted to type {name} without overflow")


def _promote(a: NumpyDtype, b: NumpyDtype) -> NumpyDtype:
    low, high = (a, b) if rank(a) <= rank(b) else (b, a)
    if rank(high) == 2 and rank(low) == 2 and low != high and xp.BFLOAT16 in (low, high):
        other = high if low == xp.BFLOAT16 else low
        return xp.FLOAT32 if other.itemsize <= 4 else other
    if rank(low) == rank(high):
        return np.promote_types(low, high)
    if rank(high) == 3:
        return _promote(xp.COMPLEX_OF.get(low, xp.COMPLEX64), high) if rank(low) == 2 else high
    return high


def raised(higher: NumpyDtype, lower: NumpyDtype) -> NumpyDtype:
    """`higher` promoted by `lower`, of lower priority: only a higher category changes it."""
    if rank(lower) <= rank(higher):
        return higher
    if rank(lower) == 3 and rank(higher) == 2:
        return xp.COMPLEX_OF.get(higher, xp.COMPLEX64)
    return promote_types(higher, lower)
