"""Terminals for tests: a shell with settings of its own, and screens that are compared with files."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.terminal import tmux

SCREENS: Final = Path(__file__).parent / "screens"
PROGRAMS: Final = Path(__file__).parent / "programs"
_MASKED: Final = (
    (re.compile(r"tsrepl \d[\w.]*: (.*) \(Python [\w.+]+\)"), r"tsrepl VERSION: \1 (Python VERSION)"),
    (re.compile(r"\d+(\.\d+)? (ns|µs|ms|s)\b"), "TIME"),
)
Open = Callable[..., tmux.Terminal]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if tmux.PROGRAM is None:
        for item in items:
            if "terminal" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.skip(reason="tmux is not installed"))


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Open]:
    """Opens shells: `terminal(100)` has 100 columns; more words are settings (a line of the file), arguments and
    variables of the environment.  `around` is a command that runs the shell."""
    with ExitStack() as open_ones:

        def open_shell(
            columns: int, *arguments: str, rows: int = 40, settings: str = "", paged: bool = False,
            around: tuple[str, ...] = (), **environment: str,
        ) -> tmux.Terminal:  # fmt: skip
            folder = tmp_path / "here"
            shutil.copytree(PROGRAMS, folder, dirs_exist_ok=True)
            configured = tmp_path / "config" / "tsrepl"
            configured.mkdir(parents=True, exist_ok=True)
            (configured / "config.toml").write_text(f"pager = {str(paged).lower()}\n{settings}")
            homes = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path / "state")}
            command = (str(Path(sys.executable).parent / "tsrepl"), *arguments)
            shell = tmux.Terminal((*around, *command), folder, columns, rows, {**homes, **environment})
            open_ones.enter_context(shell)
            return shell

        yield open_shell


@pytest.fixture
def same_screen(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a screen with the file of that name; `--update-cases` writes the file."""

    def compare(name: str, screen: str) -> None:
        path = SCREENS / f"{name}.txt"
        found = masked(screen) + "\n"
        if request.config.getoption("--update-cases"):
            path.write_text(found, encoding="utf-8")
        wanted = path.read_text(encoding="utf-8") if path.exists() else "nothing is expected; run with --update-cases\n"
        assert found == wanted

    return compare


def masked(screen: str) -> str:
    """The text without what differs between runs: times and versions."""
    for pattern, instead in _MASKED:
        screen = pattern.sub(instead, screen)
    return screen
