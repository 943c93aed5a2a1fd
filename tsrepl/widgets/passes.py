"""The pass explorer: the passes that ran, one at a time, as pictures and as changes of text.

In: a `PipelineReply`.  Out: its widget.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

import traitlets

from engine.ir.graph import Graph, Node
from engine.ir.printer import node_text
from engine.lang.counts import duration
from tsrepl.render.diff import diff_lines
from tsrepl.render.drawing import Item
from tsrepl.session.replies import PassReply, PipelineReply
from tsrepl.widgets.graph import PaneView
from tsrepl.widgets.messages import Refused, Show, Value
from tsrepl.widgets.pane import Pane
from tsrepl.widgets.view import Answer, Handler, front_end, spans

_MOST_LINES: Final = 600
_MOST_OPEN: Final = 80
"""Boxes up to which those that a pass touched are opened."""
_MARKS: Final = {"+": "added", "-": "removed", " ": "", "…": "muted"}


class PassExplorer(PaneView):
    """The graph on its way through a pipeline; the picture is that of the step that shows, `other` the graph on the
    other side of its pass."""

    other: Graph

    _esm = traitlets.Unicode(front_end("picture", "passes")).tag(sync=True)

    HANDLERS: ClassVar[dict[type[Any], Handler]] = {
        **PaneView.HANDLERS,
        Show: lambda view, message: view.show(message.step, message.before),
        Value: lambda view, message: view.value(message.name),
    }

    def __init__(self, reply: PipelineReply) -> None:
        self.steps, self.graphs = reply.passes, [*_graphs(reply)]
        self.pane, self.other = Pane(Graph()), Graph()
        first = next((at for at, step in enumerate(self.steps) if step.changed), 0)
        rows = [
            [(each.changed and each.title) or ", ".join(each.names), each.changed, duration(each.seconds)]
            for each in self.steps
        ]
        super().__init__({"title": reply.start.title, "steps": rows}, step=first)
        if self.steps:
            self.show(first, False)

    def show(self, at: int, before: bool) -> Answer:
        """The graph before or after a pass, and its changes, which are saved with the view."""
        answer = self._seen(at, before)
        self.keep(**answer, before=before)
        return answer

    def _seen(self, at: int, before: bool) -> Answer:
        """The picture before or after a pass, the boxes that it touched, and the changes of the text."""
        at = min(max(at, 0), len(self.steps) - 1)
        step = self.steps[at]
        graph, other = self.graphs[at] if before else self.graphs[at][::-1]
        lines = _lines(step)
        if graph is None or other is None:
            return {"step": at, "picture": None, "marks": [], "lines": lines}
        self.pane, self.other = Pane(graph), other
        role = "removed" if before else "added"
        touched = {*_touched(graph, other)} if step.changed else set()
        items = [item for area in self.pane.drawing.nodes() for node, item in area.items() if node in touched]
        self._open(items)
        return {
            "step": at,
            "picture": self.pane.picture(),
            "marks": [[key, role] for key in self._marked(items)],
            "lines": lines,
        }

    def value(self, name: str) -> Answer:
        """The facts about a value of the graph that shows, or of the one on the other side of the pass."""
        try:
            return self.pane.value(name)
        except Refused:
            return {**Pane(self.other).value(name), "key": ""}

    def _open(self, items: Iterable[Item]) -> None:
        """Open what lies around what was touched, unless that is half the graph."""
        opened = {*self.pane.opened}
        for item in items:
            self.pane.reveal(item)
        if self.pane.drawing.count(self.pane.opened) > _MOST_OPEN:
            self.pane.opened = opened

    def _marked(self, items: Iterable[Item]) -> list[str]:
        """The keys of the items, and of the boxes around them, which may be folded."""
        return [*dict.fromkeys(key for item in items for key in (item.key, *(each.key for each in item.ancestors)))]


def _graphs(reply: PipelineReply) -> Iterable[tuple[Graph | None, Graph | None]]:
    """The graphs before and after each step, as far as they were kept; a pass that changes nothing leaves the last."""
    last = reply.start.start.graph
    for step in reply.passes:
        before = step.before.graph or last
        last = step.after.graph if step.changed else before
        yield before, last


def _touched(graph: Graph, other: Graph) -> Iterable[Node]:
    """The nodes whose text is not in the other graph."""
    known = {_head(node) for node in other.all_nodes()}
    return [node for node in graph.all_nodes() if _head(node) not in known]


def _head(node: Node) -> str:
    return node_text(node).split("\n", 1)[0].strip()


def _lines(step: PassReply) -> list[list[Any]]:
    """The changes of the text, as (mark, pieces)."""
    if not step.changed:
        return [["muted", [["the graph stays as it is", "muted"]]]]
    found = diff_lines(step.before.text, step.after.text)[:_MOST_LINES]
    texts = spans("\n".join(text for _, text in found), "ir")
    return [[_MARKS[mark], pieces] for (mark, _), pieces in zip(found, texts, strict=True)]
