"""Blocks cut to the size of a page: what is long is folded, and opens where the reader wants it.

In: the blocks of a reply.  Out: blocks that are at most two screens high at first.  What would make a saved notebook
large is left out, with a line that says how much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile
from typing import Final

from tsrepl.render.blocks import (
    Block,
    Choice,
    CodeBlock,
    Diff,
    FoldBlock,
    Line,
    PlacedLines,
    Span,
    Summary,
    TableBlock,
    TreeView,
    View,
    fold,
    line,
)

SCREENS: Final = 80
"""Lines that are shown at first: two screens of forty."""
MOST: Final = 1200
"""Lines that are kept at all; they are up to half a megabyte in a saved notebook."""


def for_page(blocks: Iterable[Block]) -> list[Block]:
    """The blocks, of which the first `SCREENS` lines are unfolded and the first `MOST` are kept."""
    left, kept, made = SCREENS, MOST, list[Block]()
    for block in _plain(blocks):
        for each in _cut(block, kept):
            kept -= _size(each)
            fitting = _fitted(each, left)
            made += fitting
            left -= sum(map(height, fitting))
    return made


def unfolded(blocks: Iterable[Block]) -> list[Block]:
    """The blocks as they stand before anybody opens one: of what is folded, the headings."""
    return [_unfolded(block) for block in blocks]


def _unfolded(block: Block) -> Block:
    if isinstance(block, FoldBlock) and not block.is_open:
        return Line(block.heading)
    return _pruned(block, block.open_depth) if isinstance(block, TreeView) else block


def _pruned(tree: TreeView, depth: int) -> TreeView:
    """The tree down to the depth that is open."""
    return replace(tree, children=tuple(_pruned(child, depth - 1) for child in tree.children) if depth > 0 else ())


def _plain(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks in all detail, as what is too much of it is folded here."""
    for block in blocks:
        match block:
            case Summary(inner):
                yield from _plain(inner)
            case Choice(options):
                yield from _plain(options[0])
            case _:
                yield block


def _size(block: Block) -> int:
    """The lines of a block, unfolded ones and others."""
    if isinstance(block, FoldBlock):
        return 1 + sum(map(_size, block.blocks))
    return max(sum(map(_weight, _rows(block))), 1)


def _weight(row: object) -> int:
    """The lines that a row takes; its longest cell is broken about every sixty characters."""
    cells = row if isinstance(row, tuple) else ("",)
    return max((max(str(cell).count("\n") + 1, len(str(cell)) // 60 + 1) for cell in cells), default=1)


def _fitting(rows: Sequence[object], lines: int) -> int:
    """The number of rows that fit into so many lines."""
    totals = accumulate(map(_weight, rows))
    return sum(1 for _ in takewhile(lambda total: total <= lines, totals))


def _cut(block: Block, kept: int) -> list[Block]:
    """The block without what goes beyond so many lines, and a line that counts those."""
    if not isinstance(block, FoldBlock):
        return _beginning(block, kept)
    if kept <= 0:
        return [Line(block.heading)]  # what is in it is not even made
    inner = list[Block]()
    for each in block.blocks:
        inner += _beginning(each, kept)
        kept -= _size(each)
    return [replace(block, views=(View("", lambda: tuple(inner)),), shown=0)]


def _beginning(block: Block, kept: int) -> list[Block]:
    """The rows of a block that fit, and a line that counts the others, if there are any."""
    rows = _rows(block)
    count = _fitting(rows, kept)
    if count == len(rows):
        return [block]
    return [_with_rows(block, rows[:count]), _left_out(len(rows) - count)]


def _left_out(count: int) -> Block:
    return line(Span(f"{count:,} more lines are left out here; what the magic returns has them", "muted"))


def height(block: Block) -> int:
    """The lines that a block takes while nobody unfolds it further."""
    match block:
        case CodeBlock() | Line():
            return _text(block).count("\n") + 1
        case TableBlock():
            return sum(map(_weight, block.rows)) + block.header
        case Diff() | PlacedLines():
            return len(block.lines)
        case TreeView():
            return _tree_height(block, block.open_depth)
        case FoldBlock():
            return 1 + (sum(map(height, block.blocks)) if block.is_open else 0)
        case _:
            return 3


def _text(block: CodeBlock | Line) -> str:
    return block.text if isinstance(block, CodeBlock) else ""


def _tree_height(tree: TreeView, depth: int) -> int:
    return 1 + (sum(_tree_height(child, depth - 1) for child in tree.children) if depth > 0 else 0)


def _fitted(block: Block, left: int) -> list[Block]:
    """The block in as many lines as are left: folded, or its beginning with the rest folded."""
    if isinstance(block, TreeView):
        depths = [depth for depth in range(99) if _tree_height(block, depth) <= max(left, SCREENS // 2)]
        return [replace(block, open_depth=max(depths, default=0))]
    if isinstance(block, FoldBlock):
        return [replace(block, is_open=block.is_open and height(block) <= left)]
    rows = _rows(block)
    if height(block) <= max(left, 1) or not rows:
        return [block]
    shown = max(_fitting(rows, left), 5)
    return [
        _with_rows(block, rows[:shown]),
        _folded(f"{len(rows) - shown:,} more", [_with_rows(block, rows[shown:])]),
    ]


def _rows(block: Block) -> Sequence[object]:
    if isinstance(block, CodeBlock):
        return block.text.split("\n")
    return block.rows if isinstance(block, TableBlock) else block.lines if isinstance(block, Diff | PlacedLines) else ()


def _with_rows(block: Block, rows: Sequence[object]) -> Block:
    if isinstance(block, CodeBlock):
        return replace(block, text="\n".join(map(str, rows)))
    field = "rows" if isinstance(block, TableBlock) else "lines"
    return replace(block, **{field: tuple(rows)})  # type: ignore[arg-type]


def _folded(title: str, blocks: Iterable[Block]) -> FoldBlock:
    return replace(fold((Span(title, "muted"),), *blocks), is_open=False)
