"""Bars: after a while, on terminals alone, and gone at the end."""

import io

import pytest
from rich.console import Console

from engine.lang.progress import step
from tsrepl.render import progress
from tsrepl.render.progress import progress_bars


def shown(steps: int, *, terminal: bool = True, total: int = 4) -> str:
    stream = io.StringIO()
    with progress_bars(lambda: Console(file=stream, force_terminal=terminal, width=80)):
        for number in range(1, steps + 1):
            step("writing", "/tmp/model.pt", number, total)
    return stream.getvalue()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", -1)


@pytest.mark.usefixtures("impatient")
def test_a_bar_names_the_file() -> None:
    assert "writing model.pt" in shown(3)


@pytest.mark.usefixtures("impatient")
def test_it_is_gone_at_the_end() -> None:
    assert shown(4).rstrip().endswith("\x1b[2K")


def test_what_is_quick_shows_nothing() -> None:
    assert shown(4) == ""


@pytest.mark.usefixtures("impatient")
def test_what_is_no_terminal_shows_nothing() -> None:
    assert shown(3, terminal=False) == ""
