"""The graph: blocks of nodes in SSA form, and the values that flow between them.

In: kinds, inputs, types.  Out: a structure in which every value knows its definition and its uses,
nodes are inserted and removed in constant time, and control flow is nested blocks.

Reading verbs give lists or iterators that stay valid while nodes are removed.  Verbs that change the
graph say so in their name.  Misuse (destroying a node that is still used, a value of another graph)
is a mistake of ours and raises AssertionError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.ir import order
from engine.ir.names import Names
from engine.lang.deferred import deferred
from engine.lang.records import dataclass
from engine.lang.source import SourceRange
from engine.lang.types import TENSOR, Type

if TYPE_CHECKING:
    from engine.ir import printer
else:
    printer = deferred("engine.ir.printer")

_GAP = 1 << 20
ATTRIBUTE_KINDS: Final = {
    "i": "int", "f": "float", "c": "complex", "s": "str", "t": "Tensor", "g": "Graph", "ty": "Type",
    "ival": "any value",
    "is": "ints", "fs": "floats", "cs": "complexes", "ss": "strs", "ts": "Tensors", "gs": "Graphs", "tys": "Types",
}  # fmt: skip


class Attr(NamedTuple):
    """An attribute of a node; `kind` is one of `ATTRIBUTE_KINDS`."""

    kind: str
    value: Any


class InlinedFrom(NamedTuple):
    """One call that inlining removed: the function that was called and where.

    `module` is the path of the module whose method was called, inside that of the caller; "" for the same one, and for
    functions.
    """

    function: str
    range: SourceRange | None
    module: str = ""


class Use(NamedTuple):
    """`user.inputs[offset]` is the value."""

    user: Node
    offset: int


@dataclass(eq=False, slots=True)
class Value:
    """One result of a node.  `name` is its debug name, "" if it has only its number."""

    node: Node
    offset: int
    unique: int
    type: Type = TENSOR
    name: str = ""
    _uses: dict[Use, None] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        return self.node.graph

    @property
    def debug_name(self) -> str:
        """The name that the printer shows, without `%`."""
        return self.name or str(self.unique)

    @property
    def has_debug_name(self) -> bool:
        return bool(self.name)

    @property
    def variable_name(self) -> str:
        """The name that the program gives it, without the number that makes it unique; "" for an unnamed value."""
        stem, dot, number = self.name.rpartition(".")
        return stem if dot and number.isdecimal() else self.name

    @property
    def uses(self) -> list[Use]:
        """Every use, oldest first; a copy, safe to change the graph by."""
        return list(self._uses)

    @property
    def has_uses(self) -> bool:
        return bool(self._uses)

    def set_type(self, type: Type) -> Value:
        self.type = type
        return self

    def set_debug_name(self, name: str) -> Value:
        """Give a name; a value that had it before is renamed (`x.1`, `x.3` …).  "" takes the name away."""
        self.graph._names.give(self, name)
        return self

    def copy_metadata(self, other: Value) -> Value:
        """Take type and name from `other`."""
        self.type = other.type
        if other.name:
            self.set_debug_name(other.name)
        return self

    def replace_all_uses_with(self, other: Value) -> None:
        for user, offset in self.uses:
            user.replace_input(offset, other)

    def replace_all_uses_after(self, node: Node, other: Value) -> None:
        """Replace the uses in nodes that come after `node`."""
        for user, offset in self.uses:
            if user is not node and user.is_after(node):
                user.replace_input(offset, other)

    def __repr__(self) -> str:
        return f"<%{self.debug_name} : {self.type}>"


@dataclass(eq=False, slots=True)
class Node:
    """One operation, told apart by its `kind` (`aten::mm`, `prim::If`)."""

    graph: Graph
    kind: str
    range: SourceRange | None = None
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    attributes: dict[str, Attr] = field(default_factory=dict)
    inlined_from: tuple[InlinedFrom, ...] = ()
    block: Block | None = None
    prev: Node | None = None
    next: Node | None = None
    op: Any = None
    """The `Op` this node stands for, once matched; changing the inputs forgets it."""
    _position: int = 0

    # -- reading

    @property
    def input(self) -> Value:
        """The only input."""
        (value,) = self.inputs
        return value

    @property
    def output(self) -> Value:
        """The only output."""
        (value,) = self.outputs
        return value

    @property
    def namespace(self) -> str:
        return self.kind.partition("::")[0]

    def has_attribute(self, name: str) -> bool:
        return name in self.attributes

    def attr(self, name: str) -> Any:
        """The attribute's value; raises KeyError."""
        return self.attributes[name].value

    def is_before(self, other: Node) -> bool:
        """Does this node run before `other`?  Nodes of nested blocks compare by where their blocks hang."""
        return order.is_before(self, other)

    def is_after(self, other: Node) -> bool:
        return self is not other and not self.is_before(other)

    # -- attributes, inputs, outputs, blocks

    def set_attr(self, name: str, value: Any, kind: str | None = None) -> Node:
        """Set an attribute; its kind is told by the value unless given.  Returns the node."""
        self.attributes[name] = Attr(kind or attribute_kind(value), value)
        return self

    def remove_attr(self, name: str) -> None:
        del self.attributes[name]

    def copy_attributes(self, other: Node) -> Node:
        self.attributes = dict(other.attributes)
        return self

    def add_input(self, value: Value) -> Value:
        assert value.graph is self.graph, f"{value!r} belongs to another graph than {self!r}"
        self.op = None
        value._uses[Use(self, len(self.inputs))] = None
        self.inputs.append(value)
        return value

    def insert_input(self, offset: int, value: Value) -> Value:
        rest = self.inputs[offset:]
        self.remove_inputs_from(offset)
        for each in (value, *rest):
            self.add_input(each)
        return value

    def replace_input(self, offset: int, value: Value) -> Value:
        """Put `value` at `offset`; returns what stood there."""
        assert value.graph is self.graph, f"{value!r} belongs to another graph than {self!r}"
        self.op = None
        old = self.inputs[offset]
        del old._uses[Use(self, offset)]
        self.inputs[offset] = value
        value._uses[Use(self, offset)] = None
        return old

    def replace_input_with(self, old: Value, new: Value) -> None:
        for offset, value in enumerate(self.inputs):
            if value is old:
                self.replace_input(offset, new)

    def remove_input(self, offset: int) -> None:
        rest = self.inputs[offset + 1 :]
        self.remove_inputs_from(offset)
        for value in rest:
            self.add_input(value)

    def remove_inputs_from(self, offset: int) -> None:
        """Drop the inputs at `offset` and after."""
        self.op = None
        for at in range(offset, len(self.inputs)):
            del self.inputs[at]._uses[Use(self, at)]
        del self.inputs[offset:]

    def add_output(self, type: Type = TENSOR, name: str = "") -> Value:
        return self.insert_output(len(self.outputs), type, name)

    def insert_output(self, offset: int, type: Type = TENSOR, name: str = "") -> Value:
        value = Value(self, offset, self.graph._next_unique(), type)
        self.outputs.insert(offset, value)
        for later in self.outputs[offset + 1 :]:
            later.offset += 1
        return value.set_debug_name(name) if name else value

    def erase_output(self, offset: int) -> None:
        value = self.outputs[offset]
        assert not value.has_uses, f"{value!r} is still used"
        value.set_debug_name("")
        del self.outputs[offset]
        for later in self.outputs[offset:]:
            later.offset -= 1

    def add_block(self) -> Block:
        block = Block(self.graph, self)
        self.blocks.append(block)
        return block

    def erase_block(self, index: int) -> None:
        self.blocks[index].clear()
        del self.blocks[index]

    # -- place in the block

    def insert_before(self, other: Node) -> Node:
        """Put this node (in no block yet) before `other`; returns the node."""
        assert self.block is None, f"{self!r} is in a block already"
        assert other.block is not None
        assert other.prev is not None
        self.block, self.prev, self.next = other.block, other.prev, other
        other.prev.next = self
        other.prev = self
        self._take_position()
        return self

    def insert_after(self, other: Node) -> Node:
        assert other.next is not None
        return self.insert_before(other.next)

    def move_before(self, other: Node) -> Node:
        self.remove_from_block()
        return self.insert_before(other)

    def move_after(self, other: Node) -> Node:
        assert other is not self
        self.remove_from_block()
        return self.insert_after(other)

    def remove_from_block(self) -> None:
        """Take the node out of its block; it keeps inputs, outputs and uses."""
        assert self.block is not None
        assert self.prev is not None
        assert self.next is not None
        self.graph._forget_insert_point(self)
        self.prev.next, self.next.prev = self.next, self.prev
        self.block = self.prev = self.next = None

    def destroy(self) -> None:
        """Remove the node for good; none of its outputs may be used."""
        for offset in reversed(range(len(self.outputs))):
            self.erase_output(offset)
        for index in reversed(range(len(self.blocks))):
            self.erase_block(index)
        self.remove_inputs_from(0)
        if self.block is not None:
            self.remove_from_block()

    def replace_all_uses_with(self, other: Node) -> None:
        """Let `other`'s outputs stand for this node's, one by one."""
        for mine, theirs in zip(self.outputs, other.outputs, strict=True):
            mine.replace_all_uses_with(theirs)

    def _take_position(self) -> None:
        assert self.block is not None
        assert self.prev is not None
        assert self.next is not None
        if self.prev is self.block.param_node:
            self._position = 0 if self.next is self.block.return_node else self.next._position - _GAP
            return
        before = self.prev._position
        if self.next is self.block.return_node:
            self._position = before + _GAP
            return
        self._position = (before + self.next._position) // 2
        if self._position in (before, self.next._position):
            order.make_room(self, _GAP)

    def __str__(self) -> str:
        return printer.node_text(self)

    def __repr__(self) -> str:
        return f"<{self.kind}({', '.join('%' + v.debug_name for v in self.inputs)})>"


