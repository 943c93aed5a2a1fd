"""Matrices whose rows carry their own scale and bias behind their integers, as embeddings are packed.

In: float32 matrices.  Out: matrices of bytes, and back.  Rows of bytes end in two float32 numbers, scale and bias; rows
of four bits (two numbers in a byte, the lower half first) in two of float16.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.aten.values.xp import Array, NumpyDtype, silently
from engine.lang.errors import OperatorError

_TAIL: Final[dict[int, NumpyDtype]] = {8: np.dtype(np.float32), 4: np.dtype(np.float16)}
_LITTLE: Final = np.float32(1e-8)


def _check(matrix: Array) -> Array:
    if matrix.ndim != 2 or matrix.dtype != np.float32:
        raise OperatorError("a matrix of float32 is wanted here")
    return np.ascontiguousarray(matrix)


def packed_bytes(matrix: Array) -> Array:
    matrix = _check(matrix)
    least = matrix.min(axis=1, keepdims=True)
    span = matrix.max(axis=1, keepdims=True) - least
    integers = np.rint((matrix - least) * (np.float32(255) / (span + _LITTLE))).astype(np.uint8)
    return _joined(integers, span / np.float32(255), least, 8)


def packed_halves(matrix: Array) -> Array:
    matrix = _check(matrix)
    least = matrix.min(axis=1, keepdims=True).astype(np.float16).astype(np.float32)
    span = matrix.max(axis=1, keepdims=True) - least
    scale = np.where(span == 0, np.float32(1), span / np.float32(15)).astype(np.float16).astype(np.float32)
    scale = np.where(scale == 0, np.float32(1), scale)
    inverse = silently(np.divide, np.float32(1), scale)
    scale, inverse = (np.where(np.isinf(inverse), np.float32(1), each) for each in (scale, inverse))
    integers = np.clip(np.rint((matrix - least) * inverse), 0, 15).astype(np.uint8)
    if integers.shape[1] % 2:
        integers = np.pad(integers, ((0, 0), (0, 1)))
    return _joined(integers[:, ::2] | (integers[:, 1::2] << 4), scale, least, 4)


def _joined(integers: Array, scale: Array, bias: Array, bits: int) -> Array:
    tail = np.concatenate([scale, bias], axis=1).astype(_TAIL[bits])
    return np.concatenate([integers, np.ascontiguousarray(tail).view(np.uint8)], axis=1)


def unpacked(rows: Array, bits: int) -> Array:
    """The dequantized matrix.  Raises OperatorError for a matrix that is not packed this way."""
    tail = 2 * _TAIL[bits].itemsize
    if rows.ndim != 2 or rows.dtype != np.uint8 or rows.shape[1] < tail:
        raise OperatorError(f"a matrix of bytes is wanted here, whose rows end in {tail} bytes of scale and bias")
    body = rows[:, :-tail]
    ends = np.ascontiguousarray(rows[:, -tail:]).view(_TAIL[bits]).astype(np.float32)
    if bits == 4:
        body = np.stack([body & 15, body >> 4], axis=-1).reshape(len(rows), -1)
    return np.asarray(body.astype(np.float32) * ends[:, :1] + ends[:, 1:], np.float32)
