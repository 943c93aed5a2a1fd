"""A second interrupt, at every moment of the answer to the first: the cell says once that it was interrupted."""

from __future__ import annotations

import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import pytest
from IPython.core.interactiveshell import InteractiveShell

from .conftest import Run

COUNT: Final = (
    "def count(n: int) -> int:\n    total = 0\n    for i in range(n):\n"
    "        total = (total * 3 + i) % 1000003\n    return total"
)
CELLS: Final = {
    "Python": "count(10**12)", "TorchScript": "%%torchscript\ncount(1000000000000)",
    "a magic": "%tsjit_time count(1000000000000)",
}  # fmt: skip
MOMENTS: Final = 6
"""So many moments of each answer are tried, evenly spread."""


@contextmanager
def interrupted_again(after: int) -> Iterator[list[int]]:
    """The main thread is interrupted in a moment, and again after so many events of its answer; gives their number."""
    main, events = threading.main_thread().ident, [0]
    assert main is not None

    def count(frame: FrameType, event: str, function: Any) -> None:
        if event == "call" and frame.f_code.co_name != "__del__":  # where nobody is, for good or bad
            events[0] += 1
            if events[0] == after:
                signal.raise_signal(signal.SIGINT)

    def note(frame: FrameType, event: str, function: Any) -> None:
        if event == "call" and frame.f_code.co_name in ("error_replies", "show"):
            sys.setprofile(count)

    timer = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT))
    sys.setprofile(note)
    timer.start()
    try:
        yield events
    finally:
        sys.setprofile(None)
        timer.join()


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_the_answer_to_an_interrupt_is_whole_whatever_interrupts_it(
    shell: InteractiveShell, script: Run, capsys: pytest.CaptureFixture[str], cell: str
) -> None:
    script(COUNT)
    for _ in range(3):
        script("count(100000)")

    def said(after: int) -> tuple[str, int]:
        capsys.readouterr()
        with interrupted_again(after) as events:
            shell.run_cell(cell, store_history=True)
        return re.sub(r"\x1b\[[\d;]*m", "", "".join(capsys.readouterr())), events[0]

    _, count = said(0)
    assert count > 100
    for after in (1, 3, 8, *(count * i // MOMENTS for i in range(1, MOMENTS))):
        found = said(after)[0]
        assert found.startswith("Interrupted: the program was stopped") and "count(" in found, f"{after}: {found}"
        assert not [each for each in ("Traceback", "KeyboardInterrupt", "engine/", "tsrepl/") if each in found], found


def test_a_cell_that_goes_on_after_an_interrupt_can_be_interrupted_again(shell: InteractiveShell, script: Run) -> None:
    script(COUNT)
    main = threading.main_thread().ident
    assert main is not None
    timers = [threading.Timer(each, signal.pthread_kill, (main, signal.SIGINT)) for each in (0.3, 0.9)]
    for each in timers:
        each.start()
    start = time.monotonic()
    result = shell.run_cell("try:\n    count(10**12)\nexcept KeyboardInterrupt:\n    kept = 1\ncount(10**12)")
    assert isinstance(result.error_in_exec, KeyboardInterrupt) and shell.user_ns["kept"] == 1
    assert time.monotonic() - start > 0.8
    for each in timers:
        each.join()


def test_a_handler_of_the_user_stays(shell: InteractiveShell) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    shell.run_cell("import signal\nseen = []\nbefore = signal.signal(signal.SIGINT, lambda *_: seen.append(1))")
    shell.run_cell("signal.raise_signal(signal.SIGINT)")
    assert shell.user_ns["seen"] == [1]
    signal.signal(signal.SIGINT, signal.default_int_handler)
