"""Files that only the user can have written, in a folder of the user's own.

In: paths and bytes.  Out: files, whole or not at all.  Raises OSError where somebody else may have had a hand in it.

Note [Whose files]
What is read from here is run.  So the folder has to belong to the user alone and be no link; a file has to be a regular
one of the user's that nobody else can write, and is opened without following links or waiting for pipes.  Files come
into being under another name and are moved in place, so that nobody sees half of one.  What others put there stays:
only regular files of the user's are replaced or removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

UNFINISHED: Final = ".unfinished"
"""The end of the names of files that are being written."""
_ABANDONED: Final = 3600.0
"""Seconds after which the unfinished file of another process is nobody's."""


def folder_of(path: Path) -> Path | None:
    """The folder, made if need be; None where it is not the user's alone."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path if _is_private(path.lstat(), stat.S_ISDIR) else None


def opened(path: str | Path, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """The descriptor of a file of the user's own; raises OSError for what is none.  It never waits for a pipe."""
    handle = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), mode)
    if not _is_private(os.fstat(handle), stat.S_ISREG):
        os.close(handle)
        raise PermissionError(f"{path} is not the user's own")
    return handle


def reading(path: str | Path) -> io.FileIO:
    """A file of the user's own, to be read; raises OSError for what is none."""
    return io.FileIO(path, opener=opened)


@contextlib.contextmanager
def alone(path: Path, *, waits: bool = False) -> Iterator[bool]:
    """True in the block for the one process, and the one thread in it, that holds the lock of that name.

    Where another one does so, False, unless it `waits` for that one to end.
    """
    try:
        handle = opened(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except OSError:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # children that were forked meanwhile hold the file, too
    finally:
        os.close(handle)


def publish(path: Path, parts: Iterable[bytes]) -> bool:
    """Let the file hold these bytes, in one step; False where something lies there that is not the user's.

    Raises OSError where it cannot be written.
    """
    if not _may_replace(path):
        return False
    handle, unfinished = tempfile.mkstemp(UNFINISHED, f"{path.stem}.", path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
        os.replace(unfinished, path)
        unfinished = ""
    finally:
        if unfinished:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)
    return True


def is_users(found: os.stat_result) -> bool:
    """True of a regular file of the user's that nobody else can write."""
    return _is_private(found, stat.S_ISREG)


def is_abandoned(found: os.stat_result) -> bool:
    """True of an unfinished file that its process will not finish any more."""
    return is_users(found) and time.time() - found.st_mtime > _ABANDONED


def _may_replace(path: Path) -> bool:
    """True if there is nothing, or a regular file of the user's."""
    try:
        return _is_private(path.lstat(), stat.S_ISREG, written_by_others=True)
    except FileNotFoundError:
        return True


def _is_private(found: os.stat_result, is_kind: Callable[[int], bool], *, written_by_others: bool = False) -> bool:
    """True if it is the user's own and no link, and, unless that is allowed, nobody else can write it."""
    if not is_kind(found.st_mode):
        return False
    may_write = 0 if written_by_others else found.st_mode & 0o022
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not may_write)
