"""Keys before the prompt: the terminal shows none, and is afterwards as it was."""

import os
import pty
import select
import sys
from collections.abc import Iterator

import pytest

from tsrepl.cli.typed_ahead import unseen


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The other end of a terminal that is standard input."""
    keyboard, terminal = pty.openpty()
    with os.fdopen(terminal) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        yield keyboard
    os.close(keyboard)


def shown_of(keyboard: int, text: bytes) -> bytes:
    """What the terminal shows of the text that is typed."""
    os.write(keyboard, text)
    return os.read(keyboard, 99) if select.select([keyboard], [], [], 0.2)[0] else b""


def test_keys_are_kept_and_not_shown(keyboard: int) -> None:
    with unseen():
        assert shown_of(keyboard, b"one\n") == b""
    assert shown_of(keyboard, b"two\n") == b"two\r\n"
    assert [sys.stdin.readline(), sys.stdin.readline()] == ["one\n", "two\n"]


def test_an_error_leaves_the_terminal_as_it_was(keyboard: int) -> None:
    with pytest.raises(KeyboardInterrupt), unseen():
        raise KeyboardInterrupt
    assert shown_of(keyboard, b"two\n") == b"two\r\n"
