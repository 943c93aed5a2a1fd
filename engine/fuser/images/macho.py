"""Relocatable objects of Mach-O, the format of macOS, for x86-64 and AArch64.

In: the bytes of an object.  Out: an `Object`.  Raises ImageError for what an image cannot hold.

Note [Addresses in objects]
Sections have addresses within the object.  Where a relocation names a section instead of a symbol, what stands at its
place is the target's address, or the distance to it, in these terms; so each section gets a symbol, and addends are
made of the difference.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.fuser.images.objects import (
    Binding,
    ImageError,
    Kind,
    Machine,
    Object,
    Relocation,
    Section,
    SectionKind,
    Symbol,
)

MAGIC: Final = b"\xcf\xfa\xed\xfe"
"""64 bits, little-endian."""
_MACHINES: Final[dict[int, Machine]] = {0x0100_0007: "x86-64", 0x0100_000C: "aarch64"}
_OBJECT: Final = 1
_SEGMENT, _SYMBOL_TABLE = 0x19, 2
_ZEROS: Final = frozenset({0x1, 0xC})
_UNUSABLE: Final = frozenset({0x9, 0xA, 0x11, 0x12, 0x13, 0x14, 0x15})
"""Types of sections with functions that a loader would run, or of variables of threads."""
_LEFT_OUT: Final = frozenset({"__LD", "__DWARF"})
_LEFT_OUT_SECTIONS: Final = frozenset({"__eh_frame", "__compact_unwind"})
_DEBUG, _TYPE, _EXTERNAL, _UNDEFINED, _IN_SECTION = 0xE0, 0x0E, 0x01, 0x00, 0x0E
_WEAK: Final = 0x80
_UNSIGNED: Final = 0
_MINUS: Final[dict[Machine, int]] = {"x86-64": 5, "aarch64": 1}
"""The first of two relocations that stand for a difference."""
_ADDEND: Final = 10
"""On AArch64, the addend of the relocation that follows."""

KINDS: Final[dict[Machine, dict[int, Kind]]] = {
    "x86-64": {1: "rel32", 2: "branch32", 3: "got32", 4: "got32", 6: "rel32", 7: "rel32", 8: "rel32"},
    "aarch64": {2: "branch26", 3: "page21", 4: "lo12", 5: "got_page21", 6: "got_lo12"},
}
"""The relocations of each machine by their numbers, but for those of data: X86_64_RELOC_SIGNED, … ARM64_RELOC_…"""


class _Row(NamedTuple):
    """A section: where it is in the object (`address`) and in the file (`offset`), and its relocations."""

    name: str
    segment: str
    address: int
    size: int
    offset: int
    align: int
    relocations: int
    marks: int
    flags: int


class _Mark(NamedTuple):
    """A relocation in the file; `symbol` is an index of symbols, or, unless `external`, the number of a section."""

    place: int
    symbol: int
    length: int
    external: bool
    type: int


class _Reader:
    def __init__(self, data: bytes) -> None:
        machine, _, kind, commands = struct.unpack_from("<IIII", data, 4)
        if kind != _OBJECT or machine not in _MACHINES:
            raise ImageError(f"a Mach-O file of type {kind} for machine {machine:#x} is no object for an image")
        self.data, self.machine = data, _MACHINES[machine]
        self.rows: list[_Row] = []
        self.table, self.count, self.strings = 0, 0, 0
        start = 32
        for _ in range(commands):
            command, size = struct.unpack_from("<II", data, start)
            if command == _SEGMENT:
                self.rows += self._rows(start)
            elif command == _SYMBOL_TABLE:
                self.table, self.count, self.strings = struct.unpack_from("<III", data, start + 8)
            start += size
        self.places = {i: at for at, i in enumerate(i for i, row in enumerate(self.rows) if self._is_kept(row))}

    def _rows(self, start: int) -> Iterator[_Row]:
        (count,) = struct.unpack_from("<I", self.data, start + 64)
        for at in range(start + 72, start + 72 + 80 * count, 80):
            section, segment, *facts = struct.unpack_from("<16s16sQQIIIII", self.data, at)
            address, size, offset, align, relocations, marks, flags = facts
            name, room = (each.rstrip(b"\0").decode() for each in (section, segment))
            yield _Row(name, room, address, size, offset, 1 << min(align, 63), relocations, marks, flags)

    @staticmethod
    def _is_kept(row: _Row) -> bool:
        if row.flags & 0xFF in _UNUSABLE:
            raise ImageError(f"images hold no section {row.segment},{row.name}")
        return row.segment not in _LEFT_OUT and row.name not in _LEFT_OUT_SECTIONS

    def section(self, row: _Row) -> Section:
        data = b"" if row.flags & 0xFF in _ZEROS else self.data[row.offset : row.offset + row.size]
        is_code = row.segment == "__TEXT" and row.name == "__text"
        kind: SectionKind = "code" if is_code else "constant" if row.segment == "__TEXT" else "data"
        return Section(kind, data, row.size, row.align)

    def symbols(self) -> Iterator[Symbol]:
        """Those of the table, then one for the beginning of each section of the file."""
        for start in range(self.table, self.table + 16 * self.count, 16):
            name, type, number, description, value = struct.unpack_from("<IBBHQ", self.data, start)
            end = self.data.index(b"\0", self.strings + name)
            text = self.data[self.strings + name : end].decode().removeprefix("_")
            kind = type & _TYPE
            is_common = kind == _UNDEFINED and value != 0
            if type & _DEBUG or kind not in (_UNDEFINED, _IN_SECTION) or is_common:
                raise ImageError(f"the symbol {text} is of a kind that images do not have")
            if kind == _UNDEFINED:
                yield Symbol(text, None, 0, "global")
            else:
                binding: Binding = "local" if not type & _EXTERNAL else "weak" if description & _WEAK else "global"
                place = value - self.rows[number - 1].address
                yield Symbol(text, self.places.get(number - 1), place, binding)
        for i in range(len(self.rows)):
            yield Symbol("", self.places.get(i), 0, "local")

    def relocations(self) -> Iterator[Relocation]:
        for number, section in self.places.items():
            row = self.rows[number]
            marks, addend, minus = iter(self._marks(row)), 0, None
            for mark in marks:
                if mark.type == _MINUS[self.machine]:
                    minus = mark
                elif self.machine == "aarch64" and mark.type == _ADDEND:
                    addend = (mark.symbol ^ 1 << 23) - (1 << 23)  # of 24 bits, with a sign
                else:
                    yield self._relocation(row, section, mark, addend, minus)
                    addend, minus = 0, None

    def _marks(self, row: _Row) -> Iterator[_Mark]:
        for start in range(row.relocations, row.relocations + 8 * row.marks, 8):
            place, bits = struct.unpack_from("<II", self.data, start)
            yield _Mark(place, bits & 0xFFFFFF, bits >> 25 & 3, bool(bits >> 27 & 1), bits >> 28)

    def _relocation(self, row: _Row, section: int, mark: _Mark, addend: int, minus: _Mark | None) -> Relocation:
        """One relocation.  See Note [Addresses in objects]."""
        symbol, origin = self._target(mark)
        if mark.type == _UNSIGNED and mark.length in (2, 3):
            stored = self._stored(row, mark)
            if minus is not None:
                other, taken = self._target(minus)
                kind: Kind = "rel64" if mark.length == 3 else "rel32"
                return Relocation(section, mark.place, kind, symbol, stored - origin + taken, other)
            if mark.length == 3:
                return Relocation(section, mark.place, "abs64", symbol, stored - origin)
        found = KINDS[self.machine].get(mark.type)
        if found is None or minus is not None:
            raise ImageError(f"images have no relocation {mark.type} of {self.machine}")
        if self.machine == "x86-64":  # distances from the end of the field
            addend = self._stored(row, mark) - 4
            if not mark.external:
                addend += 4 + row.address + mark.place - origin
        return Relocation(section, mark.place, found, symbol, addend)

    def _target(self, mark: _Mark) -> tuple[int, int]:
        """The symbol that is meant, and what the address in the object counts from."""
        if mark.external:
            return mark.symbol, 0
        return self.count + mark.symbol - 1, self.rows[mark.symbol - 1].address

    def _stored(self, row: _Row, mark: _Mark) -> int:
        """The number that stands in the place."""
        form = "<q" if mark.length == 3 else "<i"
        return int(struct.unpack_from(form, self.data, row.offset + mark.place)[0])


def read(data: bytes) -> Object:
    """The object in these bytes."""
    try:
        reader = _Reader(data)
        sections = tuple(reader.section(reader.rows[number]) for number in reader.places)
        return Object(reader.machine, sections, tuple(reader.symbols()), tuple(reader.relocations()))
    except (struct.error, ValueError, IndexError) as error:
        raise ImageError(f"not a Mach-O object: {error}") from error
