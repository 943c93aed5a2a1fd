"""Python values on their way into programs.

In: a TorchScript type.  Out: `from_python(type)`, a function that makes a program's value of a Python one or raises
`Mismatch`.

What is taken for what is PyTorch's choice: a bool or a number of numpy is taken for an int, an int for a float, None
for a tensor; but inside a Union or Any the Python value must have just one of the types.  Besides, arrays are taken
for tensors (they share the memory).  Containers are copied.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from engine.aten.values.awaits import Await
from engine.aten.values.ivalue import EnumValue, Object
from engine.aten.values.tensor import Tensor, from_numpy
from engine.aten.values.traced import TracedFloat, TracedInt, float_of, plain
from engine.executor.concurrency.futures import Future
from engine.ir.constants import type_of
from engine.ir.unit import Function
from engine.lang.errors import EngineError
from engine.lang.records import dataclass
from engine.lang.scalars import NUMBERED, device
from engine.lang.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    FunctionType,
    FutureType,
    InterfaceType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    interface_gap,
)  # fmt: skip

Converter = Callable[[Any], Any]


class Mismatch(Exception):
    """The value is not of the type; the message says why if the type's name alone does not."""


class Shared:
    """The base of containers that Python and programs share: they go into programs as they are, without a copy."""

    __slots__ = ("shared", "shared_type")

    def __init__(self, shared: Any, shared_type: Any) -> None:
        self.shared, self.shared_type = shared, shared_type


@dataclass(slots=True)
class PythonTypes:
    """A slot for the function that knows what was compiled of Python classes; the public classes take it."""

    of_class: Callable[[type], Type | None] = lambda cls: None


PYTHON_TYPES: Final = PythonTypes()


def from_python(type: Type) -> Converter:
    """The function that converts Python values to the type; it raises Mismatch."""
    simple = _FROM_SIMPLE.get(type) if type.__class__ is INT.__class__ else None
    if simple is not None:
        return simple
    maker = _FROM.get(type.__class__)
    return maker(type) if maker else lambda value: value


# -- simple values in


def _to_int(value: Any) -> int:
    if isinstance(value, (int, np.generic, Tensor)):
        number = value if type(value) is TracedInt else int(_item(value))
        if -(2**63) <= number < 2**63:
            return number
        raise Mismatch("it does not fit in 64 bits")
    if isinstance(value, NUMBERED):
        return value.number
    raise Mismatch


def _to_float(value: Any) -> float:
    if not isinstance(value, (int, float, np.generic, Tensor)):
        raise Mismatch
    try:
        return float_of(value) if isinstance(value, (TracedInt, TracedFloat)) else float(_item(value))
    except (OverflowError, ValueError, TypeError) as error:
        raise Mismatch(str(error)) from None


def _to_complex(value: Any) -> complex:
    if isinstance(value, (int, float, complex, np.generic, Tensor)):
        return complex(_item(value))
    raise Mismatch


def _to_bool(value: Any) -> bool:
    if value is None or hasattr(value, "__bool__"):
        return bool(value)
    raise Mismatch


def _to_str(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    raise Mismatch


def _to_number(value: Any) -> Any:
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, np.generic):
        return _item(value)
    raise Mismatch("a tensor is no number: give x.item()" if isinstance(value, Tensor) else "")


def _to_none(value: Any) -> None:
    if value is not None:
        raise Mismatch


def _to_device(value: Any) -> device:
    if isinstance(value, device):
        return value
    if isinstance(value, str):
        return device(value)
    raise Mismatch


def _item(value: Any) -> Any:
    if not isinstance(value, (Tensor, np.generic)):
        return value
    try:
        return value.item()
    except EngineError as error:
        raise Mismatch(error.message) from None


def _to_tensor(value: Any) -> Any:
    if isinstance(value, Tensor) or value is None:
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        try:
            return from_numpy(np.asarray(value))
        except EngineError as error:
            raise Mismatch(error.message) from None
    raise Mismatch


def _to_any(value: Any) -> Any:
    """The value, converted by its own Python type; elements of a container must have one common type."""
    if value is None or isinstance(value, (bool, int, float, complex, str, Tensor, device, Future)):
        return value
    if isinstance(value, Shared):
        return value.shared
    if isinstance(value, (np.ndarray, np.generic)):
        return _to_tensor(value)
    if isinstance(value, NUMBERED):
        return value.number
    if isinstance(value, tuple):
        return tuple(map(_to_any, value))
    if isinstance(value, list):
        return _uniform([_to_any(v) for v in value])
    if isinstance(value, dict):
        keys, values = _uniform([_to_any(k) for k in value]), _uniform([_to_any(v) for v in value.values()])
        return dict(zip(keys, values, strict=True))
    if (inner := unwrapped(value)) is not None:
        return inner
    if (compiled := PYTHON_TYPES.of_class(type(value))) is None:
        raise Mismatch(f"a {type(value).__name__} has no type in TorchScript")
    return from_python(compiled)(value)


def _uniform(values: list[Any]) -> list[Any]:
    if not values:
        raise Mismatch("an empty container does not tell the type of its elements")
    shown = type_of(values)
    if isinstance(shown, ListType) and shown.element is ANY:
        raise Mismatch("its elements have different types")
    return values


def unwrapped(value: Any) -> Object | EnumValue | None:
    """The program's value behind a Python wrapper; None if it wraps none."""
    inner = value if isinstance(value, (Object, EnumValue)) else getattr(value, "_ivalue", None)
    return inner if isinstance(inner, (Object, EnumValue)) else None


