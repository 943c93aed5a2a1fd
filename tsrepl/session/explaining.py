"""`%explain` and `%autodiff`: the story of a function's plans, and the gradients that are compiled for them.

In: a function that was called before, or an expression that calls some, which is run once, with kernels made before.
Out: an `ExplainReply` or an `AutodiffReply`, read from what the plans keep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from engine.executor.plans.early_calls import MARKS
from engine.executor.plans.executor import executor_of
from engine.executor.plans.explanation import (
    DifferentiableExplanation,
    Explanation,
    GroupExplanation,
    NodeOutside,
    PlanExplanation,
    SplitExplanation,
    explain,
)
from engine.executor.plans.history import PassRun
from engine.executor.plans.plan_events import KeptRefused
from engine.lang.counts import ago, byte_size, counted, duration, some_of
from tsrepl.session.called import (
    Called,
    called,
    check_has_run,
    compiled_at_once,
    example_call,
    group_name,
    measured,
    no_grad_hint,
)
from tsrepl.session.learning import failure_rows, short_kind
from tsrepl.session.modules import without_scopes
from tsrepl.session.places import Places
from tsrepl.session.plan_replies import (
    AutodiffReply,
    CapturedRow,
    DifferentiableRow,
    DifferentiatedPlan,
    ExplainReply,
    SplitRow,
    StoryPlan,
)
from tsrepl.session.replies import Reply, ReportReply, Section, TextReply
from tsrepl.session.workspace import Workspace

Facts = Iterator[tuple[str, str]]
MOST: Final = 6
"""Groups and reasons that a story names; it counts the rest."""
_MOST_PASSES: Final = 4
_MOST_PLANS: Final = 3
"""Plans that are told of, the most recently used ones; the summary counts all."""


def _run(workspace: Workspace, command: str, argument: str) -> Called:
    """The functions that the argument is about, which have run."""
    target = called(workspace, argument)
    if target.call is not None:
        with compiled_at_once():
            target.call()
            if any(executor_of(function).recent_plan is None for function in target.functions):
                target.call()  # the run was profiled, and what follows has a plan made of that
    check_has_run(command, target)
    return target


# -- %explain


def story(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%explain f` or `%explain f(x)`."""
    target = _run(workspace, "explain", argument)
    found = [(target.name(function), explain(function)) for function in target.functions]
    most = _MOST_PLANS if target.call is None else 1
    plans = tuple(_story(name, plan, each) for name, each in found for plan in each.plans[-most:])
    yield ExplainReply(argument, tuple(line for name, each in found for line in _summaries(name, each)), plans)
    for name, each in found:
        if (earlier := len(each.plans) - most) > 0:
            yield TextReply(f"{name} has {counted(earlier, 'earlier plan')}: %plan {_named(target, name)} shows all")
    for trouble in dict.fromkeys(trouble for _, each in found for trouble in each.library):
        yield TextReply(f"the library of native operators is not used, and numpy is: {trouble}")
    yield from no_grad_hint("explain", target, (plan for _, each in found for plan in each.plans[-most:]))
    name = _named(target, found[0][0]) if len(found) == 1 and not target.option else example_call(target)
    yield _more(_MORE, name)


_MORE: Final = ("kernels", "profile", "guards", "autodiff")


def _more(commands: Iterable[str], argument: str) -> TextReply:
    return TextReply(f"more: {', '.join(f'%{command} {argument}' for command in commands)}")


def _named(target: Called, name: str) -> str:
    """The name by which the session knows a function of the target; else the text that it was found by."""
    return name if name in target.known else target.text


def _summaries(name: str, of: Explanation) -> Iterator[str]:
    """A line of what calls did, and one for each class of first calls that says why they took what they took."""
    yield _summary(name, of)
    number, seconds = 0, 0.0
    for each in of.early:
        number, seconds = number + each.calls, seconds + each.seconds
        ran = ", ".join(f"{count} by {what}" for what, count in each.ran.items())
        got = "was taken from disk" if each.was_kept else "was made"
        plan = f"; the plan {got} in {duration(each.plan_seconds)}" if each.plan_seconds else ""
        yield f"  until call {number}: {duration(seconds)}, {ran}{plan}"
    if 0 < number < MARKS[-1] and any(each.is_direct for each in of.plans):
        yield "  later calls go straight to kernels, and are not timed"


