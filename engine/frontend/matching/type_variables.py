"""Type variables of schemas, like the `t` of `append.t(t[] self, t el)`.

In: a parameter's type and an argument's.  Out: the types that the variables stand for, or why the two do not fit.
"""

from __future__ import annotations

from typing import Final

from engine.lang.types import (
    NONE,
    ClassType,
    DictType,
    LaterType,
    ListType,
    OptionalType,
    SimpleType,
    TensorType,
    TupleType,
    Type,
    VarType,
    unify,
    unwrap_optional,
    walk,
)  # fmt: skip

TypeVariables = dict[str, Type]


def has_variables(type: Type) -> bool:
    if isinstance(type, _PLAIN):
        return False
    return any(isinstance(part, VarType) for part in walk(type))


_PLAIN: Final = (SimpleType, TensorType, ClassType)
"""Types that are not built from others."""


def match_variables(formal: Type, actual: Type, known: TypeVariables) -> str | None:
    """Bind the variables of `formal` in `known`; returns the reason if `actual` cannot be that type."""
    if isinstance(formal, VarType):
        return _bind(formal, actual, known)
    if not has_variables(formal):
        return None
    if isinstance(formal, ListType):
        return _match_list(formal, actual, known)
    if isinstance(formal, TupleType):
        return _match_tuple(formal, actual, known)
    if isinstance(formal, LaterType):
        if not isinstance(actual, formal.__class__):
            return f"Cannot match {'an await' if formal.WORD == 'Await' else 'a future'} to {actual.annotation_str}"
        return match_variables(formal.element, actual.element, known)
    if isinstance(formal, OptionalType):
        if actual is NONE:
            return "T could not be inferred from actual type None: an Optional[T] does not tell it"
        return match_variables(formal.element, unwrap_optional(actual), known)
    assert isinstance(formal, DictType), f"no rule for type variables in {formal}"
    if not isinstance(actual, DictType):
        return f"Cannot match a dict to {actual.annotation_str}"
    return match_variables(formal.key, actual.key, known) or match_variables(formal.value, actual.value, known)


def evaluate(type: Type, known: TypeVariables) -> Type | None:
    """The type with its variables replaced, or None when one of them is not known."""
    if isinstance(type, VarType):
        return known.get(type.name)
    parts = [evaluate(part, known) for part in type.contained()] if has_variables(type) else []
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None
    if not found:
        return type
    if isinstance(type, TupleType):
        return TupleType(tuple(found), type.name, type.fields)
    if isinstance(type, OptionalType):
        is_optional = isinstance(found[0], OptionalType) or found[0] is NONE
        return found[0] if is_optional else OptionalType(found[0])
    assert isinstance(type, (ListType, DictType, LaterType))
    return type.__class__(*found)


def _bind(variable: VarType, actual: Type, known: TypeVariables) -> str | None:
    before = known.get(variable.name)
    if before is None:
        known[variable.name] = actual
        return None
    if unify(before, actual) is not None:
        return None
    return (
        f"Type variable '{variable.name}' previously matched to type {before.annotation_str} is matched to type "
        f"{actual.annotation_str}"
    )


def _match_list(formal: ListType, actual: Type, known: TypeVariables) -> str | None:
    if isinstance(actual, ListType):
        return match_variables(formal.element, actual.element, known)
    if isinstance(actual, TupleType) and actual.elements:
        common: Type | None = actual.elements[0]
        for element in actual.elements[1:]:
            common = unify(common, element) if common is not None else None
        if common is not None:
            return match_variables(formal.element, common, known)
    return f"Cannot match {formal.annotation_str} to {actual.annotation_str}"


def _match_tuple(formal: TupleType, actual: Type, known: TypeVariables) -> str | None:
    if not isinstance(actual, TupleType):
        return f"Cannot match a tuple to {actual.annotation_str}"
    if len(formal.elements) != len(actual.elements):
        return "Cannot match tuples of mismatched size"
    pairs = zip(formal.elements, actual.elements, strict=True)
    return next((why for why in (match_variables(f, a, known) for f, a in pairs) if why is not None), None)
