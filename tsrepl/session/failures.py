"""Whatever goes wrong, as an `ErrorReply`.

In: an exception.  Out: a title that a person understands, the message, the place, the calls that led there, hints.
No exception of ours shows its Python traceback; one that should not happen says so and names itself.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TextIO

from engine.lang.deferred import deferred
from engine.lang.errors import (
    ArchiveError,
    ArgumentError,
    CallFrame,
    CompileError,
    EngineError,
    Error,
    ExecutionError,
    IRError,
    MissingExtraError,
    MissingFileError,
    NotSupportedError,
    OperatorError,
    ParseError,
    SchemaError,
    causes,
)
from engine.lang.source import SourceRange
from tsrepl.session.replies import CallPlace, ErrorReply, Reply, TextReply

if TYPE_CHECKING:
    from engine.executor.interpreter import interrupts
    from engine.frontend.compilation import entries
    from engine.ir.unit import Function
    from tsrepl.session import python_errors
else:
    interrupts = deferred("engine.executor.interpreter.interrupts")
    entries = deferred("engine.frontend.compilation.entries")
    python_errors = deferred("tsrepl.session.python_errors")

_INTERPRETER: Final = "engine.executor.interpreter.interpreter"
_TITLES: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (ParseError, "Syntax error"),
    (NotSupportedError, "Not in TorchScript"),
    (CompileError, "Compile error"),
    (ArgumentError, "Wrong arguments"),
    (MissingFileError, "No such file"),
    (ArchiveError, "Archive error"),
    (MissingExtraError, "Missing extra"),
    (SchemaError, "Schema error"),
    (IRError, "Graph text error"),
    (OperatorError, "RuntimeError"),
    (EngineError, "Error"),
)


USAGE: Final = "Usage"
"""The title of errors in the command line itself."""
INTERRUPTED: Final = "Interrupted"
"""The title of the reply to Ctrl-C."""


class SessionError(EngineError):
    """A command or an input that the session cannot follow; `title` heads the message."""

    title = "Error"


class UsageError(SessionError):
    """A command does not fit what there is, or was not written as its usage says."""


class CommandLineError(SessionError):
    """The arguments of the program `tsrepl` do not fit the file."""

    title = USAGE


def error_reply(error: BaseException) -> ErrorReply:
    """The reply for the error."""
    if isinstance(error, KeyboardInterrupt):
        # Before there is an interpreter no program runs, and the interrupt may have come while it was loaded.
        return interrupt_reply(interrupts.interrupted_calls(error) if _INTERPRETER in sys.modules else ())
    if isinstance(error, OSError) and not isinstance(error, EngineError):
        return _file_error(error)
    if isinstance(error, RecursionError):
        return ErrorReply("Too deep", "the program is nested or recurses too deeply")
    if isinstance(error, MemoryError):
        return ErrorReply("Out of memory", str(error) or "there is not enough memory for this")
    if isinstance(error, ExecutionError):
        return _execution_error(error)
    if isinstance(error, EngineError):
        return _engine_error(error)
    return ErrorReply(
        "Internal error",
        f"{type(error).__name__}: {error}",
        hints=("this is a mistake in tsrepl, not in your program; please report it with the input that led here",),
    )


def interrupt_reply(calls: Sequence[CallFrame]) -> ErrorReply:
    """The reply to Ctrl-C while these calls were under way."""
    return ErrorReply(INTERRUPTED, "the program was stopped", places=tuple(map(call_place, calls)))


def error_replies(error: BaseException) -> list[ErrorReply]:
    """The replies for the error and for those that were found with it.

    Raises BrokenPipeError where a program prints for nobody: there is no reader of replies then, either.
    """
    broken = next((each for each in causes(error) if isinstance(each, BrokenPipeError)), None)
    if broken is not None and _is_read_no_more(sys.stdout):
        raise broken
    others = error.others if isinstance(error, EngineError) else ()
    return [error_reply(each) for each in (error, *others)]


def _is_read_no_more(stream: TextIO) -> bool:
    """True for a pipe whose reader has gone."""
    if not hasattr(select, "poll"):
        return False
    with suppress(OSError, ValueError):  # what stands for it in a notebook is no file
        pipe = select.poll()
        pipe.register(stream.fileno(), 0)
        return bool(pipe.poll(0))
    return False


def guarded(replies: Iterator[Reply]) -> Iterator[Reply]:
    """The replies; an error among them is the last."""
    try:
        yield from replies
    except (GeneratorExit, SystemExit, BrokenPipeError):
        raise
    except BaseException as error:
        yield from error_replies(error)


def caution_replies(function: Function, but: SourceRange | None = None) -> list[TextReply]:
    """Cautions about constructs in the function's text that may surprise, `but` about one."""
    found = []
    for caution in function.cautions:
        if caution.range == but:
            continue
        hints = "".join(f"; {hint}" for hint in caution.hints)
        found.append(TextReply(f"{location_text(caution.range)}: {caution.message}{hints}", "warning"))
    return found


