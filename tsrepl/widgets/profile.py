"""The profile and guard view: by line, the values that were seen, their guards, and the failures of these.

In: a `ProfileReply` or a `GuardsReply`.  Out: its widget.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import traitlets

from engine.lang.counts import duration
from tsrepl.session.plan_replies import FailureRow, GuardedPlan, GuardsReply, ProfileReply, ProfileRow
from tsrepl.widgets.view import Answer, View, front_end, spans

MOST: Final = 1500
"""Values that one view shows; the first ones."""


class ProfileView(View):
    """One section for each profile or plan, which is all there at once."""

    _esm = traitlets.Unicode(front_end("profile")).tag(sync=True)

    def __init__(self, reply: ProfileReply | GuardsReply) -> None:
        if isinstance(reply, ProfileReply):
            kind, sections = "profiles", [*map(_profile, reply.profiles)]
            columns = ["value", "seen as", "times", "used by"]
        else:
            kind, sections = "guards", [*map(_plan, reply.plans)]
            columns = ["value", "guarded as", "state", "failed", "because"]
        left = MOST
        for section in sections:
            for line in section["lines"]:
                line["rows"] = line["rows"][:left]
                left -= len(line["rows"])
        super().__init__({"kind": kind, "title": reply.title, "columns": columns, "sections": sections})


def _line(place: str, text: str, rows: Iterable[Answer]) -> Answer:
    return {"place": place, "text": spans(text, "python")[0], "rows": [*rows]}


def _profile(profile: ProfileRow) -> Answer:
    lines = [
        _line(line.place, line.text, (
            {"cells": [each.value, each.type, _times(each.count, each.undefined), ", ".join(each.users)],
             "more": [f"was {seen}" for seen in each.seen], "level": "warning" if each.seen else ""}
            for each in line.values
        ))
        for line in profile.lines
    ]  # fmt: skip
    sizes = [f"{name}: {', '.join(map(str, runs))}" for name, runs in profile.symbols]
    facts = [f"{profile.runs} of {profile.wanted} runs", profile.refusal, *sizes]
    return _section(profile.function + profile.arguments, facts, lines, profile.failures, profile.rounds)


def _times(count: int, undefined: int) -> str:
    return f"{count}, None {undefined}" if undefined else str(count)


def _plan(plan: GuardedPlan) -> Answer:
    lines = [
        _line(line.place, line.text, (
            {"cells": [each.value, each.type, each.fate, str(each.failures or ""), each.why], "more": [],
             "level": "error" if each.failures else "good" if each.fate in ("kept", "moved") else "muted"}
            for each in line.guards
        ))
        for line in plan.lines
    ]  # fmt: skip
    return _section(plan.function + plan.arguments, [plan.why], lines, plan.failures, plan.dropped)


def _section(
    title: str, facts: Iterable[str], lines: list[Answer], failures: Iterable[FailureRow], dropped: int
) -> Answer:
    told = [*filter(None, facts), *([f"{dropped} dropped because guards failed"] if dropped else [])]
    rows = [
        [each.place, each.value, each.expected, each.actual, str(each.count), duration(each.seconds)]
        for each in failures
    ]
    return {"title": title, "facts": told, "lines": lines, "failures": rows}