@dataclass(eq=False, slots=True)
class Block:
    """Nodes in the order they run, between a `prim::Param` and a `prim::Return` node that are not listed."""

    graph: Graph
    owner: Node | None = None
    param_node: Node = field(init=False)
    return_node: Node = field(init=False)

    def __post_init__(self) -> None:
        self.param_node, self.return_node = Node(self.graph, "prim::Param"), Node(self.graph, "prim::Return")
        self.param_node.block = self.return_node.block = self
        self.param_node.next, self.return_node.prev = self.return_node, self.param_node
        # The list is a ring, so that inserting before the return node needs no special case.
        self.param_node.prev, self.return_node.next = self.return_node, self.param_node
        self.param_node._position, self.return_node._position = -(1 << 62), 1 << 62

    @property
    def inputs(self) -> list[Value]:
        return self.param_node.outputs

    @property
    def outputs(self) -> list[Value]:
        return self.return_node.inputs

    def nodes(self) -> Iterator[Node]:
        """The nodes in order; the current one may be removed or moved meanwhile."""
        node = self.param_node.next
        while node is not None and node is not self.return_node:
            following = node.next
            yield node
            node = following

    def reversed_nodes(self) -> Iterator[Node]:
        node = self.return_node.prev
        while node is not None and node is not self.param_node:
            preceding = node.prev
            yield node
            node = preceding

    def is_empty(self) -> bool:
        return self.param_node.next is self.return_node

    def add_input(self, type: Type = TENSOR, name: str = "") -> Value:
        return self.param_node.add_output(type, name)

    def insert_input(self, offset: int, type: Type = TENSOR, name: str = "") -> Value:
        return self.param_node.insert_output(offset, type, name)

    def erase_input(self, offset: int) -> None:
        self.param_node.erase_output(offset)

    def register_output(self, value: Value) -> int:
        self.return_node.add_input(value)
        return len(self.outputs) - 1

    def insert_output(self, offset: int, value: Value) -> None:
        self.return_node.insert_input(offset, value)

    def replace_output(self, offset: int, value: Value) -> None:
        self.return_node.replace_input(offset, value)

    def erase_output(self, offset: int) -> None:
        self.return_node.remove_input(offset)

    def append(self, node: Node) -> Node:
        return node.insert_before(self.return_node)

    def prepend(self, node: Node) -> Node:
        return node.insert_after(self.param_node)

    def clear(self) -> None:
        """Destroy everything in the block, last first."""
        self.return_node.remove_inputs_from(0)
        for node in self.reversed_nodes():
            node.destroy()
        for offset in reversed(range(len(self.inputs))):
            self.erase_input(offset)


