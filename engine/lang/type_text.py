"""Types as graphs write them.

In: a type.  Out: its text, where named tuples show what they are made of: `NamedTuple(a : int, b : float = 2.)`.  Where
they stand inside of a dict, and in schemas, they go by their names, as `str` writes them.
"""

from __future__ import annotations

from engine.lang.schema import default_text
from engine.lang.types import FutureType, ListType, OptionalType, TupleType, Type


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
