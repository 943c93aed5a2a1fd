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

from engine.lang import scalars
from engine.lang.errors import OperatorTypeError
from engine.lang.scalars import DTYPE_BY_NUMBER, DTYPES, dtype

Array = np.ndarray[Any, np.dtype[Any]]
NumpyDtype = np.dtype[Any]

BFLOAT16: Final[NumpyDtype] = np.dtype(ml_dtypes.bfloat16)
FLOAT16: Final[NumpyDtype] = np.dtype(np.float16)
FLOAT32: Final[NumpyDtype] = np.dtype(np.float32)
FLOAT64: Final[NumpyDtype] = np.dtype(np.float64)
COMPLEX64: Final[NumpyDtype] = np.dtype(np.complex64)
COMPLEX128: Final[NumpyDtype] = np.dtype(np.complex128)
INT64: Final[NumpyDtype] = np.dtype(np.int64)
INT32: Final[NumpyDtype] = np.dtype(np.int32)
UINT8: Final[NumpyDtype] = np.dtype(np.uint8)
BOOL: Final[NumpyDtype] = np.dtype(np.bool_)
HALVES: Final = (FLOAT16, BFLOAT16)

TO_NUMPY: Final[dict[dtype, NumpyDtype]] = {d: BFLOAT16 if d is scalars.bfloat16 else np.dtype(d.name) for d in DTYPES}
FROM_NUMPY: Final[dict[NumpyDtype, dtype]] = {n: d for d, n in TO_NUMPY.items()}
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


def is_float(d: NumpyDtype) -> bool:
    return d.kind == "f" or d is BFLOAT16 or d == BFLOAT16


def is_integral(d: NumpyDtype) -> bool:
    """An integer type, bool left out."""
    return d.kind in "iu"


def cast(array: Array, d: NumpyDtype) -> Array:
    """The array in another dtype; the imaginary part of complex numbers is dropped."""
    if array.dtype is d:
        return array
    if array.dtype.kind == "c" and d.kind not in "cb":
        array = array.real
    return array.astype(d, copy=False)


def limits(d: NumpyDtype) -> Any:
    """The largest and smallest number of a floating point type, and its precision."""
    finfo: Any = ml_dtypes.finfo
    return finfo(d)


def as_strided(array: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """A writable view with byte strides."""
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def _warning_switches() -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """How to silence numpy and undo it: one context variable where numpy keeps it there, else `np.errstate`."""
    try:
        from numpy._core.umath import _extobj_contextvar, _make_extobj
    except ImportError:
        return _enter_errstate, _leave_errstate
    silent = _make_extobj(all="ignore")
    switch, restore = _extobj_contextvar.set, _extobj_contextvar.reset
    return lambda: switch(silent), restore


def _enter_errstate() -> np.errstate:
    state = np.errstate(all="ignore")
    state.__enter__()
    return state


def _leave_errstate(state: np.errstate) -> None:
    state.__exit__(None, None, None)


quiet, loud = _warning_switches()
