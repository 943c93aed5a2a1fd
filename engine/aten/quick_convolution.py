"""Convolutions of sizes that were met before: what follows from the sizes alone is worked out once.

In: the shapes of an input and a weight with the geometry.  Out: a function of the arrays: it pads, lays the windows
side by side as columns, and multiplies.  It is for real floats that are computed in their own precision, and for
kernels that all channels share; what else there is, and what is wrong, `convolution` does step by step.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from engine.aten.windows import Space
from engine.aten.xp import Array, as_strided

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

    def forward(x: Array, w: Array) -> Array:
        if pads:
            whole = np.zeros(padded, x.dtype)
            whole[inside] = x
            x = whole
        elif not x.flags.c_contiguous:
            x = np.ascontiguousarray(x)
        seen = as_strided(x, window, moves).reshape(columns)
        result: Array = multiply(w.reshape(matrix), seen).reshape(out)
        return result

    return forward
