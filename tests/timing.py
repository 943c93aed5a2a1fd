"""Limits on time that neither a busy machine nor the tests before can break."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails if the block takes more seconds of a processor in this thread; other threads and programs do not count."""
    with uncollected():
        start = time.thread_time()
        yield
        taken = time.thread_time() - start
    assert taken < seconds, f"it took {taken:.2f} seconds of the processor, and may take {seconds}"


@contextmanager
def uncollected() -> Iterator[None]:
    """Collects no garbage in the block: a collection walks all that earlier tests left alive."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
