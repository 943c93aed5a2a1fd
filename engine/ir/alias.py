"""Alias analysis: which values may share memory, and which nodes write to it.

In: a graph, and the alias marks of its operators' schemas.  Out: `AliasDb`, which answers for values and
nodes.  Conservative: where it cannot tell, values may alias and nodes may write.

Values of immutable types (numbers, strings, tuples of such) alias nothing.  Everything whose origin is not
seen, such as inputs of the graph and elements of containers, is a *wildcard* of its type: it may be any other
wildcard of that type.  The analysis walks the graph once and is a snapshot: change the graph and it is out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from engine.ir.graph import Block, Graph, Node, Use, Value
from engine.ir.memory_dag import Element, MemoryDag
from engine.ir.mutability import is_mutable_type, mutable_members, mutable_parts
from engine.ir.ops import has_side_effects, schema_of
from engine.lang.schema import AliasInfo, FunctionSchema
from engine.lang.types import ListType, TupleType, Type


class AliasDb:
    """What may alias what in one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._dag = MemoryDag()
        self._elements: dict[Value, Element] = {}
        self._wildcards: dict[Type, Element] = {}
        self._wild_values: dict[Value, None] = {}
        self._written_values: dict[Node, list[Value]] = {}
        self._written_with_contents: dict[Node, list[Value]] = {}
        self._writes_everywhere: set[Node] = set()
        self._write_masks: dict[Node, int] = {}
        for value in graph.inputs:
            self._set_wildcard(value)
        self._analyze_block(graph.block)
        self._connect_wildcards()
        self._any_write = self._find_writes()

    # -- asking

    def may_alias(self, a: Value | Iterable[Value], b: Value | Iterable[Value]) -> bool:
        """May a value of the first share memory with one of the second?"""
        return bool(self._mask(_several(a)) & self._mask(_several(b)))

    def may_contain_alias(self, a: Value | Iterable[Value], b: Value | Iterable[Value]) -> bool:
        """May they, or what they hold at any depth, share memory?"""
        return bool(self._contained_mask(_several(a)) & self._contained_mask(_several(b)))

    def has_writers(self, what: Node | Value) -> bool:
        """May some node write to the value, or to an input or output of the node?"""
        if isinstance(what, Node):
            return any(map(self.has_writers, (*what.inputs, *what.outputs)))
        return bool(self._mask([what]) & self._any_write)

    def writes_to_alias(self, node: Node, values: Iterable[Value]) -> bool:
        """May the node, or one in its blocks, write to one of the values or to what they hold?"""
        mask = self._writes_of(node)
        return bool(mask and mask & self._contained_mask(values))

    def memory_of(self, values: Iterable[Value]) -> int:
        """What the values may be or hold, for `writes_to_memory`; of more values it is the `|` of both."""
        return self._contained_mask(values)

    def writes_to_memory(self, node: Node, memory: int) -> bool:
        """May the node, or one in its blocks, write to that memory?"""
        return bool(self._writes_of(node) & memory)

    def writes_to_wildcard(self, node: Node) -> bool:
        """May the node write to memory that the graph does not own?"""
        mask = self._writes_of(node)
        return bool(mask and any(mask >> element.index & 1 for element in self._wildcards.values()))

    def is_mutable(self, node: Node) -> bool:
        """May the node write to anything?"""
        return bool(self._writes_of(node))

    def has_side_effects(self, node: Node) -> bool:
        """Does the node, or one in its blocks, do more than compute and write to memory?"""
        return has_side_effects(node) or any(self.has_side_effects(n) for b in node.blocks for n in b.nodes())

    def must_stay_after(self, node: Node, earlier: Node) -> bool:
        """Does `node`, or one in its blocks, use what `earlier` gives, or memory that either writes to?"""
        if self.has_side_effects(node) and self.has_side_effects(earlier):
            return True
        if any(value.node is earlier for value in _inputs_inside(node)):
            return True
        mine, theirs = self._writes_of(node), self._writes_of(earlier)
        return bool(mine & (theirs | self._reads_of(earlier)) or theirs & self._reads_of(node))

    def escapes(self, value: Value) -> bool:
        """May the value, or something in it, be or be held by an output of the graph?"""
        return self.may_contain_alias(value, self.graph.outputs)

    # -- masks

    def _mask(self, values: Iterable[Value]) -> int:
        mask = 0
        for value in values:
            element = self._elements.get(value)
            if element is not None:
                mask |= self._dag.locations(element)
        return mask

    def _contained_mask(self, values: Iterable[Value]) -> int:
        mask = 0
        for value in values:
            element = self._elements.get(value)
            if element is not None:
                mask |= self._dag.contained_locations(element)
        return mask

    def _writes_of(self, node: Node) -> int:
        mask = self._write_masks.get(node, 0)
        for block in node.blocks:
            for inner in block.nodes():
                mask |= self._writes_of(inner)
        return mask

    def _reads_of(self, node: Node) -> int:
        return self._contained_mask(_inputs_inside(node)) | self._contained_mask(node.outputs)

    # -- building

    def _element(self, value: Value) -> Element:
        found = self._elements.get(value)
        if found is None:
            found = self._elements[value] = self._dag.fresh()
        return found

    def _wildcard(self, type: Type) -> Element:
        """The element of everything of that type whose origin is unknown."""
        found = self._wildcards.get(type)
        if found is None:
            found = self._wildcards[type] = self._dag.fresh()
            self._contain_wildcards(found, type)
        return found

    def _contain_wildcards(self, container: Element, type: Type) -> None:
        for part in mutable_parts(type):
            for member in mutable_members(part):
                self._dag.contain(container, self._wildcard(member))

    def _set_wildcard(self, value: Value) -> None:
        if is_mutable_type(value.type):
            self._element(value)
            self._wild_values[value] = None

    def _connect_wildcards(self) -> None:
        for value in self._wild_values:
            leaves = self._dag.leaves(self._element(value))
            for member in mutable_members(value.type):
                wildcard = self._wildcard(member)
                for leaf in leaves:
                    if leaf not in self._wildcards.values():
                        self._dag.point(leaf, wildcard)
        self._dag.forget_answers()

    def _find_writes(self) -> int:
        everything = (1 << len(self._dag.elements)) - 1
        for node, values in self._written_values.items():
            self._write_masks[node] = self._mask(values)
        for node, values in self._written_with_contents.items():
            self._write_masks[node] = self._write_masks.get(node, 0) | self._contained_mask(values)
        for node in self._writes_everywhere:
            self._write_masks[node] = everything
        total = 0
        for mask in self._write_masks.values():
            total |= mask
        return total

    def _fresh(self, value: Value, *, holds_unknown: bool = True) -> None:
        if not is_mutable_type(value.type):
            return
        element = self._element(value)
        if holds_unknown:
            for member in mutable_members(value.type):
                self._contain_wildcards(element, member)

    def _point(self, value: Value, to: Value) -> None:
        """`value` may be `to`.  Types decide: a refined value of an immutable type is nobody."""
        if is_mutable_type(value.type) and is_mutable_type(to.type):
            self._dag.point(self._element(value), self._element(to))

    def _register_write(self, value: Value, node: Node) -> None:
        if is_mutable_type(value.type):
            self._written_values.setdefault(node, []).append(value)

    # -- walking

    def _analyze_block(self, block: Block) -> None:
        for node in block.nodes():
            _RULES.get(node.kind, AliasDb._analyze_operator)(self, node)

    def _analyze_operator(self, node: Node) -> None:
        schema = schema_of(node)
        if schema is not None:
            _Call(self, node, schema).analyze()
        elif "Subgraph" in node.attributes or (node.namespace != "prim" and node.inputs):
            self._analyze_conservatively(node)
        else:
            self._analyze_fresh(node)

    def _analyze_fresh(self, node: Node) -> None:
        for value in node.outputs:
            self._fresh(value)

    def _analyze_unknown(self, node: Node) -> None:
        """The outputs come out of a container."""
        for value in node.outputs:
            self._set_wildcard(value)

    def _analyze_conservatively(self, node: Node) -> None:
        for value in node.inputs:
            if is_mutable_type(value.type):
                self._written_with_contents.setdefault(node, []).append(value)
                self._set_wildcard(value)
        self._analyze_unknown(node)

    def _analyze_construct(self, node: Node) -> None:
        container = node.output
        if not is_mutable_type(container.type):
            return
        uses = container.uses
        local = len(uses) == 1 and _keeps_elements(uses[0])
        self._fresh(container, holds_unknown=not local)
        for value in node.inputs:
            if not local:
                self._set_wildcard(value)
            elif is_mutable_type(value.type):
                self._dag.contain(self._element(container), self._element(value))

    def _analyze_same(self, node: Node) -> None:
        self._point(node.outputs[0], node.inputs[0])

    def _analyze_chunk(self, node: Node) -> None:
        for value in node.outputs:
            self._point(value, node.inputs[0])

    def _analyze_if(self, node: Node) -> None:
        for block in node.blocks:
            self._analyze_block(block)
            for output, given in zip(node.outputs, block.outputs, strict=True):
                self._point(output, given)

    def _analyze_loop(self, node: Node) -> None:
        (body,) = node.blocks
        # Note [Loops that do not run]
        # A loop's result may also be what went in, and the next iteration's input what the last one gave.
        # PyTorch leaves both out, and therefore removes `y.add_(1)` after `y = a` and a loop that may assign y.
        for inner, initial in zip(body.inputs[1:], node.inputs[2:], strict=True):
            self._point(inner, initial)
        self._analyze_block(body)
        for inner, output, given in zip(body.inputs[1:], node.outputs, body.outputs[1:], strict=True):
            self._point(output, given)
            self._point(inner, given)
            self._point(output, inner)

    def _analyze_set_attr(self, node: Node) -> None:
        self._register_write(node.inputs[0], node)
        self._set_wildcard(node.inputs[1])

    def _analyze_fork(self, node: Node) -> None:
        for value in node.inputs:
            self._set_wildcard(value)
        self._analyze_fresh(node)

    def _analyze_wait(self, node: Node) -> None:
        """The forked graph may have written to anything that it was given."""
        self._writes_everywhere.add(node)
        self._analyze_unknown(node)


