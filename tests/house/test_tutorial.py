"""The tutorial: each line behind a prompt is typed, and what stands below it is answered."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from rich.console import Console

from tsrepl.render.terminal import print_reply
from tsrepl.session.session import Session

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "tutorial.md"
_PROMPT: Final = re.compile(r"    (ts>|\(debug\)) (.*)")
_MORE: Final = "    ..."
_TIMES: Final = re.compile(r"\d+(\.\d+)? (ns|µs|ms|s)\b")


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


def replayed(text: str) -> str:
    """The page with the answers that there are now."""
    session, lines = Session(), text.split("\n")
    written, done = [], 0
    for _, end, entry in typed(text):
        written += lines[done:end]
        written += answer(session, entry)
        done = next(n for n in range(end, len(lines)) if not lines[n].strip() or _PROMPT.fullmatch(lines[n]))
    return "\n".join([*written, *lines[done:]])


def test_the_tutorial_says_what_is_answered(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, without_machine_code: None
) -> None:
    monkeypatch.chdir(ROOT)
    text = PAGE.read_text(encoding="utf-8")
    found = replayed(text)
    if request.config.getoption("--update-cases"):
        PAGE.write_text(found, encoding="utf-8")
        text = found
    assert _TIMES.sub("TIME", found) == _TIMES.sub("TIME", text)
    assert sum(1 for _ in typed(text)) > 15
