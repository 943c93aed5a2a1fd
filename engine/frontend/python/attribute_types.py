"""The TorchScript types of Python values.

In: the value of an attribute that is not annotated.  Out: its type, or `NoType` with the reason why it has none.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.lang import scalars
from engine.lang.errors import CompileError
from engine.lang.types import (
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    STR,
    TENSOR,
    ClassType,
    DictType,
    ListType,
    TupleType,
    Type,
    unify,
)  # fmt: skip

ClassTypes = Callable[[type], Type]
"""Gives the type of a Python class; raises CompileError when the class cannot be compiled."""


class NoType(Exception):
    """The value has no type in TorchScript; the text has the reason."""


def type_of_value(value: Any, classes: ClassTypes) -> Type:
    """The type of the value.  Raises NoType."""
    simple = _SIMPLE.get(type(value))
    if simple is not None:
        return simple
    if isinstance(value, Tensor):
        return TENSOR
    if isinstance(value, tuple):
        return TupleType(tuple(type_of_value(part, classes) for part in value))
    if isinstance(value, list):
        return ListType(_common(value, classes, "list element", "List inputs", "List trace inputs must have elements"))
    if isinstance(value, dict):
        what = "Dictionary inputs"
        key = _common(value.keys(), classes, "dict key", what, "Dictionary inputs must have entries")
        return DictType(key, _common(value.values(), classes, "dict value", what, ""))
    inner = own_attribute(value, "_ivalue")
    if isinstance(inner, Object) and not inner.type.is_module:
        return inner.type
    return _instance(value, classes)


def own_attribute(value: Any, name: str) -> Any:
    """The attribute that the object or its class has; None where at most `__getattr__` of the program would tell."""
    return getattr(value, name, None) if inspect.getattr_static(value, name, None) is not None else None


def _instance(value: Any, classes: ClassTypes) -> Type:
    """The type of an instance, if its class can be compiled; attributes hold no modules."""
    cls = type(value)
    if getattr(cls, "_torchscript_module", False):
        raise NoType("Cannot infer concrete type of torch.nn.Module. Only nn.ModuleList and nn.ModuleDict hold modules")
    if isinstance(value, enum.Enum) or _has_code(cls):
        try:
            found = classes(cls)
        except CompileError as error:
            raise NoType(f"{_refusal(value)} The class cannot be compiled: {error.message}") from None
        if not isinstance(found, ClassType) or not found.is_module:
            return found
    raise NoType(_refusal(value))


def _has_code(cls: type) -> bool:
    """True for a class of the program, not of the engine or of a library written in C."""
    if cls.__module__ == "builtins" or cls.__module__.partition(".")[0] == "engine" or issubclass(cls, Exception):
        return False
    return all(hasattr(member, "__code__") for member in vars(cls).values() if callable(member))


def _refusal(value: Any) -> str:
    return (
        "Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs or outputs of "
        f"traced functions, but instead got value of type {type(value).__name__}."
    )


def _common(values: Iterable[Any], classes: ClassTypes, part: str, what: str, when_empty: str) -> Type:
    """The type that all the values share."""
    common: Type | None = None
    for value in values:
        try:
            found = type_of_value(value, classes)
        except NoType as reason:
            raise NoType(f"Could not infer type of {part}: {reason}") from None
        joined = found if common is None else unify(common, found)
        if joined is None:
            raise NoType(f"{what} to traced functions must have consistent element type. Found {common} and {found}")
        common = joined
    if common is None:
        raise NoType(when_empty)
    return common


_SIMPLE: Final[dict[type, Type]] = {
    type(None): NONE, bool: BOOL, int: INT, float: FLOAT, complex: COMPLEX, str: STR, Tensor: TENSOR,
    scalars.device: DEVICE, **dict.fromkeys(scalars.NUMBERED, INT),
}  # fmt: skip
