"""Every error that a user can cause, as one tree of classes.

In: a message, a source range, hints.  Out: one text with the position, the line with a caret, the calls
that led there and how to correct the mistake.  Each class is also the builtin kind that PyTorch raises for
the same mistake, so `except RuntimeError` keeps working.  Errors of the engine itself are assertions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from engine.lang.records import dataclass
from engine.lang.source import SourceRange
from engine.lang.spelling import nearest

_SHOWN_FRAMES = 4
"""Numbers of innermost and of outermost calls that a long chain shows."""
_LONGEST_LINE: Final = 1000
"""Characters of a line in a message; longer lines lose their middle."""
MAX_TOLD: Final = 20
"""The most errors that are reported together."""


@dataclass(frozen=True, slots=True)
class CallFrame:
    """One call on the way to the error: the function, the range of the call in it, and the path of the module that the
    function is a method of; "" for none, and for the outermost.  While compiling, `function` is what is called, and
    `caller` the function with the call, where it is known."""

    function: str
    range: SourceRange
    module: str = ""
    caller: str = ""

    @property
    def inside(self) -> str:
        """`forward`, or `forward of layer1.0`."""
        return f"{self.function} of {self.module}" if self.module else self.function


class EngineError(Exception):
    """Root of the tree.

    `message` says what is wrong, `range` where, `hints` how to correct it; `frames` are the calls that led
    there, outermost first, `others` independent errors that were found besides this one.
    """

    title = ""

    def __init__(
        self,
        message: str,
        range: SourceRange | None = None,
        *,
        hints: Iterable[str] = (),
        frames: Iterable[CallFrame] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.range = range
        self.hints = tuple(hints)
        self.frames = tuple(frames)
        self.others: tuple[EngineError, ...] = ()

    @property
    def line(self) -> int | None:
        """1-based line of the error, if it has a range."""
        return self.range.line if self.range else None

    def __str__(self) -> str:
        total = len(self.others) + 1
        numbered = enumerate(self.others, 2)
        return "\n".join([self.told_alone(), *(f"\nError {n} of {total}: {each}" for n, each in numbered)])

    def told_alone(self) -> str:
        """The whole text of this error, without the `others`."""
        parts = [self.message]
        if self.range is not None:
            parts = [f"{self.message}:", "  " + self.range.location(), self.range.excerpt()]
        skipped = len(self.frames) - 2 * _SHOWN_FRAMES
        for index, frame in enumerate(reversed(self.frames)):
            if skipped > 0 and index == _SHOWN_FRAMES:
                parts.append(f"... {skipped} more calls ...")
            if skipped > 0 and _SHOWN_FRAMES <= index < _SHOWN_FRAMES + skipped:
                continue
            parts += [
                f"'{frame.function}' is being compiled since it was called from "
                + (f"'{frame.caller}':" if frame.caller else "here:"),
                "  " + frame.range.location(),
                frame.range.excerpt(),
            ]
        return "\n".join([*parts, *map(_hint, self.hints)])

    def called_from(self, frame: CallFrame) -> None:
        """Add an outer call, which led to the error."""
        for error in (self, *self.others):
            error.frames = (frame, *error.frames)

    def within(self, function: str) -> None:
        """Name the function whose call the outermost frame is."""
        for error in (self, *self.others):
            if error.frames and not error.frames[0].caller:
                error.frames = (replace(error.frames[0], caller=function), *error.frames[1:])


@dataclass(frozen=True, slots=True)
class Caution:
    """A warning about code that compiles, and may not mean what its author intends."""

    message: str
    range: SourceRange
    hints: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = "  " + self.range.location()
        return "\n".join([f"{self.message}:", place, self.range.excerpt(), *map(_hint, self.hints)])


class CompileError(EngineError, RuntimeError):
    """The program is not valid TorchScript."""

    def __init__(
        self,
        message: str,
        range: SourceRange | None = None,
        *,
        hints: Iterable[str] = (),
        frames: Iterable[CallFrame] = (),
    ) -> None:
        if len(message) > _LONGEST_LINE:  # it contains names of the program, of any length
            message = "\n".join(map(_clipped, message.split("\n")))
        super().__init__(message, range, hints=map(_clipped, hints), frames=frames)


class ParseError(CompileError):
    """The text cannot be read as TorchScript."""


class NotSupportedError(CompileError):
    """Valid Python that TorchScript does not support."""


class AnnotationError(NotSupportedError, ValueError):
    """An annotation stands where there may be none."""


class UnimplementedError(NotSupportedError, NotImplementedError):
    """A part of Python for which PyTorch has a place, and no code."""


class MissingOperatorError(CompileError):
    """The program calls an unknown operator."""


class FollowUpError(CompileError):
    """A consequence of another error: something that is needed here does not compile.  The other error is reported."""


class InvalidConstantError(CompileError, TypeError):
    """An attribute that is declared a constant has a value that no constant can have."""


class SchemaError(EngineError, RuntimeError):
    """A schema's text cannot be read, or two schemas clash."""


