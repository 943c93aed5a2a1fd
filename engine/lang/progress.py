"""Progress of long work, as events for a progress bar.

In: what is being done, and how much of it is done.  Out: calls of the listener with `Progress`; with no listener, next
to nothing.  `with listening(listener):` sets the listener for what this thread does inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """`action` is "writing", "reading", "checking" (bytes), "compiling" (functions), "compiling kernels" or "building"
    (parts of the library of operators); `of` is the path of the file or the name of the function or library, or ""."""

    action: str
    of: str
    done: int
    total: int


Listener = Callable[[Progress], object]
_listener: Final[ContextVar[Listener | None]] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell the listener of everything in here."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def is_listened_to() -> bool:
    """True if somebody wants to know."""
    return _listener.get() is not None


def step(action: str, of: str, done: int, total: int) -> None:
    """So much is done."""
    listener = _listener.get()
    if listener is not None:
        listener(Progress(action, of, done, total))
