"""The type of a value of which nothing but itself is known.

In: a value from a file.  Out: the least type that holds all of it; an empty list or dict takes on what others beside it
hold, and alone is what it is without an annotation.  Parts that are shared are looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, Final

from engine.aten.values.ivalue import EnumValue, Object
from engine.aten.values.tensor import Tensor
from engine.ir.constants import type_of
from engine.lang.records import dataclass
from engine.lang.types import (
    ANY,
    NONE,
    STR,
    TENSOR,
    DictType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    members_of,
    unify,
)

MOST_PARTS: Final = 10_000
"""A type of more parts is taken for any: tuples of tuples get big from few values."""


def general_type(value: Any, type_of_empty: Callable[[Any], Type | None] = lambda _: None) -> Type:
    """The value's type, with nothing said of the shapes of tensors; `type_of_empty` may know more of [] and {}."""
    return _Types(type_of_empty).of(value) or _ALONE.get(value.__class__, ANY)


_ALONE: Final[dict[type, Type]] = {list: ListType(TENSOR), dict: DictType(STR, TENSOR)}


@dataclass(slots=True)
class _Types:
    """Types of one value's parts, with how many parts each has; None is that of an empty list or dict."""

    type_of_empty: Callable[[Any], Type | None]
    known: dict[int, tuple[Type | None, int]] = field(default_factory=dict)

    def of(self, value: Any) -> Type | None:
        return self._counted(value)[0]

    def _counted(self, value: Any) -> tuple[Type | None, int]:
        if isinstance(value, Tensor):
            return TENSOR, 1
        if isinstance(value, (Object, EnumValue)):
            return value.type, 1
        if not isinstance(value, (list, dict, tuple)):
            return type_of(value), 1
        if id(value) not in self.known:
            found, count = self._container(value)
            self.known[id(value)] = (found, count) if count <= MOST_PARTS else (ANY, 1)
        return self.known[id(value)]

    def _container(self, value: list[Any] | dict[Any, Any] | tuple[Any, ...]) -> tuple[Type | None, int]:
        if isinstance(value, tuple):
            parts = [self._counted(each) for each in value]
            types = (found or _ALONE[each.__class__] for (found, _), each in zip(parts, value, strict=True))
            return TupleType(tuple(types)), 1 + sum(count for _, count in parts)
        if not value:
            return self.type_of_empty(value), 1
        if isinstance(value, list):
            element, count = self._common(value)
            return (None if element is None else ListType(element)), count + 1
        keys, more = self._common(value)
        held, count = self._common(value.values())
        return DictType(keys or ANY, held or TENSOR), more + count + 1

    def _common(self, values: Iterable[Any]) -> tuple[Type | None, int]:
        """The type of all these values, where they have one that programs can name."""
        common: Type | None = None
        most = 0
        for value in values:
            found, count = self._counted(value)
            most = max(most, count)
            if common is None or found is None or found == common:
                common = common or found
            else:
                common = unify(common, found) or ANY
        return common, most


def as_wanted(actual: Type, wanted: Type) -> Type:
    """The wanted type for a value whose own type is unknown or too wide; else its own type."""
    if actual.is_subtype_of(wanted) or isinstance(wanted, OptionalType):
        return actual
    may_be = actual in (ANY, NONE) or any(each.is_subtype_of(wanted) for each in members_of(actual))
    return wanted if may_be else actual
