"""The command line: `main()` runs the command `tsrepl`."""

from collections.abc import Sequence
from importlib import import_module

__all__ = ["main"]
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of these arguments; returns the exit status.  Ctrl-C ends it also while its modules load."""
    try:
        status: int = import_module("tsrepl.cli.command").main(argv)
    except KeyboardInterrupt:
        return INTERRUPTED
    return status
