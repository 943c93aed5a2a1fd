"""The cost view: where the time and the memory of a call go, by module as a flame, with lines and nodes beside it.

In: a `CostReply`.  Out: its widget, which is all there at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import traitlets

from engine.lang.counts import counted, duration
from tsrepl.session.plan_replies import CostReply, CostRow
from tsrepl.widgets.view import Answer, View, front_end, spans


class CostView(View):
    """The cost of one call."""

    _esm = traitlets.Unicode(front_end("costs")).tag(sync=True)

    def __init__(self, reply: CostReply) -> None:
        rest = (
            f"and {counted(reply.left_out, 'more node', 'more nodes')}, {duration(reply.left_seconds)}"
            if reply.left_out
            else ""
        )
        super().__init__({
            "title": reply.title, "facts": [reply.facts, *map("  ".join, reply.tiers)],
            "modules": [*_flame(reply.modules)], "lines": [_line(row, reply.seconds) for row in reply.lines],
            "nodes": [_node(row, reply.seconds) for row in reply.nodes], "rest": rest,
        })  # fmt: skip


def _flame(rows: Iterable[CostRow]) -> Iterator[Answer]:
    """A bar for each module: below the one around it, from `left`, so wide as its part of the time."""
    free: dict[str | None, float] = {None: 0.0}
    whole = 0.0
    for row in rows:
        whole = whole or max(row.total, 1e-12)
        around = row.name.rpartition(".")[0] if row.name else None
        left, part = free[around], row.total / whole
        free[around], free[row.name] = left + part, left
        memory = f", {row.memory}" if row.memory else ""
        yield {
            "path": row.name, "name": row.name.rpartition(".")[2] or "the module", "left": left, "part": part,
            "depth": row.name.count(".") + 1 if row.name else 0,
            "facts": f"{duration(row.total)}, {part:.0%}; {duration(row.seconds)} its own{memory}",
        }  # fmt: skip


def _line(row: CostRow, whole: float) -> Answer:
    return {**_cost(row, whole), "place": row.name, "text": spans(row.text, "python"), "how": row.how}


def _node(row: CostRow, whole: float) -> Answer:
    return {
        **_cost(row, whole), "name": row.name, "holds": row.how, "module": row.text, "place": row.place,
        "count": f"{row.count:,}",
    }  # fmt: skip


def _cost(row: CostRow, whole: float) -> Answer:
    return {"part": row.seconds / whole if whole else 0.0, "time": duration(row.seconds), "memory": row.memory}
