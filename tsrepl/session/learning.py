"""`%profile --types` and `%guards`: what runs have shown of values, and what plans check because of that.

In: a function that was called before, or an expression that calls some.  Out: a `ProfileReply` or a `GuardsReply`.
What is shown is what the functions' plans keep; expressions run once to be profiled, and then for a plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from engine.executor.plans.executor import GraphExecutor, executor_of
from engine.executor.plans.explained_profiles import (
    GuardExplanation,
    ProfileExplanation,
    UseExplanation,
)
from engine.executor.plans.explanation import Explanation, PlanExplanation, explain
from engine.executor.plans.explanation_text import alike_failures, short_kind
from engine.executor.plans.source_places import Places, by_line
from engine.executor.profiling.settings import PROFILING
from engine.ir.unit import Function
from engine.lang.counts import counted, duration
from tsrepl.session.called import Called, called, check_has_run, example_call
from tsrepl.session.plan_replies import (
    FailureRow,
    GuardedLine,
    GuardedPlan,
    GuardRow,
    GuardsReply,
    ProfiledLine,
    ProfiledValue,
    ProfileReply,
    ProfileRow,
)
from tsrepl.session.replies import Reply, TextReply
from tsrepl.session.workspace import Workspace

_HANDED_ON: Final = "prim::Return"
_NO_PLAN: Final = "the next call makes a plan"
_NAMESPACE: Final = re.compile(r"\b(aten|prim)::")

# -- %profile --types


def types(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%profile --types f(x)`, or `%profile f`: what each value was in the runs that were profiled."""
    target = called(workspace, argument)
    had_plans = target.call is not None and any(executor_of(each).plans for each in target.functions)
    before = {function: _runs(function) for function in target.functions if target.call is not None}
    if target.call is not None:
        for function in target.functions:
            executor_of(function).profile_next()
        target.call()
    check_has_run("profile", target)
    rows = tuple(
        _profile(target.name(function), each)
        for function in target.functions
        for each in explain(function).profiles
        if before.get(function, {}).get(each.arguments) != each.runs
    )
    if rows:
        yield ProfileReply(argument, rows)
        dropped = "; the plan that there was is dropped for it" if had_plans else ""
        yield TextReply(f"%guards {workspace.suggested(argument)} shows what plans check because of this{dropped}")
        return
    call = example_call(target)
    yield ProfileReply(argument, tuple(each for f in target.functions for each in _unprofiled(target.name(f), f)))
    yield TextReply(f"%profile {call} shows where time goes, %profile --types {call} what values were")


def _unprofiled(name: str, function: Function) -> Iterator[ProfileRow]:
    """A row for each plan whose calls recorded no types, as ordinary ones do not."""
    for plan in explain(function).plans:
        kernels = sum(len(group.kernels) for group in plan.groups)
        calls = f"{counted(plan.hits, 'more call')} found this plan"
        ran = "later calls are not counted" if plan.is_direct else calls
        told = f"{ran}, {counted(kernels, 'kernel')}, made in {duration(plan.seconds)}; types were not recorded"
        yield ProfileRow(name, plan.arguments, 0, PROFILING.runs, 0, told, (), (), ())


def _runs(function: Function) -> dict[str, int]:
    """The profiled runs so far, by kinds of arguments."""
    return {str(each.plan.spec): each.record.runs for each in executor_of(function).records}


def _profile(function: str, profile: ProfileExplanation) -> ProfileRow:
    return ProfileRow(
        function, profile.arguments, profile.runs, profile.wanted, profile.rounds, profile.refusal,
        tuple(_profiled_lines(profile.uses)), profile.symbols, failure_rows(profile),
    )  # fmt: skip


def _profiled_lines(uses: Sequence[UseExplanation]) -> Iterator[ProfiledLine]:
    places = Places.of(uses)
    shown = [use for use in uses if use.user != _HANDED_ON]
    for line, here in by_line(shown):
        alike: dict[tuple[object, ...], list[UseExplanation]] = {}
        for use in here:
            alike.setdefault((use.value, use.type, use.count, use.undefined), []).append(use)
        yield ProfiledLine(places.text(line), line.text if line else "", tuple(map(_value, alike.values())))


