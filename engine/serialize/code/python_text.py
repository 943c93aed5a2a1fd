"""Names, types and constants as the Python of archives writes them.

In: types, values.  Out: text.  How a class is called, and where a constant goes that text cannot hold
(tensors, objects, strings beyond ASCII), the caller says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, Final

from engine.aten.values.ivalue import EnumValue, Object
from engine.aten.values.tensor import Tensor
from engine.ir.printer import float_text
from engine.lang import scalars
from engine.lang.errors import ArchiveError
from engine.lang.literals import string_literal
from engine.lang.records import dataclass
from engine.lang.types import (
    ANY,
    BOOL,
    NUMBER,
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    FutureType,
    InterfaceType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    UnionType,
    in_union_order,
    members_of,
)  # fmt: skip
from engine.serialize.container.qualified_names import is_name

ClassName = Callable[[Type, str], str]
"""(class, its qualified name) -> its name in the text."""

_WORDS: Final = """
    _ as aten attribute CONSTANTS fork getattr inf nan infj nanj ops __torch__ uninitialized unchecked_cast
    and assert async await break class continue def del elif else except False finally for from global if import in is
    lambda None nonlocal not or pass raise return torch True try while with yield
"""
RESERVED: Final = frozenset(_WORDS.split())
"""Words that no variable may be called."""
FUNCTIONS: Final = frozenset("annotate bool float int isinstance print range sorted str".split())
"""Functions that code calls without `torch`: names that only an argument may have, as its name is part of a schema."""


def name_text(name: str, kind: str) -> str:
    """The name, which code spells as it is.  Raises ArchiveError for one that cannot be read back."""
    if not is_name(name):
        raise ArchiveError(f"{name!r:.60}, the name of {kind}, cannot stand in the code of an archive")
    return name


def identifier_from(name: str) -> str:
    """`name` made an identifier: `_0` of `0`, `a_b` of `a.b`."""
    text = "".join(char if char == "_" or (char.isascii() and char.isalnum()) else "_" for char in name)
    return f"_{text}" if not text or text[0].isdigit() else text


def qualname_of(type: Type) -> str | None:
    """The qualified name of a class, interface, enum or named tuple; None for other types."""
    if isinstance(type, (ClassType, InterfaceType, EnumType)):
        return type.qualname
    return type.name if isinstance(type, TupleType) else None


def annotation(type: Type, class_name: ClassName) -> str:
    """The type as an annotation."""
    qualname = qualname_of(type)
    if qualname is not None:
        return class_name(type, qualname)
    word = _GENERIC.get(type.__class__)
    if word is None:
        return type.annotation_str
    parts: Iterable[Type] = type.contained()
    if isinstance(type, OptionalType) and type.as_union:
        word, parts = "Union", in_union_order(members_of(type))
    inside = ", ".join(annotation(part, class_name) for part in parts)
    return f"{word}[{inside or '()'}]"


_GENERIC: Final[dict[type, str]] = {
    ListType: "List", DictType: "Dict", TupleType: "Tuple", OptionalType: "Optional", UnionType: "Union",
    FutureType: "Future", AwaitType: "Await",
}  # fmt: skip


def tells_its_type(element: Type) -> bool:
    """True if the element type of a list can be inferred from its elements."""
    return element not in (ANY, NUMBER) and not isinstance(element, (OptionalType, UnionType, InterfaceType))


@dataclass(slots=True, eq=False)
class ConstantTable:
    """The constants that `CONSTANTS.cN` refers to, with their types; equal tensors are kept once."""

    values: list[Any] = field(default_factory=list)
    types: list[Type] = field(default_factory=list)

    def index(self, value: Any, type: Type) -> int:
        for at, known in enumerate(self.values):
            if known is value or (value.__class__ is str and known == value) or _same_tensor(known, value):
                return at
        self.values.append(value)
        self.types.append(type)
        return len(self.values) - 1


def _same_tensor(a: Any, b: Any) -> bool:
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return False
    x, y = a.array, b.array
    same_form = x.dtype == y.dtype and x.shape == y.shape
    return same_form and a.requires_grad == b.requires_grad and bool((x == y).all())


@dataclass(frozen=True, slots=True)
class ConstantWriter:
    """Writes values as Python expressions."""

    class_name: ClassName
    table: ConstantTable

    def text(self, value: Any, type: Type) -> str:
        if isinstance(value, (Tensor, Object)) or (isinstance(value, str) and not value.isascii()):
            return f"CONSTANTS.c{self.table.index(value, type)}"
        if isinstance(value, (list, dict, tuple)):
            return self._container(value, type)
        if isinstance(value, EnumValue):
            name = name_text(value.name, "a member of an enum")
            return f"{self.class_name(value.type, value.type.qualname)}.{name}"
        return scalar_text(value, type)

    def _container(self, value: Any, type: Type) -> str:
        if isinstance(value, tuple):
            elements = type.elements if isinstance(type, TupleType) else (ANY,) * len(value)
            name = self.class_name(type, type.name) if isinstance(type, TupleType) and type.name else ""
            inside = ", ".join(map(self.text, value, elements))
            return f"{name}({inside},)" if len(value) == 1 and not name else f"{name}({inside})"
        parts = type.contained() or (ANY, ANY)
        annotated = not value or not all(map(tells_its_type, parts))
        if isinstance(value, list):
            text, comma = f"[{', '.join(self.text(each, parts[0]) for each in value)}]", ", "
        else:
            items = (f"{self.text(k, parts[0])}: {self.text(v, parts[1])}" for k, v in value.items())
            text, comma = f"{{{', '.join(items)}}}", ","
        return f"annotate({annotation(type, self.class_name)}{comma}{text})" if annotated else text


def scalar_text(value: Any, type: Type = ANY) -> str:
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(bool(value)) if type == BOOL else str(value)
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, complex):
        imag = float_text(value.imag)
        return f"{float_text(value.real)}{'' if imag.startswith('-') else '+'}{imag}j"
    if isinstance(value, str):
        return string_literal(value)
    assert isinstance(value, scalars.device), f"{value!r} is no constant"
    return f'torch.device("{value}")'
