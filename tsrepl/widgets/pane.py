"""A graph's picture as a front end draws it, and the facts behind its boxes.

In: a graph.  Out: plain data: boxes and wires at their places, facts about a box or a value, hits of a search.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from engine.executor.plans.source_lines import line_of
from engine.executor.plans.source_places import full_place
from engine.ir.graph import Graph, Node, Value
from engine.ir.printer import node_text
from tsrepl.render.drawing import Drawing, Item, argument_text, path_of
from tsrepl.render.placing import Way, label_of, picture_of
from tsrepl.session.modules import without_scopes
from tsrepl.widgets.messages import Refused
from tsrepl.widgets.view import Answer, spans

MOST_HITS: Final = 50
_MOST_USES: Final = 40


class Pane:
    """One graph with its open boxes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.drawing = Drawing(graph)
        self.opened = self.drawing.first_open()
        self._values: dict[str, Value] = {}

    def picture(self) -> Answer:
        """All that shows: boxes as (key, kind, title, note, x, y, width, height, state), wires as (from, to, name, and
        the x and y of each point)."""
        picture = picture_of(self.drawing, self.opened)
        numbers = {box.item: index for index, box in enumerate(picture.boxes)}
        return {
            "size": [round(picture.width), round(picture.height)],
            "boxes": [
                [box.item.key, box.item.kind, *label_of(box.item), *map(round, box[1:5]), box.state]
                for box in picture.boxes
            ],
            "wires": [_wire(way, numbers) for way in picture.ways],
        }  # fmt: skip

    def fold(self, key: str, is_open: bool) -> None:
        """Open or fold a box.  Raises Refused."""
        item = self.item(key)
        (self.opened.add if is_open and item.is_box else self.opened.discard)(key)

    def reveal(self, item: Item) -> None:
        """Open the boxes around one."""
        self.opened |= {each.key for each in item.ancestors if each.parent is not None}

    def item(self, key: str) -> Item:
        """The box of that key.  Raises Refused."""
        found = self.drawing.items.get(key)
        if found is None:
            raise Refused(f"there is no box {key[:40]}")
        return found

    def find(self, text: str) -> list[list[str]]:
        """Boxes that contain the text, as (key, title, the parts that it is in)."""
        hits = self.drawing.find(text, MOST_HITS) if text.strip() else []
        return [[each.key, each.title, " › ".join(path_of(each))] for each in hits]

    # -- facts

    def facts(self, item: Item) -> Answer:
        """The facts about a box: its node, place and values."""
        values = [item.value] if item.value is not None else item.node.outputs if item.node is not None else []
        given = item.node.inputs if item.node is not None else []
        return {
            "key": item.key, "title": item.title, "path": " › ".join(path_of(item)),
            "text": spans(_text(item), "ir") if item.node is not None else [],
            "place": _place(item.node), "source": _source(item.node),
            "values": [self._value(each) for each in values],
            "inputs": [self._link(each) for each in given],
        }  # fmt: skip

    def value(self, name: str) -> Answer:
        """The facts about a value: its type, definition, uses and line.  Raises Refused."""
        if not self._values:
            self._values = {each.debug_name: each for each in _values(self.graph)}
        found = self._values.get(name.removeprefix("%"))
        if found is None:
            raise Refused(f"there is no value {name[:40]}")
        item = self.drawing.item_of(found)
        node = found.node
        is_made = node.kind not in ("prim::Param",)
        return {
            "key": item.key if item is not None else "", "title": f"%{found.debug_name}",
            "path": " › ".join(path_of(item)) if item is not None else "",
            "text": spans(without_scopes(node_text(node).split("\n")[0].strip()), "ir") if is_made else [],
            "place": _place(node), "source": _source(node),
            "values": [self._value(found)], "inputs": [self._link(each) for each in node.inputs],
        }  # fmt: skip

    def _value(self, value: Value) -> Answer:
        users = dict.fromkeys(use.user for use in value.uses)
        shown = list(users)[:_MOST_USES]
        return {
            "name": f"%{value.debug_name}", "type": without_scopes(str(value.type)), "count": len(users),
            "uses": [[self._key(user), user.kind.removeprefix("aten::"), _place(user)] for user in shown],
        }  # fmt: skip

    def _link(self, value: Value) -> list[str]:
        item = self.drawing.item_of(value)
        return [f"%{value.debug_name}", argument_text(value), without_scopes(str(value.type)), item.key if item else ""]

    def _key(self, node: Node) -> str:
        item = next((area[node] for area in self.drawing.nodes() if node in area), None)
        return item.key if item is not None else ""


def _wire(way: Way, numbers: dict[Item, int]) -> list[Any]:
    points = (round(each) for point in way.points for each in point)
    return [numbers[way.wire.source], numbers[way.wire.target], way.wire.name, *points]


def _text(item: Item) -> str:
    return without_scopes(node_text(item.node).split("\n")[0].strip()) if item.node is not None else ""


def _values(graph: Graph) -> Iterable[Value]:
    yield from graph.inputs
    for node in graph.all_nodes():
        yield from node.outputs
        for block in node.blocks:
            yield from block.inputs


def _place(node: Node | None) -> str:
    return full_place(line_of(node.range)) if node is not None else ""


def _source(node: Node | None) -> list[Any]:
    line = line_of(node.range) if node is not None else None
    return spans(line.text, "python")[0] if line is not None else []
