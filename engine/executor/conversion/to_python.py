"""Values of programs on their way to Python.

In: a TorchScript type.  Out: `to_python(type)`, a function that makes a Python value of a program's, or None where
the value can go as it is.  Containers are copied; named tuples, Enum members and objects become instances of the
Python classes that they came from, as far as those are known.
"""

from __future__ import annotations

import enum
from collections import namedtuple
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from engine.aten.values.ivalue import EnumValue, Object
from engine.lang.records import dataclass
from engine.lang.types import (
    ANY,
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    InterfaceType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    UnionType,
)  # fmt: skip

Converter = Callable[[Any], Any]


@dataclass(slots=True)
class PythonClasses:
    """A slot for the function that knows the Python classes of objects; the public classes take it."""

    wrap_object: Callable[[Object], Any] = lambda value: value
    """The instance that Python sees of an object; it holds the object as `_ivalue`."""


PYTHON_CLASSES: Final = PythonClasses()


def to_python(type: Type) -> Converter | None:
    """The function that converts values of the type for Python; None if they need no conversion."""
    if type is ANY:
        return _any_to_python
    maker = _TO.get(type.__class__)
    return maker(type) if maker else None


def _list_out(type: Any) -> Converter:
    convert = to_python(type.element)
    return (lambda values: [convert(v) for v in values]) if convert else list


def _dict_out(type: Any) -> Converter:
    key, item = to_python(type.key) or _same, to_python(type.value) or _same
    return lambda values: {key(k): item(v) for k, v in values.items()}


def _tuple_out(type: Any) -> Converter | None:
    converters = [to_python(element) for element in type.elements]
    make = python_class(type) if type.name else None
    if make is None and not any(converters):
        return None
    functions = [convert or _same for convert in converters]

    def to_tuple(values: Any) -> Any:
        converted = [convert(v) for convert, v in zip(functions, values, strict=True)]
        return make(*converted) if make else tuple(converted)

    return to_tuple


def python_class(type: TupleType | EnumType) -> Any:
    """The Python class of a named tuple's values, or of an Enum's members."""
    if isinstance(type, EnumType):
        return type.python_class or _enum_class(type.qualname, type.members)
    assert type.name is not None, f"{type} has no name"
    return type.python_class or _named_tuple_class(type.name.rsplit(".", 1)[-1], type.fields)


@cache
def _named_tuple_class(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name, fields)


def _optional_out(type: Any) -> Converter | None:
    convert = to_python(type.element)
    return (lambda value: None if value is None else convert(value)) if convert else None


def _await_out(type: Any) -> Converter | None:
    convert = to_python(type.element)
    return (lambda value: value.converted(convert)) if convert else None


def _any_to_python(value: Any) -> Any:
    """The Python value of a value of unknown type."""
    if isinstance(value, tuple):
        return tuple(map(_any_to_python, value))
    if isinstance(value, list):
        return [_any_to_python(v) for v in value]
    if isinstance(value, dict):
        return {_any_to_python(k): _any_to_python(v) for k, v in value.items()}
    if isinstance(value, EnumValue):
        return _enum_member(value)
    return PYTHON_CLASSES.wrap_object(value) if isinstance(value, Object) else value


def _enum_member(value: EnumValue) -> Any:
    return python_class(value.type)[value.name]


@cache
def _enum_class(qualname: str, members: tuple[tuple[str, Any], ...]) -> Any:
    return enum.Enum(qualname.rsplit(".", 1)[-1], members)


def _wrapped(value: Object) -> Any:
    return PYTHON_CLASSES.wrap_object(value)


def _same(value: Any) -> Any:
    return value


_TO: Final[dict[type, Callable[[Any], Converter | None]]] = {
    ListType: _list_out, DictType: _dict_out, TupleType: _tuple_out, OptionalType: _optional_out,
    UnionType: lambda _: _any_to_python, EnumType: lambda _: _enum_member,
    ClassType: lambda _: _wrapped, InterfaceType: lambda _: _wrapped, AwaitType: _await_out,
}  # fmt: skip
