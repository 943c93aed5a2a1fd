"""Replies for a page.

In: a reply.  Out: static HTML (`to_html` a fragment, `to_page` a whole document).  Everything is escaped, nothing is
loaded from elsewhere, no script is needed.  A document follows the reader's light or dark theme by its stylesheet; a
fragment has its style in its elements, because notebooks that are not trusted lose stylesheets, in colours that suit
both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from tsrepl.render.blocks import (
    Block,
    Choice,
    CodeBlock,
    Column,
    Diff,
    DiffLine,
    Excerpt,
    FoldBlock,
    Line,
    PlacedLines,
    Span,
    Summary,
    TableBlock,
    TreeView,
    least_lines,
    with_offsets,
)
from tsrepl.render.diff import changed_words
from tsrepl.render.folding import for_page
from tsrepl.render.highlight import highlight
from tsrepl.render.layout import blocks_of
from tsrepl.render.palette import EITHER, PALETTE, mixed
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
.tsrepl .inside{margin-left:1.2em}
.tsrepl summary{cursor:pointer}
.tsrepl .changed{font-weight:700;text-decoration:underline}
.tsrepl ul{list-style:none;margin:0;padding-left:1.4em}
.tsrepl>ul{padding-left:0}
"""


_VARIABLES = {colour: f"--t{number:x}" for number, colour in enumerate(EITHER)}
"""Colours and the variables for them mixed: short names, since each piece of text has one."""


def _colour_of(role: str) -> str:
    either = PALETTE[role].either
    return f"color:{either};color:var({_VARIABLES[either]})" if either in _VARIABLES else f"color:{either}"


_CELL = "border:0;background:none;text-align:left;vertical-align:top;padding:.1em 1.2em .1em 0;white-space:pre-wrap"
_INLINE = {
    "p": "margin:0;white-space:pre-wrap;overflow-wrap:anywhere",
    "pre": "margin:0;padding:0;font:inherit;white-space:pre;background:none;border:0;overflow-x:auto;color:inherit",
    "table": "border-collapse:collapse;font:inherit;margin:.2em 0;background:none;border:0",
    "tr": "background:none;border:0",
    "th": f"{_CELL};font-weight:normal",
    "td": _CELL,
    "ul": "list-style:none;margin:0;padding-left:1.4em",
    "li": "margin:0",
    "details": "margin:.15em 0",
    "summary": "cursor:pointer",
    ".tsrepl": "font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;max-width:100%;overflow-x:auto",
    ".inside": "margin-left:1.2em",
    ".excerpt": "margin-left:2em",
    ".right": "text-align:right",
    ".changed": "font-weight:700;text-decoration:underline",
    **{f".{role}": _colour_of(role) + (";font-weight:600" if role in _BOLD else "") for role in PALETTE},
}
"""The style of each element and class, for fragments."""
# Untrusted notebooks lose the variables and what names them, and have the plain colours.
_OPENING = re.compile(r'<(\w+)(?: class="([\w ]+)")?(?=[ >])')


def _with_inline_style(markup: str) -> str:
    """Our own markup, in which texts are escaped, with style attributes in place of classes."""
    styled = _OPENING.sub(_inline, markup)
    used = (f"{name}:{mixed(colour)}" for colour, name in _VARIABLES.items() if f"var({name})" in styled)
    return styled.replace('style="', f'style="{"".join(f"{each};" for each in used)}', 1)


def _inline(found: re.Match[str]) -> str:
    names = [found[1], *(f".{name}" for name in (found[2] or "").split())]
    style = ";".join(_INLINE[name] for name in names if name in _INLINE)
    return f'<{found[1]} style="{style}"' if style else f"<{found[1]}"


def stylesheet() -> str:
    """The style that documents rely on."""
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


def to_html(reply: Reply) -> str:
    """The reply as one `<div>` with its style in it, at most a few screens high until the reader unfolds more."""
    return html_of(reply, for_page(blocks_of(reply)))


def html_of(reply: Reply, blocks: Iterable[Block]) -> str:
    """The blocks of a reply as one `<div>` with its style in it."""
    return _with_inline_style(_fragment(reply, blocks))


def to_markup(reply: Reply) -> str:
    """The reply as one `<div class="tsrepl">`, whole, for a document that has the stylesheet."""
    return _fragment(reply, blocks_of(reply))


def _fragment(reply: Reply, blocks: Iterable[Block]) -> str:
    role = ' role="alert"' if isinstance(reply, ErrorReply) else ""
    return f'<div class="tsrepl"{role}>{"".join(map(_render, blocks))}</div>'


def to_page(replies: Iterable[Reply], title: str = "TorchScript") -> str:
    """A whole document that shows the replies one below the other."""
    body = "\n".join(map(to_markup, replies))
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
    # What machines read is long, and each coloured word would take a whole style in a page that is saved.
    language = block.language if block.language not in ("llvm", "asm") else ""
    return f"<pre>{_spans(highlight(block.text, language))}</pre>"


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
    head = "".join(f'<th{_align(c)} scope="col">{escape(c.title)}</th>' for c in block.columns) if block.header else ""
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
    changed = changed_words(block.lines)
    lines = (_diff_line(each, block.language, changed.get(at, ())) for at, each in enumerate(block.lines))
    text = "\n".join(lines)
    return f"<pre>{text}</pre>"


def _diff_line(line: DiffLine, language: str, changed: Sequence[tuple[int, int]]) -> str:
    """A line behind its mark; the words in which it differs from its counterpart are marked, too."""
    if line.mark == "…":
        return _spans([Span(f"… {line.text}", "muted")])
    marked = "".join(_marked(span, at, changed) for at, span in with_offsets(highlight(line.text, language)))
    return _spans([Span(f"{line.mark} ", _MARKS[line.mark])]) + marked


def _marked(span: Span, start: int, changed: Sequence[tuple[int, int]]) -> str:
    """The span, with `changed` stretches of the line underlined."""
    cuts = sorted({0, len(span.text), *(min(max(at - start, 0), len(span.text)) for pair in changed for at in pair)})
    made = ""
    for begin, end in pairwise(cuts):
        text = _spans([Span(span.text[begin:end], span.role)])
        is_changed = any(low <= start + begin < high for low, high in changed)
        made += f'<b class="changed">{text}</b>' if is_changed else text
    return made


def _tree(block: TreeView) -> str:
    return f"<ul>{_branch(block, block.open_depth)}</ul>"


def _branch(block: TreeView, depth: int) -> str:
    """A label, and what hangs below it; that is unfolded down to the depth."""
    if not block.children:
        return f"<li>{_spans(block.label)}</li>"
    inner = "".join(_branch(child, depth - 1) for child in block.children)
    state = " open" if depth > 0 else ""
    return f"<li><details{state}><summary>{_spans(block.label)}</summary><ul>{inner}</ul></details></li>"


def _summary(block: Summary) -> str:
    return "".join(map(_render, block.blocks))


def _choice(block: Choice) -> str:
    """The most detailed that is no longer than a page."""
    chosen = next((each for each in block.options if sum(map(least_lines, each)) <= PAGE), block.options[-1])
    return "".join(map(_render, chosen))


def _fold(block: FoldBlock) -> str:
    inner = "".join(map(_render, block.blocks))
    heading, state = _spans(block.heading), " open" if block.is_open else ""
    return f'<details{state}><summary>{heading}</summary><div class="inside">{inner}</div></details>'


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
