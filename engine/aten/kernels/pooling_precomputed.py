"""Pooling with precomputed geometry: what follows from the sizes alone is computed once.

In: the shape and dtype of an input with the checked geometry.  Out: a function of the array, which takes the greatest
or the average of each window.  Averages are those of real floats that are computed in their own precision; what else
there is, and what is wrong, `ops.pooling` does step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

import numpy as np

from engine.aten.kernels.windows import Sizes, Space, offsets, pad
from engine.aten.values.libraries import device_of
from engine.aten.values.xp import Array

Forward = Callable[[Array], Array]
_MOST: Final = 4096
_KNOWN: Final[dict[Hashable, Forward]] = {}
"""Sizes, dtype and geometry of a call that has succeeded -> how to do it again."""


def key_of(name: str, x: Array, *settings: Any) -> Hashable:
    """The cache key of a call: name, device, shape, dtype and settings."""
    return (name, device_of(x), x.shape, x.dtype, *(tuple(each) if type(each) is list else each for each in settings))


def known(key: Hashable) -> Forward | None:
    return _KNOWN.get(key)


def keep(key: Hashable, forward: Forward) -> Forward:
    if len(_KNOWN) >= _MOST:
        _KNOWN.clear()
    _KNOWN[key] = forward
    return forward


def greatest(space: Space, places: Sizes, after: Sizes, lowest: Any) -> Forward:
    """The maximum of each window; `after` is the padding at the end, `lowest` its value."""
    first, *others = _seen(space, places)
    pads = any(space.padding) or any(after)

    def forward(x: Array) -> Array:
        padded = pad(x, space.padding, after, lowest) if pads else x
        best: Array = padded[first].copy()
        for seen in others:
            np.maximum(best, padded[seen], out=best)
        return best

    return forward


def averages(space: Space, places: Sizes, after: Sizes, divisor: Any) -> Forward:
    """The sum of each window by its divisor."""
    first, *others = _seen(space, places)
    pads = any(space.padding) or any(after)

    def forward(x: Array) -> Array:
        padded = pad(x, space.padding, after) if pads else x
        total: Array = padded[first].copy()
        total += 0  # no sum of zeros is negative
        for seen in others:
            total += padded[seen]
        total /= divisor
        return total

    return forward


def _seen(space: Space, places: Sizes) -> list[Any]:
    """For each element of the kernel, the index of the input's elements that it reads."""
    return [
        (..., *(slice(o, o + (c - 1) * s + 1, s) for o, s, c in zip(offset, space.stride, places, strict=True)))
        for offset in offsets(space)
    ]