def _summary(name: str, of: Explanation) -> str:
    calls, profiled = of.statistics.hits + of.statistics.misses, sum(each.runs for each in of.profiles)
    parts = [
        f"{counted(calls + profiled, 'call')} looked for a plan",
        f"{counted(of.statistics.misses, 'plan was', 'plans were')} made",
        f"{counted(profiled, 'run was', 'runs were')} profiled" if profiled else "",
        f"{of.statistics.evictions} were evicted" if of.statistics.evictions else "",
        _dropped(of),
        "compile mode off" if of.mode == "off" else "",
    ]
    return f"{name}: {', '.join(filter(None, parts))}"


def _dropped(of: Explanation) -> str:
    """The plans that are no more, and what became of their calls."""
    counts = of.dropped
    if not counts.plans:
        return ""
    used = f"used by {counted(counts.hits, 'later call')}"
    failed = f", of which {counts.failures} failed a guard" if counts.failures else ""
    return f"{counted(counts.plans, 'plan was', 'plans were')} dropped ({used}{failed})"


def _story(name: str, plan: PlanExplanation, of: Explanation) -> StoryPlan:
    places = _places(plan)
    facts = (
        *_making(plan), *_guards(plan, of), *_gradients(plan, places), *_kernels(plan, places), *_cost(plan),
    )  # fmt: skip
    return StoryPlan(name, plan.arguments, facts)


def _places(plan: PlanExplanation) -> Places:
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
        yield "passes", "those of the process that made it; %passes runs them again, to show them"
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


def _guards(plan: PlanExplanation, of: Explanation) -> Facts:
    kept = [each for each in plan.guards if each.fate in ("kept", "moved")]
    if plan.guards:
        shown = some_of([f"{each.value} {each.type}" for each in kept], MOST)
        rest = len(plan.guards) - len(kept)
        yield "guards", f"{shown or 'none'}; {counted(rest, 'use needs', 'uses need')} none"
    for profile in of.profiles:
        for each in failure_rows(profile) if profile.arguments == plan.arguments else ():
            times = f", {each.count} times" if each.count > 1 else ""
            yield "failed", f"{each.value}, {each.place}: expected {each.expected}, got {each.actual}{times}"
        if profile.arguments == plan.arguments and profile.rounds:
            yield "", f"{counted(profile.rounds, 'plan was', 'plans were')} dropped for this, and profiled anew"


def _kernels(plan: PlanExplanation, places: Places) -> Facts:
    for group in plan.groups[:MOST]:
        yield "kernel", _group(group, places)
    if len(plan.groups) > MOST:
        yield "", f"and {len(plan.groups) - MOST} more"
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
    wanted = some_of(split.required, MOST)
    return f"for {wanted}, {counted(len(split.captured), 'value')} captured ({size})"


def _outside(label: str, nodes: Sequence[NodeOutside], places: Places) -> Facts:
    by_reason: dict[str, dict[str, None]] = {}
    for each in nodes:
        place = f" ({places.text(each.line)})" if each.line else ""
        by_reason.setdefault(each.why, {})[f"{short_kind(each.kind)}{place}"] = None
    for why, names in by_reason.items():
        yield label, f"{some_of([*names], MOST)}: {why}"


def _cost(plan: PlanExplanation) -> Facts:
    kernels = sum(kernel.seconds for group in plan.groups for kernel in group.kernels)
    passes = 0.0 if plan.origin is not None else sum(each.seconds for each in plan.passes)
    whole = max(plan.seconds, passes) + kernels
    straight = "; calls from Python that go straight to its kernel are not counted" if plan.is_direct else ""
    used = f"used by {counted(plan.hits, 'later call')}" if plan.hits else "not used again so far"
    yield "cost", f"{duration(whole)} in all; {used}{straight}"


