"""The processor that images are for, told without a compiler.

In: what the system says of the processor, and `TSREPL_TARGET`, which names a level that it can stand for.  Out: a
`Level`.  Images are made for levels, each of which a range of processors has, so that machines can share them.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from engine.fuser.library.objects import ImageError
from engine.lang.records import dataclass

VARIABLE: Final = "TSREPL_TARGET"
_FACTS: Final = "/proc/cpuinfo"
_ENOUGH: Final = 4096
"""Bytes of these facts that tell of the first processor."""


@dataclass(frozen=True, slots=True)
class Level:
    """LLVM's name of such a processor, what to turn off of that, and the flags that it takes on Linux."""

    name: str
    features: str
    flags: frozenset[str]


_V2: Final = frozenset("cx16 lahf_lm pni popcnt sse4_1 sse4_2 ssse3".split())
_V3: Final = _V2 | frozenset("abm avx avx2 bmi1 bmi2 f16c fma movbe".split())
_V4: Final = _V3 | frozenset("avx512bw avx512cd avx512dq avx512f avx512vl".split())
_NONE: Final[frozenset[str]] = frozenset()
LEVELS: Final[dict[str, tuple[Level, ...]]] = {
    "linux x86_64": (
        Level("x86-64-v4", "-prefer-256-bit", _V4), Level("x86-64-v3", "", _V3),
        Level("x86-64-v2", "", _V2), Level("x86-64", "", _NONE),
    ),
    "linux aarch64": (Level("cortex-a72", "", _NONE),),
    "darwin x86_64": (Level("x86-64-v2", "", _NONE),),
    "darwin arm64": (Level("apple-m1", "", _NONE),),
}  # fmt: skip
"""The levels of each system, the best first.  Where the system names no flags, all of its processors have the level."""


def system() -> str:
    """The operating system and the kind of processor, as in `LEVELS`."""
    return f"{sys.platform} {os.uname().machine}"


def levels() -> tuple[Level, ...]:
    """The levels of images that this process can run, the best first.

    Raises ImageError where there is none, or one is named that this processor lacks.
    """
    named = os.environ.get(VARIABLE)
    flags = _flags()
    found = [each for each in LEVELS.get(system(), ()) if each.flags <= flags and named in (None, "", each.name)]
    if not found:
        raise ImageError(f"there are no images for {named or system()} here")
    return tuple(found)


def level() -> Level:
    """The level that images are made for; raises ImageError where there is none."""
    return levels()[0]


def _flags() -> frozenset[str]:
    """Linux's names of what the processor has; none elsewhere."""
    try:
        with open(_FACTS, encoding="ascii", errors="replace") as file:
            lines = file.read(_ENOUGH).splitlines()
    except OSError:
        return _NONE
    for line in lines:
        if line.startswith("flags"):
            return frozenset(line.partition(":")[2].split())
    return _NONE
