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
        Fold: lambda view, message: {"picture": view.pane.fold(message.key, message.open)},
        Find: lambda view, message: {"hits": view.pane.find(message.text)},
        Reveal: lambda view, message: view.revealed(message.key),
        Inspect: lambda view, message: view.pane.facts(view.pane.item(message.key)),
        Value: lambda view, message: view.pane.value(message.name),
    }

    def revealed(self, key: str) -> Answer:
        """The picture with the boxes around one opened."""
        self.pane.reveal(self.pane.item(key))
        return {"picture": self.pane.picture(), "key": key}


class GraphView(PaneView):
    """A graph by itself."""

    _esm = traitlets.Unicode(front_end("picture", "graph")).tag(sync=True)

    def __init__(self, reply: GraphReply) -> None:
        self.pane = Pane(reply.graph if reply.graph is not None else parse_ir(reply.text))
        super().__init__({"title": reply.title, **first_picture(self.pane)})


MOST_SAVED: Final = 400
"""Boxes of a picture that is saved with the notebook; a larger one is fetched."""


def first_picture(pane: Pane) -> Answer:
    """The picture, for what is shown at first, if it is small enough to be saved."""
    return {"picture": pane.picture()} if pane.drawing.count(pane.opened) <= MOST_SAVED else {}
