"""Blocks: the shapes that every reply is laid out in, between the reply and the two back ends.

In: nothing.  Out: `Line`, `CodeBlock`, `PlacedLines`, `Excerpt`, `TableBlock`, `Diff`, `TreeView`, `FoldBlock`,
`Summary`, `Choice`.
Texts are plain, roles are names of the palette; terminal.py turns blocks into rich renderables, html.py into markup,
outline.py into lines that fold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from engine.lang.records import dataclass


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


class PlacedLine(NamedTuple):
    """A line of a program in a form of its own, and its place in the author's text; `lead` stands in front, muted."""

    text: str
    place: str = ""
    lead: str = ""
    role: str = "plain"
    language: str = ""


@dataclass(frozen=True, slots=True)
class PlacedLines:
    """Lines with a column of places beside them; what is too long for its part of the page is broken there."""

    lines: tuple[PlacedLine, ...]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of source with a marked place, `~~~ <--- HERE` on the line below it."""

    text: str
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """A column, at least `width` characters wide where the page has room, and `least` where it has not."""

    title: str
    role: str = "plain"
    language: str = ""
    right: bool = False
    width: int = 0
    least: int = 0


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Rows of cells.  One that `stacks` has each row as a small paragraph on a page where columns would break words."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    stacks: bool = False
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


class View(NamedTuple):
    """One way to show what is in a section: its blocks are made when they are looked at and have about `length`
    lines."""

    name: str
    make: Callable[[], tuple[Block, ...]]
    length: int = 1


@dataclass(frozen=True, slots=True)
class FoldBlock:
    """A headed section; a page may let the reader open and close it, and choose a view other than the one `shown`."""

    heading: tuple[Span, ...]
    views: tuple[View, ...]
    is_open: bool = True
    shown: int = 0

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.views[self.shown].make()


@dataclass(frozen=True, slots=True)
class Summary:
    """Blocks before something long, shown only where that may be folded away."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The same in more or less detail, most first; a page shows the first that fits."""

    options: tuple[tuple[Block, ...], ...]


Block = Line | CodeBlock | PlacedLines | Excerpt | TableBlock | Diff | TreeView | FoldBlock | Summary | Choice


def fold(heading: tuple[Span, ...], *blocks: Block) -> FoldBlock:
    """A section with one view."""
    return FoldBlock(heading, (View("", lambda: blocks, sum(map(least_lines, blocks))),))


def least_lines(block: Block) -> int:
    """The number of lines that a block takes at least, without making what is made when it is looked at."""
    match block:
        case CodeBlock(text) | Excerpt(text):
            return text.count("\n") + 1
        case TableBlock():
            return len(block.rows)
        case Diff() | PlacedLines():
            return len(block.lines)
        case TreeView():
            return 1 + sum(map(least_lines, block.children))
        case FoldBlock():
            return 1 + block.views[block.shown].length
        case Summary():
            return 0
        case Choice():
            return min(sum(map(least_lines, option)) for option in block.options)
        case _:
            return 1


def line(*parts: str | Span) -> Line:
    """A paragraph of spans; bare strings are plain."""
    return Line(tuple(part if isinstance(part, Span) else Span(part) for part in parts if part))


def with_offsets(spans: Iterable[Span]) -> Iterator[tuple[int, Span]]:
    """Each span with the place in the text where it begins."""
    at = 0
    for span in spans:
        yield at, span
        at += len(span.text)


_PARTS: Final = re.compile(r"[\w\])\"'](?=[(\[{])|[(\[{,](?=\S)")
"""A character of a word behind which it may be broken: names stay whole."""


def break_within(text: str, begin: int, end: int) -> int:
    """The place before `end` where a word that is too long for its line is broken: at a bracket or comma, if one is
    there, else at the end."""
    return next((at for at in range(end, begin + 1, -1) if _PARTS.match(text, at - 1)), end)
