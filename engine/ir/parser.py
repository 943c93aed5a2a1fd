"""Reads the text of a graph back.

In: text as `engine.ir.printer` or PyTorch prints it (nodes without outputs with or without ` = `, refined
types, attributes, subgraphs, source comments).  Out: a `Graph` whose values keep their names and numbers.
Where the text says less than the graph had, so does the result: a tensor constant shown as `<Tensor>`
is refused, a class is a name without slots unless `resolve` knows it.  Raises IRError with its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from engine.ir import literals
from engine.ir.constants import attribute_kind_of
from engine.ir.cursor import Cursor
from engine.ir.graph import Block, Graph, Node, Value
from engine.lang.deferred import pattern_of
from engine.lang.errors import IRError, ParseError, SchemaError, did_you_mean
from engine.lang.schema_parser import parse_type
from engine.lang.source import Source
from engine.lang.types import TENSOR, ClassType, FunctionType, Type

FUNCTION: Final = parse_type("Function")
"""The type of a function that nobody knows."""
Resolve = Callable[[str], Type | None]
"""Finds the class (or the FunctionType) that a name in the text means."""

_VALUE: Final = pattern_of(r"%([\w.]+)")
_KIND: Final = pattern_of(r"\w+::\w+")
_IDENT: Final = pattern_of(r"\w+")
_SUBGRAPH: Final = pattern_of(r"with\s+(\w+::\w+)\s*=\s*(?=graph)")
_GROUP: Final = pattern_of(r"(.*)_(\d+)")
_BLOCK: Final = pattern_of(r"block\d+")
_CLASS: Final = pattern_of(r"__torch__")


def parse_ir(text: str, resolve: Resolve | None = None, *, with_unshown_tensors: bool = False) -> Graph:
    """The graph that the text shows.  Raises IRError.

    `with_unshown_tensors` makes zeros of the sizes in their types where the text says `<Tensor>`.
    """
    parser = _Parser(Cursor(Source(text, "<ir>")), resolve or (lambda name: None), with_unshown_tensors)
    graph = parser.graph()
    parser.cursor.expect_end()
    return graph


class _Parser:
    """One text being read; `classes` are the names of classes met so far."""

    def __init__(self, cursor: Cursor, resolve: Resolve, with_unshown_tensors: bool) -> None:
        self.cursor, self.with_unshown_tensors = cursor, with_unshown_tensors
        self.resolve = resolve
        self.classes: dict[str, Type] = {}
        numbers = [int(n) for n in re.findall(r"%(\d+)\b(?!\.)", cursor.source.text)]
        self.first_free = max(numbers, default=-1) + 1

    def graph(self) -> Graph:
        self.cursor.expect("graph")
        graph = Graph()
        # Values without names keep the numbers of the text; named ones get numbers above all of those.
        graph._unique = self.first_free
        scope: dict[str, Value] = {}
        for name, type in self._typed_values("(", ")"):
            scope[name] = _named(graph.add_input(type=type), name)
        self.cursor.expect(":")
        self._nodes(graph.block, scope)
        self.cursor.expect("return")
        self._outputs(graph.block, scope)
        self._subgraphs(graph)
        return graph

    def _subgraphs(self, graph: Graph) -> None:
        groups = [(node, match) for node in graph.all_nodes() if (match := _GROUP.fullmatch(node.kind))]
        while (name := self.cursor.peek(_SUBGRAPH)) is not None:
            node = next((node for node, _ in groups if node.kind == name), None)
            if node is None:
                return
            self.cursor.take(_SUBGRAPH)
            node.kind = node.kind.rpartition("_")[0]
            node.set_attr("Subgraph", self.graph(), "g")

    def _nodes(self, block: Block, scope: dict[str, Value]) -> None:
        while self.cursor.peek_text("%", "=") or self.cursor.peek(_KIND):
            self._node(block, scope)

    def _node(self, block: Block, scope: dict[str, Value]) -> None:
        outputs = list(self._typed_values("", "="))
        node = Node(block.graph, "", self.cursor.range())
        node.kind = self.cursor.require(_KIND, "an operator")
        if node.kind == "prim::Constant" and len(outputs) > 1:
            raise IRError(f"a constant is one value, not {len(outputs)}", self.cursor.last_range())
        for name, type in outputs:
            scope[name] = _named(node.add_output(type), name)
        if self.cursor.accept("["):
            self._attributes(node)
        for value in self._values(scope):
            node.add_input(value)
        assert node.range is not None
        node.range.end = self.cursor.last_end
        self._functions(node)
        block.append(node)
        while self.cursor.take(_BLOCK):
            self._block(node.add_block(), scope)

    def _block(self, block: Block, scope: dict[str, Value]) -> None:
        for name, type in self._typed_values("(", ")"):
            scope[name] = _named(block.add_input(type), name)
        self.cursor.expect(":")
        self._nodes(block, scope)
        self.cursor.expect("->")
        self._outputs(block, scope)

    def _outputs(self, block: Block, scope: dict[str, Value]) -> None:
        for value in self._values(scope):
            block.register_output(value)

    def _typed_values(self, opening: str, closing: str) -> Iterator[tuple[str, Type]]:
        """`%a : int, %b` up to `closing`; without a type a value is a Tensor."""
        if opening:
            self.cursor.expect(opening)
        elif not self.cursor.peek_text("%", "="):
            return
        while not self.cursor.accept(closing):
            name = self.cursor.require(_VALUE, "a value")
            yield name, self._type() if self.cursor.accept(":") else TENSOR
            if not self.cursor.accept(","):
                self.cursor.expect(closing)
                return

    def _values(self, scope: dict[str, Value]) -> Iterator[Value]:
        self.cursor.expect("(")
        while not self.cursor.accept(")"):
            name = self.cursor.require(_VALUE, "a value")
            if name not in scope:
                hints = did_you_mean(name, scope)
                raise IRError(f"Cannot find a variable with name '{name}'", self.cursor.last_range(), hints=hints)
            yield scope[name]
            if not self.cursor.accept(","):
                self.cursor.expect(")")
                return

    def _type(self) -> Type:
        return self._type_until(",)=\n")

    def _type_until(self, ends: str) -> Type:
        text = self.cursor.balanced_until(ends)
        try:
            return parse_type(text, self._class) if _CLASS.search(text) else _plain_type(text)
        except (SchemaError, ParseError) as error:
            raise IRError(f"'{text}' is no type: {error.message}", self.cursor.last_range()) from None

    def _class(self, name: str) -> Type:
        if name not in self.classes:
            self.classes[name] = self.resolve(name) or ClassType(name)
        return self.classes[name]

    def _functions(self, node: Node) -> None:
        """Let a function constant know its function, if somebody does."""
        if node.kind != "prim::Constant" or not node.has_attribute("name") or node.output.type != FUNCTION:
            return
        found = self.resolve(node.attr("name"))
        if isinstance(found, FunctionType):
            node.output.set_type(found)

    def _attributes(self, node: Node) -> None:
        while not self.cursor.accept("]"):
            name = self.cursor.require(_IDENT, "an attribute's name")
            self.cursor.expect("=")
            value, kind = self._attribute(node)
            node.set_attr(name, value, kind)
            if not self.cursor.accept(","):
                self.cursor.expect("]")
                return

    def _attribute(self, node: Node) -> tuple[Any, str | None]:
        if node.kind == "prim::Constant" and node.outputs:
            type = node.output.type
            unshown = literals.unshown_tensor(self.cursor, type) if self.with_unshown_tensors else None
            value = literals.constant(self.cursor, type) if unshown is None else unshown
            return value, None if type == FUNCTION else attribute_kind_of(value)
        if self.cursor.peek_text("[") and not self.cursor.peek(literals.FIRST_OF_LIST):
            return self._types(), "tys"
        if self.cursor.peek(literals.FIRST) or self.cursor.peek_text("["):
            return literals.literal(self.cursor), None
        return self._type_until(",]\n"), "ty"

    def _types(self) -> list[Type]:
        self.cursor.expect("[")
        types = []
        while not self.cursor.accept("]"):
            types.append(self._type_until(",]\n"))
            self.cursor.accept(",")
        return types


def _named(value: Value, name: str) -> Value:
    if not name.isdigit():
        return value.set_debug_name(name)
    value.unique = int(name)
    return value


@lru_cache(maxsize=1024)
def _plain_type(text: str) -> Type:
    return parse_type(text)
