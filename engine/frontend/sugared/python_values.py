"""Python objects that have no meaning in TorchScript.

In: a value of the surrounding Python program.  Out: a sugared value whose uses are refused, each with a hint what to do
instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import BuiltinFunctionType
from typing import Any, Final, NoReturn

from engine.frontend.matching.schema_match import Actual
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import TENSOR

SCALARS: Final = (bool, int, float, complex, str, type(None))


class PythonValue(SugaredValue):
    """A Python object that has no meaning in TorchScript."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def describe(self) -> str:
        return f"python value of type '{type(self.value).__name__}'"

    def as_value(self, b: Builder, range: SourceRange) -> Any:
        hint = "pass it in as an argument, or use a local variable" if isinstance(self.value, SCALARS) else ""
        raise not_a_value(self.describe(), range, hint)

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        name = getattr(self.value, "__name__", repr(self.value))
        if isinstance(self.value, BuiltinFunctionType):
            raise unsupported_builtin(self.value, range)
        refuse_python_call(name, args, range)


def not_a_value(description: str, range: SourceRange, hint: str = "") -> CompileError:
    """The error for a Python object that is used as a value of the program."""
    return CompileError(
        f"{description} cannot be used as a value. Perhaps it is a closed over global variable? If so, please "
        "consider passing it in as an argument or use a local variable instead.",
        range,
        hints=(hint,) if hint else (),
    )


def unsupported_builtin(function: BuiltinFunctionType, range: SourceRange) -> CompileError:
    """The error for a builtin function of Python that TorchScript does not have."""
    return CompileError(
        f"Python builtin {function!r} is currently not supported in Torchscript",
        range,
        hints=("call it in Python, and give its result as an argument",),
    )


def refuse_python_call(name: str, args: Sequence[Actual], range: SourceRange) -> NoReturn:
    """Raises CompileError for the call of a plain Python function, first for its arguments, as PyTorch does."""
    for index, arg in enumerate(args):
        if not arg.value.type.is_subtype_of(TENSOR):
            raise CompileError(
                f"{name}: Expected a value of type 'Tensor' for argument '{index}' but instead found type "
                f"'{arg.value.type.annotation_str}'.",
                arg.range,
            )
    raise CompileError(
        f"'{name}' is a Python function that TorchScript cannot call",
        range,
        hints=("call it in Python, and give its result as an argument",),
    )