@dataclass(eq=False, slots=True)
class Graph:
    """One function's body: a block, and the place where new nodes go."""

    block: Block = field(init=False)
    insert_point: Node = field(init=False)
    """New nodes go before this one: a node, or a block's return node for its end."""
    current_range: SourceRange | None = None
    """The source range that created nodes get."""
    _unique: int = 0
    _names: Names = field(default_factory=Names)

    def __post_init__(self) -> None:
        self.block = Block(self)
        self.insert_point = self.block.return_node

    # -- reading

    @property
    def inputs(self) -> list[Value]:
        return self.block.inputs

    @property
    def outputs(self) -> list[Value]:
        return self.block.outputs

    @property
    def param_node(self) -> Node:
        return self.block.param_node

    @property
    def return_node(self) -> Node:
        return self.block.return_node

    def nodes(self) -> Iterator[Node]:
        """The nodes of the top block."""
        return self.block.nodes()

    def all_nodes(self) -> Iterator[Node]:
        """Every node, those of nested blocks after the node that holds them."""
        return order.walk(self.block)

    def find_node(self, kind: str) -> Node | None:
        return next((node for node in self.all_nodes() if node.kind == kind), None)

    def find_all_nodes(self, kind: str) -> list[Node]:
        return [node for node in self.all_nodes() if node.kind == kind]

    # -- building

    def add_input(self, name: str = "", type: Type = TENSOR) -> Value:
        return self.block.add_input(type, name)

    def register_output(self, value: Value) -> int:
        return self.block.register_output(value)

    def create(self, kind: str, inputs: Iterable[Value] = (), outputs: int | Sequence[Type] = 1) -> Node:
        """A node in no block yet, with so many Tensor outputs or outputs of these types."""
        node = Node(self, kind, self.current_range)
        for value in inputs:
            node.add_input(value)
        for type in [TENSOR] * outputs if isinstance(outputs, int) else outputs:
            node.add_output(type)
        return node

    def insert_node(self, node: Node) -> Node:
        """Put the node at the insert point."""
        return node.insert_before(self.insert_point)

    def append(self, kind: str, inputs: Iterable[Value] = (), outputs: int | Sequence[Type] = 1) -> Node:
        """`create` and `insert_node` at once."""
        return self.insert_node(self.create(kind, inputs, outputs))

    @contextmanager
    def inserting_at(self, place: Node | Block, range: SourceRange | None = None) -> Iterator[None]:
        """For a while, new nodes go before that node or at the end of that block (and get `range` if given)."""
        saved, saved_range = self.insert_point, self.current_range
        self.insert_point = place.return_node if isinstance(place, Block) else place
        self.current_range = range or saved_range
        try:
            yield
        finally:
            self.insert_point, self.current_range = saved, saved_range

    def __str__(self) -> str:
        return printer.graph_text(self)

    # -- names

    def _next_unique(self) -> int:
        self._unique += 1
        return self._unique - 1

    def _forget_insert_point(self, node: Node) -> None:
        if self.insert_point is node:
            assert node.next is not None
            self.insert_point = node.next


def attribute_kind(value: Any) -> str:
    """The kind of attribute that holds `value`, told by its Python type."""
    simple = {bool: "i", int: "i", float: "f", complex: "c", str: "s"}
    if type(value) in simple:
        return simple[type(value)]
    if isinstance(value, Graph):
        return "g"
    if isinstance(value, Type):
        return "ty"
    if isinstance(value, (list, tuple)) and value:
        inner = {attribute_kind(each) for each in value}
        kind = inner.pop()
        return f"{kind}s" if not inner and f"{kind}s" in ATTRIBUTE_KINDS else "ival"
    return "ival"
