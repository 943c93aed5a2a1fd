"""The graph view: boxes that open and fold, search, and the facts about what is chosen.

In: a `GraphReply`.  Out: its widget.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import traitlets

from engine.ir.parser import parse_ir
from tsrepl.session.replies import GraphReply
from tsrepl.widgets.messages import Find, Fold, Inspect, Reveal, Value
from tsrepl.widgets.pane import Pane
from tsrepl.widgets.view import Answer, Handler, View, front_end


class PaneView(View):
    """A view with a picture of a graph in it."""

    pane: Pane

    HANDLERS: ClassVar[dict[type[Any], Handler]] = {
        Fold: lambda view, message: view.folded(message.key, message.open),
        Find: lambda view, message: {"hits": view.pane.find(message.text)},
        Reveal: lambda view, message: view.revealed(message.key),
        Inspect: lambda view, message: view.pane.facts(view.pane.item(message.key)),
        Value: lambda view, message: view.pane.value(message.name),
    }

    def folded(self, key: str, is_open: bool) -> Answer:
        """The picture with a box opened or folded."""
        self.pane.fold(key, is_open)
        return self._drawn()

    def revealed(self, key: str) -> Answer:
        """The picture with the boxes around one opened."""
        self.pane.reveal(self.pane.item(key))
        return {**self._drawn(), "key": key}

    def _drawn(self) -> Answer:
        picture = self.pane.picture()
        self.keep(picture=picture)
        return {"picture": picture}


class GraphView(PaneView):
    """A graph by itself."""

    _esm = traitlets.Unicode(front_end("picture", "graph")).tag(sync=True)

    def __init__(self, reply: GraphReply) -> None:
        self.pane = Pane(reply.graph if reply.graph is not None else parse_ir(reply.text))
        super().__init__({"title": reply.title})
        if self.pane.drawing.count(self.pane.opened) <= MOST_SAVED:
            self.keep(picture=self.pane.picture())


MOST_SAVED: Final = 400
"""Boxes of a picture that is saved with the notebook; a larger one is fetched."""
