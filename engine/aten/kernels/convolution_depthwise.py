"""Convolutions in which every channel has a kernel of its own.

In: arrays (batch, channels, *space), kernels (channels, *kernel) and a `Space`.  Out: arrays.  There is nothing to
multiply matrices for: each place of the kernel contributes a shifted copy of the input times a number per channel.  A
few channels at a time, so that what is added up stays in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from engine.aten.kernels.windows import Sizes, Space, offsets, pad, shifted
from engine.aten.stepwise.convolving import each_plane, kernels_of_planes, spread_each_plane
from engine.aten.stepwise.language import Loop, worth
from engine.aten.values.xp import Array

_BLOCK: Final = 65536
"""About how many elements are worked on at a time."""


def _in_planes(function: Loop, given: Sequence[Array], result: Array, x: Sizes, out: Sizes, space: Space) -> bool:
    """Run a loop over images (batch, channels, rows, columns) in machine code, if it is compiled."""
    known = (x, (*x[:2], *out), (x[1], *space.kernel))
    if any(each.shape not in known for each in (*given, result)) or min(*space.stride, *space.dilation) < 1:
        return False  # there is nothing that machine code could be sure of
    planes, channels = x[0] * x[1], x[1]
    sizes = [n + 2 * p for n, p in zip(x[2:], space.padding, strict=True)]
    reach = [(c - 1) * s + e for c, s, e in zip(out, space.stride, space.extent(), strict=True)]
    sizes = list(map(max, sizes, reach))
    sizes[1] += -sizes[1] % space.stride[1]
    arrays = (*map(np.ascontiguousarray, given), result, np.zeros(sizes, result.dtype))
    geometry = (*space.padding, *space.kernel, *space.stride, *space.dilation)
    work = planes * math.prod(out) * math.prod(space.kernel)
    return function.run(work, *arrays, planes, channels, *x[2:], *sizes, *out, *geometry) is not None


def _are_planes(x: Array, kernels: Array) -> bool:
    return x.ndim == 4 and kernels.dtype is x.dtype and worth(x)


def forward(x: Array, kernels: Array, space: Space, places: Sizes) -> Array:
    """The convolution, (batch, channels, *places)."""
    if _are_planes(x, kernels):
        result = np.empty((*x.shape[:2], *places), x.dtype)
        if _in_planes(each_plane, (x, kernels), result, x.shape, places, space):
            return result
    if set(space.stride) == {1}:
        return _forward_in_runs(x, kernels, space, places)
    result = np.empty((*x.shape[:2], *places), x.dtype)
    scratch = np.empty_like(result[:, : _step(x)])
    for block in _blocks(x):
        padded, out = pad(x[:, block], space.padding), result[:, block]
        part = scratch[:, : out.shape[1]]
        for k, (offset, factors) in enumerate(_taps(kernels[block], space)):
            seen = shifted(padded, offset, space.stride, places)
            if k == 0:
                np.multiply(seen, factors, out)
            else:
                np.add(out, np.multiply(seen, factors, part), out)
    return result


def _forward_in_runs(x: Array, kernels: Array, space: Space, places: Sizes) -> Array:
    """The same for windows one step apart: then a shift is the same for all places, rows and all, and numpy works on
    one long run per channel.  What it computes where a row ends is left out at the end."""
    result = np.empty((*x.shape[:2], *places), x.dtype)
    for block in _blocks(x):
        padded = pad(x[:, block], space.padding)
        pitches = [math.prod(padded.shape[3 + i :]) for i in range(len(places))]
        length = 1 + sum((count - 1) * pitch for count, pitch in zip(places, pitches, strict=True))
        flat = padded.reshape(*padded.shape[:2], math.prod(padded.shape[2:]))
        out = np.empty((*flat.shape[:2], pitches[0] * places[0]), x.dtype)
        total, part = out[..., :length], np.empty((*flat.shape[:2], length), x.dtype)
        for k, (offset, factors) in enumerate(_taps(kernels[block], space)):
            start = sum(o * pitch for o, pitch in zip(offset, pitches, strict=True))
            seen, factor = flat[..., start : start + length], factors.reshape(-1, 1)
            if k == 0:
                np.multiply(seen, factor, total)
            else:
                np.add(total, np.multiply(seen, factor, part), total)
        inside = tuple(map(slice, places))
        rows = out.reshape(*out.shape[:2], places[0], *padded.shape[3:])
        result[:, block] = rows[(slice(None), slice(None), *inside)]
    return result


def to_input(grad: Array, kernels: Array, space: Space, shape: Sizes) -> Array:
    """The gradient of the input of that shape."""
    places = grad.shape[2:]
    reach = [(c - 1) * s + e for c, s, e in zip(places, space.stride, space.extent(), strict=True)]
    sizes = [max(n + 2 * p, r) for n, p, r in zip(shape[2:], space.padding, reach, strict=True)]
    inside = tuple(slice(p, p + n) for p, n in zip(space.padding, shape[2:], strict=True))
    result = np.empty(shape, grad.dtype)
    if _are_planes(grad, kernels) and _in_planes(
        spread_each_plane, (grad, kernels), result, shape, places, space
    ):  # fmt: skip
        return result
    for block in _blocks(grad):
        mine = grad[:, block]
        total, part = np.zeros((*mine.shape[:2], *sizes), grad.dtype), np.empty_like(mine)
        for offset, factors in _taps(kernels[block], space):
            seen = shifted(total, offset, space.stride, places)
            np.add(seen, np.multiply(mine, factors, part), seen)
        result[:, block] = total[(slice(None), slice(None), *inside)]
    return result


def to_kernels(grad: Array, x: Array, kernel: Sizes, space: Space) -> Array:
    """The gradient of the kernels, (channels, *kernel)."""
    places = grad.shape[2:]
    if _are_planes(x, grad):
        sums = np.zeros((x.shape[1], *kernel), x.dtype)
        if _in_planes(kernels_of_planes, (grad, x), sums, x.shape, places, space):
            return sums
    result = np.empty((x.shape[1], math.prod(kernel)), x.dtype)
    axes = (0, *range(2, x.ndim))
    for block in _blocks(x):
        padded, mine = pad(x[:, block], space.padding), grad[:, block]
        part = np.empty_like(mine)
        for k, offset in enumerate(offsets(space)):
            seen = shifted(padded, offset, space.stride, places)
            result[block, k] = np.add.reduce(np.multiply(seen, mine, part), axes)
    return result.reshape(x.shape[1], *kernel)


def _taps(kernels: Array, space: Space) -> Iterator[tuple[Sizes, Array]]:
    """The places of the kernel, as distances, and each one's number for every channel."""
    flat = kernels.reshape(kernels.shape[0], -1)
    ones = [1] * len(space.kernel)
    for k, offset in enumerate(offsets(space)):
        yield offset, flat[:, k].reshape(-1, *ones)


def _step(x: Array) -> int:
    of_one: int = len(x) * math.prod(x.shape[2:])
    return max(1, _BLOCK // max(1, of_one))


def _blocks(x: Array) -> Iterator[slice]:
    step = _step(x)
    return (slice(start, start + step) for start in range(0, x.shape[1], step))
