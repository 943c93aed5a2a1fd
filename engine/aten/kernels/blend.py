"""Choose between the elements of two arrays.

In: a mask, two arrays (or numpy numbers) of one dtype.  Out: an array.  `np.where` looks at one element after another,
and a processor that cannot guess which comes next waits at each; bits are blended in the same time for every mask.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.aten.kernels.blocks import BLOCK
from engine.aten.values.xp import FLOAT32, FLOAT64, Array, NumpyDtype

_BITS: Final[dict[NumpyDtype, NumpyDtype]] = {FLOAT32: np.dtype(np.int32), FLOAT64: np.dtype(np.int64)}
_LEAST: Final = 4096
"""Elements from which on it pays."""


def choose(condition: Any, a: Any, b: Any) -> Any:
    """`np.where(condition, a, b)`."""
    if type(condition) is not np.ndarray or condition.size < _LEAST or not condition.flags.c_contiguous:
        return np.where(condition, a, b)
    a, b = (_spread(x, condition) for x in (a, b))
    d = a.dtype if isinstance(a, (np.ndarray, np.generic)) else None
    if d not in _BITS or condition.dtype.kind != "b" or not (_fits(a, d, condition) and _fits(b, d, condition)):
        return np.where(condition, a, b)
    return _blended(condition.reshape(-1), a, b).view(d).reshape(condition.shape)


def _spread(x: Any, condition: Array) -> Any:
    """An array that is repeated over the mask's places, written out: copying takes less time than `np.where`."""
    if type(x) is not np.ndarray or x.shape != condition.shape or x.flags.c_contiguous or 0 not in x.strides:
        return x
    return np.ascontiguousarray(x)


def _fits(x: Any, d: Any, condition: Array) -> bool:
    if not isinstance(x, (np.ndarray, np.generic)) or x.dtype is not d:
        return False
    return not x.ndim or (x.shape == condition.shape and bool(x.flags.c_contiguous))


def _blended(condition: Array, a: Any, b: Any) -> Array:
    """The bits of both, flat: b ^ ((a ^ b) & mask)."""
    bits = _BITS[a.dtype]
    first, second = (np.asarray(x).reshape(-1).view(bits) if x.ndim else np.asarray(x).view(bits) for x in (a, b))
    result: Array = np.empty(condition.size, bits)
    steps = condition.view(np.int8)
    for start in range(0, condition.size, BLOCK):
        some = slice(start, start + BLOCK)
        x, y = (each[some] if each.ndim else each for each in (first, second))
        mask = steps[some].astype(bits)
        np.negative(mask, mask)
        out = np.bitwise_and(np.bitwise_xor(x, y), mask, result[some])
        np.bitwise_xor(out, y, out)
    return result
