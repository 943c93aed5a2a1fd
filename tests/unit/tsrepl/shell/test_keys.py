"""What Enter, Tab and Backspace do, asked of a prompt without a terminal."""

from collections.abc import Sequence
from threading import Thread
from time import sleep
from typing import Final

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from tsrepl.session.entries import without_prompts
from tsrepl.shell import keys
from tsrepl.shell.keys import ends_entry, key_bindings

ENTER, TAB, BACKSPACE, ESCAPE, LEFT = "\r", "\t", "\x7f", "\x1b", "\x1b[D"
PAUSE: Final = 0.02
"""Seconds between pieces of text that do not come together."""


def typed(*pieces: str) -> str:
    """What the prompt gives back for these keys; each piece comes a while after the one before."""
    with create_pipe_input() as pipe:
        session: PromptSession[str] = PromptSession(
            multiline=True, key_bindings=key_bindings(), input=pipe, output=DummyOutput()
        )
        pipe.send_text(pieces[0])
        rest = Thread(target=send_slowly, args=(pipe, pieces[1:]))
        rest.start()
        try:
            return session.prompt()
        finally:
            rest.join()


def send_slowly(pipe: PipeInput, pieces: Sequence[str]) -> None:
    for piece in pieces:
        sleep(PAUSE)
        pipe.send_text(piece)


PASTED = (
    "def f(x):\n    y = x\n    return y\n",
    "def f(x):\n  if x:\n    y = 1\n  else:\n    y = 2\n  return y\n",
    "def f(x):\n\tif x:\n\t\treturn 1\n\treturn 2\n".replace("\t", "    "),
    "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n",
    "def f(x):\n    a = 1\n\n\n    return a\n",
    "x = [\n    1,\n    2,\n]",
    "if a:\n    b = 1\nelif c:\n    b = 2\nelse:\n    b = 3\n",
    "for i in x:\n    for j in x:\n        print(j)\n    print(i)\nprint(x)",
    "@torch.jit.script\ndef f(x):\n    return x\n",
    ">>> def f(x):\n...     if x:\n...         return 1\n...     return 2\n...",
    "ts> for i in x:\n...     print(i)\n... ",
)


@pytest.mark.parametrize("text", PASTED)
@pytest.mark.parametrize("newline", ["\r", "\n"])
def test_what_is_pasted_without_a_mark_keeps_its_indentation(text: str, newline: str) -> None:
    assert typed(text.replace("\n", newline) + ENTER).rstrip() == text.rstrip()


@pytest.mark.parametrize("text", PASTED)
def test_what_is_pasted_with_a_mark_keeps_its_indentation(text: str) -> None:
    assert typed(f"\x1b[200~{text}\x1b[201~" + ENTER).rstrip() == without_prompts(text).rstrip()


@pytest.mark.parametrize("text", PASTED)
def test_lines_with_blanks_of_their_own_keep_these_however_slowly_they_come(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "_PASTING", PAUSE * 5)
    lines = [line + ENTER for line in text.split("\n")]
    assert typed(*lines, *[ENTER] * (not text.endswith("\n"))).rstrip() == text.rstrip()


def test_a_blank_stands_for_the_indentation_that_is_offered() -> None:
    assert typed("def f(x):" + ENTER, " ", "return x" + ENTER + ENTER) == "def f(x):\n return x\n"
    assert typed("def f(x):" + ENTER, "if x:" + ENTER, "  ", "    return x" + ENTER, ENTER) == (
        "def f(x):\n    if x:\n      return x\n"
    )
    assert typed(
        "def f(x):" + ENTER, TAB, "if x:" + ENTER, TAB, TAB, "y = x" + ENTER, TAB, "return x" + ENTER, ENTER
    ) == ("def f(x):\n    if x:\n        y = x\n    return x\n")
    assert typed("def f(x):" + ENTER, BACKSPACE, " return x" + ENTER, ENTER) == "def f(x):\n return x\n"


@pytest.mark.parametrize("accept", [ENTER, "\n", TAB, "\x1b[C", "\x05", "\x01", "\x1b[D", "\x1b[F", "\x1b[H"])
def test_what_a_search_finds_is_taken(accept: str) -> None:
    history = InMemoryHistory(["attention(x)", "other(y)"])
    with create_pipe_input() as pipe:
        session: PromptSession[str] = PromptSession(
            multiline=True, key_bindings=key_bindings(), input=pipe, output=DummyOutput(), history=history
        )
        pipe.send_text("\x12atten" + accept + ENTER)
        assert session.prompt() == "attention(x)"


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
