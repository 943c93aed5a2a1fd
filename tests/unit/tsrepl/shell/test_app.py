"""The shell, keys in and text out, without a terminal."""

import io
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from tsrepl.render.palette import rich_theme
from tsrepl.render.settings import Settings
from tsrepl.session import Session
from tsrepl.shell import Shell
from tsrepl.shell.app import banner, saved_history

ENTER, CTRL_C, CTRL_D = "\r", "\x03", "\x04"
Talk = Callable[..., str]


@pytest.fixture(scope="module")
def talk() -> Talk:
    """Types the keys into a shell and gives what it answered; the last key leaves."""

    def talk(*keys: str, colour: bool = False, width: int = 80) -> str:
        stream = io.StringIO()
        console = Console(
            file=stream, width=width, force_terminal=colour, color_system="standard" if colour else None,
            theme=rich_theme("terminal"),
        )  # fmt: skip
        with create_pipe_input() as pipe:
            shell = Shell(Session(), input=pipe, output=DummyOutput(), console=console, history=InMemoryHistory())
            pipe.send_text("".join(keys) + CTRL_D)
            assert shell.run() == 0
        return stream.getvalue()

    return talk


def test_the_banner_is_short_and_tells_of_help() -> None:
    assert len(banner()) <= 2
    assert any("%help" in line for line in banner())
    assert all(len(line) <= 80 for line in banner())


def test_an_expression(talk: Talk) -> None:
    assert talk("1 + 2" + ENTER) == "3\n"


def test_names_live_on(talk: Talk) -> None:
    assert talk("x = 20" + ENTER, "x * 2 + 2" + ENTER) == "42\n"


def test_a_definition_over_lines(talk: Talk) -> None:
    keys = "def f(n: int):" + ENTER + "m = n + 1" + ENTER + "return m" + ENTER + ENTER
    assert talk(keys, "f(1)" + ENTER) == "defined function f(int n) -> int\n2\n"


def test_an_error_is_shown_and_the_dialogue_goes_on(talk: Talk) -> None:
    shown = talk("nope" + ENTER, "1" + ENTER)
    assert shown == "Compile error: undefined value nope\n  entry 1\n    nope\n    ~~~~ <--- HERE\n1\n"


def test_ctrl_c_gives_up_the_entry(talk: Talk) -> None:
    assert talk("x = (1 +" + ENTER + CTRL_C, "7" + ENTER) == "7\n"


PROGRAM = "def f(x):\n    y = x + 1\n    z = y + 1\n    return z\n"
DEBUG = (f"\x1b[200~{PROGRAM}\x1b[201~" + ENTER, "%debug f(torch.ones(1))" + ENTER)


@pytest.mark.parametrize("given_up", [CTRL_C, "p x" + CTRL_C, CTRL_C + CTRL_C, "c" + CTRL_C])
@pytest.mark.parametrize("move", ["n", "c"])
def test_ctrl_c_in_the_debugger_runs_nothing(talk: Talk, move: str, given_up: str) -> None:
    with_it = talk(*DEBUG, move + ENTER, given_up, "where" + ENTER, "q" + ENTER)
    assert with_it == talk(*DEBUG, move + ENTER, "where" + ENTER, "q" + ENTER)


@pytest.mark.parametrize("key", [CTRL_D, *(f"{word}{ENTER}" for word in ("exit", "quit()", "q", "%exit"))])
def test_leaving_the_debugger_leaves_nothing_else(talk: Talk, key: str) -> None:
    shown = talk("x = 20" + ENTER, *DEBUG, key, "x + 2" + ENTER)
    assert shown.endswith("left the debugger\n22\n")


def test_help_alone_lists_the_commands(talk: Talk) -> None:
    assert talk("help" + ENTER) == talk("%help" + ENTER) == talk("?" + ENTER)


def test_a_blank_entry_says_nothing(talk: Talk) -> None:
    assert talk(ENTER, "   " + ENTER) == ""


