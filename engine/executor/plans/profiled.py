"""Plans that are made from profiles: guarded by what values were, and left where a guard fails.

In: the graph of a function, and keys of calls.  Out: for the first calls of a key plans that profile, which the
interpreter runs, then one with guards and bailouts (see `engine.executor.profiling`).

Note [Failing guards]
A call whose guard fails goes on in the interpreter, with the same result.  Once a guard has failed
`PROFILING.failures` times the plan is dropped and the next call profiles again, for the next plan of
`PROFILING.strategy`: a static one guards the sizes of that call, a dynamic one those that were always the same.  After
the last of these, the plan has no guards.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from engine.executor.bytecode.code import Code
from engine.executor.plans.history import PlanHistory
from engine.executor.plans.pipelines import AFTER_GUARDS
from engine.executor.plans.plan import ExecutionPlan
from engine.executor.plans.spec import Key, SpecReader
from engine.executor.plans.switches import SWITCHES, tell
from engine.executor.profiling.settings import PROFILING
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.lang.deferred import deferred
from engine.lang.records import dataclass

if TYPE_CHECKING:
    from engine.executor.codegen import fusion_groups
    from engine.executor.plans import making, plan_events
    from engine.executor.profiling import bailouts, guards, profiles, record
    from engine.executor.profiling.bailouts import BailoutSite, GuardFailure
    from engine.executor.profiling.guards import GuardNote
    from engine.executor.profiling.record import ProfilingRecord
else:
    fusion_groups = deferred("engine.executor.codegen.fusion_groups")
    making, plan_events = deferred("engine.executor.plans.making"), deferred("engine.executor.plans.plan_events")
    bailouts, guards = deferred("engine.executor.profiling.bailouts"), deferred("engine.executor.profiling.guards")
    profiles, record = deferred("engine.executor.profiling.profiles"), deferred("engine.executor.profiling.record")

MAX_BAILOUTS: Final = 64
"""Bailouts of a plan; a program with more places to guard has none, as each place holds the rest of the program."""
_LEFT_BY_HAND: Final = frozenset({"prim::Enter", "prim::GradOf"})
"""Nodes whose regions have to be left in order, which the rest of a program knows nothing of."""


@dataclass(eq=False, slots=True)
class Recorded:
    """The record of one key: the plan that runs it, how it was made, how often it was begun again, and why no plan has
    guards, if that is so.  `guarded` is the plan that was made of it last, `notes` the guards that a plan would have
    had, which has none because they are too many."""

    record: ProfilingRecord
    history: PlanHistory
    plan: ExecutionPlan
    guarded: ExecutionPlan | None = None
    rounds: int = 0
    refusal: str = ""
    notes: tuple[GuardNote, ...] = ()


@dataclass(eq=False, slots=True)
class ProfiledPlans:
    """The records of a function.  `forget` drops the plan of a key; `is_wanted` has the next call profiled, even if
    there is a plan for it."""

    name: str
    generic: Callable[[], Graph]
    """Gives the generic graph."""
    reader: SpecReader
    forget: Callable[[Key], None]
    recorded: dict[Key, Recorded] = field(default_factory=dict)
    is_wanted: bool = False

    def profiling_plan(self, key: Key, has_plan: bool) -> ExecutionPlan | None:
        """The plan for one more run that is profiled; None where there is a plan, or there have been enough.  A key
        that was profiled once has its next plan made from profiles, too."""
        found = self.recorded.get(key)
        if not self.is_wanted and (has_plan or not (PROFILING.is_enabled or found)):
            return None
        if found is None:
            found = self.recorded[key] = self._record(key)
        profile = found.record
        if self.is_wanted:
            self.is_wanted = False
            profile.wanted = max(profile.wanted, profile.runs + 1)
            self.forget(key)
        if profile.is_ready:
            return None
        profile.begin_run()
        if SWITCHES.listeners:
            tell(plan_events.ValuesProfiled(self.name, found.plan.spec, profile.runs, profile.wanted))
        return found.plan

    def _record(self, key: Key) -> Recorded:
        history = PlanHistory()
        graph = making.specialise(self.generic(), self.reader, key, history)
        start = time.perf_counter()
        profile = record.ProfilingRecord.of(graph, PROFILING.runs)
        history.note("insert_profiles", profile.graph, True, time.perf_counter() - start)
        code, spec = Code(profile.graph, self.name), self.reader.spec(key)
        plan = ExecutionPlan(self.name, spec, profile.graph, reason="it is profiled", _code=code, record=profile)
        return Recorded(profile, history, plan)

    def make(self, key: Key) -> ExecutionPlan | None:
        """A plan with the guards that the profile asks for; None where there can be none, or they failed too often."""
        found = self.recorded.get(key)
        if found is None or found.refusal:
            return None
        sizes = PROFILING.guarded_sizes(found.rounds)
        if sizes is None:
            found.refusal = "guards failed too often" if found.rounds else "the fusion strategy has no plans"
            return None
        start = time.perf_counter()
        graph = copy_graph(found.record.graph)
        if any(node.kind in _LEFT_BY_HAND for node in graph.all_nodes()):
            found.refusal = "it enters contexts, which have to be left in order"
            return None
        history = replace(found.history, steps=[*found.history.steps])
        if PROFILING.guards_groups:
            return self._with_guarded_groups(key, found, graph, history, start)
        notes = guards.place_guards(graph, sizes, self.reader.device)
        history.note("place_guards", graph, True, time.perf_counter() - start)
        count = sum(note.fate in ("kept", "moved") for note in notes)
        if count > MAX_BAILOUTS:
            found.refusal = f"it has {count} values to guard, and plans guard {MAX_BAILOUTS} at most"
            found.notes = tuple(notes)
            return None
        middle = time.perf_counter()
        sites = bailouts.insert_bailouts(graph, self.name, partial(self._fail, key), self.reader.device)
        history.note("insert_bailouts", graph, bool(sites), time.perf_counter() - middle)
        history.run(AFTER_GUARDS, graph)
        plan = making.finish_plan(self.name, graph, self.reader, key, history, fusion_groups.TENSOREXPR_GROUP)
        plan.record, plan.guards, plan.bailouts = found.record, tuple(notes), tuple(sites)
        found.guarded = plan
        history.seconds = time.perf_counter() - start
        return plan

    def _with_guarded_groups(
        self, key: Key, found: Recorded, graph: Graph, history: PlanHistory, start: float
    ) -> ExecutionPlan:
        """The plan whose only guards are those of its groups, which the stubs of their kernels check."""
        for node in graph.find_all_nodes(record.PROFILE):
            node.output.replace_all_uses_with(node.input)
            node.destroy()
        plan = making.finish_plan(self.name, graph, self.reader, key, history, fusion_groups.TENSOREXPR_GROUP)
        plan.record, found.guarded = found.record, plan
        history.seconds = time.perf_counter() - start
        return plan

    def _fail(self, key: Key, site: BailoutSite, failure: GuardFailure) -> None:
        found = self.recorded[key]
        if site.count <= bailouts.MAX_FAILURES or SWITCHES.listeners:
            expected = profiles.type_text(failure.expected)
            actual = profiles.type_text(replace(failure.actual, requires_grad=None))
            found.history.tell(plan_events.GuardFailed(self.name, site.value, site.range, expected, actual, site.name))
        if failure.requested and found.guarded is not None:
            found.guarded.enter_again()
        if failure.requested or site.count < PROFILING.failures:
            return
        found.rounds += 1
        if PROFILING.guarded_sizes(found.rounds) is not None:
            found.record.begin_round()
        self.forget(key)
