"""Gaussian elimination with row exchanges, on batches of matrices.

In: arrays of matrices.  Out: L and U in one array, and LAPACK's pivots: with which row each step changed places,
counted from 1.
"""

from __future__ import annotations

import numpy as np

from engine.aten.values.xp import COMPLEX, Array


def eliminated(A: Array) -> tuple[Array, Array]:
    """L below the diagonal and U above, and the pivots."""
    lu = A.copy()
    rows, count = A.shape[-2], min(A.shape[-2:])
    pivots = np.empty((*A.shape[:-2], count), np.int32)
    batch = np.indices(A.shape[:-2])
    for k in range(count):
        best = k + np.argmax(_size(lu[..., k:, k]), axis=-1)
        pivots[..., k] = best + 1
        swapped = lu[(*batch, best)].copy()
        lu[(*batch, best)] = lu[..., k, :]
        lu[..., k, :] = swapped
        head = lu[..., k, k]
        lu[..., k + 1 :, k] /= np.where(head == 0, 1, head)[..., None] if rows > k + 1 else 1
        lu[..., k + 1 :, k + 1 :] -= lu[..., k + 1 :, k : k + 1] * lu[..., k : k + 1, k + 1 :]
    return lu, pivots


def _size(x: Array) -> Array:
    """Magnitude by which pivots are chosen: |re| + |im| for complex numbers, as in LAPACK."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype in COMPLEX else np.abs(x)


def permutation(pivots: Array, rows: int) -> Array:
    """Row permutation of the factors, from LAPACK's pivots."""
    order = np.broadcast_to(np.arange(rows), (*pivots.shape[:-1], rows)).copy()
    batch = np.indices(pivots.shape[:-1])
    for k in range(pivots.shape[-1]):
        other = pivots[..., k] - 1
        held = order[(*batch, other)].copy()
        order[(*batch, other)] = order[..., k]
        order[..., k] = held
    return order


def zero_pivots(factors: Array) -> Array:
    """Of every matrix the first zero on the diagonal of U, counted from 1; 0 where there is none."""
    zeros = np.einsum("...ii->...i", factors) == 0
    return np.where(zeros.any(-1), zeros.argmax(-1) + 1, 0).astype(np.int32)


def substituted(factors: Array, pivots: Array, B: Array) -> Array:
    """X of A X = B; where U has a zero on its diagonal, what division by it gives."""
    order = permutation(pivots, B.shape[-2])
    x = np.take_along_axis(B, order[..., None], axis=-2)
    with np.errstate(all="ignore"):
        for k in range(x.shape[-2]):
            x[..., k + 1 :, :] -= factors[..., k + 1 :, k, None] * x[..., None, k, :]
        for k in reversed(range(x.shape[-2])):
            x[..., k, :] /= factors[..., k, k, None]
            x[..., :k, :] -= factors[..., :k, k, None] * x[..., None, k, :]
    return x
