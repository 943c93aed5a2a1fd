"""Windows that slide over the last dimensions of an array.

In: arrays (batch, channels, *space) and a `Space`.  Out: views (batch, channels, *places, *kernel), and sums of such
windows put back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np

from engine.aten.values.xp import Array, as_strided

Sizes = tuple[int, ...]


class Space(NamedTuple):
    """Size, stride, padding and dilation of a sliding window along each dimension."""

    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes

    def extent(self) -> Sizes:
        """Size of the dilated kernel along each dimension."""
        return tuple(d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True))


def pad(x: Array, padding: Sequence[int], after: Sequence[int] | None = None, value: float = 0) -> Array:
    """The array with `padding` before and `after` (else the same) behind it in its last dimensions."""
    after = padding if after is None else after
    if not any(padding) and not any(after):
        return x
    n = len(padding)
    lead = x.shape[: x.ndim - n]
    sizes = [b + s + a for b, s, a in zip(padding, x.shape[-n:], after, strict=True)]
    padded = np.empty((*lead, *sizes), x.dtype)
    inside: list[Any] = [slice(b, b + s) for b, s in zip(padding, x.shape[-n:], strict=True)]
    if padded.size < _LARGE:
        padded.fill(value)
    else:
        _fill_border(padded, padding, after, value)
    padded[(..., *inside)] = x
    return padded


_LARGE: Final = 1 << 14
"""Elements from which on memory costs more than calls."""


def _fill_border(padded: Array, padding: Sequence[int], after: Sequence[int], value: float) -> None:
    for i, (b, a) in enumerate(zip(padding, after, strict=True)):
        lines = np.moveaxis(padded, i - len(padding), 0)
        lines[:b] = value
        lines[len(lines) - a :] = value


def windows(x: Array, space: Space) -> Array:
    """A view of an array already padded: (*lead, *places, *kernel)."""
    n = len(space.kernel)
    lead, sizes = x.shape[: x.ndim - n], x.shape[-n:]
    places = tuple((s - e) // step + 1 for s, e, step in zip(sizes, space.extent(), space.stride, strict=True))
    steps = x.strides[-n:]
    moves = tuple(s * step for s, step in zip(steps, space.stride, strict=True))
    inside = tuple(s * d for s, d in zip(steps, space.dilation, strict=True))
    return as_strided(x, (*lead, *places, *space.kernel), (*x.strides[: x.ndim - n], *moves, *inside))


def offsets(space: Space) -> Iterator[Sizes]:
    """Every place of the kernel, as its distance from the window's start."""
    return product(*(range(0, d * k, d) for d, k in zip(space.dilation, space.kernel, strict=True)))


def shifted(x: Array, offset: Sizes, stride: Sizes, places: Sizes) -> Array:
    """The view of a padded array that one place of the kernel sees: (*lead, *places)."""
    spans = zip(offset, stride, places, strict=True)
    seen: list[Any] = [slice(o, o + (count - 1) * step + 1, step) for o, step, count in spans]
    return x[(..., *seen)]


def scatter_windows(cols: Array, shape: Sizes, space: Space) -> Array:
    """(batch, channels, *kernel, *places) added up into a new array of `shape`, padding cut off."""
    n = len(space.kernel)
    places = cols.shape[-n:]
    reach = [(c - 1) * s + e for c, s, e in zip(places, space.stride, space.extent(), strict=True)]
    sizes = [max(size + 2 * p, r) for size, p, r in zip(shape[2:], space.padding, reach, strict=True)]
    total = np.zeros((*shape[:2], *sizes), cols.dtype)
    for place, offset in zip(np.ndindex(*space.kernel), offsets(space), strict=True):
        view = shifted(total, offset, space.stride, places)
        view += cols[(slice(None), slice(None), *place)]
    cut: Iterator[Any] = (slice(p, p + size) for p, size in zip(space.padding, shape[2:], strict=True))
    return total[(slice(None), slice(None), *cut)]
