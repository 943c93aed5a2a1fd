"""The command line: `main()` runs the command `tsrepl`."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType

__all__ = ["main"]
FAILED, INTERRUPTED = 1, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of these arguments; returns the exit status.  Ctrl-C ends it also while its modules load."""
    with _noted_interrupts() as interrupts:
        try:
            status: int = import_module("tsrepl.cli.command").main(argv)
        except KeyboardInterrupt:
            return INTERRUPTED
        except Exception:
            if not interrupts:
                raise
            return INTERRUPTED
    return INTERRUPTED if interrupts and status == FAILED else status


@contextmanager
def _noted_interrupts() -> Iterator[list[int]]:
    """Ctrl-C interrupts as ever, and is noted: libraries that load make errors of it, which do not say so."""
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        signal.default_int_handler(number, frame)

    if threading.current_thread() is not threading.main_thread() or not _raises_interrupts():
        yield came
        return
    try:
        signal.signal(signal.SIGINT, interrupt)
        yield came
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _raises_interrupts() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler
