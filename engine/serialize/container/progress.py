"""Progress of a long load or save, as events for a progress bar.

In: what is being done, and how much of it is done.  Out: calls of the listener with `FileProgress`; with no listener,
next to nothing.  `with listening(listener):` sets the listener for what this thread does inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from engine.lang.records import dataclass

if TYPE_CHECKING:
    from engine.serialize.container.write import Contents

CHUNK: Final = 4 << 20
"""Bytes between two events of writing."""


@dataclass(frozen=True, slots=True)
class FileProgress:
    """`action` is "writing", "reading", "checking" (bytes) or "compiling" (functions); `path` the file, or ""."""

    action: str
    path: str
    done: int
    total: int


Listener = Callable[[FileProgress], object]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell the listener of everything in here."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def step(action: str, path: str, done: int, total: int) -> None:
    """So much is done."""
    listener = _listener.get()
    if listener is not None:
        listener(FileProgress(action, path, done, total))


def told(pieces: Iterable[Contents], path: object, total: int) -> Iterable[Contents]:
    """The pieces of a file that is written, large ones in parts, each told of as it is asked for."""
    return pieces if _listener.get() is None else _told(pieces, str(path), total)


def _told(pieces: Iterable[Contents], path: str, total: int) -> Iterator[Contents]:
    done = 0
    for piece in pieces:
        view = memoryview(piece)
        for at in range(0, len(view), CHUNK):
            part = view[at : at + CHUNK]
            yield part
            done += len(part)
            step("writing", path, min(done, total), total)
