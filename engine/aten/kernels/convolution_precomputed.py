"""Convolutions with precomputed geometry: what follows from the sizes alone is computed once.

In: the shapes of an input and a weight with the geometry.  Out: a function of the arrays: it pads, lays the windows
side by side as columns, and multiplies.  It is for real floats that are computed in their own precision, and for
kernels that all channels share; what else there is, and what is wrong, `convolution` does step by step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from engine.aten.kernels.windows import Space
from engine.aten.values.xp import Array, as_strided

Sizes = tuple[int, ...]
Forward = Callable[[Array, Array], Array]


def quick_forward(x: Sizes, w: Sizes, itemsize: int, space: Space, groups: int) -> Forward:
    """The convolution of arrays of shape `x` with those of shape `w`; both fit each other and the geometry."""
    batch, rows = x[0], math.prod(w[1:])
    sizes = tuple(size + 2 * p for size, p in zip(x[2:], space.padding, strict=True))
    places = tuple((s - e) // step + 1 for s, e, step in zip(sizes, space.extent(), space.stride, strict=True))
    padded = (batch, x[1], *sizes)
    inside = (slice(None), slice(None), *(slice(p, p + s) for p, s in zip(space.padding, x[2:], strict=True)))
    strides = tuple(itemsize * math.prod(padded[1 + at :]) for at in range(len(padded)))
    moves = (
        *strides[:2],
        *(s * d for s, d in zip(strides[2:], space.dilation, strict=True)),
        *(s * step for s, step in zip(strides[2:], space.stride, strict=True)),
    )
    window, out = (batch, x[1], *space.kernel, *places), (batch, w[0], *places)
    alone = batch == 1 and groups == 1
    columns = (rows, math.prod(places)) if alone else (batch, groups, rows, math.prod(places))
    matrix = (w[0], rows) if alone else (groups, w[0] // groups, rows)
    multiply = np.dot if alone else np.matmul
    pads = any(space.padding)
    whole_rows = _whole_rows(padded, places, strides, moves, space, matrix[-2])
    shown: Sizes = ()
    if whole_rows is not None:
        window, moves, length = whole_rows
        columns = (*columns[:-1], length)
        shown = (itemsize * w[0] * length, itemsize * length, itemsize * padded[-1], itemsize)

    def forward(x: Array, w: Array) -> Array:
        if pads:
            whole = np.zeros(padded, x.dtype)
            whole[inside] = x
            x = whole
        elif not x.flags.c_contiguous:
            x = np.ascontiguousarray(x)
        seen = as_strided(x, window, moves).reshape(columns)
        result: Array = multiply(w.reshape(matrix), seen)
        if whole_rows is not None:
            return as_strided(result, out, shown).copy()
        return result.reshape(out)

    return forward


def _whole_rows(
    padded: Sizes, places: Sizes, strides: Sizes, moves: Sizes, space: Space, channels: int
) -> tuple[Sizes, Sizes, int] | None:
    """Windows that are one row of memory for each element of the kernel: (shape, strides, length of a row).

    From the first place of an image to the last, those between the end of a line and the start of the next included,
    which are multiplied with the others and left out afterwards.  To lay many short lines side by side costs more.
    """
    if len(places) != 2 or set(space.stride) != {1} or places[1] > _LONGEST_LINE or channels > _MOST_CHANNELS:
        return None
    length = (places[0] - 1) * padded[-1] + places[1]
    if length > _MOST_BESIDES * math.prod(places):
        return None
    return (*padded[:2], *space.kernel, length), (*moves[:4], strides[-1]), length


_LONGEST_LINE: Final = 24
_MOST_CHANNELS: Final = 64
_MOST_BESIDES: Final = 1.4