class _Call:
    """One node being analysed by the alias marks of its schema."""

    def __init__(self, db: AliasDb, node: Node, schema: FunctionSchema) -> None:
        self.db, self.node, self.schema = db, node, schema
        self.members: dict[str, list[Value]] = {}
        self.elements: dict[str, list[Value]] = {}

    def analyze(self) -> None:
        for argument, value in zip(self.schema.arguments, self.node.inputs, strict=False):
            if argument.alias is not None and is_mutable_type(value.type):
                self._take(argument.alias, value)
        for value in self.node.inputs[len(self.schema.arguments) :]:
            self.db._set_wildcard(value)
        marks = [returned.alias for returned in self.schema.returns]
        for index, value in enumerate(self.node.outputs):
            self._give(marks[index] if index < len(marks) else None, value)

    def _take(self, alias: AliasInfo, value: Value) -> None:
        for name in alias.before:
            self.members.setdefault(name, []).append(value)
        if alias.is_write:
            self.db._register_write(value, self.node)
        if "*" in alias.after:
            self.db._set_wildcard(value)
        for inner in alias.elements:
            for name in inner.before:
                self.elements.setdefault(name, []).append(value)
            if inner.is_write:
                self.db._written_with_contents.setdefault(self.node, []).append(value)

    def _give(self, alias: AliasInfo | None, value: Value) -> None:
        if not is_mutable_type(value.type):
            return
        if alias is None:
            self.db._fresh(value)
            return
        if alias.is_wildcard:
            self.db._set_wildcard(value)
        held = any(inner.before or inner.after for inner in alias.elements)
        self.db._fresh(value, holds_unknown=not (alias.before or alias.after) and not held)
        for name in alias.before | alias.after:
            self._alias(value, name)
        for inner in alias.elements:
            for name in inner.before | inner.after:
                self._hold(value, name)

    def _alias(self, value: Value, name: str) -> None:
        for source in self.members.get(name, ()):
            self.db._point(value, source)
        if self.elements.get(name):
            self.db._set_wildcard(value)

    def _hold(self, value: Value, name: str) -> None:
        """The output is a container of what that set names."""
        if name == "*" or self.elements.get(name):
            for member in mutable_members(value.type):
                self.db._contain_wildcards(self.db._element(value), member)
        for source in self.members.get(name, ()):
            self.db._dag.contain(self.db._element(value), self.db._element(source))


