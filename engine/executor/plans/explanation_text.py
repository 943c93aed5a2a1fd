"""Explanations as people read them: a page for `print`, and its facts for views that draw them.

In: an `Explanation`.  Out: lines about its calls, facts about each of its plans (pairs of a label and a text, of which
a label may be empty to go on with the one before), and both as one text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from engine.executor.plans.early_calls import MARKS
from engine.executor.plans.explained_profiles import FailureExplanation, ProfileExplanation
from engine.executor.plans.history import PassRun
from engine.executor.plans.plan_events import KeptRefused
from engine.executor.plans.source_places import Places
from engine.frontend.compilation.entries import ENTRY
from engine.lang.counts import ago, byte_size, counted, duration, some_of

if TYPE_CHECKING:
    from engine.executor.plans.explanation import (
        Explanation,
        GroupExplanation,
        KernelExplanation,
        NodeOutside,
        PlanExplanation,
        SplitExplanation,
    )

Facts = Iterator[tuple[str, str]]
MOST_PLANS: Final = 3
"""Plans that are told of, the most recently used ones; the first line counts all."""
_MOST: Final = 6
"""Groups and reasons that are named; the rest is counted."""
_MOST_PASSES: Final = 4


def page(of: Explanation) -> str:
    """The whole as a text: what calls did, then each plan."""
    return "\n".join(_lines(of))


def _lines(of: Explanation) -> Iterator[str]:
    yield from summaries(of.function, of)
    for plan in of.plans[-MOST_PLANS:]:
        yield plan_title(of.function, plan.arguments)
        facts = [*plan_facts(plan, of.profiles)]
        width = max(len(label) for label, _ in facts)
        yield from (f"  {label:{width}}  {text}" for label, text in facts)
    if (earlier := len(of.plans) - MOST_PLANS) > 0:
        yield f"{counted(earlier, 'earlier plan')}: .plans has all"
    yield from troubles(of.library)
    if of.plans:
        yield "more: .plans, each with its graph, source, passes, guards, and groups with their kernels"


def plan_title(function: str, arguments: str) -> str:
    """The line above a plan: `f(x: Float(*))`, and for a text that is no name `x + 1  for (x: Float(*))`."""
    if function.replace(".", "").isidentifier():
        return f"{function}{arguments}"
    return f"{function}  for {arguments}" if arguments != "()" else function


def troubles(library: Sequence[str]) -> Iterator[str]:
    """The reasons why (parts of) the library of operators are of no use."""
    yield from (f"the library of native operators is not used, and numpy is: {trouble}" for trouble in library)


# -- calls


def summaries(name: str, of: Explanation) -> Iterator[str]:
    """A line of what calls did, and one for each class of first calls that says why they took what they took."""
    yield _summary(name, of)
    number = 0
    for each in of.early:
        number += each.calls
        ran = ", ".join(f"{count} by {what}" for what, count in each.ran.items())
        got = "was taken from disk" if each.was_kept else "was made"
        plan = f"; the plan {got} in {duration(each.plan_seconds)}" if each.plan_seconds else ""
        yield f"  until call {number}: {duration(each.seconds)}, {ran}{plan}"
    if 0 < number < MARKS[-1] and any(each.is_direct for each in of.plans):
        yield "  later calls go straight to kernels, and are not timed"


def _summary(name: str, of: Explanation) -> str:
    calls, profiled = of.statistics.hits + of.statistics.misses, sum(each.runs for each in of.profiles)
    parts = [
        f"{counted(calls + profiled, 'call')} looked for a plan",
        f"{counted(of.statistics.misses, 'plan was', 'plans were')} made",
        f"{counted(profiled, 'run was', 'runs were')} profiled" if profiled else "",
        f"{of.statistics.evictions} were evicted" if of.statistics.evictions else "",
        dropped(of),
        "compile mode off" if of.mode == "off" else "",
    ]
    return f"{name}: {', '.join(filter(None, parts))}"


def dropped(of: Explanation) -> str:
    """The plans that are no more, and what became of their calls."""
    counts = of.dropped
    if not counts.plans:
        return ""
    used = f"used by {counted(counts.hits, 'later call')}"
    failed = f", of which {counts.failures} failed a guard" if counts.failures else ""
    return f"{counted(counts.plans, 'plan was', 'plans were')} dropped ({used}{failed})"


# -- plans


def plan_facts(plan: PlanExplanation, profiles: Sequence[ProfileExplanation]) -> Facts:
    """Facts about the making of the plan, guards, failures, gradients, kernels, what has none and why, and the cost."""
    places = places_of(plan)
    yield from _making(plan)
    yield from _guards(plan, profiles)
    yield from _gradients(plan, places)
    yield from _kernels(plan, places)
    yield from _cost(plan)


def places_of(plan: PlanExplanation) -> Places:
    """The places of all lines that facts about the plan name."""
    groups = [*(group.lines for group in plan.groups), *(group.lines for group in plan.differentiable)]
    nodes = [node.line for node in (*plan.unfused, *plan.undifferentiated)]
    return Places([*nodes, *(line for lines in groups for line in lines)])


def _making(plan: PlanExplanation) -> Facts:
    tier = "code for Python" if plan.tier == "generated" else "instructions for the interpreter"
    if plan.interpreted:
        yield "before", f"the interpreter ran for {duration(plan.interpreted)}, from the second call on"
    refused = (each for each in plan.events if isinstance(each, KeptRefused))
    yield from (("refused", f"{each.what} from disk, since {each.difference}") for each in refused)
    if plan.origin is not None:
        when = ago(plan.origin.made)
        yield "made", f"by {plan.origin.maker}, {when}; taken from disk in {duration(plan.seconds)}, as {tier}"
        yield "passes", "those of the process that made it, which run again when they are looked at"
        return
    changed = [each for each in plan.passes if each.changed]
    seconds = sum(each.seconds for each in plan.passes)
    yield "made", f"in {duration(plan.seconds)}, as {tier}"
    longest = _longest(changed)
    which = f", {len(longest)} of them took longest:" if len(changed) > len(longest) else ":" if changed else ""
    yield "passes", f"{len(plan.passes)} in {duration(seconds)}; {len(changed) or 'none'} changed the graph{which}"
    yield from (("", f"{each.title} {duration(each.seconds)}") for each in longest)


def _longest(passes: Sequence[PassRun]) -> list[PassRun]:
    """The passes that took longest, in their order."""
    chosen = sorted(passes, key=lambda each: -each.seconds)[:_MOST_PASSES]
    return [each for each in passes if each in chosen]


def _guards(plan: PlanExplanation, profiles: Sequence[ProfileExplanation]) -> Facts:
    kept = [each for each in plan.guards if each.fate in ("kept", "moved")]
    if plan.guards:
        shown = some_of([f"{each.value} {each.type}" for each in kept], _MOST)
        rest = len(plan.guards) - len(kept)
        yield "guards", f"{shown or 'none'}; {counted(rest, 'use needs', 'uses need')} none"
    for profile in profiles:
        if profile.arguments == plan.arguments:
            yield from _failed(profile)


def _failed(profile: ProfileExplanation) -> Facts:
    places = Places.of(profile.uses)
    for same in alike_failures(profile):
        first, times = same[0], f", {len(same)} times" if len(same) > 1 else ""
        place = places.text(first.line)
        yield "failed", f"{first.value}, {place}: expected {first.expected}, got {first.actual}{times}"
    if profile.rounds:
        yield "", f"{counted(profile.rounds, 'plan was', 'plans were')} dropped for this, and profiled anew"


def alike_failures(profile: ProfileExplanation) -> Iterable[Sequence[FailureExplanation]]:
    """The failures of the profile's guards, those together that are of one value, for one reason."""
    alike: dict[tuple[object, ...], list[FailureExplanation]] = {}
    for each in profile.failures:
        alike.setdefault((each.line, each.value, each.expected, each.actual), []).append(each)
    return alike.values()


