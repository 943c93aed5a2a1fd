"""Bars for long loads and saves.

In: the engine's events.  Out: a bar on a terminal, from half a second on, that is gone when the work is done.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from engine.serialize.progress import FileProgress, listening

PATIENCE: Final = 0.5
"""Seconds without a bar."""


@contextmanager
def progress_bars(console: Console) -> Iterator[None]:
    """Show bars for what is done in here; on what is no terminal, none."""
    if not (console.is_terminal or console.is_jupyter):
        yield
        return
    bars = _Bars(console)
    try:
        with listening(bars.show):
            yield
    finally:
        bars.close()


class _Bars:
    """One bar at a time; it begins when an action has gone on for a while, and ends with it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: Progress | None = None
        self._task = TaskID(0)
        self._action = ""
        self._since = 0.0

    def show(self, event: FileProgress) -> None:
        """Take in an event."""
        name = f"{event.action} {os.path.basename(event.path)}".strip()
        if name != self._action:
            self.close()
            self._action, self._since = name, time.monotonic()
        if event.done >= event.total:
            self.close()
        elif self._shown is not None:
            self._shown.update(self._task, completed=event.done, total=event.total)
        elif time.monotonic() - self._since > PATIENCE:
            self._open(event)

    def _open(self, event: FileProgress) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f} %"),
            TimeRemainingColumn(),
        )
        self._shown = Progress(*columns, console=self._console, transient=True)
        self._task = self._shown.add_task(self._action, total=event.total, completed=event.done)
        self._shown.start()

    def close(self) -> None:
        """Take the bar away."""
        if self._shown is not None:
            self._shown.stop()
        self._shown, self._action = None, ""
