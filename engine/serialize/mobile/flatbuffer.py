"""A reader of untrusted flatbuffers in place: tables whose fields are found by their numbers.

In: bytes, and the forms of the fields of each table.  Out: a `FlatTable`, whose fields are read when
asked for.  Every place is checked against the file before it is touched, and every number must lie where its size
wants it.  References only lead forward, so that no table is inside itself; parts may be shared, and so a buffer gives
no more bytes than a few times the file's.  Errors are ArchiveErrors with the byte offset.

Note [The layout]
A reference is a number of 32 bits, added to its own place.  A table begins with the distance back to its list of
fields: two sizes, and for each field how far it lies from the table's beginning, 0 where the table does not have it.
A vector begins with its length; a text is a vector of bytes.  A union takes two fields, a number and a reference.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from engine.lang.errors import ArchiveError
from engine.lang.records import dataclass
from engine.serialize.mobile.file import IDENTIFIER_AT

RECORD: Final = "flatbuffer"
"""The record name that errors give for the whole file."""
_MOST_SHARED: Final = 8
"""So many times the file's bytes may be read; what PyTorch writes shares nothing but texts, which are read once."""
_REFERENCE: Final = struct.Struct("<I")
_DISTANCE: Final = struct.Struct("<i")
_SHORT: Final = struct.Struct("<H")
NUMBERS: Final = {
    "bool": struct.Struct("<?"), "byte": struct.Struct("<b"), "ubyte": struct.Struct("<B"),
    "ushort": struct.Struct("<H"), "int": struct.Struct("<i"), "uint": struct.Struct("<I"),
    "long": struct.Struct("<q"), "double": struct.Struct("<d"),
}  # fmt: skip


class ByteSpan(NamedTuple):
    """A stretch of the file."""

    start: int
    size: int


class Member(NamedTuple):
    """The value of a union: the name of its kind, and a table or the numbers of a struct."""

    kind: str
    value: Any


class Field(NamedTuple):
    """A field of a table: its index in the vtable, its form, and its default."""

    number: int
    kind: str
    default: Any


class Struct(NamedTuple):
    """Numbers that always stand together; `alignment` is the largest size among them."""

    form: struct.Struct
    alignment: int


@dataclass(frozen=True, slots=True)
class Forms:
    """The tables, structs and unions of a format, by name."""

    tables: Mapping[str, Mapping[str, Field]]
    structs: Mapping[str, Struct]
    unions: Mapping[str, tuple[str, ...]]


def table_form(text: str, unions: Mapping[str, tuple[str, ...]]) -> dict[str, Field]:
    """The fields that a text names in order, as `name:[string] count:int=-1`; a union takes two numbers."""
    fields: dict[str, Field] = {}
    number = 0
    for word in text.split():
        name, _, kind = word.partition(":")
        kind, _, default = kind.partition("=")
        number += kind in unions
        fields[name] = Field(number, kind, _default(kind, default))
        number += 1
    return fields


def _default(kind: str, text: str) -> Any:
    if kind not in NUMBERS:
        return None
    return False if kind == "bool" else int(text or 0)


