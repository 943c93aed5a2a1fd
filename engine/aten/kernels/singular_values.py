"""Singular values of matrices that may hold infinities and nan, on which LAPACK's routines need not end.

In: arrays (*batch, rows, columns) of float32, float64 or complex types.  Out: arrays; of a matrix with an
infinity all is nan.
"""

from __future__ import annotations

import numpy as np

from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError


def svd(A: Array, full_matrices: bool) -> tuple[Array, Array, Array]:
    """U, S and V^H with A = U S V^H; nan is refused."""
    clean, endless = _finite(A)
    u, s, vh = (np.asarray(part) for part in np.linalg.svd(clean, full_matrices=full_matrices))
    if endless is None:
        return u, s, vh
    each = endless[..., None, None]
    return _nan_where(each, u), _nan_where(endless[..., None], s), _nan_where(each, vh)


def singular_values(A: Array) -> Array:
    """(*batch, min(rows, columns)), falling; nan is refused."""
    clean, endless = _finite(A)
    s = np.asarray(np.linalg.svd(clean, compute_uv=False))
    return s if endless is None else _nan_where(endless[..., None], s)


def _finite(A: Array) -> tuple[Array, Array | None]:
    """A with zeros for matrices that are not finite, and which of the batch those are (None: none)."""
    if np.isfinite(A).all():
        return A, None
    bad = np.isnan(A).any(axis=(-2, -1))
    if bad.any():
        place = f"(Batch element {int(np.flatnonzero(bad)[0])}): " if bad.ndim else ""
        raise OperatorError(
            f"linalg.svd: {place}The algorithm failed to converge because the input matrix contained non-finite values."
        )
    endless = np.asarray(~np.isfinite(A).all(axis=(-2, -1)))
    return np.where(endless[..., None, None], 0, A).astype(A.dtype), endless


def _nan_where(places: Array, values: Array) -> Array:
    return np.where(places, np.nan, values).astype(values.dtype)
