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

from IPython.core.interactiveshell import InteractiveShell

from engine.lang.errors import CallFrame, EngineError
from tsrepl.magics.display import error_lines
from tsrepl.magics.words import as_magics
from tsrepl.session.failures import call_place, error_replies
from tsrepl.session.python_errors import failed_call, python_frames, ran_engine
from tsrepl.session.replies import ErrorReply, Reply
from tsrepl.session.workspace import Workspace

_SHOWN: Final = (EngineError, KeyboardInterrupt)


def catch_errors(shell: InteractiveShell, workspace: Workspace) -> None:
    """Let IPython show errors of programs by their own lines, and the session know which call failed."""

    def show(shell: Any, kind: Any, error: BaseException, trace: TracebackType | None, tb_offset: Any = None) -> Any:
        if isinstance(error, EngineError):
            workspace.failed = failed_call(trace) or workspace.failed
        return _show(shell, kind, error, trace)

    shell.set_custom_exc(_SHOWN, show)  # type: ignore[no-untyped-call]


def leave_errors(shell: InteractiveShell) -> None:
    """Let IPython show all errors in its own way again."""
    shell.set_custom_exc((), None)  # type: ignore[no-untyped-call]


def _show(shell: Any, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> list[str] | None:
    if isinstance(error, KeyboardInterrupt) and not ran_engine(trace):
        shell.showtraceback((kind, error, trace), running_compiled_code=True)
        return None
    lines = error_lines(error_replies_of(shell, error, python_frames(trace)))
    shell._showtraceback(kind, error, lines)
    return lines


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
