"""Errors of compiled functions that Python cells call, shown as errors of TorchScript cells are.

In: an exception that a Python cell raised.  Out: the program's lines with the caret, and the line of the cell that
called it; no frames of the engine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Final

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from engine.executor.calls.call import boundary_of
from engine.executor.interpreter.interrupts import outermost_call
from engine.executor.plans.executor import executor_of
from engine.ir.unit import Function
from engine.lang.errors import ArgumentError, CallFrame, EngineError, did_you_mean
from tsrepl.magics.display import error_lines
from tsrepl.magics.words import CELL, PREFIX, REPORT, as_magics
from tsrepl.session.commands import COMMANDS
from tsrepl.session.entries import COMMAND
from tsrepl.session.failures import call_place, error_replies
from tsrepl.session.python_errors import python_frames, ran_engine, told_by_lines
from tsrepl.session.replies import ErrorReply, Reply
from tsrepl.session.workspace import Workspace

_MISSING: Final = (NameError, ModuleNotFoundError)
_SHOWN: Final = (EngineError, KeyboardInterrupt, AttributeError, UsageError, *_MISSING)
_NO_MAGIC: Final = re.compile(r"(?:Line magic function|Cell magic) `(%%?)(\w*)` not found\.$")
_IMPORTS: Final = {
    "torch": "import engine.torch as torch",
    "nn": "from engine.torch import nn",
    "F": "import engine.torch.nn.functional as F",
    "Tensor": "from engine.torch import Tensor",
}
"""Names that cells of TorchScript know, and the lines by which those of Python do."""


def catch_errors(shell: InteractiveShell, workspace: Workspace) -> None:
    """Let IPython show errors of programs by their own lines, and the session know which call failed."""

    def show(shell: Any, kind: Any, error: BaseException, trace: TracebackType | None, tb_offset: Any = None) -> Any:
        if isinstance(error, EngineError):
            workspace.failed = failed_call(trace) or workspace.failed
        return _show(shell, kind, error, trace)

    shell.set_custom_exc(_SHOWN, show)  # type: ignore[no-untyped-call]


def failed_call(trace: TracebackType | None) -> tuple[Function, list[Any]] | None:
    """The function of a program that the user's code had called when it stopped, and its arguments."""
    call = outermost_call(trace)
    if call is None or call.is_plain:
        return None if call is None else (call.function, [*call.args])
    try:
        return call.function, boundary_of(executor_of(call.function)).inputs(call.args, {})
    except ArgumentError:
        return None  # it never ran


def leave_errors(shell: InteractiveShell) -> None:
    """Let IPython show all errors in its own way again."""
    shell.set_custom_exc((), None)  # type: ignore[no-untyped-call]


def _show(shell: Any, kind: type[BaseException], error: Any, trace: TracebackType | None) -> list[str] | None:
    if isinstance(error, UsageError):
        shell.show_usage_error(_with_near_magic(str(error)))
        return None
    if not isinstance(error, EngineError) and (isinstance(error, _MISSING) or not ran_engine(trace)):
        _add_import(error)
        shell.showtraceback((kind, error, trace), running_compiled_code=True)
        return None
    if isinstance(error, AttributeError) and not isinstance(error, EngineError):
        lines = error_lines(error_replies_of(shell, told_by_lines(error)))
    else:
        lines = error_lines(error_replies_of(shell, error, python_frames(trace)))
    # What IPython keeps of the error: for a traceback of its own it would parse all files that the error came through.
    vars(error)["_render_traceback_"] = lambda: lines
    shell._showtraceback(kind, error, lines)
    return lines


def _add_import(error: BaseException) -> None:
    """Note in an error about a missing name the line by which Python knows it."""
    wanted = (error.name or "").partition(".")[0] if isinstance(error, _MISSING) else ""
    if wanted in _IMPORTS and not hasattr(error, "__notes__"):
        error.add_note(f"hint: {_IMPORTS[wanted]}")


def _with_near_magic(message: str) -> str:
    """The error of IPython; for a magic like ours that is not there, with the names that are near."""
    found = _NO_MAGIC.match(message)
    if found is None:
        return message
    mark, name = found.groups()
    if mark == COMMAND and name.startswith(PREFIX):  # what all have is no sign of nearness
        mark, name, known = mark + PREFIX, name.removeprefix(PREFIX), [*(each.name for each in COMMANDS), REPORT]
    else:
        known = [CELL] if mark != COMMAND else [f"{PREFIX}{each.name}" for each in COMMANDS]
    near = (each.replace("'", f"'{mark}", 1) for each in did_you_mean(name, known))
    return "; ".join([message.removesuffix("."), *near])


def error_replies_of(
    shell: InteractiveShell, error: BaseException, frames: Sequence[CallFrame] = ()
) -> list[ErrorReply]:
    """The replies for an error in the words of magics; the Python calls that led to it stand first."""
    first, *others = error_replies(error)
    first = replace(first, places=(*map(call_place, frames), *first.places))
    return [with_cells(shell, each) for each in (first, *others)]


def with_cells(shell: InteractiveShell, reply: Reply) -> Any:
    """The reply in the words of magics; in an error, cells of Python by their numbers."""
    reply = as_magics(reply)
    if not isinstance(reply, ErrorReply):
        return reply
    places = tuple(replace(each, location=_with_cell(shell, each.location)) for each in reply.places)
    return replace(reply, location=_with_cell(shell, reply.location), places=places)


_PLACE: Final = re.compile(r"(called from )?(.*?)(, line \d.*)")


def _with_cell(shell: InteractiveShell, location: str) -> str:
    """`cell 3, line 2` for the name that IPython gives the text of that cell."""
    found = _PLACE.fullmatch(location)
    if found is None:
        return location
    cell = cell_of(shell, found[2]) or cell_of(shell, f"<{found[2]}>")
    return f"{found[1] or ''}{cell}{found[3]}" if cell else location


def cell_of(shell: InteractiveShell, file: str) -> str:
    """`cell 3` for the file that IPython keeps the text of that cell in; "" for any other."""
    known = shell.compile.format_code_name(file)
    return known[1].replace("In[", "cell ").removesuffix("]") if known else ""
