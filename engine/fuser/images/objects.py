"""Relocatable objects, as LLVM emits them, in one form for all formats: sections, symbols and relocations.

In: what `elf.py` and `macho.py` read.  Out: an `Object`, which `linking.py` puts into an image.  `ImageError` is raised
wherever a file or an object is not what it has to be.
"""

from __future__ import annotations

from typing import Final, Literal

from engine.lang.records import dataclass

Machine = Literal["x86-64", "aarch64"]
SectionKind = Literal["code", "constant", "data"]
Binding = Literal["local", "global", "weak"]
PAGES: Final[dict[Machine, int]] = {"x86-64": 1 << 12, "aarch64": 1 << 16}
"""The largest page that systems have on each machine: segments of images begin at multiples of it."""


class ImageError(Exception):
    """There is no image to be made of this, or this is none that can be run here."""


class MemoryRefused(ImageError):
    """The system gives no memory for the image, or none that can be run."""


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of memory: `data`, and zeros up to `size`.  Code runs, constants are read, data is written."""

    kind: SectionKind
    data: bytes
    size: int
    align: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """A place in a section (an index of `Object.sections`), or, where that is None, one that is elsewhere.

    Of weak symbols of one name any one serves.
    """

    name: str
    section: int | None
    value: int
    binding: Binding


Kind = Literal[
    "abs64", "rel32", "rel64", "branch32", "got32", "branch26", "page21", "lo12", "got_page21", "got_lo12"
]  # fmt: skip
"""Ways to change a place; `relocations.py` has a function for each."""


@dataclass(frozen=True, slots=True)
class Relocation:
    """The place in a section where the address of `symbol` (an index) plus `addend` belongs, in the way of `kind`.

    With `minus`, another symbol's address is taken off instead of that of the place.
    """

    section: int
    place: int
    kind: Kind
    symbol: int
    addend: int
    minus: int | None = None


@dataclass(frozen=True, slots=True)
class Object:
    """The code of one module of LLVM."""

    machine: Machine
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]
