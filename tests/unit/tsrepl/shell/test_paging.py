"""Output that is longer than the screen."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from tsrepl.session.replies import CodeReply, ErrorReply, Reply, TextReply
from tsrepl.shell.pager import Pager
from tsrepl.shell.paging import in_program, show

LONG = CodeReply("f", "\n".join(f"line {i}" for i in range(100)))


def console(*, is_terminal: bool = True) -> Console:
    return Console(file=io.StringIO(), width=60, height=20, force_terminal=is_terminal, color_system=None)


def printed(out: Console) -> str:
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def never(interrupt: Callable[[], None]) -> Pager:
    pytest.fail("paged")


def test_long_output_opens_the_pager_and_its_beginning_stays() -> None:
    with create_pipe_input() as pipe:
        pagers: list[Pager] = []

        def make(interrupt: Callable[[], None]) -> Pager:
            pagers.append(Pager(input=pipe, output=DummyOutput()))
            return pagers[-1]

        out = console()
        pipe.send_text("q")
        show([TextReply("short"), LONG, TextReply("end")], out, make)
        assert [item.text for item in pagers[0].items][:2] == ["short", "line 0"]
        assert pagers[0].items[-1].text == "end"
    assert "line 9\n" in printed(out) and "line 10\n" not in printed(out)
    assert printed(out).count("short\n") == 1
    assert "more lines" in printed(out)


def test_replies_that_fit_are_printed_as_they_come() -> None:
    out, seen = console(), list[str]()

    def replies() -> Iterator[Reply]:
        yield TextReply("first")
        seen.append(printed(out))
        yield TextReply("second")

    show(replies(), out, never)
    assert seen == ["first\n"]
    assert printed(out) == "first\nsecond\n"


def test_what_is_printed_meanwhile_stands_in_the_pager() -> None:
    with create_pipe_input() as pipe:
        pager = Pager(input=pipe, output=DummyOutput())

        def replies() -> Iterator[Reply]:
            yield LONG
            print("printed")
            yield ErrorReply("RuntimeError", "no")

        out = console()
        pipe.send_text("q")
        show(replies(), out, lambda interrupt: pager)
    assert "printed" in [item.text for item in pager.items]
    assert printed(out).endswith("RuntimeError: no\n")


@pytest.mark.parametrize(
    ("reply", "is_terminal"),
    [(ErrorReply("Error", "no", details="\n" * 90 + "line 99"), True), (LONG, False)],
    ids=["error", "pipe"],
)
def test_errors_and_pipes_are_not_paged(reply: Reply, is_terminal: bool) -> None:
    out = console(is_terminal=is_terminal)
    show([reply], out, never)
    assert printed(out)


def test_what_no_program_shows_is_printed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = console()
    in_program([LONG], out, str(tmp_path / "nothing"))
    assert "line 99" in printed(out)
    monkeypatch.setenv("PAGER", f"sh -c 'cat > {tmp_path}/shown'")
    out = console()
    in_program([LONG], out, "$PAGER")
    assert "line 99" in (tmp_path / "shown").read_text()
    assert printed(out) == ""
