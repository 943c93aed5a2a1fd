"""Profiles, and the fates of the guards made from them, as people read them.

In: the records of a function, and its plans.  Out: a `ProfileExplanation` for each record: every use of a value with
the types that it had, symbols for sizes that vary, failures of guards; and a `GuardExplanation` for each guard that the
profile of a plan asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from engine.executor.plans.history import PlanHistory
from engine.executor.plans.plan import ExecutionPlan
from engine.executor.plans.plan_events import GuardFailed
from engine.executor.plans.profiled import Recorded
from engine.executor.plans.source_lines import SourceLine, line_of
from engine.executor.profiling.guards import GuardNote
from engine.executor.profiling.profiles import ValueProfile, symbolic_text, symbols, type_text
from engine.lang.records import dataclass
from engine.lang.types import TensorType


@dataclass(frozen=True, slots=True)
class MergeExplanation:
    """A tensor in run number `run` that made the type of a value another: `seen` gave `after`."""

    run: int
    seen: str
    after: str


@dataclass(frozen=True, slots=True)
class UseExplanation:
    """One use of a value, by a node of kind `user`: the type that all tensors seen there have in common.

    `type` names sizes that vary; `count` counts tensors, `undefined` the None that came instead.
    """

    value: str
    user: str
    line: SourceLine | None
    type: str
    count: int
    undefined: int
    merges: tuple[MergeExplanation, ...]


@dataclass(frozen=True, slots=True)
class FailureExplanation:
    """A guard that failed: `seconds` after the profile began."""

    value: str
    line: SourceLine | None
    expected: str
    actual: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ProfileExplanation:
    """The profile of runs with such arguments.

    `runs` of `wanted` are done; `rounds` counts the times that a plan was dropped because its guards failed, and
    profiled anew.  `symbols` are the sizes that vary, run by run.  `refusal` tells why no plan is made of it, if that
    is so; `guards` are those that such a plan would have, where they are too many.
    """

    arguments: str
    runs: int
    wanted: int
    rounds: int
    refusal: str
    uses: tuple[UseExplanation, ...]
    symbols: tuple[tuple[str, tuple[int, ...]], ...]
    failures: tuple[FailureExplanation, ...]
    guards: tuple[GuardExplanation, ...] = ()


@dataclass(frozen=True, slots=True)
class GuardExplanation:
    """The guard for one use of a value.

    `fate` is "kept", "moved", "merged", "eliminated", "not inserted" or "left out"; `failures` counts the calls that
    left the plan here.
    """

    value: str
    user: str
    line: SourceLine | None
    type: str
    fate: str
    why: str
    failures: int


def explain_record(recorded: Recorded) -> ProfileExplanation:
    """The record of one kind of arguments, explained."""
    record, names = recorded.record, symbols(recorded.record.profiles)
    return ProfileExplanation(
        str(recorded.plan.spec), record.runs, record.wanted, recorded.rounds, recorded.refusal,
        tuple(_use(profile, names) for profile in record.profiles),
        tuple((name, series) for series, name in names.items()), tuple(_failures(recorded.history)),
        tuple(_guard(_left_out(note), 0) for note in recorded.notes),
    )  # fmt: skip


def _left_out(note: GuardNote) -> GuardNote:
    is_wanted = note.fate in ("kept", "moved")
    return replace(note, fate="left out", why="") if is_wanted else note


def _use(profile: ValueProfile, names: dict[tuple[int, ...], str]) -> UseExplanation:
    merges = (MergeExplanation(merge.run, _plain(merge.seen), _plain(merge.after)) for merge in profile.merges)
    return UseExplanation(
        profile.name, profile.user, line_of(profile.range), symbolic_text(profile, names),
        profile.count, profile.undefined, tuple(merges),
    )  # fmt: skip


def _plain(type: TensorType) -> str:
    return type_text(replace(type, strides=None))


def _failures(history: PlanHistory) -> Iterator[FailureExplanation]:
    for event, seconds in zip(history.events, history.moments, strict=True):
        if isinstance(event, GuardFailed):
            yield FailureExplanation(event.name, line_of(event.range), event.expected, event.actual, seconds)


def explain_guards(plan: ExecutionPlan) -> tuple[GuardExplanation, ...]:
    """The guards that the plan's profile asked for, in the order of the uses."""
    counts = {site.number: site.count for site in plan.bailouts}
    return tuple(_guard(note, counts.get(note.number, 0) if note.number is not None else 0) for note in plan.guards)


def _guard(note: GuardNote, failures: int) -> GuardExplanation:
    type = type_text(note.type) if note.type else ""
    return GuardExplanation(note.name, note.user, line_of(note.range), type, note.fate, note.why, failures)
