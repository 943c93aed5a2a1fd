"""Interrupts of cells: a second one, that comes while the first is answered, has nothing left to stop.

In: the beginning and the end of cells, and signals.  Out: KeyboardInterrupt, unless the cell's program was left for an
earlier interrupt already and what runs is the reply to that, which is then shown whole.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from IPython.core.interactiveshell import InteractiveShell

from engine.lang.locks import callers
from engine.lang.records import dataclass
from tsrepl.session.failures import error_replies

_ANSWERING: Final = frozenset({error_replies.__code__, InteractiveShell.showtraceback.__code__})
"""Functions that make and show replies to errors."""


@dataclass(eq=False, slots=True)
class CellInterrupts:
    """The handler of SIGINT while a cell runs; one that the user has set stays."""

    shell: InteractiveShell
    _has_come: bool = False
    _is_answering: bool = False

    def begin(self) -> None:
        """A cell begins."""
        self._has_come = self._is_answering = False
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self.take)

    def end(self) -> None:
        """The cell has ended."""
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == self.take:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """While the block lasts, a reply to an error is made."""
        self._is_answering = True
        try:
            yield
        finally:
            self._is_answering = False

    def take(self, number: int, frame: FrameType | None) -> Any:
        """Raise KeyboardInterrupt; not while a reply to an error is made, as nothing else is left to be stopped."""
        if self._is_answering or self._has_left(frame):
            return
        self._has_come = True
        signal.default_int_handler(number, frame)

    def _has_left(self, frame: FrameType | None) -> bool:
        """True if it is shown what went wrong with a cell, or none of its code runs since it was interrupted."""
        codes = [each.f_code for each in callers(frame)]
        is_in_cell = any(self.shell.compile.format_code_name(code.co_filename) for code in codes)
        return (self._has_come and not is_in_cell) or not _ANSWERING.isdisjoint(codes)
