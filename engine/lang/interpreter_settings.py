"""Settings of Python's interpreter that compiling changes for a while.

In: nothing.  Out: four contexts.  Inside `deep_recursion()` functions that call themselves once a level of a program's
nesting do not run out of Python's stack.  How deep a program may nest is `MAX_NESTING` (brackets and blocks) and
`MAX_HEIGHT` (levels of a tree, chains such as `a + b + c` included); deeper ones are refused before anything recurses
over them.

Inside `collecting_rarely()` (a decorator, too) the garbage collector runs after tens of thousands of new objects, not
after hundreds.  Trees, graphs and plans are objects that stay: traversing all of them again and again took a sixth of
the time of a first call.  Garbage is found all the same, only later.

Inside `loading()` it does not run, and never looks through what was made there: modules stay as long as the process.
numpy, if it is imported there, has one thread for its products and linear algebra until somebody asks for more.

A thread inside `yielding()` gives the interpreter lock to others as soon as they have waited for `PATIENCE`, not for
Python's five milliseconds: a program that leaves the lock for each of its kernels waited as long after each of them.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MAX_NESTING: Final = 400
MAX_HEIGHT: Final = 600
MAX_BLOCKS: Final = 240
"""The maximal nesting of blocks in a graph; recursion over graphs takes up to three Python frames for each."""
_FRAMES: Final = 15_000
"""Python frames that a tree of `MAX_HEIGHT` may take, many for each level."""


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise Python's recursion limit while the block runs."""
    before = sys.getrecursionlimit()
    if before >= _FRAMES:
        yield
        return
    sys.setrecursionlimit(_FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


OBJECTS: Final = 50_000
"""New objects, less those that were freed, between two runs of the collector."""


class _Holders:
    """The blocks of all threads that hold the collector back, and its thresholds before the first of them."""

    def __init__(self) -> None:
        self._lock, self._count, self._before = threading.Lock(), 0, gc.get_threshold()

    def enter(self) -> None:
        with self._lock:
            self._count += 1
            if self._count == 1:
                first, *others = self._before = gc.get_threshold()
                # 0 is a collector that is turned off
                gc.set_threshold(first and max(first, OBJECTS), *others)

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                gc.set_threshold(*self._before)


_HOLDERS: Final = _Holders()


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Hold the collector back until the last of these blocks ends, in any thread."""
    _HOLDERS.enter()
    try:
        yield
    finally:
        _HOLDERS.leave()


@contextmanager
def loading() -> Iterator[None]:
    """Import modules here, where the process begins: all that there is then is taken for what stays."""
    was_on, known = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        with _one_blas_thread():
            yield
    finally:
        if len(sys.modules) > known:
            gc.freeze()
        if was_on:
            gc.enable()


BLAS_VARIABLES: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
"""Variables of the environment that say how many threads numpy's OpenBLAS has."""
BLAS_ASLEEP: Final = threading.Event()
"""Set if numpy's OpenBLAS was begun with one thread; `threads.wake_blas` starts the others."""


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Let numpy begin with one thread, unless the environment says how many: it would start the others at once, and
    these look for work so eagerly that a machine of two processors took a third longer to import it."""
    if "numpy" in sys.modules or any(name in os.environ for name in BLAS_VARIABLES):
        yield
        return
    os.environ[BLAS_VARIABLES[0]] = "1"
    try:
        yield
    finally:
        del os.environ[BLAS_VARIABLES[0]]
        if "numpy" in sys.modules:
            BLAS_ASLEEP.set()


PATIENCE: Final = 0.0005
"""Seconds that threads wait for the interpreter lock before they ask for it."""


@contextmanager
def yielding() -> Iterator[None]:
    """Let other threads have the interpreter lock soon; for one thread at a time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, PATIENCE))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
