"""Blockwise computation over large arrays, in blocks that fit the processor's cache.

In: arrays, and what is to be done with a piece.  Out: arrays.  A formula of several steps that numpy takes one after
another over millions of elements waits for memory at every step; piece by piece it does so once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from engine.aten.values.xp import Array

BLOCK: Final = 16384
"""Elements of a piece: with some temporaries they fit the second-level cache."""
_SIDE: Final = 64
"""Rows and columns of a piece of a matrix that is transposed."""


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
