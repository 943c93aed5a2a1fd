"""Keys of images, which say what they are made of and for: two of one key hold the same code.

In: the engine's sources and this process.  Out: a `Key`, as text in images and as part of their files' names.  Raises
ImageError where there is no image for this process.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from engine.fuser.backend import kernel_cache
from engine.fuser.backend.cpython_abi import AbiError
from engine.fuser.images import image
from engine.fuser.images.objects import ImageError
from engine.fuser.library import processor
from engine.fuser.stubs.process import process
from engine.lang.records import dataclass

PACKAGED: Final = Path(__file__).parent / "images"
"""Images that came with the package, in a folder for each level, and the state of its sources."""
SOURCES: Final = "sources"
_ROOMS: Final = ("aten", "frontend", "fuser", "ir", "lang", "passes")
"""Rooms whose sources decide what the code is."""
COMPILER: Final = kernel_cache.COMPILER
"""The fact that does not decide whether code fits: others may have compiled what came with the package."""


@dataclass(frozen=True, slots=True)
class Key:
    """Facts by name."""

    facts: Mapping[str, str]

    @property
    def text(self) -> str:
        """The lines that images hold."""
        return "".join(f"{name}: {fact}\n" for name, fact in self.facts.items())

    @property
    def digest(self) -> str:
        """The part of the names of files."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def at(self, level: str) -> Key:
        """The key of the same for another level of processors."""
        return Key({**self.facts, "target": level})

    def differences(self, text: str) -> list[str]:
        """The facts that are others in the text of a key."""
        theirs = of_text(text).facts
        return [name for name in {**self.facts, **theirs} if self.facts.get(name) != theirs.get(name)]

    def fits(self, text: str) -> bool:
        """True of an image that is made of and for the same."""
        return text == self.text

    def fits_packaged(self, text: str) -> bool:
        """True of one that came with the package, whoever compiled it."""
        return not {*self.differences(text)} - {COMPILER}


def of_text(text: str) -> Key:
    """The key of an image, by its text."""
    lines = (line.partition(": ") for line in text.splitlines())
    return Key({name: fact for name, _, fact in lines})


@cache
def current() -> Key:
    """The key of this process."""
    try:
        layout = process().layout
    except AbiError as error:
        raise ImageError(f"no native code for this process: {error}") from error
    return Key(
        {
            "format": image.MAGIC.decode(),
            "system": processor.system(),
            "target": processor.level().name,
            "python": str(sys.implementation.cache_tag),
            "numpy": np.__version__.partition(".")[0],
            "layout": hashlib.sha256(layout.encode()).hexdigest()[:16],
            "sources": sources(),
            COMPILER: kernel_cache.compiler(),
        }
    )


def sources() -> str:
    """The state of the sources: what came with the package, or of the files as they are."""
    with suppress(OSError):
        return (PACKAGED / SOURCES).read_text("ascii").strip()
    return kernel_cache.state_of_engine(*_ROOMS)