def _value(uses: Sequence[UseExplanation]) -> ProfiledValue:
    first = uses[0]
    users = dict.fromkeys(short_kind(use.user) for use in uses)
    seen = tuple(dict.fromkeys(merge.seen for merge in first.merges))
    return ProfiledValue(
        first.value, first.type, seen if len(seen) > 1 else (), first.count, first.undefined, tuple(users)
    )


# -- %guards


def guards(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%guards f` or `%guards f(x)`."""
    target = called(workspace, argument)
    if target.call is not None:
        _run_guarded(target.functions, target.call)
    check_has_run("guards", target)
    _wait(map(executor_of, target.functions))
    rows = [row for function in target.functions for row in _guards_of(target, function)]
    yield GuardsReply(argument, tuple(rows))
    if target.call is None and not any(row.lines for row in rows):
        yield TextReply(f"%guards {example_call(target)} profiles a run, and shows the plan that is made of it")


def _wait(executors: Iterable[GraphExecutor]) -> None:
    """Until the plans are made that are being made in the background."""
    for executor in executors:
        executor.wait()


def _run_guarded(functions: Sequence[Function], call: Callable[[], object]) -> None:
    """Run the call until the functions' plans have guards, or turn out to have none."""
    executors = [*map(executor_of, functions)]
    for executor in executors:
        if not executor.records:
            executor.profile_next()
    for _ in range(PROFILING.runs + 1):
        call()
        _wait(executors)
        unguarded = [each for each in executors if not _is_settled(each)]
        if not unguarded:
            return
        for executor in unguarded:
            if executor.recent_plan is not None:
                executor.profile_next()
    call()


def _is_settled(executor: GraphExecutor) -> bool:
    """True if the last call had a plan that has guards, or one that can have none."""
    plan = executor.recent_plan
    if plan is None:
        return False
    records = executor.records
    return plan.record is not None or any(each.refusal for each in records if each.plan.spec == plan.spec)


def _guards_of(target: Called, function: Function) -> Iterator[GuardedPlan]:
    """The plans, or the one that the call has run; and the profiles that wait for a plan."""
    name, found = target.name(function), explain(function)
    for plan in found.plans if target.call is None else found.plans[-1:]:
        yield _guarded(name, plan, found)
    planned = {plan.arguments for plan in found.plans}
    for profile in found.profiles if target.call is None else ():
        if profile.arguments not in planned:
            yield GuardedPlan(name, profile.arguments, _NO_PLAN, (), failure_rows(profile), profile.rounds)


def _guarded(function: str, plan: PlanExplanation, of: Explanation) -> GuardedPlan:
    profile = next((each for each in of.profiles if each.arguments == plan.arguments), None)
    failures = failure_rows(profile) if profile is not None else ()
    return GuardedPlan(
        function, plan.arguments, _why_unguarded(plan, profile),
        tuple(_guarded_lines(plan.guards or (profile.guards if profile is not None else ()))), failures,
        profile.rounds if profile is not None else 0,
    )  # fmt: skip


def _why_unguarded(plan: PlanExplanation, profile: ProfileExplanation | None) -> str:
    if plan.guards:
        return ""
    return "no run was profiled" if profile is None else profile.refusal or "there is no tensor to guard"


def _guarded_lines(guards: Sequence[GuardExplanation]) -> Iterator[GuardedLine]:
    places = Places.of(guards)
    shown = [guard for guard in guards if guard.user != _HANDED_ON]
    for line, here in by_line(shown):
        rows = dict.fromkeys(
            GuardRow(each.value, each.type, each.fate, _NAMESPACE.sub("", each.why), each.failures) for each in here
        )
        yield GuardedLine(places.text(line), line.text if line else "", tuple(rows))


# -- both


def failure_rows(profile: ProfileExplanation) -> tuple[FailureRow, ...]:
    """The failures of the profile's guards, those that are alike together."""
    places = Places.of(profile.uses)
    return tuple(
        FailureRow(places.text(first.line), first.value, first.expected, first.actual, len(same), first.seconds)
        for same in alike_failures(profile)
        for first in same[:1]
    )
