"""A part of a module as a module of its own.

In: a module, and the ends of the cut as names of taps: `encoder` is the submodule's result, `decoder:h` a variable in a
method of a submodule, `:x` one of the module's own `forward`, its arguments among them.  Out: a module whose `forward`
takes the values at the inputs and gives those at the outputs; it shares the weights and can be saved by itself.

    tail = m.cut(inputs=["encoder"], outputs=["decoder"])
    tail(m.run_until("encoder", x))          the same as m.run_until("decoder", x)
    tail.save("tail.pt")

A cut goes through straight-line code: places inside a branch or a loop, and submodules that are called more than once,
are refused.  The cut keeps the nodes that the outputs need, and the writes into their values, but no other effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, Final

from engine.aten.values.ivalue import Object
from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.clone import copy_graph, copy_node, inline_graph
from engine.ir.graph import Block, Graph, Node, Value
from engine.ir.ops import schema_of
from engine.ir.unit import Function
from engine.lang.errors import ArgumentError, did_you_mean
from engine.lang.records import dataclass
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import BOOL, ClassType, TupleType
from engine.passes.pipeline import run_pipeline
from engine.serialize.container.qualified_names import ROOT, is_identifier

_MAIN: Final = "forward"
_CLEANED: Final = ("lower_simple_tuples", "dce")
_WHOLE: Final = "whole"


def cut(root: Object, inputs: Sequence[str], outputs: Sequence[str]) -> Object:
    """The part of the module between these places; without `inputs`, from the arguments that it needs.

    Raises ArgumentError for an unknown place, or one where a cut is not possible.
    """
    if not outputs:
        raise ArgumentError("say where the cut ends", hints=('m.cut(outputs=["encoder"])',))
    method = root.type.methods.get(_MAIN)
    if not isinstance(method, Function):
        raise ArgumentError(f"'{root.type.name}' has no method 'forward' to be cut")
    graph = copy_graph(method.graph)
    places = _NamedValues(graph, [*inputs, *outputs])
    ends = [places.find(name) for name in outputs]
    starts = {places.find(name): name for name in inputs}
    kept = _kept(graph, ends, starts)
    needed = [value for value in graph.inputs[1:] if value not in starts and _is_used(value, kept, ends)]
    if inputs and needed:
        missing = ", ".join(f"':{value.variable_name}'" for value in needed)
        raise ArgumentError(f"what is cut out also needs the arguments {missing}", hints=("add them to the inputs",))
    starts.update((value, f":{value.variable_name}") for value in needed)
    return _Builder(root, graph, kept).build(starts, ends)


# -- places


class _NamedValues:
    """The values at named places of a graph, in which the calls around the wanted places are inlined."""

    def __init__(self, graph: Graph, wanted: Sequence[str]) -> None:
        self._graph, self._wanted = graph, wanted
        self._found: dict[str, list[Value]] = {}
        for value in graph.inputs[1:]:
            self._add(f":{value.variable_name}", value)
        self._walk("", list(graph.block.nodes()))

    def find(self, name: str) -> Value:
        """The value at a place.  Raises ArgumentError unless there is exactly one."""
        found = self._found.get(name, [])
        if not found:
            where = ("only straight code can be cut, no places inside of branches and loops",)
            raise ArgumentError(f"there is no place '{name}'", hints=did_you_mean(name, self._found) or where)
        if len(found) > 1 and ":" not in name:
            raise ArgumentError(f"'{name}' is called {len(found)} times", hints=("cut at a variable: 'path:name'",))
        return found[-1]

    def _add(self, place: str, value: Value) -> None:
        self._found.setdefault(place, []).append(value)

    def _walk(self, owner: str, nodes: Sequence[Node]) -> None:
        """Record the places of these nodes, which are the body of a submodule's method."""
        for node in nodes:
            names = [value.variable_name for value in node.outputs]
            path = path_of(node.inputs[0]) if node.kind == "prim::CallMethod" else None
            results = node.outputs if path is None else [self._call(node, ".".join(path))]
            for name, value in zip(names, results, strict=True):
                if name:
                    self._add(f"{owner}:{name}", value)

    def _call(self, node: Node, path: str) -> Value:
        """Record the place of a call, and return its results, which inlining replaces by other values."""
        method = node.attr("name")
        place = path if method == _MAIN else ".".join(filter(None, (path, f"{method}()")))
        type = node.inputs[0].type
        callee = type.methods.get(method) if isinstance(type, ClassType) else None
        result = node.output
        if isinstance(callee, Function) and self._is_around(path):
            with self._graph.inserting_at(node):
                before = node.prev
                (result,) = inline_graph(self._graph, callee.graph, node.inputs)
                inlined = list(_between(before, node, self._graph.block))
            node.output.replace_all_uses_with(result)
            node.destroy()
            self._walk(path, inlined)
        self._add(place, result)
        return result

    def _is_around(self, path: str) -> bool:
        """True if a wanted place lies inside that submodule."""
        return any(not path or name.startswith((f"{path}.", f"{path}:")) for name in self._wanted)


