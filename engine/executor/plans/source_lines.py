"""The lines of programs that nodes of a plan are from.

In: source ranges.  Out: `SourceLine`s.  It stands alone since the explanations of plans and of profiles share it.
"""

from __future__ import annotations

from engine.lang.records import dataclass
from engine.lang.source import SourceRange


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a program; the file is "" for text without one."""

    file: str
    number: int
    text: str


def line_of(range: SourceRange | None) -> SourceLine | None:
    """The line in the author's text at which the range begins."""
    if range is None:
        return None
    place = range.original()
    return SourceLine(place.filename, place.line, place.source.line_text(place.line - place.source.first_line).strip())
