"""Results of alias analysis so far: memory elements of values, wildcards of types, and writes.

In: "this value is fresh", "this one may be that one", "this node writes to it".  Out: masks of memory locations.

A value whose origin is not seen, such as an input of the graph or an element of a container, is a *wildcard*: it may
be any other wildcard of its type.  There is one element for each type, and it holds those of what the type holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from engine.ir.aliasing.memory_dag import Element, MemoryDag, bits
from engine.ir.aliasing.mutability import is_mutable_type, mutable_members, mutable_parts
from engine.ir.graph import Node, Value
from engine.lang.records import dataclass
from engine.lang.types import Type


@dataclass(slots=True)
class Writes:
    """Writes of one node itself: elements, elements with everything they contain, and all wildcards.

    Elements, not values: another value may take the place of the one that the analysis saw.
    """

    elements: list[Element] = field(default_factory=list)
    with_contents: list[Element] = field(default_factory=list)
    wildcards: bool = False


@dataclass(eq=False, slots=True)
class AliasFacts:
    """Values of immutable types have no element: they alias nothing."""

    dag: MemoryDag = field(default_factory=MemoryDag)
    elements: dict[Value, Element] = field(default_factory=dict)
    wildcards: dict[Type, Element] = field(default_factory=dict)
    writes: dict[Node, Writes] = field(default_factory=dict)
    _wild_values: dict[Value, None] = field(default_factory=dict)

    # -- telling

    def element(self, value: Value) -> Element:
        """The value's element, made when it has none."""
        found = self.elements.get(value)
        if found is None:
            found = self.elements[value] = self.dag.fresh()
        return found

    def fresh(self, value: Value, *, holds_unknown: bool = True) -> None:
        """The value has memory of its own; what it holds may come from anywhere, if so."""
        if not is_mutable_type(value.type):
            return
        element = self.element(value)
        if holds_unknown:
            self._contain_wildcards_of_members(element, value.type)

    def point(self, value: Value, to: Value) -> None:
        """`value` may be `to`.  Types decide: a refined value of an immutable type is nobody."""
        if not is_mutable_type(value.type) or not is_mutable_type(to.type):
            return
        element = self.element(value)
        # What is not initialised is never looked at: whoever takes it has other origins, or none.
        if to.node.kind != "prim::Uninitialized":
            self.dag.point(element, self.element(to))

    def contain(self, container: Value, held: Value) -> None:
        """`container` may hold `held`."""
        if is_mutable_type(held.type):
            self.dag.contain(self.element(container), self.element(held))

    def contain_anything(self, container: Value) -> None:
        """`container` may hold whatever its type lets it."""
        self._contain_wildcards_of_members(self.element(container), container.type)

    def set_wildcard(self, value: Value) -> None:
        """The value may be any other wildcard of its type (once `connect_wildcards` was called)."""
        if is_mutable_type(value.type):
            self.element(value)
            self._wild_values[value] = None

    def write(self, node: Node, value: Value, *, with_contents: bool = False) -> None:
        """The node may write to the value, or also to all that it holds."""
        if is_mutable_type(value.type):
            found = self.writes.setdefault(node, Writes())
            (found.with_contents if with_contents else found.elements).append(self.element(value))

    def write_as(self, node: Node, inner: Node) -> None:
        """The node writes to all that the inner one does."""
        mine, theirs = self.writes.setdefault(node, Writes()), self.writes[inner]
        mine.elements += theirs.elements
        mine.with_contents += theirs.with_contents
        mine.wildcards |= theirs.wildcards

    def write_to_wildcards(self, node: Node) -> None:
        self.writes.setdefault(node, Writes()).wildcards = True

    def connect_wildcards(self) -> None:
        """Let the memory of wildcard values be that of the wildcards of their types."""
        found: dict[Type, int] = {}
        for value in self._wild_values:
            mask = self.dag.locations(self.element(value))
            for member in mutable_members(value.type):
                found[member] = found.get(member, 0) | mask
        leaves = {member: [self.dag.element_at(bit) for bit in bits(mask)] for member, mask in found.items()}
        wild = {id(self._wildcard(member)) for member in leaves} | {id(each) for each in self.wildcards.values()}
        for member, elements in leaves.items():
            for element in elements:
                if id(element) not in wild:
                    self.dag.point(element, self._wildcard(member))
        self._wild_values.clear()

    # -- asking

    def mask(self, values: Iterable[Value]) -> int:
        """The memory that the values may be."""
        found = 0
        for value in values:
            element = self.elements.get(value)
            if element is not None:
                found |= self.dag.locations(element)
        return found

    def contained_mask(self, values: Iterable[Value]) -> int:
        """The memory that the values may be or hold."""
        found = 0
        for value in values:
            element = self.elements.get(value)
            if element is not None:
                found |= self.dag.contained_locations(element)
        return found

    def wildcard_mask(self) -> int:
        """Memory that the graph does not own."""
        found = 0
        for element in self.wildcards.values():
            found |= self.dag.locations(element)
        return found

    def write_mask(self, node: Node) -> int:
        """The memory that the node itself, without its blocks, may write to."""
        writes = self.writes.get(node)
        if writes is None:
            return 0
        found = self.wildcard_mask() if writes.wildcards else 0
        for element in writes.elements:
            found |= self.dag.locations(element)
        for element in writes.with_contents:
            found |= self.dag.contained_locations(element)
        return found

    # -- wildcards

    def _wildcard(self, type: Type) -> Element:
        """The element of everything of that type whose origin is unknown."""
        found = self.wildcards.get(type)
        if found is None:
            found = self.wildcards[type] = self.dag.fresh()
            self._contain_wildcards(found, type)
        return found

    def _contain_wildcards_of_members(self, container: Element, type: Type) -> None:
        for member in mutable_members(type):
            self._contain_wildcards(container, member)

    def _contain_wildcards(self, container: Element, type: Type) -> None:
        for part in mutable_parts(type):
            for member in mutable_members(part):
                self.dag.contain(container, self._wildcard(member))
