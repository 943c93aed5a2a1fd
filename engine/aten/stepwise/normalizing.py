"""Normalization of rows, groups and channels, and its gradients.

In: numbers, flat; weights, biases and running statistics (of which `has_` says whether they count).  Out: written.
Sums are taken over `PART` numbers and then added up in double precision; those of short rows number by number, in the
order in which `kernels.row_normalization` does.
"""

from __future__ import annotations

from typing import Any, Final

from engine.aten.stepwise.language import Buffer, double, like, loop, loose, root

PART: Final = 2048


@loose
def total_of(x: Buffer, start: int, count: int) -> Any:
    total = double(0.0)
    for first in range(start, start + count, PART):
        part = like(x, 0.0)
        for i in range(first, min(first + PART, start + count)):
            part += x[i]
        total += double(part)
    return total


@loose
def squares_of(x: Buffer, start: int, count: int, mean: float) -> Any:
    """The sum of squares about the mean."""
    total = double(0.0)
    for first in range(start, start + count, PART):
        part = like(x, 0.0)
        for i in range(first, min(first + PART, start + count)):
            part += (x[i] - mean) * (x[i] - mean)
        total += double(part)
    return total


@loose
def mean_of(x: Buffer, start: int, count: int) -> Any:
    return like(x, total_of(x, start, count) / count)


@loose
def spread_of(x: Buffer, start: int, count: int, mean: float, eps: float) -> Any:
    """One over the root of the mean square about the mean, and eps."""
    return like(x, 1.0 / root(squares_of(x, start, count, mean) / count + eps))


# ------------------------------------------------------------------ rows


@loop
def stepwise_mean(x: Buffer, start: int, count: int) -> Any:
    mean = x[start]
    for i in range(1, count):
        mean += (x[start + i] - mean) / like(x, i + 1)
    return mean


@loop
def stepwise_spread(x: Buffer, start: int, count: int, eps: float) -> Any:
    """One over the root of the mean square about the mean, and eps."""
    mean = x[start]
    squares = x[start] - x[start]
    for i in range(1, count):
        away = x[start + i] - mean
        mean += away / like(x, i + 1)
        squares += away * (x[start + i] - mean)
    return like(x, 1.0) / root(squares / like(x, count) + like(x, eps))


@loop
def short_rows(
    x: Buffer, weight: Buffer, bias: Buffer, result: Buffer, means: Buffer, spreads: Buffer, rows: int, length: int,
    has_weight: int, has_bias: int, eps: float,
) -> None:  # fmt: skip
    """Rows of a few numbers, the means (NaN for infinite ones) and one over the spreads."""
    for row in range(rows):
        base = row * length
        mean = stepwise_mean(x, base, length)
        rstd = stepwise_spread(x, base, length, eps)
        for i in range(length):
            found = (x[base + i] - mean) * rstd
            if has_weight:
                found = found * weight[i]
            if has_bias:
                found = found + bias[i]
            result[base + i] = found
        means[row] = mean + (mean - mean)
        spreads[row] = rstd


@loop
def short_rows_backward(
    grad: Buffer, x: Buffer, weight: Buffer, result: Buffer, of_weight: Buffer, of_bias: Buffer, rows: int, length: int,
    has_weight: int, eps: float,
) -> None:  # fmt: skip
    for i in range(length):
        of_weight[i] = 0
        of_bias[i] = 0
    for row in range(rows):
        base = row * length
        mean = stepwise_mean(x, base, length)
        rstd = stepwise_spread(x, base, length, eps)
        total, along = like(x, 0.0), like(x, 0.0)
        for i in range(length):
            given, normal = grad[base + i], (x[base + i] - mean) * rstd
            of_weight[i] += given * normal
            of_bias[i] += given
            gain = weight[i] if has_weight else like(x, 1.0)
            total += given * gain
            along += given * normal * gain
        shift, slope = total / like(x, length), along / like(x, length)
        for i in range(length):
            normal = (x[base + i] - mean) * rstd
            gain = weight[i] if has_weight else like(x, 1.0)
            result[base + i] = (grad[base + i] * gain - (normal * slope + shift)) * rstd


@loose
def rows_backward(
    grad: Buffer, x: Buffer, weight: Buffer, result: Buffer, of_weight: Buffer, of_bias: Buffer, rows: int, length: int,
    has_weight: int, eps: float,
) -> None:  # fmt: skip
    for i in range(length):
        of_weight[i] = 0
        of_bias[i] = 0
    for row in range(rows):
        base = row * length
        mean = mean_of(x, base, length)
        rstd = spread_of(x, base, length, mean, eps)
        total, along = double(0.0), double(0.0)
        for first in range(0, length, PART):
            part, other = like(x, 0.0), like(x, 0.0)
            for i in range(first, min(first + PART, length)):
                given, normal = grad[base + i], (x[base + i] - mean) * rstd
                gain = weight[i] if has_weight else like(x, 1.0)
                part += given * gain
                other += given * gain * normal
                of_weight[i] += given * normal
                of_bias[i] += given
            total += double(part)
            along += double(other)
        shift, slope = like(x, total / length), like(x, along / length)
        for i in range(length):
            normal = (x[base + i] - mean) * rstd
            gain = weight[i] if has_weight else like(x, 1.0)
            result[base + i] = (grad[base + i] * gain - shift - normal * slope) * rstd