def _between(before: Node | None, after: Node, block: Block) -> Iterator[Node]:
    started = before is None or before.kind == "prim::Param"
    for node in block.nodes():
        if node is after:
            return
        if started:
            yield node
        started = started or node is before


def path_of(value: Value) -> tuple[str, ...] | None:
    """The path of attributes from the graph's first argument to the value; None without such a path."""
    names: list[str] = []
    while value.node.kind == "prim::GetAttr":
        names.append(value.node.attr("name"))
        value = value.node.inputs[0]
    graph_inputs = value.node.graph.inputs
    return tuple(reversed(names)) if graph_inputs and value is graph_inputs[0] else None


# -- what belongs to the cut


def _kept(graph: Graph, ends: Iterable[Value], starts: Iterable[Value]) -> list[Node]:
    """The nodes that the ends depend on, back to the starts, in order."""
    stops, kept = set(starts), set[Node]()
    order = list(graph.block.nodes())
    alias = AliasDb(graph)
    _need(ends, stops, kept)
    while True:
        last = max((order.index(node) for node in kept), default=-1)
        writers = [node for node in order[:last] if node not in kept and _writes_into(node, kept, alias)]
        if not writers:
            return [node for node in order if node in kept]
        for node in writers:
            kept.add(node)
            _need(_read_by(node), stops, kept)


def _need(values: Iterable[Value], stops: set[Value], kept: set[Node]) -> None:
    todo = list(values)
    while todo:
        value = todo.pop()
        node = value.node
        if value in stops or node in kept or node.kind == "prim::Param":
            continue
        kept.add(node)
        todo += _read_by(node)


def _read_by(node: Node) -> Iterator[Value]:
    """The values of the graph's own block that the node uses, its blocks included."""
    outer = node.block
    for each in _with_inner(node):
        yield from (value for value in each.inputs if value.node.block is outer or value.node.kind == "prim::Param")


def _with_inner(node: Node) -> Iterator[Node]:
    yield node
    for block in node.blocks:
        for inner in (*block.nodes(), block.return_node):
            yield from _with_inner(inner)


def _writes_into(node: Node, kept: set[Node], alias: AliasDb) -> bool:
    """True if the node writes to a value that a kept node makes or reads."""
    if node.kind == "prim::SetAttr":
        return any(
            each.kind == "prim::GetAttr"
            and each.attr("name") == node.attr("name")
            and path_of(each.inputs[0]) == path_of(node.inputs[0])
            for each in kept
        )
    schema = schema_of(node)
    values = [value for each in kept for value in each.outputs]
    return schema is not None and schema.is_mutable and alias.writes_to_alias(node, values)


def _is_used(value: Value, kept: Sequence[Node], ends: Sequence[Value]) -> bool:
    return value in ends or any(value in each.inputs for node in kept for each in _with_inner(node))


# -- the module


