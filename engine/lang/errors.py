"""Every error that a user can cause, as one tree.

In: what went wrong and where.  Out: one message that names the place, shows the line with a caret,
tells the calls that led there and what would mend it.  Each class is also the builtin kind that
PyTorch raises for the same mistake, so `except RuntimeError` keeps working.  Our own mistakes are
assertions and never come from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.lang.source import SourceRange
from engine.lang.spelling import nearest

_SHOWN_FRAMES = 4
"""A long chain of calls shows so many of its innermost and so many of its outermost ones."""
_LONGEST_LINE: Final = 1000
"""Characters of a line of a message; longer ones lose their middle."""
MAX_TOLD: Final = 20
"""So many errors are told together."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One call on the way to the error: the function, and where in it the call stands."""

    function: str
    range: SourceRange


class EngineError(Exception):
    """Root of the tree.

    `message` says what happened, `range` where, `hints` what to do about it, `frames` the calls that
    led there, outermost first.  `others` are independent errors that were found besides this one.
    """

    title = ""

    def __init__(
        self,
        message: str,
        range: SourceRange | None = None,
        *,
        hints: Iterable[str] = (),
        frames: Iterable[Frame] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.range = range
        self.hints = tuple(hints)
        self.frames = tuple(frames)
        self.others: tuple[EngineError, ...] = ()

    @property
    def line(self) -> int | None:
        """1-based line that the error points at, if it points at one."""
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
                f"'{frame.function}' is being compiled since it was called from here:",
                "  " + frame.range.location(),
                frame.range.excerpt(),
            ]
        return "\n".join([*parts, *map(_hint, self.hints)])

    def called_from(self, frame: Frame) -> None:
        """Add the call for whose sake all this was looked at."""
        for error in (self, *self.others):
            error.frames = (frame, *error.frames)


@dataclass(frozen=True, slots=True)
class Caution:
    """No error: something that compiles, and may not mean what its author thinks."""

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
        frames: Iterable[Frame] = (),
    ) -> None:
        if len(message) > _LONGEST_LINE:  # names of the program stand in it, of any length
            message = "\n".join(map(_clipped, message.split("\n")))
        super().__init__(message, range, hints=map(_clipped, hints), frames=frames)


class ParseError(CompileError):
    """The text cannot be read as TorchScript."""


class NotSupportedError(CompileError):
    """Valid Python that TorchScript does not have."""


class MissingOperatorError(CompileError):
    """The program calls an operator that is not known here."""


def where_missing_ones_are(names: Iterable[str]) -> str:
    """The hint for operators of these qualified names that are not known here."""
    own = all(name.startswith(("aten::", "prim::")) for name in names)
    origin = "another version of PyTorch has it" if own else "it comes from an extension of PyTorch"
    return f"{origin}; `tsrepl ops FILE` lists every operator that an archive lacks"


class FollowUpError(CompileError):
    """Nothing is wrong here but that something needed does not compile; that error is the one to tell."""


class InvalidConstantError(CompileError, TypeError):
    """An attribute that shall be a constant has a value that no constant can have."""


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
    """An operator has no code for a dtype, or for a combination of arguments."""


class OperatorAssertionError(OperatorError, AssertionError):
    """A function of the library asserts something of its arguments that does not hold."""


class ArgumentError(EngineError, RuntimeError):
    """A call from Python does not fit the schema of what it calls."""


class ArgumentTypeError(ArgumentError, TypeError):
    """The same for an operator or a function of the library, called by a Python program."""


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
    """An archive holds tensors of a kind that programs here cannot have; they can be looked at."""


class MissingFileError(ArchiveError, FileNotFoundError):
    """There is no file of that name."""


class BudgetExceeded(ArchiveError):
    """Code that runs while an archive is loaded takes more steps, memory or time than it may."""


class ExecutionError(EngineError, RuntimeError):
    """An operator failed while a program ran; `frames` is the TorchScript stack, outermost first."""

    def __str__(self) -> str:
        if not self.frames:
            return self.message
        parts = ["Traceback of TorchScript (most recent call last):"]
        for frame in self.frames:
            parts += ["  " + frame.range.location(frame.function), _indent(frame.range.excerpt())]
        return "\n".join([*parts, f"{self.kind()}: {self.message}", *(f"Hint: {h}" for h in self.hints)])

    def kind(self) -> str:
        """The exception class named in the last line of the traceback."""
        return "RuntimeError"


class ExecutionDtypeError(ExecutionError, NotImplementedError):
    """While a program ran, an operator had no code for a dtype."""

    def kind(self) -> str:
        return "NotImplementedError"


class Error(ExecutionError):
    """A `raise` or `assert` of the program itself; `python_class` is the class that it named."""

    def __init__(
        self,
        message: str,
        range: SourceRange | None = None,
        *,
        python_class: str = "Exception",
        frames: Iterable[Frame] = (),
    ) -> None:
        super().__init__(message, range, frames=frames)
        self.python_class = python_class

    def kind(self) -> str:
        return self.python_class.rsplit(".", 1)[-1]

    def __str__(self) -> str:
        return super().__str__() if self.frames else f"{self.kind()}: {self.message}"


def together(errors: Sequence[EngineError]) -> EngineError:
    """The first of the errors, the others with it; those that only follow from others are left out, if any is not."""
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