# ------------------------------------------------------------------ groups


@loose
def groups_forward(
    x: Buffer, weight: Buffer, bias: Buffer, result: Buffer, rows: int, groups: int, members: int, places: int,
    has_weight: int, has_bias: int, eps: float,
) -> None:  # fmt: skip
    for row in range(rows):
        base, count = row * members * places, members * places
        mean = mean_of(x, base, count)
        rstd = spread_of(x, base, count, mean, eps)
        for member in range(members):
            channel, start = row % groups * members + member, base + member * places
            scale, shift = like(x, 1.0), like(x, 0.0)
            if has_weight:
                scale = weight[channel]
            if has_bias:
                shift = bias[channel]
            for i in range(start, start + places):
                result[i] = (x[i] - mean) * rstd * scale + shift


@loose
def groups_backward(
    grad: Buffer, x: Buffer, weight: Buffer, result: Buffer, of_weight: Buffer, of_bias: Buffer, rows: int, groups: int,
    members: int, places: int, has_weight: int, eps: float,
) -> None:  # fmt: skip
    for channel in range(groups * members):
        of_weight[channel] = 0
        of_bias[channel] = 0
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


# ------------------------------------------------------------------ channels


@loose
def channel_mean(x: Buffer, channel: int, batch: int, channels: int, places: int) -> Any:
    total = double(0.0)
    for b in range(batch):
        total += total_of(x, (b * channels + channel) * places, places)
    return like(x, total / (batch * places))


@loose
def channel_variance(x: Buffer, channel: int, batch: int, channels: int, places: int, mean: float) -> Any:
    total = double(0.0)
    for b in range(batch):
        total += squares_of(x, (b * channels + channel) * places, places, mean)
    return like(x, total / (batch * places))


@loose
def channels_forward(
    x: Buffer, weight: Buffer, bias: Buffer, running_mean: Buffer, running_var: Buffer, result: Buffer, means: Buffer,
    spreads: Buffer, batch: int, channels: int, places: int, training: int, has_weight: int, has_bias: int,
    has_mean: int, has_var: int, momentum: float, eps: float,
) -> None:  # fmt: skip
    """In training by the batch's own statistics, towards which the running ones move and which are kept."""
    count = batch * places
    for c in range(channels):
        mean, variance = like(x, 0.0), like(x, 0.0)
        if training:
            mean = channel_mean(x, c, batch, channels, places)
            variance = channel_variance(x, c, batch, channels, places, mean)
        else:
            mean = running_mean[c]
            variance = running_var[c]
        rstd = like(x, 1.0) / root(variance + like(x, eps))
        if training:
            means[c] = mean
            spreads[c] = rstd
            if has_mean:
                running_mean[c] += like(x, momentum) * (mean - running_mean[c])
            if has_var:
                unbiased = variance * like(x, double(count) / double(count - 1))
                running_var[c] += like(x, momentum) * (unbiased - running_var[c])
        scale, shift = rstd, like(x, 0.0)
        if has_weight:
            scale = rstd * weight[c]
        if has_bias:
            shift = bias[c]
        shift = shift - mean * scale
        for b in range(batch):
            start = (b * channels + c) * places
            for i in range(start, start + places):
                result[i] = x[i] * scale + shift


@loose
def channels_backward(
    grad: Buffer, x: Buffer, weight: Buffer, running_mean: Buffer, running_var: Buffer, result: Buffer,
    of_weight: Buffer, of_bias: Buffer, batch: int, channels: int, places: int, training: int, has_weight: int,
    eps: float,
) -> None:  # fmt: skip
    count = batch * places
    for c in range(channels):
        mean, variance = like(x, 0.0), like(x, 0.0)
        if training:
            mean = channel_mean(x, c, batch, channels, places)
            variance = channel_variance(x, c, batch, channels, places, mean)
        else:
            mean = running_mean[c]
            variance = running_var[c]
        rstd = like(x, 1.0) / root(variance + like(x, eps))
        given, turned = double(0.0), double(0.0)
        for b in range(batch):
            start = (b * channels + c) * places
            for first in range(start, start + places, PART):
                part, other = like(x, 0.0), like(x, 0.0)
                for i in range(first, min(first + PART, start + places)):
                    part += grad[i]
                    other += grad[i] * (x[i] - mean)
                given += double(part)
                turned += double(other)
        turned = turned * double(rstd)
        of_weight[c] = like(x, turned)
        of_bias[c] = like(x, given)
        scale = rstd
        if has_weight:
            scale = rstd * weight[c]
        shift, slope = like(x, 0.0), like(x, 0.0)
        if training:
            shift = like(x, given / count)
            slope = like(x, turned / count) * rstd
        for b in range(batch):
            start = (b * channels + c) * places
            for i in range(start, start + places):
                result[i] = (grad[i] - shift - (x[i] - mean) * slope) * scale