@dataclass(slots=True, eq=False)
class FlatBuffer:
    """A file, and how many bytes of it may still be read."""

    data: memoryview
    forms: Forms
    left: int = 0
    _texts: dict[int, str] | None = None

    def root(self, name: str, identifier: bytes) -> FlatTable:
        """The outermost table.  Raises ArchiveError."""
        if bytes(self.data[IDENTIFIER_AT : IDENTIFIER_AT + 4]) != identifier:
            raise refused(f"it does not say '{identifier.decode()}'", IDENTIFIER_AT)
        self.left = _MOST_SHARED * len(self.data)
        return self.table(name, self.follow(0))

    # -- places

    def number(self, form: struct.Struct, at: int) -> Any:
        """The number at that place.  Raises ArchiveError when it lies outside or askew."""
        if at % form.size:
            raise refused(f"a number of {form.size} bytes lies askew", at)
        return form.unpack_from(self.stretch(at, form.size))[0]

    def stretch(self, at: int, size: int) -> memoryview:
        """Bytes of the file.  Raises ArchiveError where they are not in it, or where too many were read."""
        if at < 0 or at + size > len(self.data):
            raise refused(f"{size:,} bytes are said to lie at {at:,}, and the file has {len(self.data):,}", at)
        self.left -= size
        if self.left < 0:
            raise refused("its parts are shared so often that reading them would not end soon", at)
        return self.data[at : at + size]

    def follow(self, at: int) -> int:
        """The target of the reference at that place, always forward."""
        distance: int = self.number(_REFERENCE, at)
        if distance == 0 or at + distance >= len(self.data):
            raise refused(f"a reference leads to byte {at + distance:,} of {len(self.data):,}", at)
        return at + distance

    # -- what lies there

    def table(self, name: str, at: int) -> FlatTable:
        """The table that begins there."""
        fields = at - self.number(_DISTANCE, at)
        size, length = (self.number(_SHORT, fields + each) for each in (0, 2))
        if size < 4 or size % 2 or length < 4:
            raise refused(f"the list of the fields of a '{name}' is damaged", fields)
        places = struct.unpack(f"<{size // 2 - 2}H", self.stretch(fields + 4, size - 4))
        return FlatTable(self, name, at, length, places)

    def text(self, at: int) -> str:
        """The text there, decoded once; what is no UTF-8 survives as surrogates, as programs' strings are bytes."""
        if self._texts is None:
            self._texts = {}
        if at not in self._texts:
            place = self.vector(at, 1)
            self._texts[at] = str(self.stretch(*place), "utf-8", "surrogateescape")
        return self._texts[at]

    def vector(self, at: int, size: int, alignment: int = 1) -> ByteSpan:
        """The place of the vector's elements, each of that size; `ByteSpan.size` is in bytes."""
        start, count = at + 4, self.number(_REFERENCE, at)
        if start + count * size > len(self.data):
            raise refused(f"a vector of {count:,} elements does not fit the file", at)
        if count and start % alignment:
            raise refused("a vector's elements lie askew", start)
        return ByteSpan(start, count * size)

    def vector_of(self, kind: str, at: int) -> Any:
        """The elements of a vector: numbers, structs as tuples, texts or tables; of bytes only the place."""
        if kind == "ubyte":
            return self.vector(at, 1)
        number = NUMBERS.get(kind)
        if number is not None:
            return [each for (each,) in self._unpacked(number, at, number.size)]
        if kind in self.forms.structs:
            form, alignment = self.forms.structs[kind]
            return list(self._unpacked(form, at, alignment))
        place = self.vector(at, 4, 4)
        starts = [self.follow(each) for each in range(place.start, place.start + place.size, 4)]
        return [self.text(each) if kind == "string" else self.table(kind, each) for each in starts]

    def _unpacked(self, form: struct.Struct, at: int, alignment: int) -> Any:
        return form.iter_unpack(self.stretch(*self.vector(at, form.size, alignment)))


@dataclass(slots=True, eq=False)
class FlatTable:
    """A table; `table[field]` is a number, text, list, `FlatTable`, `Member` or `ByteSpan`, None for none."""

    buffer: FlatBuffer
    name: str
    at: int
    length: int
    places: tuple[int, ...]

    def __getitem__(self, name: str) -> Any:
        field = self.buffer.forms.tables[self.name][name]
        at = self._place(field.number)
        if at is None:
            return field.default
        if field.kind in NUMBERS:
            form = NUMBERS[field.kind]
            self._inside(at, form.size)
            return self.buffer.number(form, at)
        self._inside(at, 4)
        if field.kind in self.buffer.forms.unions:
            return self._member(field, at)
        where = self.buffer.follow(at)
        if field.kind.startswith("["):
            return self.buffer.vector_of(field.kind[1:-1], where)
        return self.buffer.text(where) if field.kind == "string" else self.buffer.table(field.kind, where)

    def listed(self, name: str) -> Any:
        """The elements of a vector, none where the table does not have it."""
        found = self[name]
        return [] if found is None else found

    def place_of(self, name: str) -> int:
        """The field's offset, for errors; the table's own where it does not have the field."""
        return self._place(self.buffer.forms.tables[self.name][name].number) or self.at

    def _member(self, field: Field, at: int) -> Member | None:
        kinds = self.buffer.forms.unions[field.kind]
        which = self._place(field.number - 1)
        number = 0 if which is None else self.buffer.number(NUMBERS["ubyte"], which)
        if number == 0:
            return None
        if number > len(kinds):
            raise refused(f"a value is of the kind {number}, and {len(kinds)} are known", self.at)
        kind, where = kinds[number - 1], self.buffer.follow(at)
        if kind in self.buffer.forms.tables:
            return Member(kind, self.buffer.table(kind, where))
        form, alignment = self.buffer.forms.structs[kind]
        if where % alignment:
            raise refused(f"a '{kind}' lies askew", where)
        return Member(kind, form.unpack(self.buffer.stretch(where, form.size)))

    def _place(self, number: int) -> int | None:
        """The offset of the field of that number; None for a table without it."""
        away = self.places[number] if number < len(self.places) else 0
        return self.at + away if away else None

    def _inside(self, at: int, size: int) -> None:
        if at < self.at + 4 or at + size > self.at + self.length:
            raise refused(f"a field of a '{self.name}' lies outside of it", at)


def refused(reason: str, offset: int) -> ArchiveError:
    """The error for an invalid file, with the byte offset."""
    hint = "the file is damaged, or not what PyTorch writes for mobile devices"
    return ArchiveError(f"the flatbuffer is refused: {reason}", record=RECORD, offset=offset, hints=(hint,))
