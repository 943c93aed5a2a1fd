"""Replies for a page.

In: a reply.  Out: static HTML (`to_html` a fragment with its own style, `to_page` a whole document).  Everything is
escaped, nothing is loaded from elsewhere, no script is needed; colours follow the reader's light or dark page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

from tsrepl.render.blocks import (
    Block,
    Choice,
    CodeBlock,
    Column,
    Diff,
    Excerpt,
    FoldBlock,
    Line,
    PlacedLines,
    Span,
    Summary,
    TableBlock,
    TreeView,
    least_lines,
)
from tsrepl.render.highlight import highlight
from tsrepl.render.layout import blocks_of
from tsrepl.render.palette import PALETTE
from tsrepl.session.replies import ErrorReply, Reply

PAGE = 40
"""Lines of what is shown in less detail where it has more."""
_MARKS = {"+": "added", "-": "removed", " ": "plain", "…": "muted"}
_BOLD = ("title", "error", "command", "value")

_PAGE = """
body{margin:2em;background:#fff;color:#1f2328}
@media (prefers-color-scheme:dark){body{background:#0d1117;color:#f0f3f6}}
"""
# Notebooks style every table they find, with more weight than a class of ours has; hence the !important.
_LAYOUT = """
.tsrepl{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;max-width:100%;overflow-x:auto}
.tsrepl p{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}
.tsrepl pre{margin:0;padding:0;font:inherit;white-space:pre;background:none;border:0;overflow-x:auto;color:inherit}
.tsrepl pre.excerpt{margin-left:2em}
.tsrepl table{border-collapse:collapse;font:inherit;margin:.2em 0;background:none}
.tsrepl table tr{background:none!important}
.tsrepl table :is(th,td){text-align:left!important;vertical-align:top;padding:.1em 1.2em .1em 0}
.tsrepl table :is(th,td){border:0;background:none}
.tsrepl th,.tsrepl td{white-space:pre-wrap}
.tsrepl table th{font-weight:normal;opacity:.75}
.tsrepl table .right{text-align:right!important}
.tsrepl details{margin:.15em 0}
.tsrepl details>:not(summary){margin-left:1.2em}
.tsrepl summary{cursor:pointer}
.tsrepl ul{list-style:none;margin:0;padding-left:1.4em}
.tsrepl>ul{padding-left:0}
"""


def stylesheet() -> str:
    """The style that fragments rely on; `to_html` brings it along unless told not to."""
    # Jupyter and VS Code mark their own themes on the body; any other page follows the reader's system.
    colours = [
        _colours("", "light"),
        f"@media (prefers-color-scheme:dark){{{_colours('', 'dark')}}}",
        _colours("body[data-jp-theme-light=true] ", "light") + _colours("body.vscode-light ", "light"),
        _colours("body[data-jp-theme-light=false] ", "dark") + _colours("body.vscode-dark ", "dark"),
    ]
    bold = ",".join(f".tsrepl .{role}" for role in _BOLD)
    return "\n".join([_LAYOUT, *colours, f"{bold}{{font-weight:600}}"])


def _colours(page: str, theme: str) -> str:
    """One rule for each role, on pages that match the selector `page`."""
    return "".join(
        f"{page}.tsrepl .{role}{{color:{getattr(colour, theme)}}}"
        for role, colour in PALETTE.items()
        if role != "plain"
    )


def to_html(reply: Reply, *, style: bool = True) -> str:
    """The reply as one `<div class="tsrepl">`; with `style`, its stylesheet stands in front."""
    role = ' role="alert"' if isinstance(reply, ErrorReply) else ""
    body = "".join(map(_render, blocks_of(reply)))
    head = f"<style>{stylesheet()}</style>" if style else ""
    return f'{head}<div class="tsrepl"{role}>{body}</div>'


def to_page(replies: Iterable[Reply], title: str = "TorchScript") -> str:
    """A whole document that shows the replies one below the other."""
    body = "\n".join(to_html(reply, style=False) for reply in replies)
    style = f"{_PAGE}{stylesheet()}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>\n{body}\n</body></html>\n"
    )


def _render(block: Block) -> str:
    return _RENDERERS[type(block)](block)


def _spans(spans: Iterable[Span]) -> str:
    return "".join(
        escape(text) if role == "plain" else f'<span class="{role}">{escape(text)}</span>' for text, role in spans
    )


def _line(block: Line) -> str:
    return f"<p>{_spans(block.spans)}</p>"


def _code(block: CodeBlock) -> str:
    return f"<pre>{_spans(highlight(block.text, block.language))}</pre>"


def _placed(block: PlacedLines) -> str:
    column = max((len(each.lead + each.text) for each in block.lines), default=0)
    lines = []
    for text, place, lead, role, language in block.lines:
        spans = highlight(text, language) if language else [Span(text, role)]
        gap = " " * (column - len(lead + text) + 2) if place else ""
        lines.append(_spans([Span(lead, "muted"), *spans, Span(gap), Span(place, "muted")]))
    return f"<pre>{chr(10).join(lines)}</pre>"


def _excerpt(block: Excerpt) -> str:
    lines = (Span(t, "error" if t.lstrip().startswith("~") else "plain") for t in block.text.split("\n"))
    marked = "\n".join(_spans([each]) for each in lines)
    return f'<pre class="excerpt">{marked}</pre>'


def _table(block: TableBlock) -> str:
    head = "".join(f'<th scope="col"{_align(c)}>{escape(c.title)}</th>' for c in block.columns) if block.header else ""
    rows = "".join(f"<tr>{_row(block, row)}</tr>" for row in block.rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{rows}</tbody></table>"


def _row(block: TableBlock, row: tuple[str, ...]) -> str:
    return "".join(f"<td{_align(c)}>{_cell(c, text)}</td>" for c, text in zip(block.columns, row, strict=True))


def _cell(column: Column, text: str) -> str:
    # Blanks at the front are an indent, behind which a page may not break the line; columns of one width break nowhere.
    name = text.lstrip(" ")
    text = "\u00a0" * (len(text) - len(name)) + name
    if column.width:
        text = text.ljust(column.width).replace(" ", "\u00a0")
    return _spans(highlight(text, column.language) if column.language else [Span(text, column.role)])


def _align(column: Column) -> str:
    return ' class="right"' if column.right else ""


def _diff(block: Diff) -> str:
    lines = "\n".join(_diff_line(mark, text, block.language) for mark, text in block.lines)
    return f"<pre>{lines}</pre>"


def _diff_line(mark: str, text: str, language: str) -> str:
    spans = highlight(text, language) if mark == " " else [Span(text, _MARKS[mark])]
    return _spans([Span(f"{mark} ", _MARKS[mark]), *spans])


def _tree(block: TreeView) -> str:
    return f"<ul>{_branch(block)}</ul>"


def _branch(block: TreeView) -> str:
    if not block.children:
        return f"<li>{_spans(block.label)}</li>"
    inner = "".join(map(_branch, block.children))
    return f"<li><details open><summary>{_spans(block.label)}</summary><ul>{inner}</ul></details></li>"


def _summary(block: Summary) -> str:
    return "".join(map(_render, block.blocks))


def _choice(block: Choice) -> str:
    """The most detailed that is no longer than a page."""
    chosen = next((each for each in block.options if sum(map(least_lines, each)) <= PAGE), block.options[-1])
    return "".join(map(_render, chosen))


def _fold(block: FoldBlock) -> str:
    inner = "".join(map(_render, block.blocks))
    return f"<details{' open' if block.is_open else ''}><summary>{_spans(block.heading)}</summary>{inner}</details>"


_RENDERERS: dict[type[Any], Callable[[Any], str]] = {
    Line: _line,
    CodeBlock: _code,
    PlacedLines: _placed,
    Excerpt: _excerpt,
    TableBlock: _table,
    Diff: _diff,
    TreeView: _tree,
    FoldBlock: _fold,
    Summary: _summary,
    Choice: _choice,
}