def is_instance(value: Any, type: Type) -> bool:
    """True if the value belongs to the type; an empty list belongs to every list type, since values carry no types."""
    for kind, its_type in _OPAQUE.items():
        if isinstance(value, kind):
            return isinstance(type, its_type)
    if isinstance(value, (list, dict)) and not value:
        return type.__class__ is type_of(value).__class__
    if isinstance(value, Tensor):
        return isinstance(type, TensorType)
    return type_of(plain(value)).is_subtype_of(type)


_OPAQUE: Final[dict[type, type[Type]]] = {Future: FutureType, Await: AwaitType, Function: FunctionType}
"""Kinds of values whose parts nothing looks at -> their kinds of types."""


# -- values with parts in


def _from_list(type: Any) -> Converter:
    convert = from_python(type.element)

    def to_list(value: Any) -> list[Any]:
        if isinstance(value, Shared) and value.shared_type == type:
            shared: list[Any] = value.shared
            return shared
        if isinstance(value, (str, bytes, Tensor, Mapping)) or not isinstance(value, (Sequence, np.ndarray)):
            raise Mismatch
        return [convert(element) for element in value]

    return to_list


def _from_dict(type: Any) -> Converter:
    key, item = from_python(type.key), from_python(type.value)

    def to_dict(value: Any) -> dict[Any, Any]:
        if isinstance(value, Shared) and value.shared_type == type:
            shared: dict[Any, Any] = value.shared
            return shared
        if not isinstance(value, Mapping):
            raise Mismatch
        return {key(k): item(v) for k, v in value.items()}

    return to_dict


def _from_tuple(type: Any) -> Converter:
    converters = [from_python(element) for element in type.elements]

    def to_tuple(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (tuple, list)):
            raise Mismatch
        if len(value) != len(converters):
            raise Mismatch(f"it has {len(value)} elements, not {len(converters)}")
        return tuple([convert(element) for convert, element in zip(converters, value, strict=True)])

    return to_tuple


def _from_optional(type: Any) -> Converter:
    convert = from_python(type.element)
    return lambda value: None if value is None else convert(value)


def _from_union(type: Any) -> Converter:
    enums = [from_python(member) for member in type.members if isinstance(member, EnumType)]

    def to_member(value: Any) -> Any:
        for convert in enums if isinstance(value, enum.Enum) else ():
            with suppress(Mismatch):
                return convert(value)
        converted = _to_any(value)
        if any(is_instance(converted, member) for member in type.members):
            return converted
        found = type_of(converted).annotation_str
        raise Mismatch(f"Expected a member of {type.annotation_str} but instead found type {found}")

    return to_member


def _from_enum(type: Any) -> Converter:
    names = dict(type.members)

    def to_enum_value(value: Any) -> EnumValue:
        if isinstance(value, EnumValue) and value.type == type:
            return value
        if isinstance(value, enum.Enum) and value.name in names and value.value == names[value.name]:
            return EnumValue(type, value.name)
        raise Mismatch

    return to_enum_value


def _from_object(type: Any) -> Converter:
    def to_object(value: Any) -> Object:
        inner = unwrapped(value)
        if isinstance(inner, Object) and inner.type is type:
            return inner
        if inner is None and not type.is_module:
            missing = [a.name for a in type.attributes if not hasattr(value, a.name)]
            if missing:
                raise Mismatch(
                    f"Tried to cast object to type {type.name} but object was missing attribute {missing[0]}"
                )
            if value.__class__.__name__ == type.name:
                return _copied_in(value, type)
        raise Mismatch

    return to_object


def _copied_in(value: Any, type: ClassType) -> Object:
    """A Python instance of a scripted class, attribute by attribute."""
    made = Object(type)
    for attribute in type.attributes:
        try:
            made.set(attribute.name, from_python(attribute.type)(getattr(value, attribute.name)))
        except Mismatch as error:
            reason = f": {error}" if str(error) else ""
            raise Mismatch(
                f"Could not cast attribute '{attribute.name}' to type {attribute.type.annotation_str}{reason}"
            ) from None
    return made


def _from_interface(type: Any) -> Converter:
    def to_object(value: Any) -> Object:
        inner = unwrapped(value)
        known = PYTHON_TYPES.of_class(value.__class__) if inner is None else None
        if isinstance(known, ClassType):
            inner = _from_object(known)(value)
        if not isinstance(inner, Object):
            kind = value.__class__.__name__
            if type.is_module:
                raise Mismatch(f"only a ScriptModule class can be subtype of module interface, not {kind}")
            raise Mismatch(f"the value is not a TorchScript compatible type: a {kind} is no scripted object")
        if (gap := interface_gap(inner.type, type)) is None:
            return inner
        raise Mismatch(f"{inner.type.annotation_str} is not compatible with interface {type.annotation_str}: {gap}")

    return to_object


def _from_await(type: Any) -> Converter:
    convert, await_of = from_python(type.element), _only(Await)(type)
    return lambda value: await_of(value).converted(convert)


def _only(kind: type) -> Callable[[Type], Converter]:
    def to_kind(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        raise Mismatch

    return lambda _: to_kind


_FROM_SIMPLE: Final[dict[Type, Converter]] = {
    INT: _to_int, FLOAT: _to_float, COMPLEX: _to_complex, BOOL: _to_bool, STR: _to_str, NUMBER: _to_number,
    NONE: _to_none, DEVICE: _to_device, ANY: _to_any,
}  # fmt: skip
_FROM: Final[dict[type, Callable[[Any], Converter]]] = {
    TensorType: lambda _: _to_tensor, ListType: _from_list, DictType: _from_dict, TupleType: _from_tuple,
    OptionalType: _from_optional, UnionType: _from_union, EnumType: _from_enum, ClassType: _from_object,
    InterfaceType: _from_interface, FutureType: _only(Future), FunctionType: _only(Function), AwaitType: _from_await,
}  # fmt: skip
