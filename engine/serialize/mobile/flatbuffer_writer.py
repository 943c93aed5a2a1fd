"""A writer of flatbuffers: plain data in the forms of a format become the bytes that `flatbuffer.py` reads.

In: `{"field": value}` for a table, a list for a vector, bytes for a vector of bytes, `(kind, value)` for a union.  Out:
the file's bytes.  Each part stands behind the one that refers to it; fields that have their defaults are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from engine.lang.records import dataclass
from engine.serialize.mobile.flatbuffer import NUMBERS, Field, Forms

_ALIGNMENT: Final = 8
MEMORY_ALIGNMENT: Final = 16
"""That of vectors of bytes, which may be the memory of tensors."""
_REFERENCE: Final = 4


@dataclass(slots=True, eq=False)
class FlatWriter:
    """One file being written."""

    forms: Forms
    data: bytearray = field(default_factory=bytearray)
    _lists: dict[bytes, int] = field(default_factory=dict)
    """The places of lists of fields, which tables with the same ones share."""

    def file(self, name: str, identifier: bytes, values: Mapping[str, Any]) -> bytes:
        """The file whose outermost table has these values."""
        self.data += bytes(_REFERENCE) + identifier
        self._refer(0, self._table(name, values))
        return bytes(self.data)

    def _refer(self, place: int, target: int) -> None:
        struct.pack_into("<I", self.data, place, target - place)

    def _align(self, size: int, ahead: int = 0) -> None:
        """Fill up, so that what stands `ahead` bytes further on is aligned."""
        self.data += bytes(-(len(self.data) + ahead) % size)

    def _table(self, name: str, values: Mapping[str, Any]) -> int:
        """Write a table, then what it refers to; the table's place."""
        forms = self.forms.tables[name]
        given = [(forms[key], value) for key, value in values.items() if not _is_default(forms[key], value)]
        places, size = self._places([form for form, _ in given])
        numbers = [places.get(number, 0) for number in range(max(places, default=-1) + 1)]
        fields = struct.pack(f"<{2 + len(numbers)}H", 4 + 2 * len(numbers), size, *numbers)
        known = self._lists.get(fields)
        if known is None:
            self._align(2)
            known = self._lists[fields] = len(self.data)
            self.data += fields
        self._align(_ALIGNMENT)
        table = len(self.data)
        self.data += bytes(size)
        struct.pack_into("<i", self.data, table, table - known)
        for form, value in given:
            self._field(form, table + places[form.number], table + places.get(form.number - 1, 0), value)
        return table

    def _places(self, given: Sequence[Field]) -> tuple[dict[int, int], int]:
        """Each field's distance from the table's beginning, by number, large ones first; and the table's size."""
        sizes: dict[int, int] = {}
        for form in given:
            sizes[form.number] = NUMBERS[form.kind].size if form.kind in NUMBERS else _REFERENCE
            if form.kind in self.forms.unions:
                sizes[form.number - 1] = 1
        places, at = {}, _REFERENCE
        for number, size in sorted(sizes.items(), key=lambda item: -item[1]):
            at += -at % size
            places[number] = at
            at += size
        return places, at + -at % _REFERENCE

    def _field(self, form: Field, place: int, before: int, value: Any) -> None:
        kind = form.kind
        if kind in NUMBERS:
            NUMBERS[kind].pack_into(self.data, place, value)
        elif kind in self.forms.unions:
            member, held = value
            self.data[before] = self.forms.unions[kind].index(member) + 1
            is_table = member in self.forms.tables
            self._refer(place, self._table(member, held) if is_table else self._struct(member, held))
        elif kind.startswith("["):
            self._refer(place, self._vector(kind[1:-1], value))
        else:
            self._refer(place, self._text(value) if kind == "string" else self._table(kind, value))

    def _struct(self, name: str, values: Sequence[Any]) -> int:
        form, alignment = self.forms.structs[name]
        self._align(alignment)
        start = len(self.data)
        self.data += form.pack(*values)
        return start

    def _text(self, value: str) -> int:
        encoded = value.encode("utf-8", "surrogateescape")
        self._align(_REFERENCE)
        start = len(self.data)
        self.data += struct.pack("<I", len(encoded)) + encoded + b"\0"
        return start

    def _vector(self, kind: str, values: Any) -> int:
        if kind == "ubyte":
            self._align(MEMORY_ALIGNMENT, _REFERENCE)
            start = len(self.data)
            self.data += struct.pack("<I", len(values))
            self.data += values
            self.data += b"\0"  # texts may be such vectors, and end so
            return start
        self._align(_ALIGNMENT, _REFERENCE)
        start = len(self.data)
        self.data += struct.pack("<I", len(values))
        if kind in NUMBERS:
            self.data += b"".join(map(NUMBERS[kind].pack, values))
        elif kind in self.forms.structs:
            self.data += b"".join(self.forms.structs[kind].form.pack(*each) for each in values)
        else:
            self.data += bytes(_REFERENCE * len(values))
            for index, value in enumerate(values):
                place = start + _REFERENCE * (index + 1)
                self._refer(place, self._text(value) if kind == "string" else self._table(kind, value))
        return start


def _is_default(form: Field, value: Any) -> bool:
    return value is None or (form.kind in NUMBERS and value == form.default and form.default is not None)
