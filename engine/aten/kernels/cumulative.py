"""Running sums and products.

In: an array, the dimension to run along.  Out: an array of the same dtype.  Single precision can be added
up in double precision and each result rounded, as PyTorch does: sums of many numbers stay right.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from engine.aten.kernels.blocks import BLOCK
from engine.aten.stepwise import cumulative
from engine.aten.stepwise.language import Loop, worth
from engine.aten.values.xp import FLOAT32, FLOAT64, Array

_WIDE: Final = 64
"""Elements that lie beside each other from which on they are added in one step."""


def running(function: np.ufunc, x: Array, axis: int, in_double: bool = False) -> Array:
    """`function.accumulate`, for an array of at least one dimension.

    `in_double` says that it is of single precision and runs in double precision.
    """
    done = _in_machine_code(function, x, axis, FLOAT64 if in_double else x.dtype)
    if done is not None:
        return done
    if not in_double:
        return np.asarray(function.accumulate(x, axis=axis))
    if x.size <= BLOCK:
        return np.asarray(function.accumulate(x, axis=axis, dtype=np.float64).astype(FLOAT32))
    inner = math.prod(x.shape[axis + 1 :])
    source = np.ascontiguousarray(x).reshape(-1, x.shape[axis], inner)
    result = np.empty(source.shape, FLOAT32)
    if inner < _WIDE:
        _in_blocks(function, source, result)
    else:
        _side_by_side(function, source, result)
    return result.reshape(x.shape)


_LOOPS: Final[dict[np.ufunc, tuple[Loop, Loop]]] = {
    np.add: (cumulative.row_sums, cumulative.sums), np.multiply: (cumulative.row_products, cumulative.products)
}  # fmt: skip


def _in_machine_code(function: np.ufunc, x: Array, axis: int, d: np.dtype[Any]) -> Array | None:
    """The same in machine code, accumulated in the given dtype; None if it is not compiled."""
    by_rows, side_by_side = _LOOPS.get(function, (None, None))
    if by_rows is None or side_by_side is None or not worth(x):
        return None
    source, result = np.ascontiguousarray(x), np.empty(x.shape, x.dtype)
    outer, length, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    totals = np.empty(inner, d)
    if inner == 1:
        done = by_rows.run(x.size, source, result, totals, outer, length)
    else:
        done = side_by_side.run(x.size, source, result, totals, outer, length, inner)
    return None if done is None else result


def _in_blocks(function: np.ufunc, source: Array, result: Array) -> None:
    """Some rows at a time, so that double precision does not need much memory."""
    step = max(1, BLOCK // math.prod(source.shape[1:]))
    wide = np.empty((min(step, len(source)), *source.shape[1:]))
    for start in range(0, len(source), step):
        some = slice(start, start + step)
        part = wide[: len(source[some])]
        np.copyto(part, source[some])
        result[some] = function.accumulate(part, axis=1, out=part)


def _side_by_side(function: np.ufunc, source: Array, result: Array) -> None:
    """Each step adds one slice, over all other dimensions together."""
    for rows, out in zip(source, result, strict=True):
        total = rows[0].astype(np.float64)
        out[0] = rows[0]
        for row, place in zip(rows[1:], out[1:], strict=True):
            np.copyto(place, function(total, row, out=total), casting="same_kind")