def location_text(range: SourceRange, inside: str = "") -> str:
    """`entry 3, line 2, in f`, or the file in place of the entry."""
    name = range.filename.strip("<>")
    typed = name.startswith(("entry", "expression", "input"))
    only = range.line == 1 and len(range.source.line_starts()) == 1
    line = "" if typed and only else f", line {range.line}"
    return name + line + (f", in {inside}" if inside and not inside.startswith(entries.ENTRY) else "")


def _engine_error(error: EngineError) -> ErrorReply:
    place = error.range.original() if error.range else None
    head, details = head_and_details(error.message)
    return ErrorReply(
        error.title or next(title for kind, title in _TITLES if isinstance(error, kind)),
        head,
        location_text(place) if place else "",
        place.excerpt() if place else "",
        tuple(call_place(frame, "called from ") for frame in error.frames if not _same(frame.range, error.range)),
        error.hints,
        details,
    )


def head_and_details(message: str) -> tuple[str, str]:
    """The first line of a message, and the rest without the words that lead over to the excerpt below it."""
    text = message.strip().removesuffix("The original call is").rstrip()
    head, _, details = text.partition("\n")
    if head.endswith(":") and " -> " in head and details:
        # A call of a function with one signature: the reason matters more than the signature.
        head, details = details.strip().replace("\n", " "), f"The signature is {head[:-1]}"
    return head, details.strip("\n")


def _same(a: SourceRange, b: SourceRange | None) -> bool:
    return b is not None and (a.source, a.start, a.end) == (b.source, b.start, b.end)


def _execution_error(error: ExecutionError) -> ErrorReply:
    message, details = head_and_details(error.message)
    kind = error.kind() if isinstance(error, (Error, python_errors.PythonError)) else "RuntimeError"
    if not error.frames and error.range is not None:
        return ErrorReply(kind, message, location_text(error.range), error.range.excerpt(), (), error.hints, details)
    places = tuple(call_place(frame) for frame in error.frames)
    return ErrorReply(kind, message, places=places, hints=error.hints, details=details)


def call_place(frame: CallFrame, prefix: str = "") -> CallPlace:
    """The place of a call, with the lines around it."""
    range = frame.range.original()
    return CallPlace(prefix + location_text(range, frame.inside), range.excerpt())


def _file_error(error: OSError) -> ErrorReply:
    name = f"'{error.filename}'" if error.filename else "the file"
    if isinstance(error, FileNotFoundError):
        return ErrorReply("No such file", f"{name} does not exist")
    if isinstance(error, IsADirectoryError):
        return ErrorReply("Not a file", f"{name} is a folder")
    if isinstance(error, PermissionError):
        return ErrorReply("Not allowed", f"{name}: permission denied")
    return ErrorReply("File error", f"{name}: {error.strerror or error}")
