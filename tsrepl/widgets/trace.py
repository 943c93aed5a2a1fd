"""The trace player: one instruction at a time, forward and back, with the values that it read and wrote.

In: a `TraceReply`.  Out: its widget.  The values are those of the run itself: a tensor is looked at when its place is
chosen, and one that was written to since says so.  All traces of a kernel share the memory that one may take:
the oldest give way.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar, Final
from weakref import ref

import traitlets

from engine.aten.values.tensor import Tensor
from engine.executor.plans.source_lines import line_of
from engine.ir.graph import Graph, Node
from tsrepl.session.observing import MOST_HELD
from tsrepl.session.replies import Moment, TraceReply, TraceRow
from tsrepl.widgets.graph import PaneView
from tsrepl.widgets.heat import looked_at
from tsrepl.widgets.messages import Look, Refused, Show
from tsrepl.widgets.pane import Pane
from tsrepl.widgets.view import Answer, Handler, front_end, spans

_QUIET: Final = ("Load", "Constant", "Drop")
"""Instructions that a player may step over: they compute nothing."""


class TracePlayer(PaneView):
    """A trace and the pictures of its graphs, one for each function that ran."""

    _esm = traitlets.Unicode(front_end("picture", "heat", "trace")).tag(sync=True)

    HANDLERS: ClassVar[dict[type[Any], Handler]] = {
        **PaneView.HANDLERS,
        Show: lambda view, message: view.show(message.step),
        Look: lambda view, message: view.looked(message.step, message.slot),
    }

    def __init__(self, reply: TraceReply) -> None:
        self._reply, self.moments = reply, reply.moments
        self._panes: dict[Graph, Pane] = {}
        self.pane = self._pane(reply.moments[0].graph) if reply.moments else Pane(Graph())
        rows = [_row(row, moment) for row, moment in zip(reply.rows, reply.moments, strict=True)]
        first = next((at for at, row in enumerate(rows) if not row["quiet"]), 0)
        super().__init__({"title": reply.title, "rows": rows, "result": reply.result}, step=first)
        _hold(reply)

    def _pane(self, graph: Graph) -> Pane:
        if graph not in self._panes:
            self._panes[graph] = Pane(graph)
        return self._panes[graph]

    def show(self, step: int) -> Answer:
        """The picture of the graph that the instruction is of, and its box there."""
        moment = self._moment(step)
        self.pane = self._pane(moment.graph)
        item = next((area[moment.node] for area in self.pane.drawing.nodes() if moment.node in area), None)
        if item is not None:
            self.pane.reveal(item)
        seen = {
            "step": step, "graph": [*self._panes].index(moment.graph), "key": item.key if item is not None else "",
            "picture": self.pane.picture(), "source": _source(moment.node),
        }  # fmt: skip
        self.keep(**seen)
        return seen

    def looked(self, step: int, slot: int) -> Answer:
        """A value of the instruction, as a picture."""
        values = self._moment(step).values
        if self.moments and not any(moment.values for moment in self.moments):
            raise Refused("the values of this trace gave way to those of later ones: run the cell again")
        if not 0 <= slot < len(values):
            raise Refused("the value was not kept: those before it fill the memory that a trace may take")
        value, writes = values[slot]
        since = value._version - writes if isinstance(value, Tensor) else 0
        note = f"written to {since} time{'s' * (since > 1)} since: this is what it holds now" if since > 0 else ""
        seen = {**looked_at(value), "since": note}
        self.keep(look=[step, slot, seen])
        return seen

    def _moment(self, step: int) -> Moment:
        if not 0 <= step < len(self.moments):
            raise Refused(f"there is no instruction {step}")
        return self.moments[step]


_held: Final[deque[tuple[ref[TraceReply], int]]] = deque()
"""The traces that are there, the oldest first, and the bytes of their values; they live as long as others hold them."""


def _hold(reply: TraceReply) -> None:
    """Count the values of a trace, and let go of those of the oldest ones as far as all are too many."""
    there = [(known, size) for known, size in _held if known() is not None and known() is not reply]
    tensors = {id(value): value for moment in reply.moments for value, _ in moment.values if isinstance(value, Tensor)}
    _held.clear()
    _held.extend([*there, (ref(reply), sum(each.array.nbytes for each in tensors.values()))])
    while len(_held) > 1 and sum(size for _, size in _held) > MOST_HELD:
        oldest, _ = _held.popleft()
        if (gone := oldest()) is not None:
            for moment in gone.moments:
                moment.values.clear()


def _row(row: TraceRow, moment: Moment) -> Answer:
    is_quiet = any(f" {word}" in f" {row.instruction}" for word in _QUIET)
    return {
        "pc": row.pc, "depth": row.depth, "function": row.function, "text": spans(row.instruction, "instructions")[0],
        "reads": [*map(list, row.reads)], "writes": [*map(list, row.writes)], "place": row.place, "quiet": is_quiet,
    }  # fmt: skip


def _source(node: Node | None) -> list[Answer]:
    """The lines of the program around the node's."""
    here = line_of(node.range) if node is not None else None
    if node is None or node.range is None or here is None:
        return []
    source = node.range.original().source
    first, count = here.number - source.first_line, len(source.line_starts())
    near = range(max(0, first - 3), min(count, first + 4))
    return [
        {"number": at + source.first_line, "text": spans(source.line_text(at), "python")[0], "here": at == first}
        for at in near
    ]
