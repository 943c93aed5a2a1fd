"""Temporary files that a save leaves beside its target when its process is killed.

In: the path that is saved to.  Out: a name for a temporary file, a hold on it that ends with the process however that
ends, and, at the next save to the same path, the removal of those that no process holds any more.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # a system without such locks: nothing is removed there
    fcntl = None  # type: ignore[assignment]

STALE_AFTER: Final = 600.0
"""Seconds without a change after which a file that no process holds is taken for left over."""
_LONGEST: Final = 100
"""Bytes of the target's name in that of its temporary file."""


def temporary_beside(target: Path) -> Path:
    """A new name in the target's folder: `.model.pt.0123456789abcdef.tmp`."""
    return target.with_name(f".{_clipped(target.name)}.{secrets.token_hex(8)}.tmp")


def _clipped(name: str) -> str:
    """The beginning of the name, short enough that the whole stays one that file systems take."""
    return os.fsencode(name)[:_LONGEST].decode("utf-8", "ignore")


def hold(handle: int) -> None:
    """Hold the open file until it is closed, or its process ends."""
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks: then nothing there is ever taken for left over
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def remove_leftovers(target: Path) -> None:
    """Remove what killed saves to the same path have left behind; what cannot be removed stays."""
    ours = re.compile(rf"\.{re.escape(_clipped(target.name))}\.[0-9a-f]{{16}}\.tmp")
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if ours.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_if_left(entry.path)


def _remove_if_left(path: str) -> None:
    if fcntl is None:
        return
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(handle)
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if is_ours and status.st_nlink == 1 and time.time() - status.st_mtime > STALE_AFTER:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
    finally:
        os.close(handle)
