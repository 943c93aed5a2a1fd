"""Resolvers: lookup of the names that a program does not define itself.

In: a name.  Out: its sugared value, or its type.  `TextResolver` is for programs that are given as text: they
see `torch`, `math` and Python's exception classes, and the functions and classes of their unit.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from types import BuiltinFunctionType
from typing import Final, Protocol

from engine.frontend.names.namespaces import MathNamespace, TorchNamespace
from engine.frontend.sugared.classes import (
    ClassValue,
    EnumClassValue,
    ExceptionClass,
    FunctionValue,
    NamedTupleConstructor,
)
from engine.frontend.sugared.python_values import PythonValue, unsupported_builtin
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.ir.unit import CompilationUnit
from engine.lang.source import SourceRange
from engine.lang.types import ClassType, EnumType, TupleType, Type


class Resolver(Protocol):
    """Finds the meaning of a name; None when it does not know the name."""

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None: ...

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        """The type that a (perhaps dotted) name stands for in an annotation."""

    def names(self) -> Iterable[str]:
        """The names it knows, as far as it can list them."""


def type_value(type: Type) -> SugaredValue | None:
    """The sugared value for the name of a type in an expression: a class to be called, or with attributes."""
    if isinstance(type, TupleType) and type.name is not None:
        return NamedTupleConstructor(type)
    if isinstance(type, ClassType):
        return ClassValue(type)
    return EnumClassValue(type) if isinstance(type, EnumType) else None


EXCEPTIONS: Final = {
    name: ExceptionClass(name, f"builtins.{name}")
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}


_BUILTINS: Final = {
    name: PythonValue(value)
    for name, value in vars(builtins).items()
    if callable(value) and not name.startswith("_") and name not in EXCEPTIONS
}
"""Python's builtin functions; those that TorchScript has are found before."""


def _builtin(name: str, range: SourceRange) -> SugaredValue | None:
    value = _BUILTINS.get(name)
    if value is not None and isinstance(value.value, BuiltinFunctionType):
        raise unsupported_builtin(value.value, range)
    return value


def qualified(prefix: str, name: str) -> str:
    """`prefix.name`, or the name alone."""
    return f"{prefix}.{name}" if prefix else name


class TextResolver:
    """Names for a program that is text.  Functions and classes of `unit` are found under `prefix`.

    Text of the standard library may use every operator as a function of `torch`; if `strict`, only real functions.
    """

    def __init__(
        self, unit: CompilationUnit, prefix: str = "", *, strict: bool = False, torch: TorchNamespace | None = None
    ) -> None:
        self.unit, self.prefix = unit, prefix
        self._namespaces = {"torch": torch or TorchNamespace(strict=strict), "math": MathNamespace()}

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        found = self._namespaces.get(name) or EXCEPTIONS.get(name)
        if found is not None:
            return found
        function = self.unit.find_function(qualified(self.prefix, name))
        if function is not None:
            return FunctionValue(function)
        type = self.resolve_type(name, range)
        return type_value(type) if type is not None else _builtin(name, range)

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        return self.unit.find_type(qualified(self.prefix, name))

    def names(self) -> Iterable[str]:
        known = [*self.unit.functions, *self.unit.types]
        start = qualified(self.prefix, "")
        own = [name.removeprefix(start) for name in known if name.startswith(start)]
        return [*self._namespaces, *EXCEPTIONS, *own]


class ChainedResolver:
    """Several resolvers, tried from first to last."""

    def __init__(self, *resolvers: Resolver) -> None:
        self.resolvers = resolvers

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        found = (resolver.resolve_value(b, name, range) for resolver in self.resolvers)
        return next((value for value in found if value is not None), None)

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        found = (resolver.resolve_type(name, range) for resolver in self.resolvers)
        return next((type for type in found if type is not None), None)

    def names(self) -> Iterable[str]:
        return [name for resolver in self.resolvers for name in resolver.names()]
