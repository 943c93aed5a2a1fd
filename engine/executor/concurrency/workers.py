"""The threads on which forked functions run.

In: tasks, functions of nothing that raise nothing.  Out: they run, as many at a time as there are threads.  A task does
not wait for another one: it says what is to be done next and ends, so a few threads serve any number of forks.  Where
something below a task has to wait nevertheless, it does so in `blocking()`, and another thread takes its place.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Final

from engine.lang.locks import lock

Task = Callable[[], object]


class Workers:
    """At most `size` threads that are not blocked, started when there is work for them."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._lock = lock()
        self._tasks: SimpleQueue[Task] = SimpleQueue()
        self._threads = self._blocked = 0
        self._of_thread = threading.local()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_child)

    @property
    def threads(self) -> int:
        """The number of threads now."""
        return self._threads

    def submit(self, task: Task) -> None:
        """Queue the task for a thread; tasks begin in the order of submission."""
        self._tasks.put(task)
        if self._threads - self._blocked < self.size:
            self._staff()

    @contextmanager
    def blocking(self) -> Iterator[None]:
        """A block in which the current thread waits; if it is a worker, another thread may take its place."""
        if not self.is_worker():
            yield
            return
        with self._lock:
            self._blocked += 1
        self._staff()
        try:
            yield
        finally:
            with self._lock:
                self._blocked -= 1

    def is_worker(self) -> bool:
        """True if the current thread is a worker."""
        return getattr(self._of_thread, "works", False)

    def _in_child(self) -> None:
        """A child has none of the threads, nor what waits for them: that is the parent's."""
        self._tasks, self._threads, self._blocked = SimpleQueue(), 0, 0

    def _staff(self) -> None:
        """Start a thread if one is missing."""
        with self._lock:
            if self._threads - self._blocked >= self.size:
                return
            self._threads += 1
        threading.Thread(target=self._work, name="forked functions", daemon=True).start()

    def _work(self) -> None:
        self._of_thread.works = True
        while True:
            self._tasks.get()()
            with self._lock:
                if self._threads - self._blocked > self.size:
                    self._threads -= 1
                    return


WORKERS: Final = Workers(max(2, os.cpu_count() or 1))
"""The workers of this process."""
