"""Interpolation of images at positions between pixels, over arrays, without autograd.

In: images (batch, channels, *space), and corners: for each the whole places (batch, *out) by dimension and the weight
of what stands there.  Out: (batch, channels, *out).  Channels are laid beside each other, so that a place is one row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from engine.aten.values.xp import Array


def weighted(images: Array, corners: Iterable[tuple[Sequence[Array], Array]]) -> Array:
    """The sum of the elements at all corners, each times its weight; there are zeros outside."""
    batch, channels = images.shape[:2]
    sizes = images.shape[2:]
    rows = np.ascontiguousarray(np.moveaxis(images.reshape(batch, channels, math.prod(sizes)), 1, 2))
    total: Array | None = None
    out: tuple[int, ...] = ()
    for spots, weight in corners:
        out = weight.shape[1:]
        flat, inside = numbered(spots, sizes)
        taken = np.stack([row.take(place, 0) for row, place in zip(rows, flat.reshape(batch, -1), strict=True)])
        if not inside.all():
            taken[~inside.reshape(batch, -1)] = 0
        np.multiply(taken, weight.reshape(batch, -1, 1), taken)
        total = taken if total is None else np.add(total, taken, total)
    assert total is not None
    return np.ascontiguousarray(np.moveaxis(total.reshape(batch, *out, channels), -1, 1))


def numbered(spots: Sequence[Array], sizes: Sequence[int]) -> tuple[Array, Array]:
    """Flat indices of the positions (0 for those outside the image), and a mask of those inside."""
    inside: Array | None = None
    flat: Array | None = None
    for spot, size in zip(spots, sizes, strict=True):
        fits = (spot >= 0) & (spot <= size - 1)
        index = np.where(fits, spot, 0).astype(np.int64)
        inside = fits if inside is None else inside & fits
        flat = index if flat is None else flat * size + index
    assert flat is not None
    assert inside is not None
    return flat, inside