class IRError(EngineError, RuntimeError):
    """A graph's text cannot be read."""


class OperatorError(EngineError, RuntimeError):
    """An operator refuses its arguments (shapes, dtypes, values)."""


class OperatorIndexError(OperatorError, IndexError):
    """An index is outside what it indexes."""


class OperatorMemoryError(OperatorError, MemoryError):
    """A result would need more memory than there is."""


class OperatorTypeError(OperatorError, TypeError):
    """An argument has a type that the operator does not take."""


class OperatorValueError(OperatorError, ValueError):
    """An argument has the right type and a wrong value."""


class OperatorDtypeError(OperatorError, NotImplementedError):
    """An operator has no implementation for a dtype, or for a combination of arguments."""


class OperatorAssertionError(OperatorError, AssertionError):
    """An assertion of a library function about its arguments does not hold."""


class ArgumentError(EngineError, RuntimeError):
    """A call from Python does not fit the schema of what it calls."""


class ArgumentTypeError(ArgumentError, TypeError):
    """A call of an operator or library function from Python does not fit its schema."""


class MissingAttributeError(EngineError, AttributeError):
    """An object has no attribute or method of the name that is asked for."""


class MissingExtraError(EngineError, ImportError):
    """An optional package is needed; the message names the extra that brings it."""


class ArchiveError(EngineError, RuntimeError):
    """A file is not an archive that can be read safely.

    `record` names the record inside the archive, `offset` the byte in it, where they are known.
    """

    def __init__(
        self, message: str, *, record: str | None = None, offset: int | None = None, hints: Iterable[str] = ()
    ) -> None:
        where = f" (record '{record}'" + (f", byte {offset})" if offset is not None else ")") if record else ""
        super().__init__(message + where, hints=hints)
        self.record = record
        self.offset = offset


class UnsupportedTensorError(ArchiveError):
    """An archive holds tensors of a kind that programs cannot use; they can be inspected."""


class MissingDeviceError(ArchiveError):
    """The tensors of an archive lie on a device that this machine has not; they can be loaded on the CPU."""


class MissingFileError(ArchiveError, FileNotFoundError):
    """There is no file of that name."""


class BudgetExceeded(ArchiveError):
    """Code that runs while an archive is loaded exceeds its limit of steps, memory or time."""


class ExecutionError(EngineError, RuntimeError):
    """An operator failed while a program ran; `frames` is the TorchScript stack, outermost first."""

    def __str__(self) -> str:
        if not self.frames:
            return self.message
        parts = [
            "The following operation failed in the TorchScript interpreter.",
            "Traceback of TorchScript (most recent call last):",
        ]
        for frame in self.frames:
            parts += ["  " + frame.range.location(frame.inside), _indent(frame.range.excerpt())]
        return "\n".join([*parts, f"{self.kind()}: {self.message}", *(f"Hint: {h}" for h in self.hints)])

    def kind(self) -> str:
        """The exception class named in the last line of the traceback."""
        return "RuntimeError"


class ExecutionDtypeError(ExecutionError, NotImplementedError):
    """While a program ran, an operator had no implementation for a dtype."""

    def kind(self) -> str:
        return "NotImplementedError"


class Error(ExecutionError):
    """A `raise` or `assert` of the program itself; `python_class` is the exception class that it named."""

    def __init__(
        self,
        message: str,
        range: SourceRange | None = None,
        *,
        python_class: str = "Exception",
        frames: Iterable[CallFrame] = (),
    ) -> None:
        super().__init__(message, range, frames=frames)
        self.python_class = python_class

    def kind(self) -> str:
        return self.python_class.removeprefix("builtins.")

    def __str__(self) -> str:
        return super().__str__() if self.frames else f"{self.kind()}: {self.message}"


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, what caused it, what caused that, and so on; each once, as such a chain may be a ring."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def together(errors: Sequence[EngineError]) -> EngineError:
    """The first of the errors, with the others; consequences of others are dropped, unless there is nothing else."""
    every = [each for error in errors for each in (error, *error.others)]
    first, *others = [each for each in every if not isinstance(each, FollowUpError)] or every[:1]
    for each in others:
        each.others = ()
    first.others = tuple(others[: MAX_TOLD - 1])
    return first


def did_you_mean(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """A hint that names the nearest known name, or nothing."""
    near = nearest(name, known, 1)
    return (f"did you mean '{near[0]}'?",) if near else ()


def _clipped(line: str) -> str:
    half = _LONGEST_LINE // 2
    return line if len(line) <= _LONGEST_LINE else f"{line[:half]} ... {line[-half:]}"


def _hint(text: str) -> str:
    return f"Hint: {text}"


def _indent(text: str) -> str:
    return "\n".join("    " + line for line in text.split("\n"))
