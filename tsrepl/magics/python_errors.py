"""Errors of compiled functions that Python cells call, shown as errors of TorchScript cells are.

In: an exception that a Python cell raised.  Out: the program's lines with the caret, and the line of the cell that
called it; no frames of the engine.
"""

from __future__ import annotations

import traceback
from dataclasses import replace
from types import TracebackType
from typing import Any, Final

from IPython.core.interactiveshell import InteractiveShell

from engine.executor.interpreter.interrupts import interrupted_calls
from engine.lang.errors import EngineError
from tsrepl.magics.display import error_lines
from tsrepl.magics.words import as_magics
from tsrepl.session.failures import error_replies
from tsrepl.session.replies import CallPlace, ErrorReply, Reply

_SHOWN: Final = (EngineError, KeyboardInterrupt)
_OURS: Final = ("engine.", "tsrepl.", "IPython.")


def catch_errors(shell: InteractiveShell) -> None:
    """Let IPython show errors of programs by their own lines."""
    shell.set_custom_exc(_SHOWN, _show)  # type: ignore[no-untyped-call]


def leave_errors(shell: InteractiveShell) -> None:
    """Let IPython show all errors in its own way again."""
    shell.set_custom_exc((), None)  # type: ignore[no-untyped-call]


def _show(
    shell: Any, kind: type[BaseException], error: BaseException, trace: TracebackType | None, tb_offset: Any = None
) -> list[str] | None:
    if isinstance(error, KeyboardInterrupt) and not interrupted_calls(error):
        shell.showtraceback((kind, error, trace), running_compiled_code=True)
        return None
    first, *others = map(as_magics, error_replies(error))
    lines = error_lines([each for each in (_called_from(first, trace), *others) if isinstance(each, ErrorReply)])
    shell._showtraceback(kind, error, lines)
    return lines


def _called_from(reply: Reply, trace: TracebackType | None) -> Reply:
    """The error with the lines of Python that led to it before its own."""
    assert isinstance(reply, ErrorReply)
    places = [CallPlace(_place(frame), str(frame.line or "")) for frame in _python_frames(trace)]
    return replace(reply, places=(*places, *reply.places))


def _python_frames(trace: TracebackType | None) -> list[traceback.FrameSummary]:
    """The frames of the cell and of the user's own functions."""
    found: list[traceback.FrameSummary] = []
    for frame, line in traceback.walk_tb(trace):
        if not str(frame.f_globals.get("__name__", "")).startswith(_OURS) and frame.f_globals.get("__name__"):
            found += traceback.StackSummary.extract([(frame, line)])
    return found


def _place(frame: traceback.FrameSummary) -> str:
    inside = "" if frame.name == "<module>" else f", in {frame.name}"
    name = (
        "Python cell"
        if frame.filename.startswith("<ipython-input") or "ipykernel" in frame.filename
        else frame.filename
    )
    return f"{name}, line {frame.lineno}{inside}"
