"""Changes that relocations make to code: one function for each kind.

In: the image so far, the place, and the two addresses, as offsets in the image.  Out: the image with the place changed.
Raises ImageError where the address does not fit there, or where what stands in the place is no such instruction.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from engine.fuser.images.objects import ImageError, Kind

Patch = Callable[[bytearray, int, int, int], None]
"""(image, place, address that belongs there, address that distances count from)."""

_PAGE: Final = 12
"""Bits of an address in a page, as instructions of AArch64 count them, whatever the system's pages."""


def _absolute(image: bytearray, place: int, target: int, origin: int) -> None:
    """An address; where the image lies is added when it is loaded."""
    struct.pack_into("<Q", image, place, target % (1 << 64))


def _distance(form: str) -> Patch:
    """The distance from the place, as such a number."""
    bits = 8 * struct.calcsize(form)

    def patch(image: bytearray, place: int, target: int, origin: int) -> None:
        struct.pack_into(form, image, place, _fitting(target - origin, bits))

    return patch


def _branch(image: bytearray, place: int, target: int, origin: int) -> None:
    """The distance of B and BL, in instructions."""
    word = _instruction(image, place, "a branch", 0x7C000000, 0x14000000)
    distance = _scaled(_fitting(target - origin, 28), 2)
    _write(image, place, word & ~0x03FFFFFF | distance & 0x03FFFFFF)


def _page_distance(image: bytearray, place: int, target: int, origin: int) -> None:
    """The distance of ADRP, in pages: two bits of it at the top, the rest below."""
    word = _instruction(image, place, "ADRP", 0x9F000000, 0x90000000)
    pages = _fitting((target >> _PAGE) - (origin >> _PAGE), 21)
    _write(image, place, word & ~0x60FFFFE0 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5)


def _page_offset(image: bytearray, place: int, target: int, origin: int) -> None:
    """The address in its page: of ADD as it is, of loads and stores in units of what they move."""
    (word,) = struct.unpack_from("<I", image, place)
    if word & 0xFFC00000 == 0x91000000:
        scale = 0
    else:
        _instruction(image, place, "ADD, a load or a store", 0x3B000000, 0x39000000)
        is_vector_of_16 = word & 0xFC800000 == 0x3C800000
        scale = 4 if is_vector_of_16 else word >> 30
    offset = _scaled(target & ((1 << _PAGE) - 1), scale)
    _write(image, place, word & ~0x003FFC00 | offset << 10)


PATCHES: Final[dict[Kind, Patch]] = {
    "abs64": _absolute,
    "rel32": _distance("<i"), "rel64": _distance("<q"), "branch32": _distance("<i"), "got32": _distance("<i"),
    "branch26": _branch,
    "page21": _page_distance, "got_page21": _page_distance,
    "lo12": _page_offset, "got_lo12": _page_offset,
}  # fmt: skip
VIA_TABLE: Final[frozenset[Kind]] = frozenset({"got32", "got_page21", "got_lo12"})
"""Those whose target is not the symbol but the word that holds its address."""
BRANCHES: Final[frozenset[Kind]] = frozenset({"branch32", "branch26"})
"""Those whose target may be a jump through the table of addresses instead of the symbol."""
SIZES: Final[dict[Kind, int]] = {"abs64": 8, "rel64": 8}
"""Bytes that are changed; 4 of all others."""


def _fitting(distance: int, bits: int) -> int:
    if not -(1 << bits - 1) <= distance < 1 << bits - 1:
        raise ImageError(f"a distance of {distance} bytes or pages does not fit in {bits} bits")
    return distance


def _scaled(offset: int, scale: int) -> int:
    if offset % (1 << scale):
        raise ImageError(f"an address of {offset} is no multiple of {1 << scale}")
    return offset >> scale


def _instruction(image: bytearray, place: int, name: str, mask: int, wanted: int) -> int:
    (word,) = struct.unpack_from("<I", image, place)
    if place % 4 or word & mask != wanted:
        raise ImageError(f"the instruction {word:#010x} at {place} is not {name}")
    return int(word)


def _write(image: bytearray, place: int, word: int) -> None:
    struct.pack_into("<I", image, place, word)
