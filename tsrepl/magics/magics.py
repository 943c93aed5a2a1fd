"""The magics: `%%torchscript` and `%tsjit_…`.

In: cells and lines.  Out: displayed replies, and names in the notebook's namespace.  There is no logic here: a magic
carries text to the session and its replies to the page, and every command of the session's table is a magic.
"""

from __future__ import annotations

import dis
import inspect
import re
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from rich.console import Console

from engine.executor.plans.source_places import CELLS, Cells
from tsrepl.magics.completion import Completion
from tsrepl.magics.display import Bundle, CellError, PageBar, bundle, show
from tsrepl.magics.formats import leave_formats, set_formats
from tsrepl.magics.inspection import Inspection
from tsrepl.magics.interrupts import CellInterrupts
from tsrepl.magics.python_errors import catch_errors, cell_of, error_replies_of, leave_errors, with_cells
from tsrepl.magics.words import CELL, PREFIX, REPORT, as_magics
from tsrepl.render.progress import bars_made_by, progress_bars
from tsrepl.render.report_page import write_report
from tsrepl.session.bridge import Bridge
from tsrepl.session.commands import COMMANDS, Command
from tsrepl.session.entries import COMMAND, split_entries
from tsrepl.session.failures import UsageError
from tsrepl.session.files import words_of
from tsrepl.session.passing import gathered
from tsrepl.session.replies import DefinitionReply, ErrorReply, Reply, TextReply
from tsrepl.session.session import Session
from tsrepl.session.workspace import LAST

_MAGIC: Final = re.compile(rf"^(\s*){COMMAND}{PREFIX}", re.MULTILINE)
"""The beginning of a magic's line within a cell."""
_COMMENT: Final = re.compile(r"""^((?:[^'"#]|'[^']*'|"[^"]*")*?)\s+#.*$""")
"""A line with a comment of Python's behind it, which no quotation marks are around."""


