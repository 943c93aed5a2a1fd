"""What Enter, Tab and Backspace do, asked of a prompt without a terminal."""

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from tsrepl.shell.keys import ends_entry, key_bindings

ENTER, TAB, BACKSPACE, ESCAPE, LEFT = "\r", "\t", "\x7f", "\x1b", "\x1b[D"


def typed(keys: str) -> str:
    """What the prompt gives back for these keys."""
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        session: PromptSession[str] = PromptSession(
            multiline=True, key_bindings=key_bindings(), input=pipe, output=DummyOutput()
        )
        return session.prompt()


def test_enter_runs_a_complete_line() -> None:
    assert typed("x = 1" + ENTER) == "x = 1"


def test_enter_opens_a_block_and_indents() -> None:
    keys = "def f(x):" + ENTER + "return x" + ENTER + ENTER
    assert typed(keys) == "def f(x):\n    return x\n"


def test_a_blank_line_ends_the_block_even_when_indented() -> None:
    keys = "for i in range(3):" + ENTER + "print(i)" + ENTER + ENTER
    assert typed(keys) == "for i in range(3):\n    print(i)\n    "


def test_backspace_leaves_a_block() -> None:
    keys = "if a:" + ENTER + "b = 1" + ENTER + BACKSPACE + "else:" + ENTER + "b = 2" + ENTER + ENTER
    assert typed(keys).rstrip() == "if a:\n    b = 1\nelse:\n    b = 2"


def test_an_open_bracket_goes_on() -> None:
    assert typed("f(1," + ENTER + "2)" + ENTER) == "f(1,\n2)"


def test_tab_indents_at_the_start_of_a_line() -> None:
    assert typed("(" + ENTER + TAB + "1)" + ENTER) == "(\n    1)"


def test_enter_in_the_middle_of_a_line_runs_it() -> None:
    assert typed("x = 1" + LEFT + LEFT + ENTER) == "x = 1"


def test_escape_enter_starts_a_line_anyway() -> None:
    assert typed("x = 1" + ESCAPE + ENTER + "y = 2" + ENTER) == "x = 1\ny = 2"


@pytest.mark.parametrize("text", ["", "  ", "x", "%help", "def f():\n    pass\n    "])
def test_what_ends_an_entry(text: str) -> None:
    assert ends_entry(Document(text))


@pytest.mark.parametrize("text", ["def f():", "(", "def f():\n    pass"])
def test_what_does_not(text: str) -> None:
    assert not ends_entry(Document(text))


def test_enter_amid_several_lines_makes_room() -> None:
    assert not ends_entry(Document("def f():\n    pass\n", cursor_position=8))
