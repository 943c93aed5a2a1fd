"""Errors of functions that are written in TorchScript, as Python programs see them.

In: what such a function raised.  Out: an error of the class that PyTorch's function of the same name raises (a
`ValueError` for `raise ValueError(...)` in its text, an `IndexError` for an index out of range), without the
TorchScript stack: to its caller, the function is one of the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from engine.aten.dispatch.errors import describe
from engine.lang.errors import (
    ArgumentError,
    ArgumentTypeError,
    EngineError,
    Error,
    ExecutionError,
    OperatorAssertionError,
    OperatorDtypeError,
    OperatorError,
    OperatorIndexError,
    OperatorTypeError,
    OperatorValueError,
)

_CLASSES: Final[dict[type[Exception], type[OperatorError]]] = {
    IndexError: OperatorIndexError, TypeError: OperatorTypeError, ValueError: OperatorValueError,
    NotImplementedError: OperatorDtypeError, AssertionError: OperatorAssertionError,
}  # fmt: skip
_BY_NAME: Final = {kind.__name__: made for kind, made in _CLASSES.items()}


def refusal(path: str, error: EngineError, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> EngineError:
    """What a program is told of an error in the library function `path`, called with these arguments."""
    given = ", ".join([*map(describe, args), *(f"{name}={describe(value)}" for name, value in kwargs.items())])
    made = ArgumentTypeError if isinstance(error, ArgumentError) else _class_of(error)
    return made(error.message, hints=(*error.hints, f"in {path}({given})"))


def _class_of(error: EngineError) -> type[OperatorError]:
    if isinstance(error, Error):
        return _BY_NAME.get(error.kind(), OperatorError)
    cause: BaseException | None = error
    while isinstance(cause, ExecutionError):
        cause = cause.__cause__ or cause.__context__
    return next((made for kind, made in _CLASSES.items() if isinstance(cause, kind)), OperatorError)
