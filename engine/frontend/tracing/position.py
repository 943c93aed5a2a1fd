"""The position of a traced program: the Python code that called an operator.

In: Python's stack.  Out: the source range of the call, the names of the calling function's variables, and warnings that
point to that line.  The engine's own frames are skipped, except those of the layers in `torch.nn`: they are programs
like the user's.
"""

from __future__ import annotations

import linecache
import sys
import warnings
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from engine.lang.source import Source, SourceRange

_ENGINE: Final = str(Path(__file__).parents[2])
_LAYERS: Final = str(Path(_ENGINE, "torch", "nn", "modules"))
_MACHINERY: Final = str(Path(_LAYERS, "module.py"))


def calling_frame() -> FrameType | None:
    """The innermost frame of the traced program."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_program(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


@lru_cache(maxsize=1024)
def _is_program(filename: str) -> bool:
    return not filename.startswith(("<aten::", _ENGINE)) or (filename.startswith(_LAYERS) and filename != _MACHINERY)


def stack_depth(frame: FrameType | None) -> int:
    """The number of levels from the caller up to the frame, as `warnings.warn` counts them."""
    depth, at = 1, sys._getframe(1)
    while at is not frame and at.f_back is not None:
        depth, at = depth + 1, at.f_back
    return depth


def range_of(frame: FrameType | None) -> SourceRange | None:
    """The expression that the frame evaluates; None where there is no source."""
    return None if frame is None else _range(frame.f_code, frame.f_lasti)


@lru_cache(maxsize=4096)
def _range(code: CodeType, instruction: int) -> SourceRange | None:
    source = _source(code.co_filename)
    line, end_line, start, end = next(islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    if source is None or line is None or not 1 <= line <= len(source.line_starts()):
        return None
    starts = source.line_starts()
    first = starts[line - 1] + _characters(source.line_text(line - 1), start)
    if end_line is None or end_line > len(starts):
        return SourceRange(source, first, first)
    return SourceRange(source, first, starts[end_line - 1] + _characters(source.line_text(end_line - 1), end))


def _characters(line: str, offset: int | None) -> int:
    """The number of characters in the first `offset` bytes of a line."""
    return len(line.encode()[: offset or 0].decode(errors="ignore"))


@lru_cache(maxsize=64)
def _source(filename: str) -> Source | None:
    text = "".join(linecache.getlines(filename))
    return Source(text, filename) if text else None


def variable_name(frame: FrameType | None, thing: Any) -> str:
    """The name of the local variable that is `thing`; "" if none is."""
    variables = {} if frame is None else frame.f_locals
    name = next((name for name, value in variables.items() if value is thing), "")
    return "" if name == "self" or not name.isidentifier() else name


DATAFLOW: Final = (
    "Converting a tensor to {} might cause the trace to be incorrect: the program goes on with a Python value, which "
    "the trace takes for a constant. It might not generalize to other inputs!"
)


class TracerWarning(Warning):
    """The trace may not hold for other inputs than the example."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """No effect: the engine's own code causes no such warnings."""


def warn(message: str, category: type[Warning] = TracerWarning) -> None:
    """Warn at the program's current line."""
    warnings.warn(message, category, stacklevel=stack_depth(calling_frame()))
