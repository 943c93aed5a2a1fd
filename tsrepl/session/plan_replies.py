"""The replies about plans: what they learnt, what they check, what they differentiate, and their story.

In: nothing.  Out: the records that `%profile`, `%guards`, `%autodiff` and `%explain` give.  Like all replies they are
plain: no colours, no markup, no width.
"""

from __future__ import annotations

from typing import Final

from engine.lang.counts import byte_size, counted, duration
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class ProfiledValue:
    """A value as it was seen: its type with names of sizes that vary, the types before that (`seen`, where it was not
    one), how often there was a tensor and how often None, and the operators that use it."""

    value: str
    type: str
    seen: tuple[str, ...]
    count: int
    undefined: int
    users: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProfiledLine:
    """A line of a program and the values used there."""

    place: str
    text: str
    values: tuple[ProfiledValue, ...]


@dataclass(frozen=True, slots=True)
class FailureRow:
    """Guards that failed alike, `count` times: the place, the value, its type as guarded and as it came; `seconds` from
    the beginning of the profile to the first time."""

    place: str
    value: str
    expected: str
    actual: str
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """The profile of one function for arguments of some types: `runs` done of `wanted`, `rounds` of them begun again
    because guards failed; `symbols` are (name, sizes run by run); `refusal` is the reason why no plan is guarded."""

    function: str
    arguments: str
    runs: int
    wanted: int
    rounds: int
    refusal: str
    lines: tuple[ProfiledLine, ...]
    symbols: tuple[tuple[str, tuple[int, ...]], ...]
    failures: tuple[FailureRow, ...]


@dataclass(frozen=True, slots=True)
class ProfileReply:
    """The profiles of functions."""

    title: str
    profiles: tuple[ProfileRow, ...]


@dataclass(frozen=True, slots=True)
class GuardRow:
    """A guard for a value: its fate, the reason, and how often it failed in the plan that there is now."""

    value: str
    type: str
    fate: str
    why: str
    failures: int


@dataclass(frozen=True, slots=True)
class GuardedLine:
    """A line of a program and the guards of values used there."""

    place: str
    text: str
    guards: tuple[GuardRow, ...]


@dataclass(frozen=True, slots=True)
class GuardedPlan:
    """The guards of one plan; `why` says why there are none, `failures` are those of all plans for such arguments, of
    which `dropped` failed too often."""

    function: str
    arguments: str
    why: str
    lines: tuple[GuardedLine, ...]
    failures: tuple[FailureRow, ...]
    dropped: int


@dataclass(frozen=True, slots=True)
class GuardsReply:
    """The guards of functions' plans."""

    title: str
    plans: tuple[GuardedPlan, ...]


@dataclass(frozen=True, slots=True)
class CapturedRow:
    """A value that goes from the forward graph to the backward one."""

    value: str
    type: str
    bytes: int
    is_argument: bool


@dataclass(frozen=True, slots=True)
class SplitRow:
    """A differentiable graph for arguments of one set of types: f, df, what is captured, and how each runs."""

    arguments: tuple[str, ...]
    required: tuple[str, ...]
    forward: str
    backwards: tuple[str, ...]
    captured: tuple[CapturedRow, ...]
    forward_runs: str
    backward_runs: str


@dataclass(frozen=True, slots=True)
class DifferentiableRow:
    """Lines that are differentiated together, as (place, text)."""

    name: str
    lines: tuple[tuple[str, str], ...]
    splits: tuple[SplitRow, ...]


@dataclass(frozen=True, slots=True)
class DifferentiatedPlan:
    """The differentiable graphs of a plan, `why` there are none, and (place, operator, reason) of what is in none."""

    function: str
    arguments: str
    why: str
    groups: tuple[DifferentiableRow, ...]
    outside: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class AutodiffReply:
    """The differentiable graphs of functions."""

    title: str
    plans: tuple[DifferentiatedPlan, ...]


@dataclass(frozen=True, slots=True)
class CostRow:
    """A part of a call: a node, a line or a module, by `name`, with its `text`, or its `place` in the program.

    `seconds` are its own, `total` those of the modules inside it, too; `allocated` is in bytes, `how` says what ran.
    """

    name: str
    seconds: float
    total: float
    count: int
    allocated: int
    text: str = ""
    place: str = ""
    how: str = ""

    @property
    def memory(self) -> str:
        """The memory, where arrays take it; else ""."""
        return _memory(self.allocated)


@dataclass(frozen=True, slots=True)
class CostReply:
    """The time and memory of a call: by module, by line, and by node, the most expensive ones of these.

    `call` is the time of a call that nobody looks into, `seconds` the fastest of some `runs` with a clock between their
    nodes, `peak` the most bytes at once in one more; `tiers` says what ran of each function; `left_out` nodes took
    `left_seconds`.
    """

    title: str
    call: float
    seconds: float
    runs: int
    peak: int
    tiers: tuple[tuple[str, str], ...]
    modules: tuple[CostRow, ...]
    lines: tuple[CostRow, ...]
    nodes: tuple[CostRow, ...]
    left_out: int
    left_seconds: float

    @property
    def facts(self) -> str:
        """The time of a call, that with the clock, whose parts the rows are, and the memory where arrays take it."""
        runs = f"the fastest of {counted(self.runs, 'run')}" if self.runs > 1 else "one run"
        peak = f"; {peak} of memory at most" if (peak := _memory(self.peak)) else ""
        return f"{duration(self.call)} a call; {duration(self.seconds)} with a clock between nodes, {runs}{peak}"


_LEAST: Final = 1024
"""Bytes below which it is not the arrays that take memory."""


def _memory(size: int) -> str:
    return byte_size(size) if size >= _LEAST else ""


@dataclass(frozen=True, slots=True)
class StoryPlan:
    """A plan in a few words: facts, as (label, text), in the order in which they came about."""

    function: str
    arguments: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ExplainReply:
    """The story of functions: their calls (`summary`, one for each), and their plans."""

    title: str
    summaries: tuple[str, ...]
    plans: tuple[StoryPlan, ...]
