"""Bessel functions, on arrays of float64.

In: arrays.  Out: arrays of float64.  Power series near zero (for the modified functions, whose terms all have one
sign), integrals over a period for the others, asymptotic series far out.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.aten.values.xp import Array

_NEAR: Final = 20.0
_TERMS: Final = 60
_NODES: Final = 96


def modified(order: int, x: Array, scaled: bool = False) -> Array:
    """I0 or I1; `scaled`: times exp(-|x|).  Unscaled they are NaN at infinity, as in PyTorch."""
    size = np.abs(x)
    near = np.minimum(size, _NEAR)
    inner = _series(order, near) * (np.exp(-near) if scaled else 1.0)
    far = np.maximum(size, _NEAR)
    outer = _asymptotic(order, far) / np.sqrt(2 * np.pi * far) * (1.0 if scaled else np.exp(far))
    value = np.where(np.isinf(size), 0.0 if scaled else np.nan, np.where(size <= _NEAR, inner, outer))
    value = np.where(np.isnan(x), np.nan, value)
    return np.where(x < 0, -value, value) if order % 2 else value


def _series(order: int, x: Array) -> Array:
    quarter = x * x / 4
    term = np.ones_like(x) if order == 0 else x / 2
    total = term
    for k in range(1, _TERMS):
        term = term * quarter / (k * (k + order))
        total = total + term
    return np.asarray(total)


def _asymptotic(order: int, x: Array) -> Array:
    term = np.ones_like(x)
    total = term
    for k in range(1, 30):
        term = -term * (4 * order * order - (2 * k - 1) ** 2) / (8 * k * x)
        total = total + term
    return np.asarray(total)


def first_kind(order: int, x: Array) -> Array:
    """J0 or J1.  At infinity they are NaN, as in PyTorch, not their limit."""
    size = np.abs(x)
    near = np.minimum(size, 2 * _NEAR)
    inner = np.zeros_like(size)
    for k in range(_NODES):
        angle = np.pi * (k + 0.5) / _NODES
        inner = inner + np.cos(order * angle - near * np.sin(angle))
    outer = _hankel(order, np.maximum(size, 2 * _NEAR))
    value = np.where(np.isinf(size), np.nan, np.where(size <= 2 * _NEAR, inner / _NODES, outer))
    return np.where(x == 0, x, np.where(x < 0, -value, value)) if order % 2 else value


def _hankel(order: int, x: Array) -> Array:
    """The expansion in 1/x."""
    term = np.ones_like(x)
    even, odd = term, np.zeros_like(x)
    for k in range(1, 24):
        term = term * (4 * order * order - (2 * k - 1) ** 2) / (8 * k * x)
        if k % 2:
            odd = odd + (-1) ** (k // 2) * term
        else:
            even = even + (-1) ** (k // 2) * term
    phase = x - (2 * order + 1) * np.pi / 4
    return np.asarray(np.sqrt(2 / (np.pi * x)) * (even * np.cos(phase) - odd * np.sin(phase)))
