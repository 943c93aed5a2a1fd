"""Sizes before they are allocated.

In: a shape and a dtype.  Out: nothing, or OperatorMemoryError where the elements could not be addressed, or need
more than the machine has: an allocation that the system grants and cannot keep would end the process.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Final

from engine.aten.values import xp
from engine.lang.errors import OperatorMemoryError

_ADDRESSES: Final = 2**63


def _memory_there_is() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return _ADDRESSES


MEMORY: Final = _memory_there_is()
"""Bytes."""


def check_memory(shape: Sequence[int], d: xp.NumpyDtype) -> None:
    """Raise OperatorMemoryError unless an array of this shape can be had."""
    size = math.prod(shape) * d.itemsize
    if 0 < size < MEMORY:
        return
    if size < MEMORY and max(shape, default=0) < _ADDRESSES:
        return
    if size >= _ADDRESSES:
        raise OperatorMemoryError(f"Storage size calculation overflowed with sizes={list(shape)}")
    raise OperatorMemoryError(
        f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {size} bytes.",
        hints=(f"a tensor of shape {list(shape)} does not fit into the {MEMORY} bytes that there are",),
    )
