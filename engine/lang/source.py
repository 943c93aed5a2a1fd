"""Program text: a `Source` is one text, a `SourceRange` a range of it.

In: program text.  Out: lines, columns, and the excerpt with a caret that every error shows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import field
from itertools import dropwhile
from unicodedata import combining, east_asian_width

from engine.lang.records import dataclass

CONTEXT_LINES = 3
MAX_SHOWN_COLUMNS = 160


@dataclass(eq=False, slots=True)
class Source:
    """One text to compile.

    `first_line` is the number, in the file, of the text's first line.  `original` maps an offset of
    generated text (an archive's code) to the range in the author's text, if debug records have it.  The text
    `is_generated` if it was made of a program in Python, whose names may be of any script.
    """

    text: str
    filename: str = "<string>"
    first_line: int = 1
    original: Callable[[int], SourceRange | None] | None = None
    is_generated: bool = False
    _line_starts: list[int] = field(default_factory=list)

    def line_starts(self) -> list[int]:
        """Offsets at which each line begins; found once."""
        if not self._line_starts:
            starts, at = [0], self.text.find("\n")
            while at != -1:
                starts.append(at + 1)
                at = self.text.find("\n", at + 1)
            self._line_starts = starts
        return self._line_starts

    def line_index(self, offset: int) -> int:
        """0-based index of the line that holds `offset`."""
        return bisect_right(self.line_starts(), offset) - 1

    def line_text(self, index: int) -> str:
        """The text of the 0-based line `index`, without its newline."""
        start, end = self.line_span(index)
        return self.text[start:end]

    def line_span(self, index: int) -> tuple[int, int]:
        """The offsets of the start of the 0-based line `index` and of its newline."""
        starts = self.line_starts()
        return starts[index], starts[index + 1] - 1 if index + 1 < len(starts) else len(self.text)

    def whole(self) -> SourceRange:
        return SourceRange(self, 0, len(self.text))


@dataclass(eq=False, slots=True)
class SourceRange:
    """The characters `start:end` of a source.

    `last` is where an excerpt stops to underline, if that is before the end: the bracket that closes a call is left
    out, and of what is done by a call its arguments are.
    """

    source: Source
    start: int
    end: int
    last: int = -1

    @property
    def underlined(self) -> int:
        """The end of what an excerpt underlines."""
        return self.end if self.last < 0 else self.last

    def underlined_to(self, end: int) -> SourceRange:
        return SourceRange(self.source, self.start, self.end, end)

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def line(self) -> int:
        """Line number in the file, counted from 1."""
        return self.source.line_index(self.start) + self.source.first_line

    @property
    def column(self) -> int:
        """Column, counted from 0."""
        return self.start - self.source.line_starts()[self.source.line_index(self.start)]

    @property
    def filename(self) -> str:
        return self.source.filename

    def to(self, other: SourceRange) -> SourceRange:
        """From the start of this range to the end of `other`, both of one source."""
        return SourceRange(self.source, self.start, other.end, other.last)

    def if_beside(self, whole: SourceRange) -> SourceRange:
        """This range if it begins in the line where `whole` does, else `whole`."""
        return self if self.source is whole.source and self.line == whole.line else whole

    def holds(self, other: SourceRange) -> bool:
        """True if the other range lies inside this one."""
        return self.source is other.source and self.start <= other.start and other.end <= self.end

    def original(self) -> SourceRange:
        """The range in the author's text, if this one lies in generated text that has it recorded."""
        find = self.source.original
        return (find(self.start) if find else None) or self

    def location(self, inside: str = "") -> str:
        """`File "f.py", line 3, in name`, as in Python's tracebacks."""
        return f'File "{self.filename}", line {self.line}' + (f", in {inside}" if inside else "")

    def excerpt(self) -> str:
        """The lines around the range, the range underlined with `~~~ <--- HERE`."""
        index = self.source.line_index(self.start)
        total = len(self.source.line_starts())
        before = [self.source.line_text(i) for i in range(max(0, index - CONTEXT_LINES), index)]
        after = [self.source.line_text(i) for i in range(index + 1, min(total, index + CONTEXT_LINES))]
        while after and not after[-1].strip():
            after.pop()
        before = list(dropwhile(lambda line: not line.strip(), before))
        return "\n".join([*map(_clip, before), *self._marked_line(index), *map(_clip, after)])

    def _marked_line(self, index: int) -> list[str]:
        line, column = self.source.line_text(index), self.column
        first = max(0, column - MAX_SHOWN_COLUMNS // 2) if len(line) > MAX_SHOWN_COLUMNS else 0
        shown = line[first : first + MAX_SHOWN_COLUMNS]
        at = column - first
        width = max(1, cell_width(shown[at : at + self.underlined - self.start]))
        pad = "".join("\t" if c == "\t" else " " * cell_width(c) for c in shown[:at])
        lead, tail = ("..." if first else ""), ("..." if first + MAX_SHOWN_COLUMNS < len(line) else "")
        return [lead + shown + tail, " " * len(lead) + pad + "~" * width + " <--- HERE"]


def cell_width(text: str) -> int:
    """The columns that a terminal shows the text in: two for a wide character, none for one that goes on another."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _clip(line: str) -> str:
    return line if len(line) <= MAX_SHOWN_COLUMNS else line[:MAX_SHOWN_COLUMNS] + "..."
