"""Blockwise computation over large arrays, in blocks that fit the processor's cache.

In: arrays, and a function of a block.  Out: arrays.  A formula of several steps that numpy takes one after another over
millions of elements waits for memory at every step; block by block it does so once.

Note [Blending]
`np.where` branches on every element, which is slow where the processor cannot predict the mask.  `choose` blends the
bits of both arrays instead, in the same time for every mask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.aten.values.xp import BOOL, FLOAT32, FLOAT64, Array, NumpyDtype

BLOCK: Final = 16384
"""Elements of a block: with some temporaries they fit the second-level cache."""
_SIDE: Final = 64
"""Rows and columns of a block of a matrix that is transposed."""
_BITS: Final[dict[NumpyDtype, NumpyDtype]] = {FLOAT32: np.dtype(np.int32), FLOAT64: np.dtype(np.int64)}
_LEAST_BLENDED: Final = 4096
"""Number of elements from which blending is faster."""


def in_blocks(function: Callable[[Array], Array], x: Array) -> Array:
    """`function` of every element, for a function that gives an array of the same shape and dtype."""
    if x.size <= BLOCK or not x.flags.c_contiguous:
        return np.asarray(function(x))
    result = np.empty(x.shape, x.dtype)
    flat, out = x.reshape(-1), result.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        out[start : start + BLOCK] = function(flat[start : start + BLOCK])
    return result


def contiguous_copy(x: Array) -> Array:
    """`x.copy(order="C")`, which numpy does slowly where neighbours in memory get far apart."""
    if x.size <= BLOCK or x.flags.c_contiguous:
        return x.copy(order="C")
    near = min(range(x.ndim), key=lambda axis: (abs(x.strides[axis]), -axis) if x.shape[axis] > 1 else (1 << 62, 0))
    if near == x.ndim - 1 or min(x.shape[near], x.shape[-1]) < _SIDE or abs(x.strides[near]) != x.itemsize:
        return x.copy(order="C")
    result = np.empty(x.shape, x.dtype)
    source, out = np.moveaxis(x, near, -2), np.moveaxis(result, near, -2)
    for row in range(0, source.shape[-2], _SIDE):
        for column in range(0, source.shape[-1], _SIDE):
            piece = (..., slice(row, row + _SIDE), slice(column, column + _SIDE))
            out[piece] = source[piece]
    return result


def choose(condition: Any, a: Any, b: Any) -> Any:
    """`np.where(condition, a, b)`; see Note [Blending]."""
    if type(condition) is not np.ndarray or condition.size < _LEAST_BLENDED or not condition.flags.c_contiguous:
        return np.where(condition, a, b)
    a, b = (_spread(x, condition) for x in (a, b))
    d = a.dtype if isinstance(a, (np.ndarray, np.generic)) else None
    if d not in _BITS or condition.dtype != BOOL or not (_fits(a, d, condition) and _fits(b, d, condition)):
        return np.where(condition, a, b)
    return _blended(condition.reshape(-1), a, b).view(d).reshape(condition.shape)


def _spread(x: Any, condition: Array) -> Any:
    """An array broadcast over the mask, made contiguous: copying takes less time than `np.where`."""
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
