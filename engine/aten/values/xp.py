"""The array library under the tensors, and how its element types and ours correspond.

In: dtypes, or their numbers as programs see them.  Out: numpy dtypes, and back.  `quiet` and `loud`
switch numpy's floating point warnings off and on around one operator: overflow, division by zero and
the like are ordinary results here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np

from engine.aten.stepwise import language
from engine.aten.stepwise.converting import convert
from engine.aten.values import libraries
from engine.lang import scalars
from engine.lang.errors import OperatorError, OperatorTypeError
from engine.lang.scalars import DTYPE_BY_NUMBER, DTYPES, dtype

Array = np.ndarray[Any, np.dtype[Any]]
NumpyDtype = np.dtype[Any]

BFLOAT16: Final[NumpyDtype] = np.dtype(ml_dtypes.bfloat16)
FLOAT16: Final[NumpyDtype] = np.dtype(np.float16)
FLOAT32: Final[NumpyDtype] = np.dtype(np.float32)
FLOAT64: Final[NumpyDtype] = np.dtype(np.float64)
COMPLEX32: Final[NumpyDtype] = np.dtype(ml_dtypes.complex32)
COMPLEX64: Final[NumpyDtype] = np.dtype(np.complex64)
COMPLEX128: Final[NumpyDtype] = np.dtype(np.complex128)
INT64: Final[NumpyDtype] = np.dtype(np.int64)
INT32: Final[NumpyDtype] = np.dtype(np.int32)
UINT8: Final[NumpyDtype] = np.dtype(np.uint8)
BOOL: Final[NumpyDtype] = np.dtype(np.bool_)
HALVES: Final = (FLOAT16, BFLOAT16)
FLOATS: Final = frozenset({FLOAT32, FLOAT64})
"""Dtypes in which computation runs without conversion."""

_BESIDE_NUMPY: Final = {scalars.bfloat16: BFLOAT16, scalars.complex32: COMPLEX32}
TO_NUMPY: Final[dict[dtype, NumpyDtype]] = {d: _BESIDE_NUMPY.get(d) or np.dtype(d.name) for d in DTYPES}
QUANTIZED: Final[dict[str, NumpyDtype]] = {"qint8": np.dtype("i1"), "quint8": np.dtype("u1"), "qint32": np.dtype("i4"),
                                           "quint4x2": np.dtype("u1")}  # fmt: skip
"""The names of dtypes whose integers stand for numbers, and those integers; see Note [Quantized arrays]."""
FROM_NUMPY: Final[dict[NumpyDtype, dtype]] = {
    **{n: d for d, n in TO_NUMPY.items()},
    **{np.dtype([(name, n)]): scalars.DTYPE_WORDS[name] for name, n in QUANTIZED.items()},
}


def _of(*categories: scalars.Category) -> frozenset[NumpyDtype]:
    """The dtypes of tensors whose elements are such numbers; quantized ones, whose integers stand for others, never."""
    return frozenset(n for d, n in TO_NUMPY.items() if d.category in categories)


FLOATING: Final = _of("float")
COMPLEX: Final = _of("complex")
PART_OF: Final = {COMPLEX32: FLOAT16, COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}
"""The dtype of the real and imaginary parts of complex numbers."""
COMPLEX_OF: Final = {part: whole for whole, part in PART_OF.items()}
INEXACT: Final = FLOATING | COMPLEX
"""Dtypes that have gradients, infinities and NaN."""
SIGNED_INTEGERS: Final = frozenset(map(np.dtype, (np.int8, np.int16, np.int32, np.int64)))
INTEGERS: Final = SIGNED_INTEGERS | set(map(np.dtype, (np.uint8, np.uint16, np.uint32, np.uint64)))
"""Integers without bool, with those that arrays have on the way of a computation though no tensor does."""
INTEGRAL: Final = INTEGERS | {BOOL}
REAL: Final = INTEGERS | FLOATING
"""All but bool and complex: numbers that have an order and a range."""
BY_NUMBER: Final[dict[int, NumpyDtype]] = {d.number: n for d, n in TO_NUMPY.items()}


def numpy_dtype(number: int | dtype) -> NumpyDtype:
    """The array dtype that a program's dtype number (or a dtype) stands for; raises OperatorTypeError."""
    known = BY_NUMBER.get(number) if isinstance(number, int) else TO_NUMPY.get(number)
    if known is None:
        raise OperatorTypeError(
            f"dtype {number} is not supported", hints=(f"there are {', '.join(map(repr, DTYPES))}",)
        )
    return known


def dtype_of(array: Array) -> dtype:
    """The tensor dtype of an array; raises OperatorTypeError when tensors have none such."""
    known = FROM_NUMPY.get(array.dtype)
    if known is None:
        raise OperatorTypeError(f"can't convert numpy arrays of dtype {array.dtype} to tensors")
    return known