def _kernels(plan: PlanExplanation, places: Places) -> Facts:
    for group in plan.groups[:_MOST]:
        yield "kernel", _group(group, places)
    if len(plan.groups) > _MOST:
        yield "", f"and {len(plan.groups) - _MOST} more"
    if not plan.groups:
        yield "kernels", f"none: {plan.why}"
    yield from _outside("no kernel", plan.unfused if plan.groups else (), places)


def _group(group: GroupExplanation, places: Places) -> str:
    seconds = sum(kernel.seconds for kernel in group.kernels)
    made = f"compiled in {duration(seconds)}" if group.kernels else "not compiled yet"
    several = f"{len(group.kernels)} kernels, " if len(group.kernels) > 1 else ""
    gained = "".join(f"; {text}" for text in map(measured, group.kernels) if text)
    return f"{group_name(group.name)}: {places.span(group.lines)}, {several}{made}{gained}"


def _gradients(plan: PlanExplanation, places: Places) -> Facts:
    for group in plan.differentiable:
        for split in group.splits:
            yield "gradient", f"{group_name(group.name)}: {places.span(group.lines)}, {_captured(split)}"
    yield from _outside("no gradient", plan.undifferentiated, places)


def _captured(split: SplitExplanation) -> str:
    if not split.required:
        return "where nothing required grad"
    size = byte_size(sum(each.bytes for each in split.captured))
    wanted = some_of(split.required, _MOST)
    return f"for {wanted}, {counted(len(split.captured), 'value')} captured ({size})"


def _outside(label: str, nodes: Sequence[NodeOutside], places: Places) -> Facts:
    by_reason: dict[str, dict[str, None]] = {}
    for each in nodes:
        place = f" ({places.text(each.line)})" if each.line else ""
        by_reason.setdefault(each.why, {})[f"{short_kind(each.kind)}{place}"] = None
    for why, names in by_reason.items():
        yield label, f"{some_of([*names], _MOST)}: {why}"


def _cost(plan: PlanExplanation) -> Facts:
    kernels = sum(kernel.seconds for group in plan.groups for kernel in group.kernels)
    passes = 0.0 if plan.origin is not None else sum(each.seconds for each in plan.passes)
    whole = max(plan.seconds, passes) + kernels
    straight = "; calls from Python that go straight to its kernel are not counted" if plan.is_direct else ""
    used = f"used by {counted(plan.hits, 'later call')}" if plan.hits else "not used again so far"
    yield "cost", f"{duration(whole)} in all; {used}{straight}"


# -- names


def group_name(name: str) -> str:
    """The name of a group; those of an expression, which has no name, have a number."""
    return f"group {name.removeprefix(ENTRY)}".replace(" _", " ") if name.startswith(ENTRY) else name


def short_kind(kind: str) -> str:
    """The name of a kind of node without its namespace: people write `tanh`."""
    return kind.partition("::")[2] or kind


def measured(kernel: KernelExplanation) -> str:
    """The time of calls beside that without the kernel, where that was measured, and whether it is used."""
    if not kernel.ratio:
        return ""
    found = f"{kernel.ratio:.2g} times the time without it"
    return found if kernel.is_used else f"not used: {found}"
