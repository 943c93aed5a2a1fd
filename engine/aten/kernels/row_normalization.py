"""Normalization of rows to zero mean and unit variance, and its gradients.

In: matrices of floats.  Out: the same.  It takes several steps over the numbers, so it is done some rows at a time,
which stay in the processor's cache.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.aten.stepwise.language import worth
from engine.aten.stepwise.normalizing import rows_backward
from engine.aten.values.xp import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, Array

_BLOCK: Final = 1 << 15
"""Numbers that are worked on at a time."""
SHORT: Final = 8
"""Rows of fewer numbers are summed one by one: see Note [Order of operations]."""


def normalized_rows(rows: Array, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """Each row less its mean, divided by its spread; the means and the inverses of the spreads."""
    d = rows.dtype
    for each in (weight, bias):
        if each is not None and each.dtype is not d:
            d = np.result_type(d, each.dtype)
    result = np.empty(rows.shape, d)
    step = max(1, _BLOCK // max(rows.shape[1], 1))
    if len(rows) <= step:
        return _some_rows(rows, result, weight, bias, eps)
    mean, rstd = np.empty((2, len(rows), 1), rows.dtype)
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        _, mean[some], rstd[some] = _some_rows(rows[some], result[some], weight, bias, eps)
    return result, mean, rstd


def _some_rows(
    rows: Array, result: Array, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """The same, into `result`."""
    mean, rstd = _moments(rows, result, eps)
    np.multiply(result, rstd, result)
    if weight is not None:
        np.multiply(result, weight, result)
    if bias is not None:
        np.add(result, bias, result)
    return result, mean, rstd


def _moments(rows: Array, centered: Array, eps: float) -> tuple[Array, Array]:
    """The means, and the inverses of the spreads; the rows less their means go to `centered`."""
    n = rows.shape[1]
    count = rows.dtype.type(n)
    if n < SHORT:
        mean, squares = _one_by_one(rows)
        np.subtract(rows, mean, centered)
    else:
        mean = _row_sums(rows) / count
        np.subtract(rows, mean, centered)
        squares = _square_sums(centered)
    return mean + (mean - mean), 1 / np.sqrt(squares / count + eps)  # NaN for an infinite one, as PyTorch's


def _row_sums(rows: Array) -> Array:
    return np.asarray(np.add.reduce(rows, 1, keepdims=True))


def _one_by_one(rows: Array) -> tuple[Array, Array]:
    """The mean of each row and the sum of squares about it, kept up to date number by number."""
    columns = np.ascontiguousarray(rows.T)
    if not len(columns):
        none = np.zeros((len(rows), 1), rows.dtype)
        return none, none
    mean, squares = columns[0], columns[0] - columns[0]
    for i in range(1, len(columns)):
        away = columns[i] - mean
        mean = mean + away / _COUNTS[rows.dtype][i + 1]
        squares = squares + away * (columns[i] - mean)
    return mean.reshape(-1, 1), squares.reshape(-1, 1)


_COUNTS: Final = {d: [np.asarray(i, d) for i in range(SHORT + 1)] for d in (FLOAT32, FLOAT64, COMPLEX64, COMPLEX128)}


def _square_sums(rows: Array) -> Array:
    """The sum of the squares of each row."""
    return _row_sums(rows * rows)


def normalized_rows_backward(grad: Array, rows: Array, weight: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """From the gradient of the normalized rows to those of the rows, of the weight and of the bias."""
    n, d = rows.shape[1], rows.dtype
    result, of_weight, of_bias = np.empty(rows.shape, d), np.zeros(n, d), np.zeros(n, d)
    gain = np.ones(n, d) if weight is None else weight
    if worth(rows) and n >= SHORT and grad.shape == rows.shape and grad.dtype is d is gain.dtype:
        flat = [np.ascontiguousarray(each) for each in (grad, rows, gain)]
        if rows_backward.run(8 * rows.size, *flat, result, of_weight, of_bias, len(rows), n, 1, eps) is not None:
            return result, of_weight, of_bias
    step = max(1, _BLOCK // n)
    normals = np.empty((min(step, len(rows)), n), d)
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        given, out = np.ascontiguousarray(grad[some]), result[some]
        normal = normals[: len(out)]
        _, rstd = _moments(rows[some], normal, eps)
        np.multiply(normal, rstd, normal)
        np.multiply(given, normal, out)
        ones = np.ones(len(out), d)
        of_weight += ones.dot(out)
        of_bias += ones.dot(given)
        along = out.dot(gain)[:, None] / d.type(n)
        np.multiply(normal, along, normal)
        np.add(normal, given.dot(gain)[:, None] / d.type(n), normal)
        if weight is None:
            np.subtract(given, normal, out)
        else:
            np.subtract(np.multiply(given, weight, out), normal, out)
        np.multiply(out, rstd, out)
    return result, of_weight, of_bias
