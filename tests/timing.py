"""Limits on time that a busy machine cannot break."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails if the block takes more seconds of a processor in this thread; other threads and programs do not count."""
    start = time.thread_time()
    yield
    taken = time.thread_time() - start
    assert taken < seconds, f"it took {taken:.2f} seconds of the processor, and may take {seconds}"
