"""Output that is longer than the screen, in a pager.

In: replies and a console.  Out: text on the terminal: at once if it fits, else through $PAGER, or less, which searches
and scrolls.  Errors are never paged.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from typing import Final

from rich.console import Console

from tsrepl.render.terminal import print_reply
from tsrepl.session.replies import ErrorReply, Reply

_LESS: Final = "FRX"
"""Options of less, if the reader has none: leave at once if all fits, show colours, keep the screen."""
_PROMPT_LINES: Final = 2
Page = Callable[[str], bool]
"""Shows a text, and says whether it could."""


def show(replies: Sequence[Reply], console: Console, page: Page | None = None) -> None:
    """Show the replies, in the pager if they are longer than the screen; without `page` never there."""
    if page is None or not console.is_terminal or any(isinstance(each, ErrorReply) for each in replies):
        for each in replies:
            print_reply(each, console)
        return
    with console.capture() as captured:
        for each in replies:
            print_reply(each, console)
    text = captured.get()
    if text.count("\n") < console.height - _PROMPT_LINES or not page(text):
        console.file.write(text)
        console.file.flush()


def in_pager(text: str) -> bool:
    """Show a text in the reader's pager; False where there is none."""
    command = shlex.split(os.environ.get("PAGER") or "less")
    try:
        done = subprocess.run(command, input=text.encode(), env={"LESS": _LESS, **os.environ}, check=False)
    except OSError:
        return False
    return done.returncode == 0
