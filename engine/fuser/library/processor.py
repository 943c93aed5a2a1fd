"""The processor that images are for, told without a compiler.

In: what the system says of the processor, and `TSREPL_TARGET`, which names one that it can stand for.  Out: the
`Level` of these.  Images are made for levels, each of which a range of processors has, so that machines can share them.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from engine.fuser.backend.processors import KINDS, described
from engine.fuser.backend.processors import VARIABLE as VARIABLE
from engine.fuser.images.objects import ImageError
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class Level:
    """LLVM's name of such a processor, what to turn off of that, and the flags that it takes on Linux."""

    name: str
    features: str
    flags: frozenset[str]


_NONE: Final[frozenset[str]] = frozenset()


def _level(name: str) -> Level:
    return Level(name, KINDS[name].flags, KINDS[name].linux_flags)


LEVELS: Final[dict[str, tuple[Level, ...]]] = {
    "linux x86_64": tuple(map(_level, ("x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64"))),
    "linux aarch64": (_level("cortex-a72"),),
    "darwin x86_64": (Level("x86-64-v2", "", _NONE),),
    "darwin arm64": (_level("apple-m1"),),
}
"""The levels of each system, the best first.  Where the system names no flags, all of its processors have the level."""


def system() -> str:
    """The operating system and the kind of processor, as in `LEVELS`."""
    return f"{sys.platform} {os.uname().machine}"


def levels() -> tuple[Level, ...]:
    """The levels of images that this process can run, the best first.

    Raises ImageError where there is none, or one is named that this processor lacks.
    """
    named = os.environ.get(VARIABLE, "")
    wanted = KINDS[named].level if named in KINDS else named
    flags = frozenset(described().get("flags", "").split())
    found = [each for each in LEVELS.get(system(), ()) if each.flags <= flags and wanted in ("", each.name)]
    if not found:
        raise ImageError(f"there are no images for {named or system()} here")
    return tuple(found)


def level() -> Level:
    """The level that images are made for; raises ImageError where there is none."""
    return levels()[0]
