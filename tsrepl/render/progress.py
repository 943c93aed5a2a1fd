"""Bars for long loads and saves.

In: the engine's events.  Out: a bar on a terminal, or on what else shows one, from half a second on, gone at the end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from engine.lang.progress import Progress, listening

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE: Final = 0.5
"""Seconds without a bar."""


class Bar(Protocol):
    """A bar that is shown."""

    def update(self, event: Progress) -> None: ...

    def close(self) -> None:
        """Take it away."""


MakeBar = Callable[[str, Progress], Bar | None]
"""(what is done, how far it is) -> a bar, where one can be shown."""


@contextmanager
def progress_bars(console: Callable[[], Console]) -> Iterator[None]:
    """Show bars for what is done in here; the console is made for the first.  On what is no terminal, none."""

    def make(title: str, event: Progress) -> Bar | None:
        shown = console()
        return _TerminalBar(shown, title, event) if shown.is_terminal else None

    with bars_made_by(make):
        yield


@contextmanager
def bars_made_by(make: MakeBar) -> Iterator[None]:
    """Show bars of that kind for what is done in here."""
    bars = _Bars(make)
    try:
        with listening(bars.show):
            yield
    finally:
        bars.close()


class _Bars:
    """One bar at a time; it begins when an action has gone on for a while, and ends with it."""

    def __init__(self, make: MakeBar) -> None:
        self._make = make
        self._shown: Bar | None = None
        self._action = ""
        self._since = 0.0

    def show(self, event: Progress) -> None:
        """Take in an event."""
        name = f"{event.action} {os.path.basename(event.of)}".strip()
        if name != self._action:
            self.close()
            self._action, self._since = name, time.monotonic()
        if event.done >= event.total:
            self.close()
        elif self._shown is not None:
            self._shown.update(event)
        elif time.monotonic() - self._since > PATIENCE:
            self._shown = self._make(name, event)

    def close(self) -> None:
        """Take the bar away."""
        if self._shown is not None:
            self._shown.close()
        self._shown, self._action = None, ""


class _TerminalBar:
    """A line of the terminal."""

    def __init__(self, console: Console, title: str, event: Progress) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # most dialogues show no bar

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f} %"),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task(title, total=event.total, completed=event.done)
        self._progress.start()

    def update(self, event: Progress) -> None:
        self._progress.update(self._task, completed=event.done, total=event.total)

    def close(self) -> None:
        self._progress.stop()