class ShownReply:
    """The reply that a magic shows; wherever it is a cell's result it shows itself, and its parts can be read."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reply, name)

    def _ipython_display_(self) -> None:
        show(self.reply)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[Bundle, Bundle]:
        return bundle(self.reply)

    def __repr__(self) -> str:
        return f"<{type(self.reply).__name__}>"


class TorchScriptMagics:
    """One session, shared by all cells of a notebook."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.session = Session()
        self._is_current = False
        self.interrupts = CellInterrupts(shell)
        self.bridge = Bridge(self.session.workspace, shell.user_ns, shell.user_ns_hidden)
        self.session.workspace.notebook = self.bridge
        self.completion = Completion(self.session, self.bridge)
        self.inspection = Inspection(self.session, shell)

    def register(self) -> None:
        """Make the magics known to IPython."""
        register = self.shell.magics_manager.register_function
        register(_cell_magic(self), "cell", CELL)
        for command in COMMANDS:
            register(self._line_magic(command), "line", PREFIX + command.name)
        register(self.report, "line", PREFIX + REPORT)
        self.shell.events.register("pre_run_cell", self.before_cell)
        self.shell.events.register("post_run_cell", self.after_cell)
        self.shell.Completer.custom_matchers.append(self.completion.matches)
        self.inspection.register()
        set_formats(self.shell)
        catch_errors(self.shell, self.session.workspace)
        CELLS.of = partial(cell_of, self.shell)

    def unregister(self) -> None:
        """Take back what `register` did; the session stays."""
        magics = self.shell.magics_manager.magics
        magics["cell"].pop(CELL, None)
        for name in (*(command.name for command in COMMANDS), REPORT):
            magics["line"].pop(PREFIX + name, None)
        self.shell.events.unregister("pre_run_cell", self.before_cell)
        self.shell.events.unregister("post_run_cell", self.after_cell)
        self.shell.Completer.custom_matchers.remove(self.completion.matches)
        self.inspection.unregister()
        leave_formats(self.shell)
        leave_errors(self.shell)
        self.interrupts.end()
        CELLS.of = Cells().of

    def run_cell(self, options: Any, cell: str) -> None:
        """Run a cell, then what its first line asks for."""
        # IPython's own count may be that of the next cell already; what it keeps of the cells is not.
        history = self.shell.history_manager
        number = self.shell.execution_count if history is None else max(1, len(history.input_hist_parsed) - 1)
        text = "\n" + _MAGIC.sub(rf"\1{COMMAND}", cell)  # the first line is the magic's
        replies = self._run(text, f"<cell {number}>")
        known = {reply.name for reply in replies if isinstance(reply, DefinitionReply)}
        written = [name for entry in split_entries(cell) for name in entry.defined_names()]
        defined = [name for name in written if name in known]
        if options.name:
            self.shell.user_ns[options.name] = SimpleNamespace(**{name: self.shell.user_ns[name] for name in defined})
        if options.run:
            self._run(_without_quotes(options.run), f"<cell {number}>")
        for name in [*options.views, *filter(None, re.split(r"[,\s]+", options.show))]:
            if not defined:
                raise CellError(
                    error_replies_of(self.shell, UsageError(f"the cell defines no function for {name} to show"))
                )
            self._run(f"{COMMAND}{name} {defined[-1]}")
        self._is_current = True

    def report(self, line: str) -> None:
        """Write a page that stands alone: `%tsjit_report f out.html`, or `%tsjit_report f(x) out.html`.

        It has source, graph, passes that ran, guards and recompilations, kernels and profile, linked by line.
        """
        target, _, path = line.strip().rpartition(" ")
        self.bridge.take(f"{COMMAND}{REPORT} {target}")
        try:
            if not target:
                raise UsageError(f"{COMMAND}{PREFIX}{REPORT} wants a function and a path", hints=(_WRITE_REPORT,))
            (path,) = words_of(path)
            size = write_report(self.session.workspace, target, path, as_magics)
        except Exception as error:
            raise CellError(error_replies_of(self.shell, error)) from None
        show(TextReply(f"wrote {path} ({size:,} bytes)", "done"))

    def _line_magic(self, command: Command) -> Any:
        def magic(line: str) -> ShownReply | None:
            text = _COMMENT.sub(r"\1", line).rstrip()
            return self._answer(command, text.removesuffix(";"), is_quiet=text.endswith(";"))

        examples = "\n".join(f"    {COMMAND}{PREFIX}{each[1:]}" for each in command.examples if each[0] == COMMAND)
        magic.__doc__ = f"{COMMAND}{PREFIX}{command.usage[1:]}: {command.summary}\n\n{command.details}\n\n{examples}"
        return magic

    def _answer(self, command: Command, line: str, is_quiet: bool = False) -> ShownReply | None:
        """The reply that a command shows; None for one whose value has the name `_`, and for remarks as a result.

        A quiet one shows nothing of its result, as cells that end in a semicolon.
        """
        last = self.session.workspace.variables.get(LAST)
        is_result = bool(command.argument) and _is_result(self.shell)
        replies = self._run(f"{COMMAND}{command.name} {line}", keeps_last=is_result or is_quiet)
        if is_quiet:
            return None
        found = [reply for reply in replies if not isinstance(reply, TextReply)] if command.argument else []
        if self.session.workspace.variables.get(LAST) is not last:
            found = []
        if is_result and replies and replies[-1:] != found[-1:]:
            show(replies[-1])
            return None
        return ShownReply(found[-1]) if found else None

    def _run(self, text: str, filename: str = "", *, keeps_last: bool = False) -> list[Reply]:
        """Run the text, showing its replies, or all but the last, which shows itself then.  Raises CellError."""
        with ExitStack() as answering:
            return self._replies(text, filename, keeps_last, answering)

    def _replies(self, text: str, filename: str, keeps_last: bool, answering: ExitStack) -> list[Reply]:
        before = self.shell.user_ns.get(LAST)
        self.bridge.take(text)
        replies: list[Reply] = []
        errors: list[ErrorReply] = []
        console = Console()
        try:
            with bars_made_by(PageBar) if console.is_jupyter else progress_bars(lambda: console):
                for found in gathered(self.session.run_text(text, filename)):
                    if isinstance(found, ErrorReply) and not errors:
                        answering.enter_context(self.interrupts.answering())
                    reply = with_cells(self.shell, found)
                    if isinstance(reply, ErrorReply):
                        errors.append(reply)
                    else:
                        if keeps_last and replies:
                            show(replies[-1])
                        replies.append(reply)
                        if not keeps_last:
                            show(reply)
        finally:
            self._give(before)
        if errors:
            if keeps_last and replies:
                show(replies[-1])
            raise CellError(errors)
        return replies

    def _give(self, before: Any) -> None:
        """Let Python know what the cell did, and IPython of a last value that is another than before."""
        self.bridge.give()
        last = self.shell.user_ns.get(LAST)
        if last is not before:
            # IPython keeps last values in three places, and goes on doing so while all hold the same.
            hook: Any = self.shell.displayhook
            hook.___, hook.__, hook._ = hook.__, hook._, last
            self.shell.push(  # type: ignore[no-untyped-call]
                {"_": hook._, "__": hook.__, "___": hook.___}, interactive=False
            )

    def before_cell(self, _: Any) -> None:
        """Compile anew what uses code that was changed in place, which IPython's autoreload does before a cell."""
        self.interrupts.begin()
        if self.bridge.is_edited():
            self.bridge.take()
            self.bridge.give()

    def after_cell(self, _: Any) -> None:
        """Let the session know what a cell of Python changed, and Python what is compiled anew for that.

        A cell of TorchScript has done so itself, and lists may be long.
        """
        self.interrupts.end()
        is_current, self._is_current = self._is_current, False
        events = self.shell.events
        events.unregister("pre_run_cell", self.before_cell)
        events.register("pre_run_cell", self.before_cell)  # behind those that came later, as autoreload may
        if is_current:
            return
        before = self.shell.user_ns.get(LAST)
        self.bridge.take()
        self._give(before)


