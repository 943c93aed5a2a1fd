"""Replies in a notebook's output.

In: a reply.  Out: an object with an HTML and a plain text form, or an exception that shows as the error itself.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Final

from rich.console import Console

from tsrepl.render import to_html, to_rich, to_text
from tsrepl.session.replies import ErrorReply, Reply

WIDTH: Final = 100
"""Columns of plain text, where nothing tells the page's width."""


class Shown:
    """A reply that IPython can display."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": to_html(self.reply), "text/plain": to_text(self.reply, WIDTH).rstrip("\n")}

    def __repr__(self) -> str:
        return to_text(self.reply, WIDTH).rstrip("\n")


class CellError(Exception):
    """Stops the notebook at the cell that failed; IPython shows the replies and no Python traceback."""

    def __init__(self, replies: Sequence[ErrorReply]) -> None:
        super().__init__("\n".join(f"{reply.kind}: {reply.message}" for reply in replies))
        self.replies = replies

    def _render_traceback_(self) -> list[str]:
        stream = io.StringIO()
        # In a notebook rich would display what it prints, and not write it to the stream.
        console = Console(file=stream, width=WIDTH, force_terminal=True, force_jupyter=False, color_system="standard")
        for reply in self.replies:
            console.print(to_rich(reply, WIDTH), end="")
        return stream.getvalue().splitlines()
