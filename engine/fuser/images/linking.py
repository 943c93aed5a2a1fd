"""Relocatable objects put together: what calls what is settled, and what only a process knows is left to loading.

In: the bytes of objects of one machine, and the image's key.  Out: an `Image`.  Raises ImageError for a relocation that
is not known or does not fit, a symbol that is there twice, and all that needs more than memory to be loaded.

Note [The layout of images]
Code and constants come first, then, from the next page on, data, the table of addresses (the words that hold addresses
of symbols for what goes by way of it), and memory that begins as zeros.  Calls of what is elsewhere go to a jump
through the table.  So code is the same wherever it lies; in data, the image's own address is added to some words
(`relatives`), and the addresses of what is elsewhere to others (`imports`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from engine.fuser.images import elf, macho
from engine.fuser.images.image import Image
from engine.fuser.images.objects import PAGES, ImageError, Kind, Machine, Object, Relocation, Section
from engine.fuser.images.relocations import BRANCHES, PATCHES, SIZES, VIA_TABLE

_READERS: Final[dict[bytes, Callable[[bytes], Object]]] = {elf.MAGIC: elf.read, macho.MAGIC: macho.read}
_Location = tuple[int, int, int]
"""The number of an object, that of a section in it, and the distance from there."""
_Target = _Location | str
_WORD: Final = 8
_MOST: Final = 1 << 28
"""Bytes of a section, which distances of four bytes reach."""
_ALIGNED: Final = frozenset(1 << bits for bits in range(13))
_JUMPS: Final[dict[Machine, tuple[bytes, tuple[tuple[int, int, Kind], ...]]]] = {
    # jmp *word(%rip)
    "x86-64": (b"\xff\x25\0\0\0\0\x0f\x0b", ((2, -4, "got32"),)),
    # adrp x16, word; ldr x16, [x16, word]; br x16
    "aarch64": (struct.pack("<IIII", 0x90000010, 0xF9400210, 0xD61F0200, 0xD4200000),
                ((0, 0, "got_page21"), (4, 0, "got_lo12"))),
}  # fmt: skip
"""A jump through the table: its bytes, and where in them, with what addend and in what way the word belongs."""


def read(data: bytes) -> Object:
    """The object in these bytes, of whichever format."""
    for magic, reader in _READERS.items():
        if data.startswith(magic):
            found = reader(data)
            _check(found)
            return found
    raise ImageError("neither an ELF nor a Mach-O object of 64 bits")


def _check(found: Object) -> None:
    """Raises ImageError unless all that the object names is there."""
    for section in found.sections:
        if not len(section.data) <= section.size <= _MOST or section.align not in _ALIGNED:
            raise ImageError(f"a section of {section.size} bytes at multiples of {section.align} is none of an image")
    for symbol in found.symbols:
        if symbol.section is not None and not 0 <= symbol.value <= found.sections[symbol.section].size:
            raise ImageError(f"the symbol {symbol.name} is outside its section")
    for mark in found.relocations:
        size = len(found.sections[mark.section].data) - SIZES.get(mark.kind, 4)
        if not 0 <= mark.place <= size or not max(mark.symbol, mark.minus or 0) < len(found.symbols):
            raise ImageError("a relocation names what is not there")


def linked(objects: Iterable[bytes], key: str) -> Image:
    """The image of all these objects."""
    found = [read(data) for data in objects]
    machines = {each.machine for each in found}
    if len(machines) != 1:
        raise ImageError(f"an image is for one machine, and these objects are for {sorted(machines) or 'none'}")
    return _Linker(found, machines.pop()).image(key)


class _Linker:
    """An image that is being put together.

    `places` are those of sections and words of the table, `jumps` those of jumps through it to what is elsewhere.
    """

    def __init__(self, objects: Sequence[Object], machine: Machine) -> None:
        self.objects, self.machine = objects, machine
        self.defined = self._definitions()
        self.places: dict[tuple[int, int], int] = {}
        self.words: dict[_Target, int] = {}
        self.jumps: dict[_Target, int] = {}
        self.memory = bytearray()
        self.relatives: list[int] = []
        self.imports: list[tuple[str, int]] = []

    def image(self, key: str) -> Image:
        self._look_up()
        self._lay_out("code")
        self._lay_out_jumps()
        self._lay_out("constant")
        self._align(PAGES[self.machine])
        begin = len(self.memory)
        self._lay_out("address")
        self._lay_out("data")
        self._lay_out_words()
        end = len(self.memory)
        self._lay_out("zeros")
        zeros = len(self.memory) - end
        for o, each in enumerate(self.objects):
            for mark in each.relocations:
                self._relocate(o, mark)
        for target, word in self.words.items():
            self._address(word, target)
        for target, jump in self.jumps.items():
            for at, addend, kind in _JUMPS[self.machine][1]:
                PATCHES[kind](self.memory, jump + at, self.words[target] + addend, jump + at)
        exports = {name: self._place(found) for name, found in self.defined.items()}
        code, data = bytes(self.memory[:begin]), bytes(self.memory[begin:end])
        relatives = np.array(sorted(self.relatives), np.int64)
        return Image(key, PAGES[self.machine], code, data, zeros, exports, tuple(self.imports), relatives)

    # ---------------------------------------------------------------- symbols

    def _definitions(self) -> dict[str, _Location]:
        """Where the symbols are that objects offer each other and the image offers others."""
        found: dict[str, _Location] = {}
        strong: set[str] = set()
        for o, each in enumerate(self.objects):
            for symbol in each.symbols:
                if symbol.section is None or symbol.binding == "local":
                    continue
                is_weak = symbol.binding == "weak"
                if not is_weak and symbol.name in strong:
                    raise ImageError(f"the symbol {symbol.name} is there twice")
                if not is_weak or symbol.name not in found:
                    found[symbol.name] = o, symbol.section, symbol.value
                    strong |= {symbol.name} if not is_weak else set()
        return found

    def _target(self, o: int, number: int) -> _Target:
        """Where an object's symbol is, or its name if it is elsewhere."""
        symbol = self.objects[o].symbols[number]
        if symbol.section is not None and symbol.binding == "local":
            return o, symbol.section, symbol.value
        return self.defined.get(symbol.name, symbol.name)

    def _place(self, target: _Target) -> int:
        if isinstance(target, str):
            raise ImageError(f"the symbol {target}, which is elsewhere, is used as if its distance were known")
        o, section, value = target
        return self.places[o, section] + value

    def _look_up(self) -> None:
        """Find what needs a word of the table, or a jump."""
        for o, each in enumerate(self.objects):
            for mark in each.relocations:
                target = self._target(o, mark.symbol)
                is_far = mark.kind in BRANCHES and isinstance(target, str)
                if is_far:
                    self.jumps.setdefault(target, 0)
                if is_far or mark.kind in VIA_TABLE:
                    self.words.setdefault(target, 0)

    # ---------------------------------------------------------------- layout

    def _lay_out(self, part: str) -> None:
        """Sections one after the other."""
        for o, each in enumerate(self.objects):
            with_addresses = {mark.section for mark in each.relocations if mark.kind == "abs64"}
            for number, section in enumerate(each.sections):
                if _part_of(section, number in with_addresses) == part:
                    self._align(section.align)
                    self.places[o, number] = len(self.memory)
                    self.memory += section.data + bytes(section.size - len(section.data))

    def _lay_out_jumps(self) -> None:
        code, _ = _JUMPS[self.machine]
        for target in self.jumps:
            self._align(_WORD)
            self.jumps[target] = len(self.memory)
            self.memory += code

    def _lay_out_words(self) -> None:
        self._align(_WORD)
        for target in self.words:
            self.words[target] = len(self.memory)
            self.memory += bytes(_WORD)

    def _align(self, size: int) -> None:
        self.memory += bytes(-len(self.memory) % size)

    # ---------------------------------------------------------------- relocations

    def _relocate(self, o: int, mark: Relocation) -> None:
        target, place = self._target(o, mark.symbol), self.places[o, mark.section] + mark.place
        if mark.kind == "abs64":
            self._address(place, target, mark.addend)
            return
        if mark.kind in VIA_TABLE:
            found = self.words[target]
        elif target in self.jumps and mark.kind in BRANCHES:
            found = self.jumps[target]
        else:
            found = self._place(target)
        origin = place if mark.minus is None else self._place(self._target(o, mark.minus))
        PATCHES[mark.kind](self.memory, place, found + mark.addend, origin)

    def _address(self, place: int, target: _Target, addend: int = 0) -> None:
        """Let a word be the target's address, which is settled when the image is loaded."""
        if place % _WORD:
            raise ImageError("an address is at no multiple of 8")
        if isinstance(target, str):
            self.imports.append((target, place))
        else:
            self.relatives.append(place)
        base = 0 if isinstance(target, str) else self._place(target)
        PATCHES["abs64"](self.memory, place, base + addend, 0)


def _part_of(section: Section, with_addresses: bool) -> str:
    """Where in the image a section belongs.  Constants with addresses are written when it is loaded."""
    if section.kind == "data":
        return "data" if section.data else "zeros"
    if with_addresses and section.kind == "constant":
        return "address"
    return section.kind