def ir_name(number_or_dtype: NumpyDtype | int) -> str:
    """`Float`, `Long`: the dtype as PyTorch's messages name it."""
    return (
        DTYPE_BY_NUMBER[number_or_dtype].ir_name
        if isinstance(number_or_dtype, int)
        else FROM_NUMPY[number_or_dtype].ir_name
    )


def category(d: NumpyDtype) -> scalars.Category:
    return FROM_NUMPY[d].category


def cast(array: Array, d: NumpyDtype) -> Array:
    """The array in another dtype; the imaginary part of complex numbers is dropped.  Doubles become halves by way of
    single precision, and so are rounded twice."""
    if array.dtype is d:
        return array
    order: Any = "C" if 0 in array.strides else "K"
    if array.dtype in COMPLEX and d not in COMPLEX:
        alone: Array = np.empty_like(array, d, order)
        alone[...] = array != 0 if d == BOOL else cast(real(array), d)
        return alone
    if (d is FLOAT32 and array.dtype in HALVES) or (d in HALVES and array.dtype is FLOAT32):
        result = np.empty(array.shape, d) if language.worth(array) and array.flags.c_contiguous else None
        if result is not None and convert.run(array.size, array, result, array.size) is not None:
            return result
    if d is FLOAT16 and array.dtype is FLOAT64 and type(array) is np.ndarray:
        halves = np.empty_like(array, d, order)
        halves[...] = array.astype(FLOAT32, order)
        return halves
    return array.astype(d, order, copy=False)


def parts(array: Array) -> Array:
    """The real and imaginary parts of complex numbers side by side in one more dimension, as a view."""
    return array[..., np.newaxis].view(PART_OF[array.dtype])


def real(array: Array) -> Array:
    """The real parts of complex numbers, as a view."""
    return parts(array)[..., 0] if array.dtype == COMPLEX32 else array.real


def imag(array: Array) -> Array:
    """The imaginary parts of complex numbers, as a view."""
    return parts(array)[..., 1] if array.dtype == COMPLEX32 else array.imag


def limits(d: NumpyDtype) -> Any:
    """The largest and smallest number of a floating point type, and its precision."""
    finfo: Any = ml_dtypes.finfo
    return finfo(d)


def as_strided(array: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """A view with byte strides, writable where the array is."""
    if type(array) is not np.ndarray and type(array) in libraries.ARRAYS:
        shown: Array = libraries.show(shape, array.dtype, array, 0, strides)
        return shown
    if array.flags.c_contiguous:
        try:
            return np.ndarray(shape, array.dtype, array, 0, strides)  # some ten times as quick
        except (TypeError, ValueError):
            pass
    found: Array = libraries.as_strided(array, shape, strides)
    return found


def copy_layout(array: Array) -> Array:
    """A copy with the same strides, in memory of its own."""
    if array.flags.c_contiguous or array.size == 0 or any(stride < 0 for stride in array.strides):
        return array.copy(order="C")
    steps = [stride // array.itemsize for stride in array.strides]
    span = 1 + sum((size - 1) * step for size, step in zip(array.shape, steps, strict=True))
    copy = as_strided(np.zeros_like(array, shape=(span,)), array.shape, array.strides)
    copy[...] = array
    return copy


def to_list(array: Array) -> Any:
    """The values as nested lists of Python numbers (0-dim: the number)."""
    array = libraries.on_host(array)
    if array.dtype.names is not None:
        raise OperatorError("load_scalar: invalid type", hints=("x.dequantize().tolist()",))
    return (array.astype(np.float32) if array.dtype == BFLOAT16 else array).tolist()


def _warning_switches() -> tuple[Callable[[Any], Any], Any, Callable[[Any], None]]:
    """Functions that silence numpy's warnings and restore them, and the argument of the first: a context variable
    where numpy has one, else `np.errstate`."""
    try:
        from numpy._core.umath import _extobj_contextvar, _make_extobj
    except ImportError:
        return _enter_errstate, None, _leave_errstate
    return _extobj_contextvar.set, _make_extobj(all="ignore"), _extobj_contextvar.reset


def _enter_errstate(_: None) -> np.errstate:
    state = np.errstate(all="ignore")
    state.__enter__()
    return state


def _leave_errstate(state: np.errstate) -> None:
    state.__exit__(None, None, None)


switch, SILENT, loud = _warning_switches()


def quiet() -> Any:
    """Silence numpy's warnings; returns the token for `loud`."""
    return switch(SILENT)


def silently(function: Callable[..., Any], *args: Any) -> Any:
    """Call it while numpy is silent."""
    token = quiet()
    try:
        return function(*args)
    finally:
        loud(token)
