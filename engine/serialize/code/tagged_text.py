"""Text that remembers which source range each stretch of it was made for.

In: pieces of text, and the range that is current while they are written.  Out: the text, and the list
of (offset, range) at which another range begins, which becomes an archive's debug record.
"""

from __future__ import annotations

from dataclasses import field

from engine.lang.records import dataclass
from engine.lang.source import SourceRange

Mark = tuple[int, SourceRange | None]


@dataclass(slots=True, eq=False)
class TaggedText:
    """Text under construction; `stack` holds the current ranges, innermost last, shared by related texts."""

    stack: list[SourceRange | None]
    marks: list[Mark] = field(default_factory=list)
    size: int = 0
    _pieces: list[str] = field(default_factory=list)

    def write(self, *pieces: str | TaggedText) -> TaggedText:
        for piece in pieces:
            if isinstance(piece, TaggedText):
                self._add_text(piece)
            elif piece:
                self._mark(self.size, self.stack[-1])
                self._pieces.append(piece)
                self.size += len(piece)
        return self

    def _add_text(self, other: TaggedText) -> None:
        for offset, range in other.marks:
            self._mark(self.size + offset, range)
        self._pieces += other._pieces
        self.size += other.size

    def _mark(self, offset: int, range: SourceRange | None) -> None:
        if not self.marks or not _same(self.marks[-1][1], range):
            self.marks.append((offset, range))

    def __str__(self) -> str:
        return "".join(self._pieces)


def _same(a: SourceRange | None, b: SourceRange | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.source is b.source and (a.start, a.end) == (b.start, b.end)
