"""Constants: Python values as `prim::Constant` nodes, and back.

In: a graph and a value.  Out: a node with one attribute `value`, which holds the Python value itself:

    kind of `value`   type of the output                    prints as
    i                 int, bool                             `value=1` (True and False as 1 and 0)
    f, c, s           float, complex, str                   `value=0.5`, `value=1.+2.j`, `value="a"`
    s                 Device (the value is a `device`)      `value="cpu"`
    t                 Tensor                                `value={3}`
    ival              lists, dicts, tuples, enum members,   `value=(1, 2.)`
                      objects

None has no attribute (`prim::Constant()`), and a function has `name="f"` and a `FunctionType`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from engine.aten.kernels.rules import steps
from engine.aten.values.ivalue import EnumValue, Object
from engine.aten.values.tensor import Tensor
from engine.ir.graph import Graph, Node, Value
from engine.lang.scalars import device
from engine.lang.source import SourceRange
from engine.lang.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    STR,
    TENSOR,
    DictType,
    FunctionType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    unify,
)  # fmt: skip


class _NotConstant:
    def __repr__(self) -> str:
        return "NOT_CONSTANT"


NOT_CONSTANT: Final = _NotConstant()
"""Result of `constant_value` for a value that no constant defines (None is a constant like any other)."""

_SIMPLE: Final[dict[type, tuple[Type, str]]] = {
    bool: (BOOL, "i"), int: (INT, "i"), float: (FLOAT, "f"), complex: (COMPLEX, "c"), str: (STR, "s"),
    device: (DEVICE, "s"),
}  # fmt: skip


def insert_constant(graph: Graph, value: Any, type: Type | None = None, range: SourceRange | None = None) -> Value:
    """Put a constant at the graph's insert point; its type is told by the value unless given."""
    node = graph.create("prim::Constant", (), [type or type_of(value)])
    node.range = range or node.range
    set_constant(node, value)
    return graph.insert_node(node).output


def set_constant(node: Node, value: Any) -> None:
    """Let a `prim::Constant` hold `value`; its output's type stays."""
    node.attributes.clear()
    if isinstance(node.output.type, FunctionType):
        node.set_attr("name", node.output.type.function.name)
    elif value is not None:
        node.set_attr("value", value, attribute_kind_of(value))


def attribute_kind_of(value: Any) -> str:
    """The kind of the attribute `value` that holds such a constant."""
    if isinstance(value, Tensor):
        return "t"
    return _SIMPLE[type(value)][1] if type(value) in _SIMPLE else "ival"


def constant_value(value: Value) -> Any:
    """The Python value of a constant (a function of a function constant), or NOT_CONSTANT."""
    node = value.node
    if node.kind != "prim::Constant":
        return NOT_CONSTANT
    if isinstance(value.type, FunctionType):
        return value.type.function
    return node.attr("value") if node.has_attribute("value") else None if value.type == NONE else _missing(node)


def constant_inputs(node: Node) -> list[Any] | None:
    """The values of all inputs, or None when one of them is no constant."""
    values = [constant_value(value) for value in node.inputs]
    return None if any(value is NOT_CONSTANT for value in values) else values


def type_of(value: Any) -> Type:
    """The type of a Python value; the elements of lists and dicts must share one."""
    if type(value) in _SIMPLE:
        return _SIMPLE[type(value)][0]
    if value is None:
        return NONE
    if isinstance(value, Tensor):
        return tensor_type_of(value)
    if isinstance(value, tuple):
        return TupleType(tuple(map(type_of, value)))
    if isinstance(value, list):
        return ListType(_common_type(value))
    if isinstance(value, dict):
        return DictType(_common_type(list(value)) if value else STR, _common_type(list(value.values())))
    assert isinstance(value, (Object, EnumValue)), f"{value!r} is no value of a program"
    return value.type


def tensor_type_of(tensor: Tensor) -> TensorType:
    """Everything that is known of one tensor, as `Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)`."""
    strides = steps(tensor.array)
    return TensorType(tensor.dtype, tuple(tensor.shape), strides, tensor.requires_grad, tensor.device)


def constant_key(node: Node) -> Hashable | None:
    """Key that equal constants share: type and value; None for those that equal nothing, as nan and Enum members."""
    value = node.attributes["value"].value if "value" in node.attributes else node.attributes.get("name")
    key = _key(value)
    return None if key is None else (node.output.type, key)


def _key(value: Any) -> Hashable | None:
    if isinstance(value, (list, tuple)):
        return _keys(type(value), value)
    if isinstance(value, dict):
        return _keys(dict, [part for item in value.items() for part in item])
    if isinstance(value, Tensor):
        array = value.array
        if value.is_meta:
            return None
        return (array.dtype, array.shape, array.tobytes()) if bool((array == array).all()) else None
    if isinstance(value, Object):
        return id(value)
    if isinstance(value, EnumValue):
        return None
    return (type(value), value) if value == value else None


_EQUAL_THEMSELVES: Final = {bool, int, str}


def _keys(kind: type, values: Sequence[Any]) -> Hashable | None:
    kinds = set(map(type, values))
    if len(kinds) == 1 and kinds <= _EQUAL_THEMSELVES:
        return kind, *kinds, tuple(values)
    keys = tuple(map(_key, values))
    return None if None in keys else (kind, keys)


def _common_type(values: list[Any]) -> Type:
    if not values:
        return TENSOR
    if len(kinds := set(map(type, values))) == 1 and kinds <= set(_SIMPLE):
        return _SIMPLE[kinds.pop()][0]
    common: Type | None = _element_type(values[0])
    for value in values[1:]:
        common = unify(common, _element_type(value)) if common is not None else None
    return common or ANY


def _element_type(value: Any) -> Type:
    return TENSOR if isinstance(value, Tensor) else type_of(value)


def _missing(node: Node) -> Any:
    """A typed None: `%x : int? = prim::Constant()`; any other constant without a value says nothing."""
    return None if isinstance(node.output.type, OptionalType) else NOT_CONSTANT
