"""Which types have memory that can be written to.

In: a type.  Out: whether values of it are mutable, and as which types they may appear.  A tuple, and a future, counts
as mutable when something in it is; tensors are one type whatever is known of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.lang.types import (
    ANY,
    ANY_CLASS,
    ANY_ENUM,
    ANY_LIST,
    ANY_TUPLE,
    TENSOR,
    ClassType,
    DictType,
    EnumType,
    InterfaceType,
    LaterType,
    ListType,
    OptionalType,
    SimpleType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    VarType,
    members_of,
)

_MUTABLE: Final = (TensorType, ListType, DictType, ClassType, InterfaceType, VarType)
_MUTABLE_WORDS: Final = frozenset(word.name for word in (ANY, ANY_LIST, ANY_TUPLE, ANY_CLASS))
_OF_PARTS: Final = (TupleType, OptionalType, UnionType, LaterType)


def is_mutable_type(type: Type) -> bool:
    """True if a value of the type, or something in it, can be written to."""
    if isinstance(type, _MUTABLE):
        return True
    if isinstance(type, SimpleType):
        return type.name in _MUTABLE_WORDS
    return isinstance(type, _OF_PARTS) and any(map(is_mutable_type, type.contained()))


def mutable_members(type: Type) -> tuple[Type, ...]:
    """The mutable types that a value of the type may have, without facts about tensors: `Tensor?` gives Tensor."""
    if isinstance(type, TensorType):
        return (TENSOR,)
    if isinstance(type, SimpleType):
        return (type,) if type.name in _MUTABLE_WORDS else ()
    found = dict.fromkeys(_plain(member) for member in members_of(type) if is_mutable_type(member))
    return tuple(found)


def mutable_parts(type: Type) -> Iterator[Type]:
    """The mutable types of what a value of the type holds: elements, attributes."""
    if isinstance(type, (EnumType, OptionalType, UnionType)) or type is ANY_ENUM:
        return
    for part in type.contained():
        if is_mutable_type(part):
            yield part


def _plain(type: Type) -> Type:
    """The type with every tensor in it just a Tensor."""
    if isinstance(type, TensorType):
        return TENSOR
    if isinstance(type, TupleType):
        return TupleType(tuple(map(_plain, type.elements)))
    if isinstance(type, (ListType, LaterType, OptionalType)):
        return _rewrapped(type)
    return DictType(type.key, _plain(type.value)) if isinstance(type, DictType) else type


def _rewrapped(type: ListType | LaterType | OptionalType) -> Type:
    element = _plain(type.element)
    return type if element == type.element else type.__class__(element)
