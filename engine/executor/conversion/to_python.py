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
from engine.lang.types import (
    ANY,
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

_find_class: Callable[[Type], Any] = lambda type: None  # noqa: E731  (until somebody knows Python classes)
_wrap_object: Callable[[Object], Any] = lambda value: value  # noqa: E731  (until the public classes are there)


def set_class_finder(find: Callable[[Type], Any]) -> None:
    """Say which Python Enum or NamedTuple a type was made of (None: none), so that results are its instances."""
    global _find_class
    _find_class = find


def set_object_wrapper(wrap: Callable[[Object], Any]) -> None:
    """Say what Python sees of an object.  The wrapper holds the object as `_ivalue`."""
    global _wrap_object
    _wrap_object = wrap


def to_python(type: Type) -> Converter | None:
    """The function that gives values of the type to Python; None when there is nothing to change."""
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
    make = _named_tuple(type) if type.name else None
    if make is None and not any(converters):
        return None
    functions = [convert or _same for convert in converters]

    def to_tuple(values: Any) -> Any:
        converted = [convert(v) for convert, v in zip(functions, values, strict=True)]
        return make(*converted) if make else tuple(converted)

    return to_tuple


@cache
def _named_tuple_class(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name, fields)


def _named_tuple(type: TupleType) -> Any:
    assert type.name is not None
    return _find_class(type) or _named_tuple_class(type.name.rsplit(".", 1)[-1], type.fields)


def _optional_out(type: Any) -> Converter | None:
    convert = to_python(type.element)
    return (lambda value: None if value is None else convert(value)) if convert else None


def _any_to_python(value: Any) -> Any:
    """By what the value is: its declared type does not tell."""
    if isinstance(value, tuple):
        return tuple(map(_any_to_python, value))
    if isinstance(value, list):
        return [_any_to_python(v) for v in value]
    if isinstance(value, dict):
        return {_any_to_python(k): _any_to_python(v) for k, v in value.items()}
    if isinstance(value, EnumValue):
        return _enum_member(value)
    return _wrap_object(value) if isinstance(value, Object) else value


def _enum_member(value: EnumValue) -> Any:
    python_class = _find_class(value.type) or _enum_class(value.type.qualname, value.type.members)
    return python_class[value.name]


@cache
def _enum_class(qualname: str, members: tuple[tuple[str, Any], ...]) -> Any:
    return enum.Enum(qualname.rsplit(".", 1)[-1], members)


def _same(value: Any) -> Any:
    return value


_TO: Final[dict[type, Callable[[Any], Converter | None]]] = {
    ListType: _list_out, DictType: _dict_out, TupleType: _tuple_out, OptionalType: _optional_out,
    UnionType: lambda _: _any_to_python, EnumType: lambda _: _enum_member,
    ClassType: lambda _: lambda value: _wrap_object(value), InterfaceType: lambda _: lambda value: _wrap_object(value),
}  # fmt: skip
