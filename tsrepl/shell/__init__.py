"""The interactive shell: `run_shell()`."""

from tsrepl.shell.app import Shell, run_shell

__all__ = ["Shell", "run_shell"]
