"""The share of processors that processes which work for programs take from these.

In: work.  Out: it is done at once while it is short, and behind all others when it goes on.

Note [Giving way]
What compiles beside a program takes a processor from it where all are busy: a program whose loops run in two threads on
two processors then takes half as long again, or more, since each loop waits for its slower half.  Short work pays that
back soon.  Longer work would leave the program behind for as long as it takes, so it goes on with a thirtieth of a
processor, or with what the program leaves idle: `Pace` has half a second that may be taken at once, and comes back at a
tenth of the time.  With a tenth of a processor instead, a program that keeps two busy took a sixth longer.

Niceness alone says nothing on most systems: Linux divides processors among sessions first (autogroup, sched(7)), by a
niceness that each session has, which goes up and down as one likes.  Where there is no such thing, as in containers,
threads have their own, which only goes up; so each piece of work has its thread.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, Final, TypeVar

from engine.lang.records import dataclass

T = TypeVar("T")
BRISK: Final = 1
"""The niceness of short work."""
PATIENT: Final = 15
"""That of work that goes on: a thirtieth of a busy processor."""
AT_ONCE: Final = 0.5
"""Seconds of work that are done at once."""
SHARE: Final = 0.1
"""Seconds of these that come back in each second."""
_AUTOGROUP: Final = Path("/proc/self/autogroup")


@dataclass(slots=True)
class _Session:
    """`is_own`: no other process is in this one's session (`processes.py` makes it so)."""

    is_own: bool = False


SESSION: Final = _Session()


def give_way(niceness: int, thread: int = 0) -> None:
    """Let others go before the thread of this process (0: the caller), and before the session if that is its own."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, thread, max(niceness, os.getpriority(os.PRIO_PROCESS, thread)))
    if SESSION.is_own:
        with suppress(OSError):
            _AUTOGROUP.write_text(str(niceness))


@dataclass(slots=True)
class Pace:
    """The seconds that this process may still take from others at once, and when that was."""

    left: float = AT_ONCE
    at: float = field(default_factory=time.monotonic)

    def run(self, work: Callable[..., T], *args: Any) -> T:
        """The result of a piece of work, done in a thread of its own.  Raises ValueError where that has none."""
        results = list[T]()
        worker = threading.Thread(target=lambda: results.append(work(*args)), daemon=True)
        begun = time.monotonic()
        self.left = min(AT_ONCE, self.left + SHARE * (begun - self.at))
        give_way(BRISK)
        try:
            worker.start()
        except RuntimeError:  # there is no thread to be had
            return work(*args)
        worker.join(self.left)
        if worker.is_alive():
            give_way(PATIENT, worker.native_id or 0)
            worker.join()
        self.at = time.monotonic()
        self.left = max(0.0, self.left - (self.at - begun))
        (result,) = results
        return result
