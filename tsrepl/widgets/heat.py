"""A value as a picture: a heat map and a histogram of a tensor's elements.

In: a value.  Out: plain data of bounded size, whatever the tensor's is.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import COMPLEX
from tsrepl.session.values import described, summary

CELLS: Final = 48
"""Rows and columns of a heat map; a larger tensor is shown by the means of its parts."""
BINS: Final = 32
_MOST: Final = 1 << 22
"""Elements that a histogram looks at; of more, evenly spread ones."""


def looked_at(value: Any) -> dict[str, Any]:
    """The value's facts, and the pictures where it is a tensor of numbers."""
    if not isinstance(value, Tensor) or value.is_quantized:
        return {"text": summary(value, 400)}
    array = np.asarray(value.detach().to("cpu").array)
    if not array.size or array.dtype in COMPLEX:
        return {"text": described(value)}
    numbers = array.astype(np.float64)
    return {"text": described(value), **_heat(numbers), **_histogram(numbers)}


def _heat(numbers: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The last two dimensions, at the first place of all others."""
    plane = numbers[(0,) * (numbers.ndim - 2)] if numbers.ndim > 2 else np.atleast_2d(numbers)
    small = _means(_means(plane, 0), 1)
    of = f"the first of {numbers.size // plane.size} planes, " if numbers.size > plane.size else ""
    note = f"{of}{plane.shape[0]} × {plane.shape[1]}"
    return {"heat": [[_plain(each) for each in row] for row in small], "note": note}


def _means(plane: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
    """The plane with at most so many rows or columns, each the mean of those it stands for."""
    count = plane.shape[axis]
    if count <= CELLS:
        return plane
    starts = np.arange(CELLS) * count // CELLS
    sizes = np.diff(np.append(starts, count))
    sums: np.ndarray[Any, Any] = np.add.reduceat(plane, starts, axis=axis)
    return sums / (sizes[:, None] if axis == 0 else sizes[None, :])


def _histogram(numbers: np.ndarray[Any, Any]) -> dict[str, Any]:
    flat = numbers.ravel()[:: max(1, numbers.size // _MOST)]
    finite = flat[np.isfinite(flat)]
    strange = {"nan": int(np.isnan(flat).sum()), "inf": int(np.isinf(flat).sum())}
    if not finite.size:
        return {"strange": strange}
    counts, edges = np.histogram(finite, BINS)
    return {"bins": counts.tolist(), "range": [float(edges[0]), float(edges[-1])], "strange": strange}


def _plain(number: float) -> float | None:
    """The number with four digits; None for one that JSON does not have."""
    return float(f"{number:.4g}") if np.isfinite(number) else None
