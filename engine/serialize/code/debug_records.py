"""Debug records: the original source range of each piece of an archive's code.

In: the (offset, range) marks of printed text.  Out: a `.debug_pkl` record as PyTorch writes it, and back:
a function from an offset of the code to the range in the author's file.

    ("FORMAT_WITH_STRING_TABLE", (line or file name, ..),
     ((offset, ((lines of the source, file name, first line), start, end), tag), ..))

where texts are numbers into the table of strings, and offsets count bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from engine.lang.deferred import deferred
from engine.lang.errors import ArchiveError
from engine.lang.records import dataclass
from engine.lang.source import Source, SourceRange
from engine.lang.types import INT, STR, ListType, TupleType
from engine.serialize.code.tagged_text import Mark
from engine.serialize.pickling.unpickle import unpickle

if TYPE_CHECKING:
    from engine.serialize.pickling import write as pickle_write
else:
    pickle_write = deferred("engine.serialize.pickling.write")

_FORMAT: Final = "FORMAT_WITH_STRING_TABLE"
_NOWHERE: Final = Source("", "")
_SOURCE_TYPE: Final = TupleType((ListType(INT), INT, INT))
_ENTRY_TYPE: Final = TupleType((INT, TupleType((_SOURCE_TYPE, INT, INT)), INT))

_Place = tuple[Source, int, int]
Find = Callable[[int], SourceRange | None]


# -- writing


@dataclass(slots=True, eq=False)
class DebugWriter:
    """Writes the debug records of one archive; equal ranges have one tag in all of them."""

    _tags: dict[tuple[int, int, int], int] = field(default_factory=lambda: {(id(_NOWHERE), 0, 0): 0})

    def record(self, marks: Sequence[Mark]) -> bytes:
        """The record for one text's marks."""
        strings = _Strings()
        places = [(offset, _original(range)) for offset, range in marks]
        kept = [each for i, each in enumerate(places) if i == 0 or each[1] != places[i - 1][1]]
        entries = tuple(self._entry(offset, place, strings) for offset, place in kept)
        texts = tuple(strings.numbers)
        type = TupleType((STR, TupleType((STR,) * len(texts)), TupleType((_ENTRY_TYPE,) * len(entries))))
        pickler = pickle_write.Pickler(lambda _: "", lambda type: type.annotation_str)
        for shared in (texts, entries, *strings.descriptions()):
            pickler.share(shared)
        return pickler.dump((_FORMAT, texts, entries), type)

    def _entry(self, offset: int, place: _Place, strings: _Strings) -> tuple[Any, ...]:
        source, start, end = place
        tag = self._tags.setdefault((id(source), start, end), len(self._tags))
        return (offset, (strings.source(source), start, end), tag)


def _original(range: SourceRange | None) -> _Place:
    """The author's source, and the place in it in bytes."""
    if range is not None and range.source.original is not None:
        # Loaded code: without an entry in its own debug record, the original range is unknown.
        range = range.source.original(range.start)
    if range is None:
        return _NOWHERE, 0, 0
    text = range.source.text
    if text.isascii():
        return range.source, range.start, range.underlined
    return range.source, len(text[: range.start].encode()), len(text[: range.underlined].encode())


@dataclass(slots=True, eq=False)
class _Strings:
    """The table of strings, and the sources described by it."""

    numbers: dict[str, int] = field(default_factory=dict)
    _sources: dict[int, tuple[Source, tuple[list[int], int, int]]] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))

    def descriptions(self) -> list[tuple[list[int], int, int]]:
        return [description for _, description in self._sources.values()]

    def source(self, source: Source) -> tuple[list[int], int, int]:
        """The description of a source; the same object each time, so that it is written once."""
        known = self._sources.get(id(source))
        if known is None:
            lines = [line + "\n" for line in source.text.split("\n")]
            lines[-1] = lines[-1][:-1]
            described = [self.number(line) for line in lines] if source.text else []
            first_line = source.first_line if source.text else 0
            known = self._sources[id(source)] = (source, (described, self.number(source.filename), first_line))
        return known[1]


# -- reading


def lazy_finder(read: Callable[[], bytes], record: str) -> Find:
    """A function from offsets to original ranges; the record is read at its first call.

    A record that cannot be read is treated as missing, since no program needs it to run.
    """
    found: list[Find] = []

    def find(offset: int) -> SourceRange | None:
        if not found:
            try:
                found.append(_finder(unpickle(read(), record)))
            except ArchiveError:
                found.append(lambda _: None)
        return found[0](offset)

    return find


def _finder(value: Any) -> Find:
    """The function that a debug record describes; it returns None throughout if the record is invalid."""
    try:
        entries = _Entries(*value[1:]).ranges() if value and value[0] == _FORMAT else _Entries((), value).ranges()
    except (TypeError, ValueError, IndexError, KeyError):
        return lambda _: None
    starts = [offset for offset, _ in entries]

    def find(offset: int) -> SourceRange | None:
        index = bisect_right(starts, offset) - 1
        return entries[index][1] if index >= 0 else None

    return find


@dataclass(slots=True, eq=False)
class _Entries:
    """The entries of a record; in old ones, sources are written out and not by numbers."""

    strings: tuple[Any, ...]
    entries: tuple[Any, ...]
    _sources: dict[Any, Source] = field(default_factory=dict)

    def ranges(self) -> list[Mark]:
        marks = [(int(entry[0]), self._range(*entry[1])) for entry in self.entries]
        return sorted(marks, key=lambda mark: mark[0])

    def _range(self, described: Any, start: int, end: int) -> SourceRange | None:
        source = self._source(*described)
        if not source.text:
            return None
        if not source.text.isascii():
            raw = source.text.encode()
            start, end = (len(raw[:at].decode(errors="ignore")) for at in (start, end))
        return SourceRange(source, max(0, min(start, len(source.text))), max(0, min(end, len(source.text))))

    def _source(self, text: Any, filename: Any, first_line: int) -> Source:
        key = (tuple(text) if isinstance(text, list) else text, filename, first_line)
        if key not in self._sources:
            self._sources[key] = Source(self._text(text), self._text(filename) or "<string>", first_line)
        return self._sources[key]

    def _text(self, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        return "".join(str(self.strings[each]) for each in ([value] if isinstance(value, int) else value))
