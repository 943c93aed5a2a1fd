"""A real terminal for tests: tmux runs a command in a window of a stated size, keys go in, screens come out.

In: a command, keys.  Out: the text of the screen, plain or with its colours.  Nothing sleeps for a fixed time: after
each key the driver waits until the screen is as it is wanted, however slow the machine is.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

PROGRAM: Final = shutil.which("tmux")
PROMPTS: Final = ("ts>", "(debug)", "...")
PATIENCE: Final = 90.0
"""Seconds after which a screen that does not come is a failure."""
_PAUSE: Final = 0.03
_SET_BY_TESTS: Final = frozenset("NO_COLOR COLORTERM COLORFGBG CI TMUX PAGER LESS EDITOR VISUAL LINES COLUMNS".split())
_COLOUR: Final = re.compile(r"\x1b\[([0-9;]*)m")


class Terminal:
    """One command in one window.  `folder` is where it starts; `environment` is added to that of the tests."""

    def __init__(
        self, command: Sequence[str], folder: Path, columns: int = 100, rows: int = 40,
        environment: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.folder = folder
        self._server = f"tsrepl-tests-{uuid4().hex[:12]}"
        kept = {name: value for name, value in os.environ.items() if name not in _SET_BY_TESTS}
        self._environment = {**kept, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **(environment or {})}
        self._row = -1
        # The window outlives the command, so that a test can read what it printed last.
        self._tmux("-f", os.devnull, "start-server", ";", "set", "-g", "default-terminal", "screen-256color", ";",
                   "set", "-g", "history-limit", "20000", ";", "set", "-g", "remain-on-exit", "on", ";",
                   "set", "-g", "escape-time", "0", ";",
                   "new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(folder),
                   shlex.join(command))  # fmt: skip

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server")

    def _tmux(self, *words: str) -> str:
        assert PROGRAM is not None
        done = subprocess.run(
            [PROGRAM, "-L", self._server, *words], env=self._environment, capture_output=True, text=True, check=False
        )
        return done.stdout

    # -- keys

    def type(self, text: str) -> None:
        """Type the text, and nothing after it."""
        self._tmux("send-keys", "-l", "--", text)

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names: Enter, Tab, Up, C-c, M-Enter."""
        self._tmux("send-keys", *keys)

    def paste(self, text: str) -> None:
        """Paste the text as a terminal does that marks no pastes: as if it were typed at once."""
        self._tmux("set-buffer", "--", text, ";", "paste-buffer", "-r")

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size."""
        self._tmux("set", "-g", "window-size", "manual", ";", "resize-window", "-x", str(columns), "-y", str(rows))

    def enter(self, *lines: str) -> str:
        """Type lines, each followed by Enter, and wait for a prompt after each; the screen then."""
        for line in lines:
            self._row = self._cursor()[1]
            self.type(line)
            self.press("Enter")
            self.wait_for_prompt()
        return self.screen()

    # -- screens

    def screen(self) -> str:
        """The text on the screen, without blanks at the ends of lines and without empty lines at the end."""
        return _trimmed(self._tmux("capture-pane", "-p"))

    def everything(self) -> str:
        """The text on the screen and above it, long lines as one."""
        return _trimmed(self._tmux("capture-pane", "-p", "-J", "-S", "-"))

    def coloured(self) -> str:
        """The text on the screen, with colours and the like in braces: `{31}red{}`."""
        return _trimmed(_COLOUR.sub(_in_braces, self._tmux("capture-pane", "-p", "-e")))

    def wait_for(self, wanted: str | Callable[[str], bool]) -> str:
        """The screen, once it has a text, or is as the function wants it.  Raises AssertionError if that takes long."""
        is_wanted = wanted if callable(wanted) else lambda screen: wanted in screen
        return self._wait(lambda: is_wanted(self.screen()), repr(wanted) if isinstance(wanted, str) else "the screen")

    def wait_for_prompt(self) -> str:
        """The screen, once the cursor stands behind a prompt farther down than when the last line was typed."""
        return self._wait(self._is_at_prompt, "a prompt")

    def wait_for_end(self) -> str:
        """The screen, once the command has ended."""
        return self._wait(lambda: self._asked("#{pane_dead}") == "1", "the end")

    def _wait(self, holds: Callable[[], bool], wanted: str) -> str:
        """The screen, once the condition holds and drawing is over."""
        until = time.monotonic() + PATIENCE
        before = None
        while True:
            screen = self.screen()
            if holds() and screen == before:
                return screen
            before = screen
            assert time.monotonic() < until, f"{wanted} does not come; the screen:\n{screen}"
            time.sleep(_PAUSE)

    def _is_at_prompt(self) -> bool:
        column, row, line = self._cursor()
        return row > self._row and line.rstrip() in PROMPTS and column > len(line.rstrip())

    def _cursor(self) -> tuple[int, int, str]:
        """The cursor's column, its row counted from the first line ever written, and the text of its line."""
        column, y, history = map(int, self._asked("#{cursor_x} #{cursor_y} #{history_size}").split())
        lines = self._tmux("capture-pane", "-p").split("\n")
        return column, history + y, lines[y] if y < len(lines) else ""

    def _asked(self, form: str) -> str:
        return self._tmux("display-message", "-p", form).strip()


def _in_braces(match: re.Match[str]) -> str:
    codes = match[1].removeprefix("0;")
    return "{}" if codes in ("", "0", "39", "49") else f"{{{codes}}}"


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n")
