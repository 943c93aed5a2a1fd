"""Replies in a notebook's output.

In: a reply.  Out: its static HTML and its plain text as an output, and the view of its widget as another, if there is
one; or an exception that shows as the error itself.
"""

from __future__ import annotations

import html
import io
import time
from collections.abc import Sequence
from typing import Any, Final

from IPython.core.display_functions import display
from IPython.core.interactiveshell import InteractiveShell
from rich.console import Console

from engine.lang.progress import Progress
from tsrepl.render.folding import for_page, unfolded
from tsrepl.render.html import html_of
from tsrepl.render.layout import blocks_of
from tsrepl.render.palette import rich_theme
from tsrepl.render.picture import picture_html
from tsrepl.render.terminal import text_of, to_rich
from tsrepl.session.replies import ErrorReply, Reply
from tsrepl.widgets import WIDGETS

WIDTH: Final = 100
"""Columns of plain text, used where the page's width is unknown."""
ERROR_WIDTH: Final = 80
"""Columns of errors, which pages break anywhere, in words too, where they are too narrow for a line."""
WIDGET: Final = "application/vnd.jupyter.widget-view+json"
"""The MIME type of a widget's view."""
STATIC: Final = "tsrepl-static"
"""The class of static forms that have a view; by another one, with the view's name, it finds them."""
EVERY: Final = 0.1
"""Seconds between two states of a bar."""
Bundle = dict[str, Any]


# Note [Two outputs]
#
# Of the forms of one output, a page takes one: nbconvert takes the view of a widget wherever the notebook has its
# state, which needs scripts from the net, and leaves out the HTML.  So the view is an output of its own, before that of
# the static forms, and takes their place where it runs (`replaceStatic` of `widgets/common.js`).


def show(reply: Reply) -> None:
    """Display the reply: its view, on pages, and its static forms behind it, see Note [Two outputs]."""
    data, _ = bundle(reply)
    view = data.pop(WIDGET, None)
    if view is None or not has_page():
        _display(data)
        return
    of = f"{STATIC} {STATIC}-{view['model_id']}"
    _display({"text/plain": "", "text/html": "", WIDGET: view})
    _display({**data, "text/html": f'<div class="{of}">{data["text/html"]}</div>'})


def _display(data: Bundle) -> None:
    display(data, raw=True)  # type: ignore[no-untyped-call]  # IPython has no types for it


def has_page() -> bool:
    """True in a kernel, whose outputs go to a page."""
    return getattr(InteractiveShell.instance(), "kernel", None) is not None


def bundle(reply: Reply) -> tuple[Bundle, Bundle]:
    """All forms of the reply by their MIME types, and their metadata."""
    blocks = for_page(blocks_of(reply))
    text, page = text_of(unfolded(blocks), WIDTH).rstrip("\n"), picture_html(reply) + html_of(reply, blocks)
    return {"text/plain": text, "text/html": page, **_widget_view(reply)}, {}


def _widget_view(reply: Reply) -> Bundle:
    """The view of the widget for this kind of reply, which front ends that run widgets show in place of the HTML."""
    make = WIDGETS.get(type(reply))
    if make is None:
        return {}
    return {WIDGET: {"version_major": 2, "version_minor": 0, "model_id": make(reply).model_id}}


class PageBar:
    """A bar in the cell's output, which is empty when the work is done."""

    def __init__(self, title: str, event: Progress) -> None:
        self._title = title
        self._since = time.monotonic()
        self._handle: Any = display(self._bundle(event), raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def update(self, event: Progress) -> None:
        """Show how far it is, a few times a second."""
        if time.monotonic() - self._since > EVERY:
            self._since = time.monotonic()
            self._handle.update(self._bundle(event), raw=True)

    def close(self) -> None:
        self._handle.update({"text/html": "", "text/plain": ""}, raw=True)

    def _bundle(self, event: Progress) -> dict[str, str]:
        percent = f"{100 * event.done // max(1, event.total)} %"
        bar = f'<progress value="{event.done}" max="{event.total}" style="vertical-align:middle"></progress>'
        style = "font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"
        text = html.escape(self._title)
        return {"text/html": f'<div style="{style}">{text} {bar} {percent}</div>', "text/plain": f"{text} {percent}"}


class CellError(Exception):
    """Stops the notebook at the cell that failed; IPython shows the replies and no Python traceback."""

    def __init__(self, replies: Sequence[ErrorReply]) -> None:
        super().__init__("\n".join(f"{reply.kind}: {reply.message}" for reply in replies))
        self.replies = replies

    def _render_traceback_(self) -> list[str]:
        return error_lines(self.replies)


def error_lines(replies: Sequence[ErrorReply]) -> list[str]:
    """The errors as a notebook shows them, in colours of the terminal."""
    stream = io.StringIO()
    # In a notebook rich would display what it prints, and not write it to the stream.
    console = Console(
        file=stream,
        width=ERROR_WIDTH,
        force_terminal=True,
        force_jupyter=False,
        color_system="standard",
        theme=rich_theme("terminal"),
    )
    for reply in replies:
        console.print(to_rich(reply, ERROR_WIDTH), end="")
    return stream.getvalue().splitlines()
