"""Replies in a notebook's output.

In: a reply.  Out: an object with an HTML and a plain text form, or an exception that shows as the error itself.
"""

from __future__ import annotations

import html
import io
import time
from collections.abc import Sequence
from typing import Any, Final

from IPython.core.display_functions import display
from rich.console import Console

from engine.serialize.container.progress import FileProgress
from tsrepl.render.html import to_html
from tsrepl.render.palette import rich_theme
from tsrepl.render.terminal import to_rich, to_text
from tsrepl.session.replies import ErrorReply, Reply

WIDTH: Final = 100
"""Columns of plain text, used where the page's width is unknown."""
ERROR_WIDTH: Final = 80
"""Columns of errors, which pages break anywhere, in words too, where they are too narrow for a line."""
EVERY: Final = 0.1
"""Seconds between two states of a bar."""


class Shown:
    """A reply that IPython can display."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": to_html(self.reply), "text/plain": to_text(self.reply, WIDTH).rstrip("\n")}

    def __repr__(self) -> str:
        return to_text(self.reply, WIDTH).rstrip("\n")


class PageBar:
    """A bar in the cell's output, which is empty when the work is done."""

    def __init__(self, title: str, event: FileProgress) -> None:
        self._title = title
        self._since = time.monotonic()
        self._handle: Any = display(self._bundle(event), raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def update(self, event: FileProgress) -> None:
        """Show how far it is, a few times a second."""
        if time.monotonic() - self._since > EVERY:
            self._since = time.monotonic()
            self._handle.update(self._bundle(event), raw=True)

    def close(self) -> None:
        self._handle.update({"text/html": "", "text/plain": ""}, raw=True)

    def _bundle(self, event: FileProgress) -> dict[str, str]:
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
        for reply in self.replies:
            console.print(to_rich(reply, ERROR_WIDTH), end="")
        return stream.getvalue().splitlines()
