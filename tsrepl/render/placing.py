"""Places for boxes and wires, in layers.

In: a `Drawing`, and which of its boxes are open.  Out: a `Picture`: where each box lies, and the way of each wire.

fast-sugiyama puts the boxes of one level into layers and orders these so that few wires cross.  It knows no sizes, so
the places in a layer are then moved apart, as little as possible.  Boxes are placed from the inside out: the size of a
box is that of what it holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from fast_sugiyama import from_edges

from engine.lang.records import dataclass
from tsrepl.render.drawing import Drawing, Item, Wire, cut

Point = tuple[float, float]
Edge = tuple[int, int]

_CHARACTER: Final = 7.3
_LINE: Final = 15.0
_MARGIN: Final = 10.0
_GAP: Final = 18.0
_LAYER_GAP: Final = 26.0
_HEADER: Final = 24.0
_WIDEST: Final = 1400.0
"""A row of unconnected boxes goes on below where it would be wider."""
_WAYPOINTS: Final = 4
"""Waypoints for each box that wires may take in all; longer wires go straight.  A value that is used everywhere would
else cost seconds, and fill the picture."""
_LABEL: Final = 34


class Box(NamedTuple):
    """An item at its place; `state` is leaf, open or folded."""

    item: Item
    x: float
    y: float
    width: float
    height: float
    state: str


class Way(NamedTuple):
    """A wire as a line through these points."""

    wire: Wire
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes, each after the one around it, and wires."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    ways: tuple[Way, ...]


class Level(NamedTuple):
    """The boxes of one level: the size of all together, the upper left corner of each, points on the way of edges."""

    width: float
    height: float
    corners: list[Point]
    ways: dict[Edge, list[Point]]


def picture_of(drawing: Drawing, opened: Collection[str]) -> Picture:
    """The places of all that shows."""
    wires = [(wire, _lifted(wire)) for wire in drawing.wires(opened)]
    placing = _Placing(opened, _by_level(ends for _, ends in wires))
    whole = placing.level(drawing.root)
    placing.put(drawing.root, 0.0, 0.0)
    boxes = {box.item: box for box in placing.boxes}
    ways = tuple(placing.way(wire, ends, boxes) for wire, ends in wires)
    return Picture(whole.width, whole.height, tuple(placing.boxes), ways)


def label_of(item: Item) -> tuple[str, str]:
    """The two lines of a box."""
    return cut(item.title, _LABEL), cut(item.note, _LABEL)


Lifted = tuple[Item, Item]


def _lifted(wire: Wire) -> Lifted:
    """The two boxes of one level that hold the ends of the wire."""
    if wire.source.parent is wire.target.parent:
        return wire.source, wire.target
    sources = [wire.source, *wire.source.ancestors]
    targets = [wire.target, *wire.target.ancestors]
    while len(sources) > 1 and len(targets) > 1 and sources[-2] is targets[-2]:
        sources.pop()
        targets.pop()
    return sources[-2], targets[-2]


def _by_level(lifted: Iterable[Lifted]) -> dict[Item, dict[Lifted, None]]:
    found: dict[Item, dict[Lifted, None]] = {}
    for ends in lifted:
        assert ends[0].parent is not None
        found.setdefault(ends[0].parent, {})[ends] = None
    return found


class _Placing:
    """One picture being made; `levels` are those of open boxes, `origins` where their content begins,
    `places` the number of each box among those beside it."""

    def __init__(self, opened: Collection[str], edges: dict[Item, dict[Lifted, None]]) -> None:
        self.opened, self.edges = opened, edges
        self.levels: dict[Item, Level] = {}
        self.sizes: dict[Item, Point] = {}
        self.origins: dict[Item, Point] = {}
        self.places: dict[Item, int] = {}
        self.boxes: list[Box] = []

    def level(self, item: Item) -> Level:
        """The places of what is inside an open box."""
        sizes = [self.size(child) for child in item.children]
        at = {child: index for index, child in enumerate(item.children)}
        self.places |= at
        found = self.levels[item] = arranged(sizes, [(at[a], at[b]) for a, b in self.edges.get(item, ())])
        return found

    def size(self, item: Item) -> Point:
        """The size of the box, found once."""
        if item not in self.sizes:
            title, note = label_of(item)
            width = _MARGIN * 2 + _CHARACTER * max(len(title) + 2 * item.is_box, len(note))
            height = _MARGIN + _LINE * (1 + bool(note))
            if item.key in self.opened:
                inside = self.level(item)
                width, height = max(width, inside.width + 2 * _MARGIN), inside.height + _HEADER + _MARGIN
            self.sizes[item] = (width, height)
        return self.sizes[item]

    def put(self, item: Item, x: float, y: float) -> None:
        """Place what is inside the box, whose content begins at x and y."""
        self.origins[item] = (x, y)
        for child, (left, top) in zip(item.children, self.levels[item].corners, strict=True):
            width, height = self.size(child)
            is_open = child.key in self.opened
            state = "open" if is_open else "folded" if child.is_box else "leaf"
            self.boxes.append(Box(child, x + left, y + top, width, height, state))
            if is_open:
                inside = self.levels[child]
                self.put(child, x + left + (width - inside.width) / 2, y + top + _HEADER)

    def way(self, wire: Wire, ends: Lifted, boxes: dict[Item, Box]) -> Way:
        first, last = ends
        assert first.parent is not None
        level, (x, y) = self.levels[first.parent], self.origins[first.parent]
        between = level.ways.get((self.places[first], self.places[last]), ())
        source, target = boxes[wire.source], boxes[wire.target]
        start = (source.x + source.width / 2, source.y + source.height)
        end = (target.x + target.width / 2, target.y)
        return Way(wire, (start, *((x + px, y + py) for px, py in between), end))


# ------------------------------------------------------------------ one level


def arranged(sizes: Sequence[Point], edges: Iterable[Edge]) -> Level:
    """Boxes of these sizes in layers, an edge going down from each of its ends to the other."""
    ways: dict[Edge, list[Point]] = {}
    corners: list[Point] = [(0.0, 0.0)] * len(sizes)
    kept = _kept(len(sizes), dict.fromkeys(edges))
    linked = sorted({end for edge in kept for end in edge})
    alone = sorted({*range(len(sizes))} - {*linked})
    x = y = row = widest = 0.0
    for layers, lines in [*_components(sizes, kept, linked), *(([[(at, 0.0)]], {}) for at in alone)]:
        centres, width, height = _coordinates(sizes, layers)
        if x and x + width > _WIDEST:
            x, y, row = 0.0, y + row + _LAYER_GAP, 0.0
        for at, (cx, cy) in centres.items():
            if at < len(sizes):
                corners[at] = (x + cx - sizes[at][0] / 2, y + cy - sizes[at][1] / 2)
        for edge, bends in lines.items():
            ways[edge] = [(x + centres[at][0], y + centres[at][1]) for at in bends]
        widest, row, x = max(widest, x + width), max(row, height), x + width + _GAP
    return Level(widest, y + row, corners, ways)


def _kept(count: int, edges: Iterable[Edge]) -> list[Edge]:
    """The edges that decide about places: of each box the shortest in and out, then shorter ones first, as many as
    there are waypoints for."""
    ranks = _ranks(count, edges)
    ordered = sorted(edges, key=lambda edge: abs(ranks[edge[1]] - ranks[edge[0]]))
    has_out, has_in, left, kept = set[int](), set[int](), _WAYPOINTS * count, list[Edge]()
    for source, target in ordered:
        bends = max(0, abs(ranks[target] - ranks[source]) - 1)
        if source not in has_out or target not in has_in or bends <= left:
            left -= bends
            kept.append((source, target))
        has_out.add(source)
        has_in.add(target)
    return kept


def _ranks(count: int, edges: Iterable[Edge]) -> list[int]:
    """The layer of each box, by the longest way to it; those that nothing leads to stand above their first user."""
    ranks, users = [0] * count, dict[int, list[int]]()
    has_source = set[int]()
    for source, target in sorted(edges):
        if source < target:
            ranks[target] = max(ranks[target], ranks[source] + 1)
            users.setdefault(source, []).append(target)
            has_source.add(target)
    for at, following in users.items():
        if at not in has_source:
            ranks[at] = min(ranks[each] for each in following) - 1
    return ranks


Layers = list[list[tuple[int, float]]]


def _components(
    sizes: Sequence[Point], edges: Sequence[Edge], linked: Sequence[int]
) -> Iterable[tuple[Layers, dict[Edge, list[int]]]]:
    """For each connected part its layers, as (box, wanted centre) from the left, and the bends of its edges; a bend has
    a number above those of the boxes."""
    if not edges:
        return
    dense = {at: index for index, at in enumerate(linked)}
    mean = sum(sizes[at][0] for at in linked) / len(linked)
    found = from_edges(
        [(dense[a], dense[b]) for a, b in edges],
        vertex_spacing=mean + _GAP, dummy_vertices=True, dummy_size=0.3, check_layout=False,
    )  # fmt: skip

    def known(index: int | str) -> int:
        index = int(index)
        return linked[index] if index < len(linked) else index - len(linked) + len(sizes)

    for positions, _, _, pieces in found:
        rows: dict[float, list[tuple[int, float]]] = {}
        for index, (x, y) in positions:
            rows.setdefault(-y, []).append((known(index), x))
        layers = [sorted(row, key=lambda each: each[1]) for _, row in sorted(rows.items())]
        yield layers, _bends([(known(a), known(b)) for a, b in pieces or ()], len(sizes), edges)


def _bends(pieces: Sequence[Edge], count: int, edges: Sequence[Edge]) -> dict[Edge, list[int]]:
    """The bends of edges, which come in pieces from bend to bend."""
    following = {a: b for a, b in pieces if a >= count}
    wanted, found = set(edges), dict[Edge, list[int]]()
    for source, at in pieces:
        bends = []
        while source < count <= at:
            bends.append(at)
            at = following[at]
        if bends and (source, at) in wanted:
            found[source, at] = bends
        elif bends:
            found[at, source] = bends[::-1]
    return found


def _coordinates(sizes: Sequence[Point], layers: Layers) -> tuple[dict[int, Point], float, float]:
    """The centres of boxes and bends, and the size of all."""
    centres: dict[int, Point] = {}
    top, left, right = 0.0, float("inf"), 0.0
    for layer in layers:
        height = max((sizes[at][1] for at, _ in layer if at < len(sizes)), default=0.0)
        widths = [sizes[at][0] if at < len(sizes) else 2.0 for at, _ in layer]
        for (at, _), width, x in zip(layer, widths, _moved_apart([x for _, x in layer], widths), strict=True):
            centres[at] = (x, top + height / 2)
            left, right = min(left, x - width / 2), max(right, x + width / 2)
        top += height + _LAYER_GAP
    return {at: (x - left, y) for at, (x, y) in centres.items()}, right - left, max(0.0, top - _LAYER_GAP)


def _moved_apart(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """The centres nearest to those wanted, in this order, that leave a gap between things so wide.

    Each is shifted by what has to lie left of it; then it is the regression to a sequence that never falls, by pooling.
    """
    shifts = [0.0]
    for before, width in pairwise(widths):
        shifts.append(shifts[-1] + (before + width) / 2 + _GAP)
    pools: list[tuple[float, int]] = []
    for x, shift in zip(wanted, shifts, strict=True):
        total, count = x - shift, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            total, count = total + pools[-1][0], count + pools[-1][1]
            pools.pop()
        pools.append((total, count))
    return [total / count + shifts.pop(0) for total, count in pools for _ in range(count)]
