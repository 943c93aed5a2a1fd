"""Errors of Python code, told by the lines of that code.

In: an exception, with its traceback.  Out: the user's calls that led there, outermost first, as those of programs are
told; no frames of the engine.
"""

from __future__ import annotations

import linecache
from itertools import islice
from types import TracebackType
from typing import Final

from engine.lang.errors import CallFrame, CompileError, EngineError, ExecutionError
from engine.lang.source import Source, SourceRange

_OURS: Final = ("engine.", "tsrepl.", "IPython.")
TOP: Final = "<module>"
"""The name in Python of code that is in no function."""


class PythonError(ExecutionError):
    """An exception that Python code raised, or that the engine raised when Python called it."""

    def __init__(self, error: BaseException, frames: list[CallFrame]) -> None:
        message, hints = (error.message, error.hints) if isinstance(error, EngineError) else (str(error), ())
        super().__init__(message, frames=frames, hints=hints)
        kinds = (kind for kind in type(error).__mro__ if not kind.__module__.startswith("engine."))
        self._kind = next(kinds).__name__

    def kind(self) -> str:
        return self._kind


def told_by_lines(error: Exception, call: SourceRange | None = None) -> EngineError:
    """The error of Python code, with the lines that led to it, the first of which is the call."""
    outer = [] if call is None else [CallFrame("", call)]
    if isinstance(error, CompileError):
        frames = outer
    else:
        frames = [*outer, *python_frames(error.__traceback__)]
    if not isinstance(error, (CompileError, ExecutionError)):
        return PythonError(error, frames)
    for frame in reversed(frames):
        error.called_from(frame)
    return error


def python_frames(trace: TracebackType | None) -> list[CallFrame]:
    """The calls in the user's own code, outermost first."""
    found: list[CallFrame] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if _is_the_user_s(str(trace.tb_frame.f_globals.get("__name__", "")), code.co_filename):
            found.append(CallFrame("" if code.co_name == TOP else code.co_name, _range(trace)))
        trace = trace.tb_next
    return found


def ran_engine(trace: TracebackType | None) -> bool:
    """True if the user's code had called the engine when it stopped."""
    while trace is not None:
        if str(trace.tb_frame.f_globals.get("__name__", "")).startswith("engine."):
            return True
        trace = trace.tb_next
    return False


def _is_the_user_s(module: str, filename: str) -> bool:
    return bool(module) and not module.startswith(_OURS) and filename != GLUE


GLUE: Final = "<tsrepl>"
"""The file name of code that calls the user's."""


def _range(trace: TracebackType) -> SourceRange:
    """The code that ran in a frame; the whole line where no columns are known."""
    code, number = trace.tb_frame.f_code, trace.tb_lineno
    source = Source("".join(linecache.getlines(code.co_filename)), code.co_filename)
    if not 0 < number <= len(source.line_starts()):
        return Source("", code.co_filename, number).whole()
    start, end = source.line_span(number - 1)
    line = source.text[start:end]
    _, last, column, end_column = next(islice(code.co_positions(), trace.tb_lasti // 2, None))
    if column is None or end_column is None:
        return SourceRange(source, start + len(line) - len(line.lstrip()), end)
    stop = start + _characters(line, end_column) if last == number else end
    return SourceRange(source, start + _characters(line, column), stop)


def _characters(line: str, offset: int) -> int:
    """Bytes from the line's start, as Python counts columns, in characters."""
    return len(line.encode()[:offset].decode(errors="replace"))
