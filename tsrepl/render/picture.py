"""Pictures of graphs that stand by themselves: SVG.

In: a reply about a graph.  Out: SVG text, or an HTML image of it, for pages on which no widget runs.  The picture
follows the reader's light or dark system; notebooks that clean HTML leave images as they are.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from html import escape
from typing import Final

from engine.ir.graph import Graph
from tsrepl.render.drawing import Drawing, fewest
from tsrepl.render.palette import PALETTE, SURFACES
from tsrepl.render.placing import Box, Picture, Way, label_of, picture_of
from tsrepl.session.replies import GraphReply, PipelineReply, Reply

KINDS: Final = {
    "input": "string", "output": "string", "op": "kind", "control": "keyword", "block": "muted", "part": "type",
    "call": "type", "group": "command",
}  # fmt: skip
"""The role of each kind of box, which tells its colour."""
MOST: Final = 200
"""Boxes of a picture; of more, only text is shown."""
_WIDTH: Final = 760
_STYLE: Final = (
    "text{{font:12px ui-monospace,Menlo,Consolas,monospace}}.t{{font-weight:600}}rect{{fill:{page}}}"
    ".open{{fill:{panel};stroke-dasharray:5 3}}path{{fill:none;stroke:{wire}}}.n{{fill:{muted}}}"
)


def graph_in(reply: Reply) -> Graph | None:
    """The graph that a reply is about: of passes, the last one."""
    if isinstance(reply, GraphReply):
        return reply.graph
    if isinstance(reply, PipelineReply):
        return next((each.after.graph for each in reversed(reply.passes) if each.changed), reply.start.start.graph)
    return None


def picture_html(reply: Reply) -> str:
    """The picture of the reply's graph as an image; "" where there is none, or one too large."""
    graph = graph_in(reply)
    if graph is None or fewest(graph) > MOST:
        return ""
    drawing = Drawing(graph)
    opened = drawing.first_open()
    if drawing.count(opened) > MOST:
        return ""
    picture = picture_of(drawing, opened)
    data = b64encode(svg_of(picture).encode()).decode("ascii")
    width = min(round(picture.width), _WIDTH)
    return (
        f'<img alt="a picture of the graph, whose text follows" width="{width}" src="data:image/svg+xml;base64,{data}">'
    )


def svg_of(picture: Picture) -> str:
    """The picture as one SVG document."""
    width, height = round(picture.width) + 8, round(picture.height) + 8
    opened = [box for box in picture.boxes if box.state == "open"]
    others = [box for box in picture.boxes if box.state != "open"]
    body = "".join((*map(_box, opened), *map(_way, picture.ways), *map(_box, others)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-4 -4 {width} {height}" width="{width}" height="{height}">'
        f"<style>{_styles()}</style>{body}</svg>"
    )


def _styles() -> str:
    return f"{_colours('light')}@media(prefers-color-scheme:dark){{{_colours('dark')}}}"


def _colours(theme: str) -> str:
    roles = {role: getattr(PALETTE[role], theme) for role in (*KINDS.values(), "muted")}
    surfaces = {name: pair[theme == "dark"] for name, pair in SURFACES.items()}
    rules = (f".{role}{{stroke:{colour}}}.t.{role}{{fill:{colour};stroke:none}}" for role, colour in roles.items())
    return _STYLE.format(**surfaces, muted=roles["muted"]) + "".join(rules)


def _box(box: Box) -> str:
    title, note = label_of(box.item)
    role = KINDS[box.item.kind]
    x, y = round(box.x), round(box.y)
    sign = {"folded": "▸ ", "open": "▾ "}.get(box.state, "")
    radius = 12 if box.item.kind in ("input", "output") else 5
    style = f"{role} open" if box.state == "open" else role
    place = f'x="{x}" y="{y}" width="{round(box.width)}" height="{round(box.height)}" rx="{radius}"'
    shape = f'<rect class="{style}" {place}/>'
    lines = f'<text class="t {role}" x="{x + 9}" y="{y + 16}">{escape(sign + title)}</text>'
    if note and box.state != "open":
        lines += f'<text class="n" x="{x + 9}" y="{y + 31}">{escape(note)}</text>'
    return shape + lines


def _way(way: Way) -> str:
    return f'<path d="{"".join(_curve(way))}"/>'


def _curve(way: Way) -> Iterator[str]:
    (x, y), *rest = [(round(x), round(y)) for x, y in way.points]
    yield f"M{x} {y}"
    for nx, ny in rest:
        middle = (y + ny) // 2
        yield f"C{x} {middle} {nx} {middle} {nx} {ny}"
        x, y = nx, ny
    yield "m-3 -5l3 5l3 -5"
