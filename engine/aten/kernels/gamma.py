"""The gamma function's family, on arrays of float64.

In: arrays.  Out: arrays of float64.  Large arguments go through asymptotic series, small ones are moved up by the
functions' recurrences; the relative error stays below 1e-13 away from zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.aten.values.xp import Array

_BERNOULLI: Final = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
    854513 / 138, -236364091 / 2730,
)  # fmt: skip
"""The Bernoulli numbers B2, B4, ..."""

_LARGE: Final = 12.0
"""From here on the series are used directly."""


def lgamma(x: Array) -> Array:
    """The logarithm of |gamma(x)|; infinite at 0, -1, -2, ..."""
    far = _lgamma_positive(np.where(x < 0.5, 1 - x, x))
    turn = np.abs(np.sin(np.pi * (x - np.rint(x))))
    reflected = np.log(np.pi) - np.log(turn) - far
    result = np.where(x < 0.5, reflected, far)
    return np.where(np.isinf(x), np.inf, result)


def _lgamma_positive(x: Array) -> Array:
    steps = np.zeros_like(x)
    near = x < _LARGE
    product = np.ones_like(x)
    for k in range(int(_LARGE)):
        product = np.where(near & (x + k < _LARGE), product * (x + k), product)
        steps = np.where(near & (x + k < _LARGE), k + 1.0, steps)
    y = x + steps
    inverse = 1 / (y * y)
    series = np.zeros_like(x)
    for k in range(len(_BERNOULLI) - 1, -1, -1):
        series = series * inverse + _BERNOULLI[k] / ((2 * k + 2) * (2 * k + 1))
    whole = (y - 0.5) * np.log(y) - y + 0.5 * np.log(2 * np.pi) + series / y - np.log(product)
    return np.where((x == 1) | (x == 2), 0.0, np.where(np.isinf(x), np.inf, whole))


def digamma(x: Array) -> Array:
    """The derivative of lgamma; NaN at -1, -2, ..., minus infinity at 0."""
    far = _digamma_positive(np.where(x < 0.5, 1 - x, x))
    offset = x - np.rint(x)
    reflected = far - np.pi / np.tan(np.pi * offset)
    result = np.where(x < 0.5, reflected, far)
    pole = np.where(x == 0, np.copysign(np.inf, -x), np.nan)
    return np.where((x <= 0) & (offset == 0), pole, result)


def _digamma_positive(x: Array) -> Array:
    total = np.zeros_like(x)
    y = x.copy()
    for _ in range(int(_LARGE)):
        small = y < _LARGE
        total = np.where(small, total - 1 / y, total)
        y = np.where(small, y + 1, y)
    inverse = 1 / (y * y)
    series = np.zeros_like(x)
    for k in range(len(_BERNOULLI) - 1, -1, -1):
        series = (series + _BERNOULLI[k] / (2 * k + 2)) * inverse
    return np.asarray(total + np.log(y) - 0.5 / y - series)


def zeta(s: Array, q: Array) -> Array:
    """Hurwitz' zeta function, the sum of (q + k) ** -s; by Euler and Maclaurin."""
    s, q = np.broadcast_arrays(np.asarray(s, np.float64), np.asarray(q, np.float64))
    below = np.where(q < 0, np.ceil(np.maximum(-q, 0)), 0)
    total = np.zeros(s.shape)
    steps = (int(min(below.max(), 200)) if below.size else 0) + 16
    for k in range(steps):
        total = total + np.power(q + k, -s)
    y = q + steps
    power = np.power(y, -s)
    total = total + power * y / (s - 1) + 0.5 * power
    factor = s * power / y
    for k, number in enumerate(_BERNOULLI):
        total = total + number * factor / _factorial(2 * k + 2)
        factor = factor * (s + 2 * k + 1) * (s + 2 * k + 2) / (y * y)
    at_pole = (q <= 0) & (q == np.floor(q))
    rules = [
        (s == 1, np.inf), (s < 1, np.nan), (at_pole, np.inf), ((q < 0) & (s != np.floor(s)), np.nan),
        (np.isinf(s) & (q == 1), 1.0), (np.isinf(s) & (q > 1), np.nan), (np.isinf(s) & (q > 0), np.inf),
    ]  # fmt: skip
    return _first_of(rules, total)