_WRITE_REPORT: Final = f"write {COMMAND}{PREFIX}{REPORT} f out.html"


def _is_result(shell: InteractiveShell) -> bool:
    """True if the value of the call that the cell is at is the cell's result, which IPython shows under `Out`.

    Code that returns it hands it on to who called that: `%time` evaluates what it times.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals is shell.user_global_ns:
            at = frame.f_lasti
            following = next((each for each in dis.get_instructions(frame.f_code) if each.offset > at), None)
            if following is None or following.opname != "RETURN_VALUE":
                return following is not None and (following.opname, following.arg) in _PRINTS
        frame = frame.f_back
    return False


_PRINTS: Final = (("PRINT_EXPR", None), ("CALL_INTRINSIC_1", 1))
"""The instruction that shows a value, up to Python 3.11 and since then."""


def _cell_magic(magics: TorchScriptMagics) -> Any:
    """The cell magic, whose help lists its options."""

    def torchscript(line: str, cell: str) -> None:
        """Compile and run the cell as TorchScript; what it defines and binds is known to Python."""
        magics.run_cell(parse_argstring(torchscript, line), cell)  # type: ignore[no-untyped-call]

    for words, about in reversed(_OPTIONS.items()):
        many: Any = {"nargs": "*"} if words == "views" else {"default": ""}
        torchscript = argument(words, help=about, **many)(torchscript)  # type: ignore[no-untyped-call]
    return magic_arguments(CELL)(torchscript)  # type: ignore[no-untyped-call]


_OPTIONS: Final = {
    "views": "commands to run on the last function of this cell: graph, code, passes",
    "--show": "the same, with commas between them",
    "--run": "an entry to run after the cell, in quotation marks",
    "--name": "a name for an object that has what the cell defines as attributes",
}
"""The words of the cell magic's first line, and what they mean."""


def _without_quotes(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
