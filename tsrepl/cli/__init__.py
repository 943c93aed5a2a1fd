"""The command line: `main()` runs the command `tsrepl`."""

from tsrepl.cli.command import main

__all__ = ["main"]
