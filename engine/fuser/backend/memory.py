"""Memory that arrays give back, kept for the next ones.

In: nothing.  Out: `keep_freed`, which asks the C library to keep such memory.  By default glibc returns what lies at
the end of its heap to the system, and maps large blocks anew each time; the system fills pages with zeros when they are
first touched, which takes as long as many kernels do.  A program of layers makes and drops the same few arrays in every
call: it ran up to a third faster once nothing went back and forth.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from typing import Final

KEPT: Final = 128 << 20
"""Bytes at the end of the heap that are not returned."""
_MAPPED: Final = 32 << 20
"""Bytes from which blocks are mapped on their own; glibc takes no more."""
_SETTINGS: Final = {-1: KEPT, -3: _MAPPED}
"""glibc's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD."""
_VARIABLES: Final = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")


@cache
def keep_freed() -> bool:
    """True if memory is kept from now on: not where the user has set how, or where there is another library."""
    if sys.platform != "linux" or any(name in os.environ for name in _VARIABLES):
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    return all(library.mallopt(which, value) for which, value in _SETTINGS.items())
