"""The places of a plan's values in its program, as people name them.

In: source ranges, debug names.  Out: `SourceLine`s, and names: `z`, or for what has no name the text that makes it,
`x * y`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.lang.source import SourceRange

MAX_TEXT: Final = 24
"""Characters that are shown of an expression that stands for a name."""


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


def value_name(debug_name: str, made: SourceRange | None) -> str:
    """The value's name in the program, else the text at the place that makes it, else its name in the graph."""
    root = debug_name.partition(".")[0]
    if root.isidentifier():
        return root
    text = " ".join(made.original().text.split()) if made is not None else ""
    if len(text) > MAX_TEXT:
        text = text[: MAX_TEXT - 1] + "…"
    return text or f"%{debug_name}"
