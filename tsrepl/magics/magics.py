"""The magics: `%%torchscript` and `%tsjit_…`.

In: cells and lines.  Out: displayed replies, and functions in the notebook's namespace.  There is no logic here: a
magic carries text to the session and its replies to the page, and every command of the session's table is a magic.
"""

from __future__ import annotations

from typing import Any, Final

from IPython.core.display_functions import display
from IPython.core.interactiveshell import InteractiveShell
from rich.console import Console

from tsrepl.magics.bridge import Bridge
from tsrepl.magics.display import CellError, PageBar, Shown
from tsrepl.magics.words import PREFIX, as_magics
from tsrepl.render.progress import bars_made_by, progress_bars
from tsrepl.session.commands import COMMANDS, Command
from tsrepl.session.entries import COMMAND
from tsrepl.session.replies import ErrorReply
from tsrepl.session.session import Session
from tsrepl.session.workspace import LAST

CELL: Final = "torchscript"


class TorchScriptMagics:
    """One session, shared by all cells of a notebook."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.session = Session()
        self.bridge = Bridge(self.session, shell.user_ns, shell.user_ns_hidden)

    def register(self) -> None:
        """Make the magics known to IPython."""
        register = self.shell.magics_manager.register_function
        register(self.cell, "cell", CELL)
        for command in COMMANDS:
            register(self._line_magic(command), "line", PREFIX + command.name)
        self.shell.events.register("post_run_cell", self.after_cell)

    def unregister(self) -> None:
        """Take back what `register` did; the session stays."""
        magics = self.shell.magics_manager.magics
        magics["cell"].pop(CELL, None)
        for command in COMMANDS:
            magics["line"].pop(PREFIX + command.name, None)
        self.shell.events.unregister("post_run_cell", self.after_cell)

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
        self.bridge.take(text)
        errors: list[ErrorReply] = []
        console = Console()
        try:
            with bars_made_by(PageBar) if console.is_jupyter else progress_bars(console):
                for reply in map(as_magics, self.session.run_text(text, filename)):
                    if isinstance(reply, ErrorReply):
                        errors.append(reply)
                    else:
                        display(Shown(reply))  # type: ignore[no-untyped-call]  # IPython has no types for it
        finally:
            self._give()
        if errors:
            raise CellError(errors)

    def _give(self) -> None:
        """Let Python know what the cell did, and IPython of a new last value."""
        before = self.shell.user_ns.get(LAST)
        self.bridge.give()
        last = self.shell.user_ns.get(LAST)
        if last is not before:
            # IPython keeps last values in three places, and goes on doing so while all hold the same.
            hook: Any = self.shell.displayhook
            hook.___, hook.__, hook._ = hook.__, hook._, last
            self.shell.push(  # type: ignore[no-untyped-call]
                {"_": hook._, "__": hook.__, "___": hook.___}, interactive=False
            )

    def after_cell(self, _: Any) -> None:
        """Let the session know what a cell of Python changed, and Python what is compiled anew for that."""
        self.bridge.take()
        self._give()
