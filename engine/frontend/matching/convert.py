"""Implicit conversions.

In: a value and the type that is wanted.  Out: the value as that type, where the language converts
implicitly: an empty list literal to any list, a tuple to a list of its elements or element by
element, and, where calls convert, a tensor or a bool to a number and a string to a device.
`converted_type` is the type of the result, without changing the graph.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.ir.graph import Graph, Value
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import (
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    TENSOR,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    unwrap_optional,
)  # fmt: skip

MAX_TUPLE_SIZE: Final = 1 << 15
EMPTY_LIST: Final = "prim::EmptyListLiteral"
"""An unannotated `[]` until its type is known; afterwards a `prim::ListConstruct`."""

_FROM_TENSOR: Final[dict[Type, str]] = {
    FLOAT: "aten::FloatImplicit", INT: "aten::IntImplicit", COMPLEX: "aten::ComplexImplicit",
    NUMBER: "aten::ScalarImplicit",
}  # fmt: skip
_FROM_NUMBER: Final[dict[Type, str]] = {FLOAT: "aten::Float", INT: "aten::Int", COMPLEX: "aten::Complex"}
_FROM_BOOL: Final[dict[Type, str]] = {FLOAT: "aten::Float", INT: "aten::Int", NUMBER: "aten::Int"}
_RESULTS: Final = {
    "aten::FloatImplicit": FLOAT, "aten::IntImplicit": INT, "aten::ComplexImplicit": COMPLEX, "aten::Float": FLOAT,
    "aten::ScalarImplicit": NUMBER, "aten::Int": INT, "aten::Complex": COMPLEX, "aten::device": DEVICE,
}  # fmt: skip


class Operand(NamedTuple):
    """The facts about a value that decide its conversion; `parts` are those of a tuple built on the spot."""

    type: Type
    is_empty_list: bool = False
    parts: tuple[Operand, ...] | None = None

    @classmethod
    def of(cls, value: Value) -> Operand:
        node = value.node
        if node.kind == "prim::TupleConstruct":
            return cls(value.type, False, tuple(map(cls.of, node.inputs)))
        return cls(value.type, node.kind == EMPTY_LIST)


def is_convertible_to_list(type: Type, wanted: Type) -> bool:
    """True if the type is that list already, or a tuple whose elements all fit into it."""
    if not isinstance(wanted, ListType):
        return False
    if type.is_subtype_of(wanted):
        return True
    return isinstance(type, TupleType) and all(element.is_subtype_of(wanted.element) for element in type.elements)


def converted_type(operand: Operand, wanted: Type, conversions: bool) -> Type:
    """The type of the value that `convert` would return."""
    type = operand.type
    if type == wanted:
        return type
    target = _target(type, wanted)
    if operand.is_empty_list and isinstance(target, ListType):
        return target
    if isinstance(type, TupleType):
        if is_convertible_to_list(type, unwrap_optional(target)):
            return unwrap_optional(target)
        if _fits_by_element(type, target):
            assert isinstance(target, TupleType)
            parts = operand.parts or tuple(map(Operand, type.elements))
            pairs = zip(parts, target.elements, strict=True)
            return TupleType(tuple(converted_type(part, element, conversions) for part, element in pairs))
    kind = _implicit_operator(type, target) if conversions else None
    return _RESULTS[kind] if kind else type


def convert(graph: Graph, value: Value, wanted: Type, conversions: bool, range: SourceRange | None = None) -> Value:
    """The value as `wanted`, if there is an implicit conversion; else the unchanged value."""
    if value.type == wanted:
        return value
    target = _target(value.type, wanted)
    if value.node.kind == EMPTY_LIST and isinstance(target, ListType):
        return graph.append("prim::ListConstruct", (), [target]).output
    if isinstance(value.type, TupleType):
        listed = unwrap_optional(target)
        if is_convertible_to_list(value.type, listed):
            return graph.append("prim::ListConstruct", unpack_tuple(graph, value), [listed]).output
        if _fits_by_element(value.type, target):
            assert isinstance(target, TupleType)
            pairs = zip(unpack_tuple(graph, value), target.elements, strict=True)
            return make_tuple(graph, [convert(graph, part, type, conversions, range) for part, type in pairs])
    kind = _implicit_operator(value.type, target) if conversions else None
    if kind is None:
        return value
    node = graph.append(kind, [value], [_RESULTS[kind]])
    node.range = range or node.range
    return node.output


def unpack_tuple(graph: Graph, value: Value) -> list[Value]:
    """The elements of a tuple; for one built on the spot, the values it was built from."""
    if value.node.kind == "prim::TupleConstruct":
        return list(value.node.inputs)
    assert isinstance(value.type, TupleType)
    return graph.append("prim::TupleUnpack", [value], value.type.elements).outputs


def make_tuple(graph: Graph, values: list[Value], type: TupleType | None = None) -> Value:
    """A tuple of the values.  Raises CompileError when its type is too big to be written down."""
    type = type or TupleType(tuple(value.type for value in values))
    if type.size > MAX_TUPLE_SIZE:
        raise CompileError(
            f"the type of this tuple has {type.size} parts, {MAX_TUPLE_SIZE} are allowed",
            graph.current_range,
            hints=("use a list where the elements share a type",),
        )
    return graph.append("prim::TupleConstruct", values, [type]).output


def _target(type: Type, wanted: Type) -> Type:
    """The type inside an Optional, unless the value may be None itself; else the type that is wanted."""
    while isinstance(wanted, OptionalType) and not isinstance(type, OptionalType) and type is not NONE:
        wanted = wanted.element
    return wanted


def _fits_by_element(type: TupleType, target: Type) -> bool:
    if not isinstance(target, TupleType) or len(target.elements) != len(type.elements):
        return False
    return not type.is_subtype_of(target)


def _implicit_operator(type: Type, target: Type) -> str | None:
    """The operator that converts, if there is one."""
    if isinstance(type, TensorType):
        return None if target is TENSOR else _FROM_TENSOR.get(target)
    if type is NUMBER:
        return _FROM_NUMBER.get(target)
    if type is BOOL:
        return _FROM_BOOL.get(target)
    return "aten::device" if type is STR and target is DEVICE else None
