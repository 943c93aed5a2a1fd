"""A graph as boxes inside boxes, some open and some folded.

In: a graph.  Out: a `Drawing`: items for inputs, operators, blocks of control flow, calls and the parts of modules that
were inlined; which of them show where some are open, and the wires between those that show.

Constants and attributes of modules have no boxes of their own: they stand in the text of what uses them.  What a call
or a group of nodes has inside is made when it is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field
from typing import Final

from engine.ir.constants import constant_value
from engine.ir.facts.program_text import value_name
from engine.ir.graph import Block, Graph, InlinedFrom, Node, Value
from engine.ir.match import callee_of
from engine.ir.printer import constant_text
from engine.lang.records import dataclass

_SILENT: Final = ("prim::Constant", "prim::GetAttr")
FEW: Final = 60
"""Boxes up to which a drawing opens by itself."""
_DEEPEST: Final = 12
"""Calls inside calls that a search goes into."""
_MOST_TEXT: Final = 28


def fewest(graph: Graph) -> int:
    """The boxes of operators and parts that show where all are folded, counted without making any."""
    return len({node.inlined_from[:1] or node for node in graph.nodes() if node.kind not in _SILENT})


@dataclass(eq=False, slots=True)
class Item:
    """One box: `kind` is input, output, op, control, block, part, call or group; `fills` adds what is inside."""

    key: str
    kind: str
    title: str
    note: str = ""
    node: Node | None = None
    value: Value | None = None
    parent: Item | None = None
    fills: Callable[[Item], None] | None = None
    _children: list[Item] = field(default_factory=list)

    @property
    def children(self) -> list[Item]:
        if self.fills is not None:
            fill, self.fills = self.fills, None
            fill(self)
        return self._children

    @property
    def is_box(self) -> bool:
        """True if there may be something inside."""
        return self.fills is not None or bool(self._children)

    @property
    def ancestors(self) -> Iterator[Item]:
        """The boxes around it, from the inside out; the whole drawing is the last."""
        above = self.parent
        while above is not None:
            yield above
            above = above.parent


@dataclass(frozen=True, slots=True)
class Wire:
    """Values that go from one box to another, with the name of the first."""

    source: Item
    target: Item
    name: str


class Drawing:
    """The boxes of one graph."""

    def __init__(self, graph: Graph) -> None:
        self.items: dict[str, Item] = {}
        self._areas: list[_Area] = []
        self.root = self.add(None, "root", "", key="root")
        self._fill(self.root, graph)

    def add(self, parent: Item | None, kind: str, title: str, note: str = "", *, key: str = "", **more: object) -> Item:
        """A new box inside another."""
        place = (
            key or f"{parent.key if parent is not None else ''}/{len(parent._children) if parent is not None else 0}"
        )
        item = Item(place.removeprefix("root/"), kind, title, note, parent=parent, **more)  # type: ignore[arg-type]
        self.items[item.key] = item
        if parent is not None:
            parent._children.append(item)
        return item

    def _fill(self, item: Item, graph: Graph) -> None:
        """Put the graph into the box."""
        self._areas.append(_Area(self, item, graph))

    # -- which show

    def first_open(self) -> set[str]:
        """The boxes that are open at first: from the outside in, while few enough show; never those of calls."""
        opened: set[str] = set()
        shown, level = len(self.root.children), self.root.children
        while level:
            inner = [each for each in level if each.is_box and each.kind not in ("call", "group")]
            more = sum(len(each.children) for each in inner)
            if not inner or shown + more > FEW:
                break
            opened |= {each.key for each in inner}
            shown += more
            level = [child for each in inner for child in each.children]
        return opened

    def visible(self, opened: Collection[str]) -> Iterator[Item]:
        """The items that show, each before those inside it."""
        waiting = list(reversed(self.root.children))
        while waiting:
            item = waiting.pop()
            yield item
            if item.key in opened:
                waiting.extend(reversed(item.children))

    def count(self, opened: Collection[str]) -> int:
        """The number of items that show."""
        return sum(1 for _ in self.visible(opened))

    def wires(self, opened: Collection[str]) -> list[Wire]:
        """The wires between the items that show."""
        shown = dict.fromkeys(self.visible(opened))
        found: dict[tuple[Item, Item], str] = {}
        for area in [*self._areas]:
            if area.root is self.root or (area.root in shown and area.root.key in opened):
                for value, source, target in area.flows:
                    ends = _shown(source, shown), _shown(target, shown)
                    if ends[0] is not ends[1] and not _is_inside(ends[0], ends[1]) and not _is_inside(ends[1], ends[0]):
                        found.setdefault(ends, value_name(value))
        return [Wire(*ends, name) for ends, name in found.items()]

    # -- finding

    def find(self, text: str, most: int) -> list[Item]:
        """The items whose title, note or value contains the text, in order; at most so many."""
        wanted, found = text.lower(), list[Item]()
        waiting = [(child, 0) for child in reversed(self.root.children)]
        while waiting and len(found) < most:
            item, depth = waiting.pop()
            if wanted in f"{item.title} {item.note}".lower():
                found.append(item)
            if depth < _DEEPEST:
                inner = depth + (item.kind in ("call", "group"))
                waiting.extend((child, inner) for child in reversed(item.children))
        return found

    def nodes(self) -> Iterator[dict[Node, Item]]:
        """The boxes of nodes, graph by graph."""
        return (area.items for area in self._areas)

    def item_of(self, value: Value) -> Item | None:
        """The box that makes the value, or is it; of a constant the box of its first use."""
        for area in self._areas:
            if value.graph is area.graph:
                found = area.items.get(value.node) if value.node not in area.params else area.inputs.get(value)
                if found is None and value.uses:
                    found = area.items.get(value.uses[0].user)
                return found
        return None


def _shown(item: Item, shown: Collection[Item]) -> Item:
    """The item, or the innermost box around it that shows."""
    if item in shown:
        return item
    return next(each for each in item.ancestors if each in shown or each.parent is None)


def _is_inside(item: Item, box: Item) -> bool:
    return any(each is box for each in item.ancestors)


class _Area:
    """The boxes of one graph inside one box; `flows` are the values that go from one to another."""

    def __init__(self, drawing: Drawing, root: Item, graph: Graph) -> None:
        self.drawing, self.root, self.graph = drawing, root, graph
        self.items: dict[Node, Item] = {}
        self.inputs: dict[Value, Item] = {}
        self.params: set[Node] = set()
        self._block(root, graph.block, 0)
        self.flows = [*self._flows(graph.block)]

    def _block(self, box: Item, block: Block, depth: int) -> None:
        """Fill the box with a block; of the calls around, `depth` are around all of it."""
        self.params.add(block.param_node)
        for value in block.inputs:
            if value.has_uses and not _is_receiver(value):
                self.inputs[value] = self.drawing.add(box, "input", value_name(value), str(value.type), value=value)
        parts: dict[tuple[InlinedFrom, ...], Item] = {(): box}
        for node in block.nodes():
            if node.kind not in _SILENT:
                self._node(self._part(parts, node.inlined_from[depth:]), node)
        if block.outputs:
            names = ", ".join(map(argument_text, block.outputs))
            self.items[block.return_node] = self.drawing.add(box, "output", "return", names)

    def _part(self, parts: dict[tuple[InlinedFrom, ...], Item], calls: tuple[InlinedFrom, ...]) -> Item:
        """The box of the innermost of these calls."""
        found = parts.get(calls)
        if found is None:
            around, call = self._part(parts, calls[:-1]), calls[-1]
            title = call.module or call.function
            text = call.range.original().text if call.range is not None else ""
            found = parts[calls] = self.drawing.add(around, "part", title, cut(" ".join(text.split())))
        return found

    def _node(self, box: Item, node: Node) -> None:
        add, title = self.drawing.add, _title(node)
        if node.blocks:
            item = add(box, "control", title, _note(node), node=node)
            for index, block in enumerate(node.blocks):
                inner = add(item, "block", _block_title(node, index))
                self._block(inner, block, len(node.inlined_from))
        else:
            body = _body(node)
            kind = "op" if body is None else "call" if callee_of(node) is not None else "group"
            fill = None if body is None else lambda item: self.drawing._fill(item, body)
            item = add(box, kind, title, _note(node), node=node, fills=fill)
        self.items[node] = item

    def _flows(self, block: Block) -> Iterator[tuple[Value, Item, Item]]:
        for node in (*block.nodes(), block.return_node):
            target = self.items.get(node)
            for value in node.inputs if target is not None else ():
                source = self.inputs.get(value) or self.items.get(value.node)
                if source is not None and target is not None:
                    yield value, source, target
            for inner in node.blocks:
                yield from self._flows(inner)


def _is_receiver(value: Value) -> bool:
    """True for a module that is only asked for its attributes."""
    return all(use.user.kind in ("prim::GetAttr", "prim::CallMethod") for use in value.uses) and value.offset == 0


def _body(node: Node) -> Graph | None:
    """The graph that the node runs."""
    callee = callee_of(node)
    if callee is not None:
        return callee.body
    return node.attr("Subgraph") if node.has_attribute("Subgraph") else None


def _title(node: Node) -> str:
    callee = callee_of(node)
    if node.kind == "prim::CallMethod":
        return f"{value_name(node.inputs[0])}.{node.attr('name')}"
    return callee.name if callee is not None else node.kind.removeprefix("aten::")


def _note(node: Node) -> str:
    """The values that go in and come out, by their names in the program."""
    inputs = node.inputs[1:] if node.kind in ("prim::CallMethod", "prim::CallFunction") else node.inputs
    given, made = ", ".join(map(argument_text, inputs)), ", ".join(value.debug_name for value in node.outputs)
    return f"{made} ← {given}" if made else given


def _block_title(node: Node, index: int) -> str:
    return ("then", "else")[index] if node.kind == "prim::If" else "body"


def argument_text(value: Value) -> str:
    """An input as a picture shows it: a constant as itself, an attribute as its path, else the value's name."""
    if value.node.kind == "prim::Constant" and not value.node.has_attribute("name"):
        return cut(constant_text(constant_value(value), value.type))
    return value_name(value) if value.node.kind in _SILENT else value.debug_name


def cut(text: str, most: int = _MOST_TEXT) -> str:
    """The text, cut where it is long."""
    return text if len(text) <= most else text[: most - 1] + "…"


def path_of(item: Item) -> Sequence[str]:
    """The parts that the item lies in, outermost first."""
    return [each.title for each in reversed([*item.ancestors]) if each.kind in ("part", "call")]
