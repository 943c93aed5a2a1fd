"""Output that is longer than the screen."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from tsrepl.session.replies import CodeReply, ErrorReply, TextReply
from tsrepl.shell.paging import in_pager, show

LONG = CodeReply("f", "\n".join(f"line {i}" for i in range(100)))


def console(*, is_terminal: bool = True) -> Console:
    return Console(file=io.StringIO(), width=60, height=20, force_terminal=is_terminal, color_system=None)


def test_long_output_goes_to_the_pager_and_short_output_does_not() -> None:
    pages: list[str] = []
    out = console()
    show([LONG], out, lambda text: not pages.append(text))
    assert "line 99" in pages[0]
    assert out.file.getvalue() == ""  # type: ignore[attr-defined]
    show([TextReply("short")], out, lambda text: not pages.append(text))
    assert len(pages) == 1
    assert "short" in out.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("replies", "is_terminal"), [([LONG, ErrorReply("Error", "no")], True), ([LONG], False)], ids=["error", "pipe"]
)
def test_errors_and_pipes_are_not_paged(replies: list[CodeReply], is_terminal: bool) -> None:
    out = console(is_terminal=is_terminal)
    show(replies, out, lambda text: pytest.fail("paged"))
    assert "line 99" in out.file.getvalue()  # type: ignore[attr-defined]


def test_what_no_pager_shows_is_printed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PAGER", str(tmp_path / "nothing"))
    out = console()
    show([LONG], out, in_pager)
    assert "line 99" in out.file.getvalue()  # type: ignore[attr-defined]
    monkeypatch.setenv("PAGER", f"sh -c 'cat > {tmp_path}/shown'")
    show([LONG], console(), in_pager)
    assert "line 99" in (tmp_path / "shown").read_text()
