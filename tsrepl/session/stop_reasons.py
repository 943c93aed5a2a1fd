"""The reasons why a debugged run stands still, in words.

In: stops.  Out: texts, and the value that a run has stopped at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.executor.debugging import stops
from engine.executor.debugging.debugger import Stop
from engine.executor.debugging.evaluating import Watch
from engine.ir.facts.program_text import value_name
from tsrepl.session.modules import without_scopes
from tsrepl.session.replies import Binding
from tsrepl.session.values import described, summary

REASONS: Final[dict[str, Callable[[Stop], str]]] = {
    "start": lambda stop: "",
    "step": lambda stop: stop.text,
    "error": lambda stop: "the program fails here",
    "end": lambda stop: "",
    "interrupted": lambda stop: "interrupted",
    "breakpoint": lambda stop: _hit(stop),
    "watch": lambda stop: _hit(stop),
}


def _hit(stop: Stop) -> str:
    made = stop.breakpoint
    assert made is not None
    if isinstance(made.holds, Watch):
        return f"{made.number}: {made.text}   {summary(made.holds.before)} → {summary(made.holds.now)}"
    problem = made.condition.problem if made.condition is not None else ""
    return f"breakpoint {made.number}: {made.text}{problem and f', whose condition failed: {problem}'}"


def computed(stop: Stop) -> tuple[Binding, ...]:
    """The value with NaN or infinities at which a run has stopped."""
    bad = stop.breakpoint.holds if stop.breakpoint is not None else None
    if not isinstance(bad, stops.BadResult) or bad.value is None:
        return ()
    return (Binding(value_name(bad.value), "value", without_scopes(str(bad.value.type)), described(bad.holds)),)
