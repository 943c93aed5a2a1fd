"""Blocks as an outline: lines, with what is inside them folded away or not.

In: blocks and the width of a page.  Out: `Item`s.  What is inside an item is made when it is opened, and colours when a
line is drawn, so an outline of thousands of lines costs what its texts cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import cache
from typing import Final

from rich.style import Style

from engine.lang.records import dataclass
from tsrepl.render.blocks import (
    Block,
    Choice,
    CodeBlock,
    Diff,
    FoldBlock,
    Line,
    PlacedLine,
    PlacedLines,
    Span,
    Summary,
    TreeView,
    break_within,
)
from tsrepl.render.highlight import highlight
from tsrepl.render.palette import PALETTE, rich_theme
from tsrepl.render.terminal import lines_of

Spans = tuple[Span, ...]
MARKS: Final = {"+": "added", "-": "removed", "…": "muted"}
_INDENT: Final = 2
_GAP: Final = 2
"""Blanks between a line and its place."""


@dataclass(eq=False, slots=True)
class Item:
    """A line of the outline; `views` are what may stand inside it, of which `shown` does."""

    text: str
    paint: Callable[[], Spans]
    indent: int = 0
    views: tuple[tuple[str, Callable[[], list[Item]]], ...] = ()
    shown: int = 0
    is_open: bool = False
    _made: dict[int, list[Item]] = field(default_factory=dict)

    @property
    def inside(self) -> list[Item]:
        """The items of the view that is shown."""
        if not self.views:
            return []
        if self.shown not in self._made:
            self._made[self.shown] = self.views[self.shown][1]()
        return self._made[self.shown]


def outline(blocks: Iterable[Block], width: int) -> Iterator[Item]:
    """The items of the blocks, one after another."""
    for block in blocks:
        yield from _items(block, width)


def _items(block: Block, width: int) -> Iterator[Item]:
    match block:
        case Line(spans):
            yield _item(spans)
        case CodeBlock(text, language):
            yield from _nested([_code(each, language) for each in text.split("\n")])
        case PlacedLines(placed):
            column = _column(placed, width)
            yield from _nested([_placed(each, column) for each in placed])
        case Diff(lines, language):
            yield from (_changed(mark, text, language) for mark, text in lines)
        case TreeView():
            yield _branch(block)
        case FoldBlock():
            yield _fold(block, width)
        case Summary(blocks):
            yield from outline(blocks, width)
        case Choice(options):
            yield from outline(options[0], width)
        case _:
            yield from (_item(_spans(line)) for line in lines_of([block], width))


def _item(spans: Spans) -> Item:
    return Item("".join(span.text for span in spans), lambda: spans)


def _code(text: str, language: str) -> Item:
    return Item(text, lambda: tuple(highlight(text, language)))


def _column(lines: Sequence[PlacedLine], width: int) -> int:
    """The column where places stand, behind all lines but those that leave no room for one."""
    room = width - max((len(each.place) for each in lines), default=0) - _GAP
    return max((length for each in lines if each.place and (length := len(_led(each))) <= room), default=0) + _GAP


def _led(line: PlacedLine) -> str:
    return line.lead + line.text


def _placed(line: PlacedLine, column: int) -> Item:
    gap = " " * max(_GAP, column - len(_led(line))) if line.place else ""

    def paint() -> Spans:
        colours = highlight(line.text, line.language) if line.language else [Span(line.text, line.role)]
        return (Span(line.lead, "muted"), *colours, Span(gap + line.place, "muted"))

    return Item(_led(line) + gap + line.place, paint)


def _changed(mark: str, text: str, language: str) -> Item:
    def paint() -> Spans:
        colours = highlight(text, language) if mark == " " else [Span(text, MARKS[mark])]
        return (Span(f"{mark} ", MARKS.get(mark, "plain")), *colours)

    return Item(f"{mark} {text}", paint)


def _nested(lines: list[Item]) -> list[Item]:
    """The lines, each with those that are indented deeper behind it inside it."""
    top: list[Item] = []
    above: list[tuple[int, list[Item]]] = []
    parts: list[list[Item]] = []
    for line in lines:
        rest = line.text.lstrip()
        depth = len(line.text) - len(rest)
        while rest and above and above[-1][0] >= depth:
            above.pop()
        (above[-1][1] if above else top).append(line)
        parts.append([])
        above.append((depth, parts[-1]))
    for line, inside in zip(lines, parts, strict=True):
        if inside:
            line.views, line.is_open = (("", _given(inside)),), True
    return top


def _given(items: list[Item]) -> Callable[[], list[Item]]:
    return lambda: items


def _branch(block: TreeView) -> Item:
    item = _item(block.label)
    children = block.children
    if children:
        item.views, item.is_open = (("", lambda: _below(map(_branch, children))),), True
    return item


def _fold(block: FoldBlock, width: int) -> Item:
    item = _item(block.heading)
    item.views = tuple((view.name, _inside(view.make, width)) for view in block.views)
    item.shown = block.shown
    return item


def _inside(make: Callable[[], tuple[Block, ...]], width: int) -> Callable[[], list[Item]]:
    return lambda: _below(outline(make(), width - _INDENT))


def _below(items: Iterable[Item]) -> list[Item]:
    found = list(items)
    for item in found:
        item.indent += _INDENT
    return found


def _spans(line: Iterable[tuple[str, Style | None, object]]) -> Spans:
    return tuple(Span(text, _role(style)) for text, style, _ in line)


def _role(style: Style | None) -> str:
    return "plain" if style is None else _roles().get(style, "plain")


@cache
def _roles() -> dict[Style, str]:
    styles = rich_theme("terminal").styles
    return {styles[role]: role for role in reversed(PALETTE)}


def wrapped(spans: Iterable[Span], width: int, hang: int) -> list[list[Span]]:
    """The lines that the spans take: broken at blanks, inside a word only where that is longer than a line; all but the
    first stand `hang` columns to the right."""
    pieces = list(spans)
    breaks = _breaks("".join(text for text, _ in pieces), width, hang)
    lines: list[list[Span]] = [[]]
    at = 0
    for text, role in pieces:
        while breaks and breaks[0] <= at + len(text):
            cut = breaks.pop(0) - at
            lines[-1].append(Span(text[:cut], role))
            lines.append([Span(" " * hang)])
            text, at = text[cut:], at + cut
        lines[-1].append(Span(text, role))
        at += len(text)
    return lines


def _breaks(text: str, width: int, hang: int) -> list[int]:
    """The places where the text is broken into lines."""
    found: list[int] = []
    start, room = 0, width
    while len(text.rstrip()) - start > room:
        lead = len(text) - len(text[start:].lstrip())
        blank = text.rfind(" ", lead, start + room + 1)
        start = blank + 1 if blank > lead else break_within(text, lead, start + room)
        found.append(start)
        room = max(1, width - hang)
    return found
