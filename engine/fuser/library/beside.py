"""The library built beside the program: a process of its own, which the program neither waits for nor ends.

In: nothing.  Out: a process that builds what is missing, where that is worth it: in mode "background", where files are
kept, nobody builds yet, and nobody has just failed.  The program goes on in any case.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Final

from engine.fuser.backend import tiering
from engine.fuser.images.objects import ImageError
from engine.fuser.library import image_files, key, processor
from engine.lang.records import dataclass

AGAIN: Final = 600.0
"""Seconds after which somebody may try again what failed, or was begun and not finished."""
_PROGRAM: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); from engine.fuser.library import building; building.main()"
)
_ROOT: Final = Path(__file__).parents[3]
_SHELL: Final = "/bin/sh"
_SCRIPT: Final = '"$@" >/dev/null 2>&1 </dev/null &'
"""The shell ends at once, so that the program has no child that it did not start."""


@dataclass(slots=True)
class _State:
    has_asked: bool = False


_STATE: Final = _State()


def begin() -> bool:
    """Let a process build what is missing, once for each program; True if one was started."""
    if _STATE.has_asked or tiering.mode() != "background":
        return False
    _STATE.has_asked = True
    try:
        current = key.current()
    except ImageError:  # there is no library for this process
        return False
    room = image_files.folder()
    if room is None or image_files.packaged(current) or not _is_python():
        return False
    found = image_files.state(current, room)
    if found is not None and (found.words == image_files.COMPLETE or found.age < AGAIN):
        return False
    return not image_files.is_being_built(room) and _start(current.facts["target"])


def _is_python() -> bool:
    """True unless Python is part of another program, which would be started a second time."""
    return Path(sys.executable or "").name.startswith("python") and not getattr(sys, "frozen", False)


def _start(level: str) -> bool:
    """Start the process; nothing of this one gets into it but the environment."""
    command = [_SHELL, "-c", _SCRIPT, "sh", sys.executable, "-P", "-c", _PROGRAM, str(_ROOT)]
    environment = {**os.environ, "TSREPL_COMPILE": "off", processor.VARIABLE: level, "OPENBLAS_NUM_THREADS": "1"}
    try:
        shell = os.posix_spawn(_SHELL, command, environment, setsid=True, setsigdef=[signal.SIGINT, signal.SIGTERM])
        os.waitpid(shell, 0)
    except (OSError, NotImplementedError):
        return False
    return True
