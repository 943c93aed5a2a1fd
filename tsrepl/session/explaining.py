"""`%explain` and `%autodiff`: the story of a function's plans, and the gradients that are compiled for them.

In: a function that was called before, or an expression that calls some, which is run once, with kernels made before.
Out: an `ExplainReply` or an `AutodiffReply`, read from what the plans keep.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from engine.executor.plans.executor import executor_of
from engine.executor.plans.explanation import (
    DifferentiableExplanation,
    PlanExplanation,
    SplitExplanation,
    explain,
)
from engine.executor.plans.explanation_text import (
    MOST_PLANS,
    dropped,
    group_name,
    places_of,
    plan_facts,
    short_kind,
    summaries,
    troubles,
)
from engine.executor.plans.source_places import Places
from engine.lang.counts import counted, duration
from tsrepl.session.called import (
    Called,
    called,
    check_has_run,
    compiled_at_once,
    example_call,
    no_grad_hint,
)
from tsrepl.session.modules import without_scopes
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
    most = MOST_PLANS if target.call is None else 1
    plans = tuple(
        StoryPlan(name, plan.arguments, tuple(plan_facts(plan, each.profiles)))
        for name, each in found
        for plan in each.plans[-most:]
    )
    yield ExplainReply(argument, tuple(line for name, each in found for line in summaries(name, each)), plans)
    for name, each in found:
        if (earlier := len(each.plans) - most) > 0:
            yield TextReply(f"{name} has {counted(earlier, 'earlier plan')}: %plan {_named(target, name)} shows all")
    yield from map(TextReply, dict.fromkeys(line for _, each in found for line in troubles(each.library)))
    yield from no_grad_hint("explain", target, (plan for _, each in found for plan in each.plans[-most:]))
    name = _named(target, found[0][0]) if len(found) == 1 and not target.option else example_call(target)
    yield _more(_MORE, name)


_MORE: Final = ("kernels", "profile", "guards", "autodiff")


def _more(commands: Iterable[str], argument: str) -> TextReply:
    return TextReply(f"more: {', '.join(f'%{command} {argument}' for command in commands)}")


def _named(target: Called, name: str) -> str:
    """The name by which the session knows a function of the target; else the text that it was found by."""
    return name if name in target.known else target.text


# -- %plan


def plans(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%plan f` or `%plan f(x)`: a row for each plan."""
    target = _run(workspace, "plan", argument)
    for function in target.functions:
        of = explain(function)
        rows = tuple(_plan_row(number, plan) for number, plan in enumerate(of.plans, 1))
        title = f"plans of {target.name(function)}"
        yield ReportReply("", (Section(title, _PLAN_COLUMNS, rows, note=_LEGEND),))
        if counts := dropped(of):
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
    places = places_of(plan)
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
