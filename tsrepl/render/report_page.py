"""A report about a function: one page that stands alone.

In: a workspace, and a function's name or a call.  Out: an HTML file with the source, graph, passes, guards, kernels and
profile; wherever one of these names a line, it links to the source.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Final

from engine.lang.counts import counted
from engine.serialize.container.write import replace_file
from tsrepl.render.html import stylesheet, to_markup
from tsrepl.render.printable import safe_text
from tsrepl.session.failures import guarded
from tsrepl.session.programs import recording
from tsrepl.session.replies import Reply, TextReply
from tsrepl.session.reporting import Chapter, chapters, program_call, source_of
from tsrepl.session.workspace import Workspace

_STYLE: Final = """
body{margin:0 auto;max-width:76rem;padding:1rem 2rem;font:15px/1.5 system-ui,sans-serif;background:#fff;color:#1f2328}
nav a{margin-right:1.2em}
h2{margin-top:2rem;border-bottom:1px solid #8888}
a{color:inherit;text-decoration:underline dotted}
pre.source{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre.source span:target{background:#f0b72f66}
pre.source .number{opacity:.6;user-select:none}
@media (prefers-color-scheme:dark){body{background:#0d1117;color:#f0f3f6}}
"""
_LINE: Final = re.compile(r"\b(lines? |line</span><span[^>]*>|[\w>;. ]+:)(\d+)(?=(?::\d+)?\b)")


def report_program(
    path: str, method: str | None, inputs: Sequence[str], output: str, grad: bool | None = None
) -> Iterator[Reply]:
    """`tsrepl report FILE --input ... -o OUT`: a report about a call of a file's program."""
    return guarded(_report_program(path, method, inputs, output, grad))


def _report_program(
    path: str, method: str | None, inputs: Sequence[str], output: str, grad: bool | None
) -> Iterator[Reply]:
    with recording(path, grad):
        workspace, text, told = program_call(path, method, inputs)
        yield from told
        size = write_report(workspace, text, output)
    yield TextReply(f"wrote {output} ({counted(size, 'byte')})", "done")


def write_report(
    workspace: Workspace, text: str, path: str, words: Callable[[Reply], Reply] = lambda reply: reply
) -> int:
    """Write the report about the function or call to the path, in one step; its size in bytes.  Raises EngineError.

    `words` gives a reply the words of the door.
    """
    parts = [part._replace(replies=tuple(map(words, part.replies))) for part in chapters(workspace, text)]
    page = report_page(text, parts, source_of(workspace, text)).encode()
    replace_file(os.path.expanduser(path), [page])
    return len(page)


def report_page(title: str, parts: list[Chapter], sources: list[tuple[str, int, str]]) -> str:
    """The page as HTML."""
    known = {number for _, first, text in sources for number in range(first, first + text.count("\n") + 1)}
    links = "".join(f'<a href="#{_anchor(each)}">{escape(each)}</a>' for each in ("Source", *(p.title for p in parts)))
    body = "\n".join(_chapter(part, known) for part in parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{stylesheet()}{_STYLE}</style></head><body>"
        f"<h1>{escape(safe_text(title))}</h1><nav>{links}</nav>\n"
        f'<h2 id="source">Source</h2>{"".join(_source(*each) for each in sources)}\n{body}\n</body></html>\n'
    )


def _chapter(part: Chapter, known: set[int]) -> str:
    markup = "".join(map(to_markup, part.replies))
    return f'<h2 id="{_anchor(part.title)}">{escape(part.title)}</h2>{_linked(markup, known)}'


def _linked(markup: str, known: set[int]) -> str:
    """The markup with a link to the source wherever it names a line of it."""

    def link(found: re.Match[str]) -> str:
        number = int(found[2])
        return f'{found[1]}<a href="#line-{number}">{number}</a>' if number in known else found[0]

    return _LINE.sub(link, markup)


def _source(name: str, first: int, text: str) -> str:
    rows = (
        f'<span id="line-{number}"><span class="number">{number:>4}</span>  {escape(safe_text(each))}</span>'
        for number, each in enumerate(text.rstrip("\n").split("\n"), first)
    )
    lines = "\n".join(rows)
    return f'<h3>{escape(name)}</h3><pre class="source">{lines}</pre>'


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")
