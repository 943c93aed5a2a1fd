"""Replies for a terminal.

In: a reply and the width of the page in columns.  Out: a rich renderable (`to_rich`), or plain text (`to_text`).
Nothing here looks at the real terminal: the door decides about width and colours.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat, zip_longest
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from engine.lang.deferred import deferred
from tsrepl.render.blocks import (
    Block,
    Choice,
    CodeBlock,
    Diff,
    Excerpt,
    FoldBlock,
    Line,
    PlacedLine,
    PlacedLines,
    Span,
    Summary,
    TableBlock,
    TreeView,
    break_within,
    least_lines,
)
from tsrepl.render.highlight import highlight
from tsrepl.render.layout import blocks_of
from tsrepl.render.palette import chosen_theme, rich_theme
from tsrepl.session.replies import Reply

if TYPE_CHECKING:
    from rich import table as tables
    from rich import tree as trees
else:
    tables, trees = deferred("rich.table"), deferred("rich.tree")

UNLIMITED = 10_000
"""The width of a page that ends nowhere, as of a file."""
PAGE = 40
"""Lines of what is shown in less detail where it has more, on a page whose height is unknown."""
_HANG = 4
PROMPT_LINES = 3
"""Lines of a terminal that the prompt takes, with the line typed and the toolbar."""
_PAGE = 100
"""The column of places on a page that ends nowhere, but behind longer lines."""
_BETWEEN = 2
"""Blanks between columns of a table."""
_BETWEEN_PARTS = 3
"""Blanks between cells of a row that share a line of their paragraph."""
_LEAST = 16
"""Characters that a column of a table has at least, if its cells have as many."""
_MARKS = {"+": "added", "-": "removed", " ": "plain", "…": "muted"}


def to_rich(reply: Reply, width: int, height: int = PAGE) -> RenderableType:
    """The reply for a page `width` columns wide, of `height` lines where it can be shown in less detail."""
    return Group(*(_render(block, width) for block in fitting(blocks_of(reply), width, height)))


def fitting(blocks: Iterable[Block], width: int, height: int) -> Iterator[Block]:
    """The blocks; in place of each choice, the most detailed one that has at most `height` lines."""
    for block in blocks:
        if isinstance(block, Choice):
            yield from next((each for each in block.options if _fits(each, width, height)), block.options[-1])
        else:
            yield block


def _fits(blocks: tuple[Block, ...], width: int, height: int) -> bool:
    if sum(map(least_lines, blocks)) > height:
        return False
    return len(lines_of(blocks, width)) <= height


def lines_of(blocks: Iterable[Block], width: int) -> list[list[Segment]]:
    """The lines that the blocks take on a page of this width."""
    console = Console(
        file=io.StringIO(), width=width, force_jupyter=False, legacy_windows=False, theme=rich_theme("terminal")
    )
    options = console.options.update(width=width, height=None)
    return console.render_lines(Group(*(_render(block, width) for block in blocks)), options, pad=False)


def to_text(reply: Reply, width: int = UNLIMITED) -> str:
    """The reply without any colour, each line ended by a newline; "" when there is nothing to show."""
    return text_of(fitting(blocks_of(reply), width, PAGE), width)


def text_of(blocks: Iterable[Block], width: int) -> str:
    """The blocks without any colour, each line ended by a newline."""
    stream = io.StringIO()
    # In a notebook rich would display what it prints, and not write it to the stream.
    console = Console(
        file=stream, width=width, color_system=None, force_terminal=False, force_jupyter=False, legacy_windows=False,
        theme=rich_theme("plain"),
    )  # fmt: skip
    console.print(Group(*(_render(block, width) for block in blocks)), end="")
    return "".join(text.rstrip() + "\n" for text in stream.getvalue().splitlines())


def new_console(theme: str = "", *, stderr: bool = False, force_terminal: bool | None = None) -> Console:
    """The console of a stream in a theme, without one in that of the environment.  In the plain one nothing is bold or
    dim either."""
    theme = theme or chosen_theme()
    plain = theme == "plain"
    return Console(
        highlight=False, stderr=stderr, force_terminal=None if plain else force_terminal,
        color_system=None if plain else "auto", theme=rich_theme(theme),
    )  # fmt: skip


def print_blocks(blocks: Iterable[Block], console: Console) -> None:
    """Show blocks on a terminal."""
    console.print(Group(*(_render(block, console.width) for block in blocks)))


def print_reply(reply: Reply, console: Console) -> None:
    """Show the reply: for a terminal in colours and its width, for a pipe or a file as plain lines, unbroken."""
    if not console.is_terminal:
        console.file.write(to_text(reply))
    elif blocks_of(reply):
        console.print(to_rich(reply, console.width, console.height - PROMPT_LINES))


def _render(block: Block, width: int) -> RenderableType:
    return _RENDERERS[type(block)](block, width)


def _line(block: Line, width: int) -> RenderableType:
    """The paragraph, all of it as far to the right as it begins."""
    text = _text(block.spans)
    indent = len(text.plain) - len(text.plain.lstrip(" "))
    return Padding(text[indent:], (0, 0, 0, indent)) if 0 < indent < width < text.cell_len else text


def _code(block: CodeBlock, width: int) -> RenderableType:
    return Text("\n").join(_hung(_text(highlight(block.text, block.language)), width))


def _placed(block: PlacedLines, width: int) -> RenderableType:
    beside = min(max((len(each.place) for each in block.lines), default=0), 2 * width // 5)
    room = width - beside - 2 if beside else width
    lines = [(_hung(_placed_text(each), room if each.place else width), each.place) for each in block.lines]
    longest = max((text.cell_len for texts, place in lines if place for text in texts), default=0)
    column = longest if width < UNLIMITED else min(longest, _PAGE)
    shown: list[Text] = []
    for texts, place in lines:
        if place:
            texts[0].append(" " * (column - texts[0].cell_len) + "  ")
            texts[0].append(place if len(place) <= beside else f"…{place[1 - beside :]}", "muted")
        shown += texts
    return Text("\n").join(shown)


def _placed_text(line: PlacedLine) -> Text:
    spans = highlight(line.text, line.language) if line.language else [Span(line.text, line.role)]
    return _text([Span(line.lead, "muted"), *spans])


def _excerpt(block: Excerpt, width: int) -> RenderableType:
    lines = Text("\n").join(
        Text(text, style="error" if text.lstrip().startswith("~") else "plain") for text in block.text.split("\n")
    )
    lines.no_wrap, lines.overflow = True, "ellipsis"
    indent = block.indent if width >= 2 * 30 else 0
    return Padding(lines, (0, 0, 0, indent), expand=False)


def _table(block: TableBlock, width: int) -> RenderableType:
    cells = [_cells(block, row) for row in block.rows]
    widths = _column_widths(block, cells, width)
    if widths is None and block.stacks:
        return Group(*_stacked(block, cells, width))
    table = tables.Table(
        box=None, show_header=block.header, header_style="", pad_edge=False, padding=(0, _BETWEEN, 0, 0)
    )
    for column, wide in zip_longest(block.columns, widths or ()):
        justify: JustifyMethod = "right" if column.right else "left"
        table.add_column(Text(column.title, "muted"), justify=justify, overflow="fold", width=wide)
    for row in cells:
        table.add_row(*row)
    return table


def _column_widths(block: TableBlock, cells: list[list[Text]], width: int) -> list[int] | None:
    """The widths of the columns, the widest cut down where the page ends; None if that would break words."""
    wide, least = [], []
    for at, column in enumerate(block.columns):
        texts = [*([column.title] if block.header else []), *(row[at].plain for row in cells)]
        wide.append(max(column.width, *(cell_len(each) for text in texts for each in (text.split("\n")))))
        word = max((cell_len(each) for text in texts for each in text.split()), default=0)
        least.append(max(column.least, word, min(wide[-1], _LEAST)))
    room = width - _BETWEEN * (len(wide) - 1)
    if sum(wide) <= room:
        return wide
    if sum(least) > room:
        return None
    most = max(wide)
    while sum(map(min, wide, map(max, least, repeat(most)))) > room:
        most -= 1
    return [*map(min, wide, map(max, least, repeat(most)))]


def _stacked(block: TableBlock, cells: list[list[Text]], width: int) -> Iterator[RenderableType]:
    """Each row as a small paragraph: its first two cells on one line, the others below, titled, short ones together."""
    titles = [column.title.strip() for column in block.columns[2:]]
    for row in cells:
        first, *more = row[1].split("\n")
        yield from _hung(Text.assemble(row[0], "  ", first), width)
        others = [part for title, cell in zip(titles, row[2:], strict=True) for part in _titled(title, cell)]
        for text in (*more, *_filled(others, width - _HANG, Text(" " * _BETWEEN_PARTS))):
            yield Padding(text, (0, 0, 0, _HANG))


def _filled(parts: Iterable[Text], width: int, between: Text) -> list[Text]:
    """The parts, as many on a line as it has room for."""
    lines: list[Text] = []
    for part in parts:
        together = between.join((*lines[-1:], part))
        lines[-1:] = [together] if lines and together.cell_len <= width else [*lines[-1:], part]
    return lines


def _titled(title: str, cell: Text) -> Iterator[Text]:
    """The lines of a cell behind the title of its column, if they do not begin with that."""
    for part in cell.split("\n") if cell.plain else ():
        yield part if part.plain.startswith(f"{title} ") or not title else Text.assemble((f"{title} ", "muted"), part)


def _cells(block: TableBlock, row: tuple[str, ...]) -> list[Text]:
    return [
        _text(highlight(text, column.language) if column.language else [Span(text, column.role)])
        for column, text in zip(block.columns, row, strict=True)
    ]


def _diff(block: Diff, width: int) -> RenderableType:
    lines: list[Text] = []
    for mark, text in block.lines:
        colours = highlight(text, block.language) if mark == " " else [Span(text, _MARKS[mark])]
        lines += _hung(_text([Span(f"{mark} ", _MARKS[mark]), *colours]), width)
    return Text("\n").join(lines)


def _tree(block: TreeView, width: int) -> RenderableType:
    tree = trees.Tree(_text(block.label), guide_style="muted")
    _grow(tree, block.children)
    return tree


def _grow(tree: trees.Tree, children: Iterable[TreeView]) -> None:
    for child in children:
        _grow(tree.add(_text(child.label)), child.children)


def _summary(block: Summary, width: int) -> RenderableType:
    return Group()


def _fold(block: FoldBlock, width: int) -> RenderableType:
    return Group(_text(block.heading), *(_render(inner, width) for inner in block.blocks))


_RENDERERS: dict[type[Any], Callable[[Any, int], RenderableType]] = {
    Line: _line,
    CodeBlock: _code,
    PlacedLines: _placed,
    Excerpt: _excerpt,
    TableBlock: _table,
    Diff: _diff,
    TreeView: _tree,
    FoldBlock: _fold,
    Summary: _summary,
}


def _text(spans: Iterable[Span]) -> Text:
    text = Text(overflow="fold")
    for span in spans:
        text.append(span.text, span.role)
    return text


def _hung(text: Text, width: int) -> list[Text]:
    """The lines of the text, each that is too long broken, and its rest hung deeper than its start."""
    lines: list[Text] = []
    for whole in text.split("\n", allow_blank=True):
        indent = len(whole.plain) - len(whole.plain.lstrip(" +-…")) + _HANG
        while whole.cell_len > width > indent + 2 * _HANG:
            at = _break_point(whole.plain, width, indent)
            head, whole = whole.divide([at])
            head.rstrip()
            lines.append(head)
            whole.pad_left(indent)
        lines.append(whole)
    return lines


def _break_point(text: str, width: int, indent: int) -> int:
    """The position of the line break: after the last blank that fits, else within a word."""
    blank = text.rfind(" ", indent, width)
    return blank + 1 if blank > indent else break_within(text, indent, width)
