"""The library built beside the program: a process of its own, which the program neither waits for nor ends.

In: nothing.  Out: a process that builds what is missing, where that is worth it: in mode "background", where files are
kept, nobody builds yet, and nobody has just failed.  The program goes on in any case.
"""

from __future__ import annotations

from typing import Final

from engine.fuser.backend import processes, tiering
from engine.fuser.images.objects import ImageError
from engine.fuser.library import image_files, key, processor
from engine.lang.records import dataclass

LATER: Final = 3.0
"""Seconds until that begins: a program that is over by then would have been slowed down for nothing."""
AGAIN: Final = 600.0
"""Seconds after which somebody may try again what failed, or was begun and not finished."""


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
    if room is None or image_files.packaged(current):
        return False
    found = image_files.state(current, room)
    if found is not None and (found.words == image_files.COMPLETE or found.age < AGAIN):
        return False
    return not image_files.is_being_built(room) and processes.start(
        "engine.fuser.library.building", {processor.VARIABLE: current.facts["target"]}, after=LATER
    )