def _several(values: Value | Iterable[Value]) -> Iterable[Value]:
    return (values,) if isinstance(values, Value) else values


def _inputs_inside(node: Node) -> Iterator[Value]:
    """What the node and the nodes in its blocks take."""
    yield from node.inputs
    for block in node.blocks:
        for inner in (*block.nodes(), block.return_node):
            yield from _inputs_inside(inner)


_READ_ONLY_LIST_USERS: Final = (
    "aten::cat", "aten::stack", "aten::vstack", "aten::hstack", "aten::dstack", "aten::broadcast_tensors",
)  # fmt: skip


def _keeps_elements(use: Use) -> bool:
    """Does this only use of a container leave its elements where they are?"""
    user = use.user
    container = user.inputs[use.offset].type
    if isinstance(container, TupleType):
        return user.kind == "prim::Return" and user.block is not None and user.block.owner is None
    if not isinstance(container, ListType):
        return False
    return user.kind in _READ_ONLY_LIST_USERS


_FRESH: Final = "Constant Uninitialized CreateObject AutogradZero EmptyListLiteral MMTreeReduce MMBatchSide FusedConcat"
_EXTRACTORS: Final = "ListUnpack TupleUnpack TupleIndex TupleSlice DictIndex GetAttr"
_RULES: Final[dict[str, Callable[[AliasDb, Node], None]]] = {
    "prim::If": AliasDb._analyze_if,
    "prim::Loop": AliasDb._analyze_loop,
    **dict.fromkeys(("prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct"), AliasDb._analyze_construct),
    **dict.fromkeys((f"prim::{kind}" for kind in _FRESH.split()), AliasDb._analyze_fresh),
    **dict.fromkeys((f"prim::{kind}" for kind in _EXTRACTORS.split()), AliasDb._analyze_unknown),
    **dict.fromkeys(("prim::unchecked_cast", "prim::unchecked_unwrap_optional"), AliasDb._analyze_same),
    "prim::ConstantChunk": AliasDb._analyze_chunk,
    "prim::SetAttr": AliasDb._analyze_set_attr,
    "prim::fork": AliasDb._analyze_fork,
    "aten::wait": AliasDb._analyze_wait,
    "prim::CallFunction": AliasDb._analyze_conservatively,
    "prim::CallMethod": AliasDb._analyze_conservatively,
    "prim::Enter": AliasDb._analyze_conservatively,
    "prim::Exit": AliasDb._analyze_conservatively,
}
