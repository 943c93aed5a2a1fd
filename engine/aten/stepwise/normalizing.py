"""The gradients of group normalization and of layer normalization.

In: numbers, flat; weights and biases (of which `has_` says whether they count).  Out: written.  Sums are taken over
`PART` numbers and then added up in double precision.
"""

from __future__ import annotations

from typing import Any, Final

from engine.aten.stepwise.language import Buffer, double, like, loose, root

PART: Final = 2048


@loose
def mean_of(x: Buffer, start: int, count: int) -> Any:
    total = double(0.0)
    for first in range(start, start + count, PART):
        part = like(x, 0.0)
        for i in range(first, min(first + PART, start + count)):
            part += x[i]
        total += double(part)
    return like(x, total / count)


@loose
def spread_of(x: Buffer, start: int, count: int, mean: float, eps: float) -> Any:
    """One over the root of the mean square about the mean, and eps."""
    total = double(0.0)
    for first in range(start, start + count, PART):
        part = like(x, 0.0)
        for i in range(first, min(first + PART, start + count)):
            part += (x[i] - mean) * (x[i] - mean)
        total += double(part)
    return like(x, 1.0 / root(total / count + eps))


@loose
def rows_backward(
    grad: Buffer, x: Buffer, weight: Buffer, result: Buffer, of_weight: Buffer, of_bias: Buffer, rows: int, length: int,
    eps: float,
) -> None:  # fmt: skip
    """Into of_weight and of_bias, which are zero, what the rows add to them."""
    for row in range(rows):
        base = row * length
        mean = mean_of(x, base, length)
        rstd = spread_of(x, base, length, mean, eps)
        total, along = double(0.0), double(0.0)
        for first in range(0, length, PART):
            part, other = like(x, 0.0), like(x, 0.0)
            for i in range(first, min(first + PART, length)):
                given, normal = grad[base + i], (x[base + i] - mean) * rstd
                part += given * weight[i]
                other += given * weight[i] * normal
                of_weight[i] += given * normal
                of_bias[i] += given
            total += double(part)
            along += double(other)
        shift, slope = like(x, total / length), like(x, along / length)
        for i in range(length):
            normal = (x[base + i] - mean) * rstd
            result[base + i] = (grad[base + i] * weight[i] - shift - normal * slope) * rstd


@loose
def groups_backward(
    grad: Buffer, x: Buffer, weight: Buffer, result: Buffer, of_weight: Buffer, of_bias: Buffer, rows: int, groups: int,
    members: int, places: int, has_weight: int, eps: float,
) -> None:  # fmt: skip
    """Into of_weight and of_bias, which are zero, what the channels add to them."""
    for row in range(rows):
        base, count = row * members * places, members * places
        mean = mean_of(x, base, count)
        rstd = spread_of(x, base, count, mean, eps)
        total, along = double(0.0), double(0.0)
        for member in range(members):
            channel, start = row % groups * members + member, base + member * places
            given, turned = double(0.0), double(0.0)
            for first in range(start, start + places, PART):
                part, other = like(x, 0.0), like(x, 0.0)
                for i in range(first, min(first + PART, start + places)):
                    part += grad[i]
                    other += grad[i] * (x[i] - mean)
                given += double(part)
                turned += double(other) * double(rstd)
            of_bias[channel] += like(x, given)
            of_weight[channel] += like(x, turned)
            gain = double(1.0)
            if has_weight:
                gain = double(weight[channel])
            total += gain * given
            along += gain * turned
        shift, slope = like(x, total / count), like(x, along / count) * rstd
        for member in range(members):
            channel, start = row % groups * members + member, base + member * places
            scale = like(x, 1.0)
            if has_weight:
                scale = weight[channel]
            for i in range(start, start + places):
                result[i] = (grad[i] * scale - shift - (x[i] - mean) * slope) * rstd
