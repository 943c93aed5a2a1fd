"""Graphs as plain data: numbers, strings and tuples of them, such as `marshal` writes.

In: a graph, and `References` for what it refers to and does not hold.  Out: `flatten(graph, names)`; and the other way,
`unflatten(data, names)` gives a graph with equal nodes, ranges, types, names and numbers.  A graph that refers to what
has no name is refused by NotPlain.

    graph   a block, types, the next number, numbers of names
    block   inputs, nodes, outputs, the range of its end    an output is the index of a value among all of the graph
    node    kind, operator, range, inputs, outputs, attributes, blocks, calls that inlining removed
    value   number, name, type
    range   the name of its source, and offsets
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, Protocol

from engine.aten.dispatch import table
from engine.aten.dispatch.families import LAST
from engine.aten.values.ivalue import EnumValue
from engine.aten.values.tensor import Tensor
from engine.ir.graph import Attr, Block, Graph, InlinedFrom, Node, Use, Value
from engine.lang.scalars import DTYPE_BY_NUMBER, device
from engine.lang.source import Source, SourceRange
from engine.lang.types import (
    ANY,
    ANY_CLASS,
    ANY_ENUM,
    ANY_LIST,
    ANY_TUPLE,
    BOOL,
    CAPSULE,
    COMPLEX,
    DEVICE,
    FLOAT,
    GENERATOR,
    INT,
    NONE,
    NUMBER,
    STORAGE,
    STR,
    STREAM,
    TENSOR,
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    FunctionType,
    FutureType,
    InterfaceType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)

_SIMPLE: Final = (
    TENSOR, INT, FLOAT, COMPLEX, BOOL, STR, NONE, NUMBER, DEVICE, GENERATOR, STREAM, STORAGE, CAPSULE, ANY, ANY_LIST,
    ANY_TUPLE, ANY_ENUM, ANY_CLASS,
)  # fmt: skip
_BY_NAME: Final[dict[str, Type]] = {str(type): type for type in _SIMPLE}
_PLAIN: Final = frozenset([bool, int, float, complex, str, type(None)])


class NotPlain(Exception):
    """Something in a graph that has no name outside."""


class References(Protocol):
    """Names for what a graph refers to; either way raises NotPlain where there is none."""

    def name_of_source(self, source: Source) -> str: ...
    def source(self, name: str) -> Source: ...
    def name_of_type(self, type: Type) -> str: ...
    def type(self, name: str) -> Type: ...
    def name_of_function(self, type: FunctionType) -> str: ...
    def function(self, name: str) -> FunctionType: ...
    def name_of_tensor(self, tensor: Tensor) -> int: ...
    def tensor(self, name: int) -> Tensor: ...


class Program(References, Protocol):
    """All that graphs of functions of one program refer to."""

    @property
    def key(self) -> str:
        """A key of all that the graphs are made from; empty where they may have been changed, or are too large."""

    def open(self) -> None:
        """Let there be no key from here on: somebody has a graph in hand, and may change it."""

    def sent(self) -> tuple[Any, ...]:
        """The program as plain data, of which another process makes the same.  Raises NotPlain for what is not."""


# ------------------------------------------------------------------ types


def flat_type(type: Type, names: References) -> Any:
    """The type as a string or a tuple.  Raises NotPlain."""
    simple = str(type) if not isinstance(type, (ClassType, EnumType, InterfaceType, TupleType)) else ""
    if _BY_NAME.get(simple) == type:
        return simple
    if isinstance(type, FunctionType):
        return "function", names.name_of_function(type)
    if isinstance(type, (ClassType, EnumType, InterfaceType)) or (isinstance(type, TupleType) and type.fields):
        return "named", names.name_of_type(type)
    if isinstance(type, OptionalType):
        return "optional", flat_type(type.element, names), type.as_union
    if isinstance(type, TensorType):
        facts = type.sizes, type.strides, type.requires_grad, type.device and str(type.device), type.symbols
        return "tensor", type.dtype and type.dtype.number, *facts
    for kind, (of, _) in _CONTAINERS.items():
        if isinstance(type, of):
            return kind, *(flat_type(each, names) for each in type.contained())
    raise NotPlain(str(type))


_CONTAINERS: Final[dict[str, tuple[type[Type], Callable[..., Type]]]] = {
    "list": (ListType, ListType),
    "dict": (DictType, DictType),
    "future": (FutureType, FutureType),
    "await": (AwaitType, AwaitType),
    "tuple": (TupleType, lambda *parts: TupleType(parts)),
    "union": (UnionType, lambda *parts: UnionType(parts)),
}
"""Types of parts, and what makes one of these."""


def type_of_flat(data: Any, names: References) -> Type:
    """The type again.  Raises NotPlain for a name that nothing has."""
    if isinstance(data, str):
        return _BY_NAME[data]
    kind, *parts = data
    if kind == "named":
        return names.type(*parts)
    if kind == "function":
        return names.function(*parts)
    if kind == "tensor":
        number, sizes, strides, requires_grad, place, symbols = parts
        dtype = None if number is None else DTYPE_BY_NUMBER[number]
        return TensorType(dtype, sizes, strides, requires_grad, place and device(place), symbols)
    if kind == "optional":
        return OptionalType(type_of_flat(parts[0], names), parts[1])
    return _CONTAINERS[kind][1](*(type_of_flat(each, names) for each in parts))


# ------------------------------------------------------------------ to data


def flatten(graph: Graph, names: References) -> tuple[Any, ...]:
    """The graph as plain data.  Raises NotPlain."""
    return _Flattening(names).graph(graph)


class _Flattening:
    def __init__(self, names: References) -> None:
        self.names = names
        self.values: dict[Value, int] = {}
        self.types: dict[Any, int] = {}
        self.name_of_source = cache(names.name_of_source)

    def graph(self, graph: Graph) -> tuple[Any, ...]:
        block = self._block(graph.block)
        return *block, tuple(self.types), graph._unique, tuple(graph._names._suffixes.items())

    def _block(self, block: Block) -> tuple[Any, ...]:
        inputs = tuple(map(self._value, block.inputs))
        nodes = tuple(map(self._node, block.nodes()))
        outputs = tuple(self.values[value] for value in block.outputs)
        return inputs, nodes, outputs, self._range(block.return_node.range)

    def _value(self, value: Value) -> tuple[int, str, int]:
        self.values[value] = len(self.values)
        type = self.types.setdefault(flat_type(value.type, self.names), len(self.types))
        return value.unique, value.name, type

    def _node(self, node: Node) -> tuple[Any, ...]:
        inputs = tuple(self.values[value] for value in node.inputs)
        blocks = tuple(map(self._block, node.blocks))
        outputs = tuple(map(self._value, node.outputs))
        attributes = tuple((name, attr.kind, *self._attribute(attr.value)) for name, attr in node.attributes.items())
        op = "" if node.op is None else node.op.qualified_name
        if node.op is not None and node.op.family == LAST:  # another program's may be something else
            raise NotPlain(op)
        calls = tuple((call.function, self._range(call.range), call.module) for call in node.inlined_from)
        return node.kind, op, self._range(node.range), inputs, blocks, outputs, attributes, calls

    def _range(self, range: SourceRange | None) -> tuple[str, int, int, int] | None:
        if range is None:
            return None
        return self.name_of_source(range.source), range.start, range.end, range.last

    def _attribute(self, value: Any) -> tuple[str, Any]:
        if isinstance(value, Tensor):
            return "tensor", self.names.name_of_tensor(value)
        if isinstance(value, Graph):
            return "graph", _Flattening(self.names).graph(value)
        if isinstance(value, Type):
            return "type", flat_type(value, self.names)
        if isinstance(value, device):
            return "device", str(value)
        if isinstance(value, EnumValue):
            return "enum", (flat_type(value.type, self.names), value.name)
        if not is_plain_data(value):
            raise NotPlain(repr(value))
        return "", value


def is_plain_data(value: Any) -> bool:
    """True for numbers, strings and None, and for lists and tuples of such."""
    if type(value) in (list, tuple):
        return _PLAIN.issuperset(map(type, value)) or all(map(is_plain_data, value))
    return type(value) in _PLAIN


# ------------------------------------------------------------------ and back


def unflatten(data: tuple[Any, ...], names: References) -> Graph:
    """The graph of that data.  Raises NotPlain for names that nothing has."""
    *block, types, unique, suffixes = data
    graph = Graph()
    reading = _Reading(graph, names, [type_of_flat(each, names) for each in types])
    reading.block(graph.block, tuple(block))
    graph._unique = unique
    graph._names._suffixes.update(suffixes)
    return graph


class _Reading:
    def __init__(self, graph: Graph, names: References, types: list[Type]) -> None:
        self.graph, self.names, self.types = graph, names, types
        self.values: list[Value] = []
        self.source = cache(names.source)

    def block(self, block: Block, data: tuple[Any, ...]) -> None:
        inputs, nodes, outputs, range = data
        block.return_node.range = self._range(range)
        self._add_outputs(block.param_node, inputs)
        for each in nodes:
            block.append(self._node(each))
        self._add_inputs(block.return_node, outputs)

    def _node(self, data: tuple[Any, ...]) -> Node:
        kind, op, range, inputs, blocks, outputs, attributes, calls = data
        node = Node(self.graph, kind, self._range(range))
        node.inlined_from = tuple(InlinedFrom(name, self._range(at), module) for name, at, module in calls)
        self._add_inputs(node, inputs)
        for each in blocks:
            self.block(node.add_block(), each)
        self._add_outputs(node, outputs)
        for name, attribute_kind, tag, value in attributes:
            node.attributes[name] = Attr(attribute_kind, self._attribute(tag, value))
        node.op = table.find(op) if op else None
        if op and node.op is None:
            raise NotPlain(op)
        return node

    def _range(self, data: tuple[str, int, int, int] | None) -> SourceRange | None:
        return data and SourceRange(self.source(data[0]), *data[1:])

    def _add_inputs(self, node: Node, inputs: tuple[int, ...]) -> None:
        for offset, index in enumerate(inputs):
            value = self.values[index]
            value._uses[Use(node, offset)] = None
            node.inputs.append(value)

    def _add_outputs(self, node: Node, outputs: tuple[Any, ...]) -> None:
        taken = self.graph._names.by_name
        for offset, (unique, name, type) in enumerate(outputs):
            value = Value(node, offset, unique, self.types[type], name)
            if name:
                taken[name] = value
            node.outputs.append(value)
            self.values.append(value)

    def _attribute(self, tag: str, value: Any) -> Any:
        if tag == "tensor":
            return self.names.tensor(value)
        if tag == "graph":
            return unflatten(value, self.names)
        if tag == "device":
            return device(value)
        if tag == "enum":
            kind = type_of_flat(value[0], self.names)
            assert isinstance(kind, EnumType)
            return EnumValue(kind, value[1])
        return type_of_flat(value, self.names) if tag == "type" else value


class _Nameless:
    """Names for graphs that refer to no program, and to text that nobody reads."""

    def name_of_source(self, source: Source) -> str:
        return ""

    def source(self, name: str) -> Source:
        return _NO_SOURCE

    def name_of_type(self, type: Type) -> str:
        raise NotPlain(str(type))

    def type(self, name: str) -> Type:
        raise NotPlain(name)

    def name_of_function(self, type: FunctionType) -> str:
        raise NotPlain(str(type))

    def function(self, name: str) -> FunctionType:
        raise NotPlain(name)

    def name_of_tensor(self, tensor: Tensor) -> int:
        raise NotPlain("a tensor")

    def tensor(self, name: int) -> Tensor:
        raise NotPlain("a tensor")


NAMELESS: Final = _Nameless()
_NO_SOURCE: Final = Source("")