@dataclass(slots=True, eq=False)
class _Builder:
    """Builds a module from nodes of another module's graph."""

    root: Object
    source: Graph
    kept: Sequence[Node]
    type: ClassType = field(default_factory=lambda: ClassType(f"{ROOT}.Cut", is_module=True))
    slots: list[Any] = field(default_factory=list)
    graph: Graph = field(default_factory=Graph)
    values: dict[Value, Value] = field(default_factory=dict)

    def build(self, starts: dict[Value, str], ends: Sequence[Value]) -> Object:
        self._attribute("training", BOOL, False)
        this = self.graph.add_input("self", self.type)
        arguments = [Argument("self", self.type)]
        for value, place in starts.items():
            name = self._free_name(place, {argument.name for argument in arguments})
            self.values[value] = self.graph.add_input(name, value.type)
            arguments.append(Argument(name, value.type))
        self._copy_nodes(this, self._attributes_alone(ends))
        results = [self.values[value] for value in ends]
        result = results[0]
        if len(results) > 1:
            packed = TupleType(tuple(value.type for value in results))
            result = self.graph.append("prim::TupleConstruct", results, [packed]).output
        self.graph.register_output(result)
        run_pipeline(_CLEANED, self.graph)
        schema = FunctionSchema(_MAIN, arguments=tuple(arguments), returns=(Argument("", result.type),))
        forward = Function(f"{self.type.qualname}.{_MAIN}")
        forward.define(schema, self.graph)
        self.type.methods[_MAIN] = forward
        return Object(self.type, self.slots)

    def _copy_nodes(self, this: Value, alone: bool) -> None:
        if not alone:
            self._attribute(_WHOLE, self.root.type, self.root)
            self.values[self.source.inputs[0]] = self._read(this, _WHOLE)
        for node in self.kept:
            if not alone or node.kind != "prim::GetAttr" or path_of(node.output) is None:
                self.graph.insert_node(copy_node(node, self.graph, self.values))
            elif self._is_end(node):
                self.values[node.output] = self._taken_along(this, node)

    def _attributes_alone(self, ends: Sequence[Value]) -> bool:
        """True if the attributes that are read can be copied without the modules that contain them.

        False if one is written, or if a module is used as a value while its attributes are read, too.
        """
        inner = [each for node in self.kept for each in _with_inner(node)]
        this = self.source.inputs[0]
        loose = any(this in node.inputs and node.kind != "prim::GetAttr" for node in inner)
        deep = any(this in each.inputs for node in self.kept for each in _with_inner(node) if each is not node)
        return not loose and not deep and not any(node.kind == "prim::SetAttr" for node in inner)

    def _is_end(self, node: Node) -> bool:
        """True if the value that the node reads is used for anything but reading its attributes."""
        users = {id(each): each is kept for kept in self.kept for each in _with_inner(kept)}
        uses = [use.user for use in node.output.uses if id(use.user) in users]
        return any(not users[id(user)] or user.kind != "prim::GetAttr" for user in uses) or not uses

    def _taken_along(self, this: Value, node: Node) -> Value:
        path = path_of(node.output) or ()
        owner: Any = self.root
        for part in path[:-1]:
            owner = owner.get(part)
        attribute = owner.type.attribute(path[-1])
        name = self._free_name("_".join(path), {each.name for each in self.type.attributes})
        self._attribute(name, attribute.type, owner.get(path[-1]), attribute.kind)
        return self._read(this, name)

    def _attribute(self, name: str, type: Any, value: Any, kind: str = "attribute") -> None:
        self.type.add_attribute(name, type, kind)
        self.slots.append(value)

    def _read(self, this: Value, name: str) -> Value:
        type = self.type.attributes[-1].type
        return self.graph.append("prim::GetAttr", [this], [type]).set_attr("name", name).output

    @staticmethod
    def _free_name(place: str, taken: set[str]) -> str:
        """An unused identifier for a place."""
        plain = "".join(c if c.isalnum() else "_" for c in place.rpartition(":")[2]).strip("_")
        name = stem = plain if is_identifier(plain) else f"part_{plain}"
        count = 0
        while name in taken:
            count += 1
            name = f"{stem}_{count}"
        return name