# -- %autodiff


# -- %plan


def plans(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%plan f` or `%plan f(x)`: a row for each plan."""
    target = _run(workspace, "plan", argument)
    for function in target.functions:
        of = explain(function)
        rows = tuple(_plan_row(number, plan) for number, plan in enumerate(of.plans, 1))
        title = f"plans of {target.name(function)}"
        yield ReportReply("", (Section(title, _PLAN_COLUMNS, rows, note=_LEGEND),))
        if counts := _dropped(of):
            yield TextReply(counts)
    yield _more(("passes", "explain", *_MORE), workspace.suggested(argument))


_LEGEND: Final = "hits: calls that found it; misses: calls of groups that no kernel took; failures: checks that failed"
_PLAN_COLUMNS: Final = (
    ">", "for", "made for", "runs as", ">guards", ">kernels", ">hits", ">misses", ">failures", ">made in",
)  # fmt: skip


def _plan_row(number: int, plan: PlanExplanation) -> tuple[str, ...]:
    kernels = sum(len(group.kernels) for group in plan.groups)
    checked = sum(guard.fate in ("kept", "moved") for guard in plan.guards)
    tier = "its kernel alone" if plan.is_direct else plan.tier
    counts = (checked, kernels, "not counted" if plan.is_direct else plan.hits, plan.misses, plan.failures)
    origin = f", by {plan.origin.maker}" if plan.origin is not None else ""
    made = f"{duration(plan.seconds)}{origin}"
    return str(number), plan.arguments, plan.occasion, tier, *map(str, counts), made


def autodiff(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%autodiff f` or `%autodiff f(x)`."""
    target = _run(workspace, "autodiff", argument)
    plans = [
        _differentiated(target.name(function), plan)
        for function in target.functions
        for plan in (explain(function).plans if target.call is None else explain(function).plans[-1:])
    ]
    yield AutodiffReply(argument, tuple(plans))
    if not any(plan.groups for plan in plans):
        yield TextReply("calls are recorded where a tensor requires grad: x.requires_grad_()")


def _differentiated(name: str, plan: PlanExplanation) -> DifferentiatedPlan:
    places = _places(plan)
    outside = dict.fromkeys((places.text(each.line), short_kind(each.kind), each.why) for each in plan.undifferentiated)
    groups = tuple(_differentiable(group, places) for group in plan.differentiable)
    return DifferentiatedPlan(name, plan.arguments, plan.why_undifferentiated, groups, tuple(outside))


def _differentiable(group: DifferentiableExplanation, places: Places) -> DifferentiableRow:
    lines = tuple((places.text(line), line.text) for line in group.lines)
    return DifferentiableRow(group_name(group.name), lines, tuple(map(_split, group.splits)))


def _split(split: SplitExplanation) -> SplitRow:
    captured = (CapturedRow(each.value, each.type, each.bytes, each.is_argument) for each in split.captured)
    return SplitRow(
        split.arguments, split.required, without_scopes(str(split.forward)),
        tuple(without_scopes(str(each)) for each in split.backwards), tuple(captured),
        _runs(split.forward_plans, "has not run yet"), _runs(split.backward_plans, "no backward pass came here yet"),
    )  # fmt: skip


def _runs(plans: Sequence[PlanExplanation], otherwise: str) -> str:
    """The way in which the graph runs, if it has run."""
    if not plans:
        return otherwise
    kernels = [kernel for plan in plans for group in plan.groups for kernel in group.kernels]
    if not kernels:
        return f"runs without kernels: {plans[-1].why or 'not compiled yet'}"
    seconds = duration(sum(kernel.seconds for kernel in kernels))
    left = sum(len(plan.unfused) for plan in plans)
    beside = f", {counted(left, 'operator')} beside" if left else ""
    return f"runs as {counted(len(kernels), 'kernel')}, compiled in {seconds}{beside}"