@pytest.mark.parametrize("word", ["exit", "quit()", "%exit"])
def test_words_that_leave(talk: Talk, word: str) -> None:
    assert talk(word + ENTER, "1" + ENTER) == ""


def test_colours_only_where_they_are_wanted(talk: Talk) -> None:
    assert "\x1b[" in talk("nope" + ENTER, colour=True)
    assert "\x1b[" not in talk("nope" + ENTER)


def test_a_narrow_terminal(talk: Talk) -> None:
    shown = talk("%help" + ENTER, colour=True, width=40)
    assert shown.count("\n") > 20


def test_history_is_kept_for_the_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platformdirs, "user_state_path", lambda *_, **__: tmp_path)
    history = saved_history()
    assert isinstance(history, FileHistory)
    assert stat.S_IMODE((tmp_path / "history").stat().st_mode) == 0o600


def test_without_a_place_for_history_the_shell_starts_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object, **__: object) -> Path:
        raise PermissionError

    monkeypatch.setattr(platformdirs, "user_state_path", nowhere)
    assert isinstance(saved_history(), InMemoryHistory)


def test_a_line_for_the_system(talk: Talk, capfd: pytest.CaptureFixture[str]) -> None:
    assert talk("!echo $((6 * 7))" + ENTER) == ""
    assert capfd.readouterr().out == "42\n"


def test_a_line_for_the_system_stands_among_others(talk: Talk, capfd: pytest.CaptureFixture[str]) -> None:
    assert talk("\x1b[200~1\n!echo here\n2\x1b[201~" + ENTER) == "1\n2\n"
    assert capfd.readouterr().out == "here\n"


def test_pasted_text_loses_its_prompts(talk: Talk) -> None:
    assert talk("\x1b[200~>>> 6 * 7\x1b[201~" + ENTER) == "42\n"


class Announcing(io.StringIO):
    """A stream that calls `act` when an end of what is written is the text waited for."""

    def __init__(self, awaited: str, act: Callable[[], None]) -> None:
        super().__init__()
        self._awaited, self._act = awaited, act

    def write(self, text: str) -> int:
        written = super().write(text)
        if self.getvalue().endswith(self._awaited):
            self._act()
        return written


def test_what_the_editor_made_of_an_entry_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "ed.py"
    editor.write_text(
        "import pathlib, sys\nfile = pathlib.Path(sys.argv[1])\nfile.write_text(file.read_text().replace('6', '8'))"
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    with create_pipe_input() as pipe:
        # Keys that come while the editor is open are typed into it, so leaving waits for the answer.
        stream = Announcing("56\n", lambda: pipe.send_text(CTRL_D))
        shell = Shell(
            Session(), input=pipe, output=DummyOutput(), console=Console(file=stream), history=InMemoryHistory()
        )
        pipe.send_text("6 * 7" + ENTER + "%edit" + ENTER)
        shell.run()
    assert stream.getvalue().endswith("42\n56\n")


def test_the_first_entry_runs_before_the_reader_types() -> None:
    stream = io.StringIO()
    with create_pipe_input() as pipe:
        console = Console(file=stream, width=80)
        shell = Shell(Session(), input=pipe, output=DummyOutput(), console=console, history=InMemoryHistory())
        pipe.send_text("x + 1" + ENTER + CTRL_D)
        shell.run("x = 41")
    assert stream.getvalue() == "42\n"


def test_keys_of_vi() -> None:
    stream = io.StringIO()
    with create_pipe_input() as pipe:
        shell = Shell(
            Session(), input=pipe, output=DummyOutput(), console=Console(file=stream), history=InMemoryHistory(),
            settings=Settings("vi"),
        )  # fmt: skip
        pipe.send_text("1\x1b")
        pipe.send_text("A2" + ENTER + CTRL_D)
        shell.run()
    assert stream.getvalue().endswith("12\n")
