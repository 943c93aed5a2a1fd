"""Numbers of distributions that are drawn by rejection: one sample takes as many uniform numbers as it happens to need.

In: parameters of one sample, and a `Stream`.  Out: the sample, the one that PyTorch draws on the CPU at the same place
of the stream (ATen's `native/Distributions.h` and `.cpp`, whose constants and precisions these are).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from engine.aten.kernels.random import Stream

THIRD: Final = float(np.float32(1) / np.float32(3))
"""A third in single precision, which ATen subtracts from shapes of either precision."""
SQUEEZE: Final = float(np.float32(0.0331))
TAILS: Final = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip
"""Errors of Stirling's approximation of k!, for k up to 9."""


def poisson(rate: float, stream: Stream) -> int:
    """Transformed rejection (Hoermann, 1993) from rate 10 on, below it a product of uniform numbers."""
    if rate == 0:
        return 0
    if rate < 10:
        least, count, product = math.exp(-rate), 0, stream.uniform()
        while product > least:
            count += 1
            product *= stream.uniform()
        return count
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    log_inverse, bound = math.log(1.1239 + 1.1328 / (b - 3.4)), 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = stream.uniform() - 0.5, stream.uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= bound:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        if _log(v) + log_inverse - math.log(a / (us * us) + b) <= -rate + k * log_rate - math.lgamma(k + 1):
            return k


def standard_gamma(shape: Any, stream: Stream) -> float:
    """Of a shape, a number of numpy in whose precision it is; the method of Marsaglia and Tsang (2000)."""
    kind, scale = type(shape), 1.0
    if shape < 1:
        if shape == 0:
            return 0.0
        scale = (1 - stream.uniform()) ** float(kind(1) / shape)
        shape = shape + kind(1)
    d = float(shape - kind(THIRD))
    c = 1 / math.sqrt(9 * d)
    while True:
        x = stream.normal()
        y = 1 + c * x
        if y <= 0:
            continue
        v, u, square = y * y * y, 1 - stream.uniform(), x * x
        if u < 1 - SQUEEZE * square * square or math.log(u) < 0.5 * square + d * (1 - v + math.log(v)):
            return scale * d * v


def binomial(count: Any, prob: Any, stream: Stream) -> float:
    """Of numbers of numpy, in whose precision the parameters of the method are."""
    if count <= 0 or prob <= 0:
        return 0.0
    if prob >= 1:
        return float(count)
    if not prob <= 0.5:
        return math.nan if prob != prob else float(count) - _few(count, type(prob)(1) - prob, stream)
    return _few(count, prob, stream)


def _few(count: Any, prob: Any, stream: Stream) -> float:
    """Of a probability up to one half."""
    return _transformed(count, prob, stream) if count * prob >= 10 else _inverted(count, prob, stream)


def _inverted(count: Any, prob: Any, stream: Stream) -> float:
    """The number of geometric waiting times that fit."""
    log_missing, waited, found = float(np.log1p(-prob)), 0.0, 0
    while True:
        waited += math.ceil(_log(stream.uniform()) / log_missing) if log_missing else math.inf
        if waited > count:
            return float(found)
        found += 1


def _transformed(count: Any, prob: Any, stream: Stream) -> float:
    """Transformed rejection: BTRS (Hoermann, 1993)."""
    one = type(prob)(1)
    deviation, odds = float(np.sqrt(count * prob * (one - prob))), float(prob / (one - prob))
    mode, center = math.floor(float((count + one) * prob)), float(count * prob) + 0.5
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * float(prob)
    bound, alpha, n = 0.92 - 4.2 / b, (2.83 + 5.1 / b) * deviation, float(count)
    while True:
        u, v = stream.uniform() - 0.5, stream.uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + center)
        if k < 0 or k > n:
            continue
        if us >= 0.07 and v <= bound:
            return float(k)
        limit = (mode + 0.5) * math.log((mode + 1) / (odds * (n - mode + 1)))
        limit += (n + 1) * math.log((n - mode + 1) / (n - k + 1))
        limit += (k + 0.5) * math.log(odds * (n - k + 1) / (k + 1))
        limit += _tail(mode) + _tail(n - mode) - _tail(k) - _tail(n - k)
        if _log(v * alpha / (a / (us * us) + b)) <= limit:
            return float(k)


def _tail(k: float) -> float:
    if k <= 9:
        return TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
