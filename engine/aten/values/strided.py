"""Views of an array's memory by shape and strides, for every dtype that tensors have.

In: an array of numpy's, a shape, strides in bytes.  Out: a view; nothing checks that it stays inside the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def as_strided(array: Any, shape: Sequence[int], strides: Sequence[int]) -> Any:
    """numpy's function of that name, which does not know dtypes that numpy lacks (`complex32`)."""
    plain = array if array.dtype.isbuiltin == 1 else array.view(f"V{array.itemsize}")
    shown = np.lib.stride_tricks.as_strided(plain, shape, strides)
    return shown if plain is array else shown.view(array.dtype)
