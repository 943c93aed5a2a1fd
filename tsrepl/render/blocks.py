"""Blocks: the shapes that every reply is laid out in, between the reply and the two back ends.

In: nothing.  Out: `Line`, `CodeBlock`, `Excerpt`, `TableBlock`, `Diff`, `TreeView`, `FoldBlock`.  Texts are plain,
roles are names of the palette; terminal.py turns blocks into rich renderables and html.py into markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """A stretch of text in one role."""

    text: str
    role: str = "plain"


@dataclass(frozen=True, slots=True)
class Line:
    """A paragraph; wraps at words."""

    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Text whose line breaks matter; `language` names a lexer of `highlight`, "" means none."""

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of source with a marked place, `~~~ <--- HERE` on the line below it."""

    text: str
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """A column, at least `width` characters wide where the page is."""

    title: str
    role: str = "plain"
    language: str = ""
    right: bool = False
    width: int = 0


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Rows of cells; where the page is narrower than `stack_below` each row becomes a small paragraph."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    stack_below: int = 0
    header: bool = True


class DiffLine(NamedTuple):
    """`mark` is "+", "-", " " or "…" (lines left out, `text` says how many)."""

    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class Diff:
    """Differences between two texts, unchanged stretches left out."""

    lines: tuple[DiffLine, ...]
    language: str = ""


@dataclass(frozen=True, slots=True)
class TreeView:
    """A label and what hangs below it; a page shows `open_depth` levels unfolded at first."""

    label: tuple[Span, ...]
    children: tuple[TreeView, ...] = ()
    open_depth: int = 99


@dataclass(frozen=True, slots=True)
class FoldBlock:
    """A headed section; a page may let the reader open and close it."""

    heading: tuple[Span, ...]
    blocks: tuple[Block, ...]
    is_open: bool = True


Block = Line | CodeBlock | Excerpt | TableBlock | Diff | TreeView | FoldBlock


def line(*parts: str | Span) -> Line:
    """A paragraph of spans; bare strings are plain."""
    return Line(tuple(part if isinstance(part, Span) else Span(part) for part in parts if part))


def with_offsets(spans: Iterable[Span]) -> Iterator[tuple[int, Span]]:
    """Each span with the place in the text where it begins."""
    at = 0
    for span in spans:
        yield at, span
        at += len(span.text)
