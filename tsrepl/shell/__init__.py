"""The interactive shell: `new_shell()`."""

from tsrepl.shell.app import Shell, new_shell

__all__ = ["Shell", "new_shell"]
