"""Pages of the docs that show the shell: each line behind a prompt is typed, and what stands below it is answered."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Final

from rich.console import Console

from tsrepl.render.terminal import print_reply
from tsrepl.session.session import Session

_PROMPT: Final = re.compile(r"    (ts>|\(debug\)) (.*)")
_MORE: Final = "    ..."


def typed(text: str) -> Iterator[tuple[int, int, str]]:
    """Each entry: the lines of the page that it stands on, from the first up to the one behind, and its text."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if match := _PROMPT.fullmatch(line):
            end = at + 1
            while lines[end].startswith(_MORE):
                end += 1
            yield at, end, "\n".join([match[2], *(each[len(_MORE) + 1 :] for each in lines[at + 1 : end])])


def answer(session: Session, entry: str) -> list[str]:
    console = Console(file=io.StringIO(), width=96, color_system=None, highlight=False)
    for reply in session.execute(entry):
        print_reply(reply, console)
    assert isinstance(console.file, io.StringIO)
    return [f"    {line}".rstrip() for line in console.file.getvalue().rstrip("\n").split("\n") if line.strip()]


def replayed(text: str, session: Session, leaves_out: bool = False) -> str:
    """The page with the answers that there are now; `leaves_out` lets entries without an answer have none."""
    lines = text.split("\n")
    written, done = [], 0
    for _, end, entry in typed(text):
        shown = next(n for n in range(end, len(lines)) if not lines[n].strip() or _PROMPT.fullmatch(lines[n]))
        found = answer(session, entry)
        written += lines[done:end]
        written += found if shown > end or not leaves_out else []
        done = shown
    return "\n".join([*written, *lines[done:]])