def _factorial(n: int) -> float:
    return float(math.factorial(n)) if n <= 170 else math.inf


def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma."""
    if n == 0:
        return digamma(x)
    if n == 1:
        return trigamma(x)
    return np.asarray((-1.0) ** (n + 1) * _factorial(n) * zeta(np.asarray(n + 1.0), x))


def trigamma(x: Array) -> Array:
    """In the dtype of `x`, whose sine is not quite zero where the poles are."""
    positive = zeta(np.asarray(2.0), np.where(x < 0.5, 1 - x, x).astype(np.float64)).astype(x.dtype)
    pi = x.dtype.type(np.pi)
    sine = np.sin(pi * x)
    reflected = pi * pi / np.where(sine == 0, 1, sine * sine) - positive
    reflected = np.where(sine == 0, np.inf, reflected)
    return np.where(x < 0.5, reflected, np.where(x == np.inf, 0, positive)).astype(x.dtype)


_STEPS: Final = 2000


def igamma(a: Array, x: Array) -> Array:
    """The regularised lower incomplete gamma function."""
    return _incomplete(a, x, lower=True)


def igammac(a: Array, x: Array) -> Array:
    """The regularised upper incomplete gamma function."""
    return _incomplete(a, x, lower=False)


def _incomplete(a: Array, x: Array, lower: bool) -> Array:
    """By its power series where x is small, by a continued fraction elsewhere."""
    a, x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    safe_a, safe_x = np.where(inside, a, 1.0), np.where(inside, x, 1.0)
    small = safe_x < safe_a + 1
    scale = np.exp(safe_a * np.log(safe_x) - safe_x - lgamma(safe_a))
    series = scale * _power_series(safe_a, np.where(small, safe_x, 0.0))
    fraction = scale * _continued_fraction(safe_a, np.where(small, safe_a + 1, safe_x))
    low = np.where(small, series, 1 - fraction)
    high = np.where(small, 1 - series, fraction)
    near, far = (0.0, 1.0) if lower else (1.0, 0.0)
    rules = [
        ((x < 0) | (a < 0), np.nan), ((a == 0) & (x > 0), far), (a == 0, np.nan), (x == 0, near),
        (np.isinf(a) & np.isinf(x), np.nan), (np.isinf(a), near), (np.isinf(x), far), (~inside, np.nan),
    ]  # fmt: skip
    return _first_of(rules, low if lower else high)


def _first_of(rules: Sequence[tuple[Any, float]], otherwise: Array) -> Array:
    """For each element the value of the first rule whose condition holds for it."""
    for condition, value in reversed(rules):
        otherwise = np.where(condition, value, otherwise)
    return otherwise


def _power_series(a: Array, x: Array) -> Array:
    term = 1 / a
    total = term
    for k in range(1, _STEPS):
        term = term * x / (a + k)
        total = total + term
        if np.all(term <= 1e-17 * total):
            break
    return np.asarray(total)


def _continued_fraction(a: Array, x: Array) -> Array:
    """Lentz' way to evaluate a fraction from the front."""
    tiny = 1e-300
    b = x + 1 - a
    c, d = np.full_like(b, 1 / tiny), 1 / np.where(b == 0, tiny, b)
    result = d
    for k in range(1, _STEPS):
        factor = -k * (k - a)
        b = b + 2
        d = 1 / _nonzero(factor * d + b, tiny)
        c = _nonzero(b + factor / c, tiny)
        change = c * d
        result = result * change
        if np.all(np.abs(change - 1) < 1e-15):
            break
    return np.asarray(result)


def _nonzero(x: Any, tiny: float) -> Array:
    return np.where(np.abs(x) < tiny, tiny, x)
