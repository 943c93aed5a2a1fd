"""Python's garbage collector, held back while many objects are made that stay.

In: nothing.  Out: `collecting_rarely()`, a context (or decorator) in which the collector looks for garbage after tens
of thousands of new objects instead of hundreds.  Trees, graphs and plans are such objects: looking at all of them again
and again took a sixth of the time of a first call.  Garbage is found all the same, only later.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

OBJECTS: Final = 50_000
"""New objects, those that went subtracted, before the collector looks."""

_lock = threading.Lock()
_inside = 0
_before: tuple[int, ...] = ()


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Held back until the last of those who are in here, in any thread, leaves."""
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _inside, _before
    with _lock:
        _inside += 1
        if _inside == 1:
            _before = gc.get_threshold()
            # 0 is a collector that somebody turned off
            gc.set_threshold(_before[0] and max(_before[0], OBJECTS), *_before[1:])


def _leave() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if _inside == 0:
            gc.set_threshold(*_before)
