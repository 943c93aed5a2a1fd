"""Check of a value against the type its slot declares.

In: a value and a TorchScript type.  Out: None, or the reason for a mismatch, in words.  Programs are typed, and
the executor relies on the types; so every value that an archive brings is checked against them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, Final

from engine.aten.values.ivalue import EnumValue, Object
from engine.aten.values.tensor import Tensor
from engine.lang import scalars
from engine.lang.types import (
    ANY,
    ANY_CLASS,
    ANY_ENUM,
    ANY_LIST,
    ANY_TUPLE,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    ClassType,
    DictType,
    EnumType,
    InterfaceType,
    ListType,
    OptionalType,
    SimpleType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    implements,
    members_of,
)  # fmt: skip

_PYTHON: Final[dict[Type, tuple[type, ...]]] = {
    INT: (int,), FLOAT: (float,), COMPLEX: (complex,), BOOL: (bool,), STR: (str,), NONE: (type(None),),
    NUMBER: (int, float, complex), DEVICE: (scalars.device,), ANY_LIST: (list,), ANY_TUPLE: (tuple,),
    ANY_ENUM: (EnumValue,), ANY_CLASS: (Object,),
}  # fmt: skip
"""Types determined by a value's exact Python class (a bool is no int here)."""


def misfit(value: Any, type: Type) -> str | None:
    """The reason why `value` is not of the type `type`, in words; None if it is."""
    return _TypeCheck().misfit(value, type)


class _TypeCheck:
    """One check; no object is checked twice, so that shared parts cost nothing (however often shared)."""

    def __init__(self) -> None:
        self._passed: set[tuple[int, int]] = set()

    def misfit(self, value: Any, type: Type) -> str | None:
        if type is ANY:
            return None
        wanted = _PYTHON.get(type) if isinstance(type, SimpleType) else None
        if wanted is not None:
            return None if value.__class__ in wanted else _wrong(value, type)
        if isinstance(value, (list, dict, tuple)):
            return self._container(value, type)
        if isinstance(type, (OptionalType, UnionType)):
            return self._alternatives(value, type)
        fits = _CHECKS.get(type.__class__)
        return None if fits is not None and fits(value, type) else _wrong(value, type)

    def _alternatives(self, value: Any, type: Type) -> str | None:
        fits = any(self.misfit(value, each) is None for each in members_of(type))
        return None if fits else _wrong(value, type)

    def _container(self, value: Any, type: Type) -> str | None:
        key = (id(value), id(type))
        if key in self._passed:
            return None
        wrong = self._parts(value, type)
        if wrong is None:
            self._passed.add(key)
        return wrong

    def _parts(self, value: Any, type: Type) -> str | None:
        if isinstance(type, (OptionalType, UnionType)):
            return self._alternatives(value, type)
        if isinstance(type, ListType) and isinstance(value, list):
            return self._all(value, repeat(type.element))
        if isinstance(type, DictType) and isinstance(value, dict):
            return self._all(value, repeat(type.key)) or self._all(value.values(), repeat(type.value))
        if isinstance(type, TupleType) and isinstance(value, tuple) and len(value) == len(type.elements):
            return self._all(value, type.elements)
        return _wrong(value, type)

    def _all(self, values: Iterable[Any], types: Iterable[Type]) -> str | None:
        found = (self.misfit(value, type) for value, type in zip(values, types, strict=False))
        return next((wrong for wrong in found if wrong), None)


def _wrong(value: Any, type: Type) -> str:
    found = value.type.qualname if isinstance(value, (Object, EnumValue)) else value.__class__.__name__
    return f"a value of type '{type.annotation_str}' is wanted, and this is a '{found}'"


_CHECKS: Final[dict[type, Callable[[Any, Any], bool]]] = {
    TensorType: lambda value, _: isinstance(value, Tensor),
    ClassType: lambda value, type: isinstance(value, Object) and value.type is type,
    InterfaceType: lambda value, type: isinstance(value, Object) and implements(value.type, type),
    EnumType: lambda value, type: isinstance(value, EnumValue) and value.type == type,
}
