"""The debugger in a page: the dialogue of the terminal's debugger, with buttons, the source and the variables.

In: a `DebugReply`.  Out: its widget, which speaks with the same dialogue, by the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import traitlets

from tsrepl.render.terminal import to_text
from tsrepl.session.debugging import DebugDialogue
from tsrepl.session.replies import DebugReply, Reply, SourceRow
from tsrepl.widgets.messages import Command, Refused
from tsrepl.widgets.view import Answer, Handler, View, front_end, spans

_AROUND: Final = 8
_WIDTH: Final = 100
CLEAR_LINE: Final = "clear-line"
"""The word by which the front end asks for a line without breakpoints."""


class DebuggerView(View):
    """One debugged call; `data` is the place where it stands."""

    _esm = traitlets.Unicode(front_end("debug")).tag(sync=True)

    HANDLERS: ClassVar[dict[type[Any], Handler]] = {Command: lambda view, message: view.command(message.line)}

    def __init__(self, reply: DebugReply) -> None:
        self.dialogue = reply.dialogue if isinstance(reply.dialogue, DebugDialogue) else None
        super().__init__(self.place(reply))
        if self.dialogue is not None:
            self.dialogue.listeners.append(self.follow)

    def command(self, line: str) -> Answer:
        """Run a line of the dialogue; the place where the call stands then, and all else that was answered."""
        if self.dialogue is None or self.dialogue.is_over:
            raise Refused("this call is no longer debugged: run the cell again")
        replies = [*self.dialogue.run(self._by_number(line))]
        stop = next((each for each in reversed(replies) if isinstance(each, DebugReply)), None)
        told = [each for each in replies if not isinstance(each, DebugReply)]
        place = self.data if self.dialogue.is_over or stop is None else self.place(stop)
        self.data = {**place, "told": _text([*_error(stop), *told])}
        return dict(self.data)

    def follow(self) -> None:
        """Show where the call stands now, wherever the line came from that brought it there."""
        assert self.dialogue is not None
        is_over = self.dialogue.is_over
        place = self.data if is_over else self.place(self.dialogue.standing())
        self.data = {**place, "told": "", "over": is_over}

    def _by_number(self, line: str) -> str:
        """The command; one that clears a line's breakpoints names them by their numbers."""
        word, _, argument = line.partition(" ")
        if word != CLEAR_LINE or self.dialogue is None:
            return line
        found = [
            each for each in self.dialogue.debugger.breakpoints if argument in map(str, self.dialogue.lines_of(each))
        ]
        return f"clear {' '.join(str(each.number) for each in found)}" if found else "break"

    def place(self, reply: DebugReply) -> Answer:
        """Plain data about the place where the call stands."""
        return {
            "title": reply.title, "reason": reply.reason, "position": reply.position, "node": reply.node,
            "instruction": reply.instruction, "result": reply.result, "source": [*map(_row, self._source(reply))],
            "variables": self._variables(), "told": _text(_error(reply)), "over": False,
        }  # fmt: skip

    def _source(self, reply: DebugReply) -> tuple[SourceRow, ...]:
        """More lines than a terminal has room for."""
        here = next((row.number for row in reply.source if row.is_here), None)
        if self.dialogue is None or here is None:
            return reply.source
        return self.dialogue.source(self.dialogue.debugger.frame, max(1, here - _AROUND), here + _AROUND)

    def _variables(self) -> list[list[str]]:
        """All variables of the selected call, as (name, type, value)."""
        if self.dialogue is None or self.dialogue.debugger.finished:
            return []
        return [[each.name, each.type, each.summary] for each in self.dialogue.variables()]


def _row(row: SourceRow) -> Answer:
    return {"number": row.number, "text": spans(row.text, "python")[0], "here": row.is_here, "stop": row.is_stop}


def _error(reply: DebugReply | None) -> list[Reply]:
    return [] if reply is None or reply.error is None else [reply.error]


def _text(replies: Sequence[Reply]) -> str:
    return "".join(to_text(each, _WIDTH) for each in replies).rstrip()
