"""Relocatable objects of ELF, the format of Linux, for x86-64 and AArch64.

In: the bytes of an object.  Out: an `Object`.  Raises ImageError for what an image cannot hold.
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

MAGIC: Final = b"\x7fELF\x02\x01\x01"
"""64 bits, little-endian, of the one version there is."""
_RELOCATABLE: Final = 1
_MACHINES: Final[dict[int, Machine]] = {62: "x86-64", 183: "aarch64"}
_SYMBOLS, _RELOCATIONS, _ZEROS = 2, 4, 8
_LEFT_OUT: Final = frozenset({0, _SYMBOLS, 3, _RELOCATIONS, 7, 17, 0x7000_0001, 0x6FFF_4C03})
"""Types of sections that describe the rest: tables, strings, notes, groups, unwinding."""
_RUN_FIRST: Final = frozenset({14, 15, 16})
"""Types of sections whose functions a loader would run, as it would those of `.ctors` and `.dtors`."""
_WRITE, _ALLOCATE, _RUN, _THREAD = 1, 2, 4, 1024
_UNDEFINED, _RESERVED = 0, 0xFF00
_BINDINGS: Final[tuple[Binding, ...]] = ("local", "global", "weak")
_UNWINDING: Final = ".eh_frame"

KINDS: Final[dict[Machine, dict[int, Kind]]] = {
    "x86-64": {
        1: "abs64", 2: "rel32", 4: "branch32", 9: "got32", 24: "rel64", 41: "got32", 42: "got32",
    },
    "aarch64": {
        257: "abs64", 260: "rel64", 261: "rel32", 275: "page21", 276: "page21", 277: "lo12", 278: "lo12",
        282: "branch26", 283: "branch26", 284: "lo12", 285: "lo12", 286: "lo12", 299: "lo12", 311: "got_page21",
        312: "got_lo12",
    },
}  # fmt: skip
"""The relocations of each machine's ABI by their numbers: R_X86_64_64, R_X86_64_PC32, … R_AARCH64_ABS64, …"""


class _Header(NamedTuple):
    """A row of the table of sections."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class _Reader:
    def __init__(self, data: bytes) -> None:
        kind, machine = struct.unpack_from("<HH", data, 16)
        if kind != _RELOCATABLE or machine not in _MACHINES:
            raise ImageError(f"an ELF file of type {kind} for machine {machine} is no object for an image")
        self.data, self.machine = data, _MACHINES[machine]
        (table,) = struct.unpack_from("<Q", data, 40)
        size, count, names = struct.unpack_from("<HHH", data, 58)
        self.headers = [_Header(*struct.unpack_from("<IIQQQQIIQQ", data, table + i * size)) for i in range(count)]
        self.names = self.headers[names]
        kept = [i for i, header in enumerate(self.headers) if self._is_kept(header)]
        self.places = {number: i for i, number in enumerate(kept)}
        """Indices of sections of the file -> those of the object."""

    def _is_kept(self, header: _Header) -> bool:
        is_kept = bool(header.flags & _ALLOCATE) and header.type not in _LEFT_OUT
        name = self.text(self.names, header.name)
        is_run_first = header.type in _RUN_FIRST or name.startswith((".ctors", ".dtors"))
        if is_kept and (header.flags & _THREAD or is_run_first):
            raise ImageError(f"images hold no section {name}")
        return is_kept and name != _UNWINDING

    def text(self, table: _Header, place: int) -> str:
        start = table.offset + place
        return self.data[start : self.data.index(b"\0", start)].decode()

    def section(self, header: _Header) -> Section:
        data = self.data[header.offset : header.offset + header.size] if header.type != _ZEROS else b""
        kind: SectionKind = "code" if header.flags & _RUN else "data" if header.flags & _WRITE else "constant"
        return Section(kind, data, header.size, max(header.align, 1))

    def symbols(self) -> Iterator[Symbol]:
        table = next((header for header in self.headers if header.type == _SYMBOLS), None)
        if table is None:
            return
        for start in range(table.offset, table.offset + table.size, 24):
            name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", self.data, start)
            text = self.text(self.headers[table.link], name)
            if info >> 4 >= len(_BINDINGS) or (section >= _RESERVED and info & 15 != 4):  # files have names, too
                raise ImageError(f"the symbol {text} is of a kind that images do not have")
            # a symbol of a section that is left out is one that nobody may ask for
            found = None if section in (_UNDEFINED, *range(_RESERVED, 1 << 16)) else self.places.get(section)
            yield Symbol(text, found, value, _BINDINGS[info >> 4])

    def relocations(self) -> Iterator[Relocation]:
        for header in self.headers:
            if header.type != _RELOCATIONS or header.info not in self.places:
                continue
            for start in range(header.offset, header.offset + header.size, 24):
                place, number, symbol, addend = struct.unpack_from("<QIIq", self.data, start)
                kind = KINDS[self.machine].get(number)
                if kind is None:
                    raise ImageError(f"images have no relocation {number} of {self.machine}")
                yield Relocation(self.places[header.info], place, kind, symbol, addend)


def read(data: bytes) -> Object:
    """The object in these bytes."""
    try:
        reader = _Reader(data)
        sections = tuple(reader.section(reader.headers[number]) for number in reader.places)
        return Object(reader.machine, sections, tuple(reader.symbols()), tuple(reader.relocations()))
    except (struct.error, ValueError, IndexError) as error:
        raise ImageError(f"not an ELF object: {error}") from error
