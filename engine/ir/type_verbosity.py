"""Verbosity of printed types, set by PYTORCH_JIT_TYPE_VERBOSITY.

    0    %x
    1    %x : Float(2, 3)
    2    %x : Float(2, 3, strides=[3, 1])
    3    %x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)

In: the variable, read when the first graph is printed, or `set_type_verbosity`.  Out: what stands behind the name of a
value.  Without the variable everything is told; graphs printed with less are for people: they do not read as they were.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from engine.lang.errors import CompileError
from engine.lang.schema import default_text
from engine.lang.types import DictType, FutureType, LaterType, ListType, OptionalType, TensorType, TupleType, Type

NAMES_ONLY, SHAPES, STRIDES, EVERYTHING = range(4)
VARIABLE: Final = "PYTORCH_JIT_TYPE_VERBOSITY"


class _Current:
    __slots__ = ("level",)

    def __init__(self) -> None:
        self.level: int | None = None


_CURRENT: Final = _Current()


def type_verbosity() -> int:
    """The level that holds now; the environment is read once."""
    if _CURRENT.level is None:
        _CURRENT.level = verbosity_of(os.environ)
    return _CURRENT.level


def set_type_verbosity(level: int) -> None:
    """Print graphs so from now on."""
    _CURRENT.level = min(max(level, NAMES_ONLY), EVERYTHING)


def verbosity_of(environment: Mapping[str, str]) -> int:
    """The level in the variable; higher ones mean everything.  Raises CompileError unless it is a number."""
    text = environment.get(VARIABLE, "").strip()
    if not text:
        return EVERYTHING
    if not re.fullmatch(r"[+-]?\d+", text):
        raise CompileError(f"{VARIABLE} is '{text}'", hints=("it is 0 (no types), 1 (shapes), 2 (strides) or 3 (all)",))
    return min(max(int(text), NAMES_ONLY), EVERYTHING)


def shown_type(type: Type) -> str:
    """The annotation printed behind the name of a value of that type."""
    level = type_verbosity()
    if level == EVERYTHING:
        return f" : {type_text(type)}"
    return f" : {type_text(_reduced(type, level))}" if level > NAMES_ONLY else ""


def _reduced(type: Type, level: int) -> Type:
    """The type without what the level leaves out of its tensors."""
    if isinstance(type, TensorType):
        return replace(type, requires_grad=None, device=None, strides=type.strides if level >= STRIDES else None)
    if isinstance(type, TupleType):
        elements = tuple(_reduced(element, level) for element in type.elements)
        return TupleType(elements, type.name, type.fields, type.defaults)
    if isinstance(type, DictType):
        return DictType(type.key, _reduced(type.value, level))
    if isinstance(type, (ListType, LaterType)):
        return type.__class__(_reduced(type.element, level))
    return replace(type, element=_reduced(type.element, level)) if isinstance(type, OptionalType) else type


def type_text(type: Type) -> str:
    """The text of the type in a graph."""
    if isinstance(type, TupleType):
        return _tuple_text(type)
    if isinstance(type, ListType):
        return f"{type_text(type.element)}[]"
    if isinstance(type, OptionalType) and not type.as_union:
        return f"{type_text(type.element)}?"
    return f"Future[{type_text(type.element)}]" if isinstance(type, FutureType) else str(type)


def _tuple_text(type: TupleType) -> str:
    parts = [type_text(element) for element in type.elements]
    if type.name is None and not type.fields:
        return f"({', '.join(parts)})"
    without = len(parts) - len(type.defaults)
    defaults = [""] * without + [f" = {default_text(value)}" for value in type.defaults]
    fields = zip(type.fields, parts, defaults, strict=True)
    return f"NamedTuple({', '.join(f'{name} : {part}{default}' for name, part, default in fields)})"
