"""The magics: `%%torchscript` and `%tsjit_…`.

In: cells and lines.  Out: displayed replies, and functions in the notebook's namespace.  There is no logic here: a
magic carries text to the session and its replies to the page, and every command of the session's table is a magic.
"""

from __future__ import annotations

from typing import Any, Final

from IPython.core.display_functions import display
from IPython.core.interactiveshell import InteractiveShell
from rich.console import Console

from tsrepl.magics.bridge import give_to_python, identities, last_value, take_from_python
from tsrepl.magics.display import CellError, PageBar, Shown
from tsrepl.magics.words import PREFIX, as_magics
from tsrepl.render.progress import bars_made_by, progress_bars
from tsrepl.session.commands import COMMANDS, Command
from tsrepl.session.entries import COMMAND
from tsrepl.session.replies import ErrorReply, Reply
from tsrepl.session.session import Session
from tsrepl.session.workspace import LAST

CELL: Final = "torchscript"


class TorchScriptMagics:
    """One session, shared by all cells of a notebook."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.session = Session()

    def register(self) -> None:
        """Make the magics known to IPython."""
        register = self.shell.magics_manager.register_function
        register(self.cell, "cell", CELL)
        for command in COMMANDS:
            register(self._line_magic(command), "line", PREFIX + command.name)

    def cell(self, line: str, cell: str) -> None:
        """Compile and run the cell as TorchScript: `def`s become functions that Python cells can call.

        Words after `%%torchscript` are commands to run on the last function of the cell: `%%torchscript graph passes`.
        """
        # IPython's own count may be that of the next cell already; what it keeps of the cells is not.
        history = self.shell.history_manager
        number = self.shell.execution_count if history is None else max(1, len(history.input_hist_parsed) - 1)
        self._run(cell, f"<cell {number}>")
        functions = list(self.session.functions())
        for name in line.split():
            self._run(f"{COMMAND}{name} {functions[-1] if functions else ''}")

    def _line_magic(self, command: Command) -> Any:
        def magic(line: str) -> None:
            self._run(f"{COMMAND}{command.name} {line}")

        magic.__doc__ = f"%{PREFIX}{command.usage[1:]}: {command.summary}\n\n{command.details}"
        return magic

    def _run(self, text: str, filename: str = "") -> None:
        namespace = self.shell.user_ns
        take_from_python(self.session, text, namespace)
        before = identities(self.session)
        replies: list[Reply] = []
        errors: list[ErrorReply] = []
        console = Console()
        with bars_made_by(PageBar) if console.is_jupyter else progress_bars(console):
            for reply in map(as_magics, self.session.run_text(text, filename)):
                if isinstance(reply, ErrorReply):
                    errors.append(reply)
                    continue
                replies.append(reply)
                display(Shown(reply))  # type: ignore[no-untyped-call]  # IPython has no types for it
        give_to_python(self.session, replies, before, namespace)
        last = last_value(self.session, before)
        if last is not None:
            # IPython keeps the last value in two places, and goes on doing so while both hold the same.
            self.shell.displayhook._ = namespace[LAST] = last
        if errors:
            raise CellError(errors)
