"""Plans that are made from profiles: guarded by what values were, and left where a guard fails.

In: the graph of a function, and keys of calls.  Out: for the first calls of a key plans that profile, which the
interpreter runs, then one with guards and bailouts (see `engine.executor.profiling`).

Note [Failing guards]
A call whose guard fails goes on in the interpreter, with the same result.  Once a guard has failed
`PROFILING.failures` times the plan is dropped and the next call profiles again: sizes that differ from those before
become unknown, and the next plan does not guard them.  After `PROFILING.rounds` of that, the plan has no guards.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from engine.executor.bytecode.code import Code
from engine.executor.plans.history import PlanHistory
from engine.executor.plans.pipelines import AFTER_GUARDS
from engine.executor.plans.plan import ExecutionPlan, finish_plan, specialise
from engine.executor.plans.plan_events import GuardFailed, ValuesProfiled
from engine.executor.plans.spec import Key, SpecReader
from engine.executor.plans.switches import SWITCHES, tell
from engine.executor.profiling.bailouts import BailoutSite, GuardFailure, insert_bailouts
from engine.executor.profiling.guards import place_guards
from engine.executor.profiling.record import ProfilingRecord
from engine.executor.profiling.settings import PROFILING
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph

MAX_BAILOUTS: Final = 64
"""Bailouts of a plan; a program with more places to guard has none, as each place holds the rest of the program."""
_LEFT_BY_HAND: Final = frozenset({"prim::Enter", "prim::GradOf"})
"""Nodes whose regions have to be left in order, which the rest of a program knows nothing of."""


@dataclass(eq=False, slots=True)
class _Recorded:
    """The record of one key: the plan that runs it, how it was made, and how often it was begun again."""

    record: ProfilingRecord
    history: PlanHistory
    plan: ExecutionPlan
    rounds: int = 0


@dataclass(eq=False, slots=True)
class ProfiledPlans:
    """The records of a function.  `forget` drops the plan of a key."""

    name: str
    graph: Graph
    reader: SpecReader
    forget: Callable[[Key], None]
    _recorded: dict[Key, _Recorded] = field(default_factory=dict)

    def profiling_plan(self, key: Key) -> ExecutionPlan | None:
        """The plan for one more run that is profiled; None where there have been enough."""
        found = self._recorded.get(key)
        if found is None:
            found = self._recorded[key] = self._record(key)
        record = found.record
        if record.is_ready:
            return None
        record.begin_run()
        if SWITCHES.listeners:
            tell(ValuesProfiled(self.name, found.plan.spec, record.runs, record.wanted))
        return found.plan

    def _record(self, key: Key) -> _Recorded:
        history = PlanHistory()
        graph = specialise(self.graph, self.reader, key, history)
        record = ProfilingRecord.of(graph, PROFILING.runs)
        history.note("insert_profiles", record.graph, True, 0.0)
        code, spec = Code(record.graph, self.name), self.reader.spec(key)
        plan = ExecutionPlan(self.name, spec, record.graph, reason="it is profiled", _code=code, record=record)
        return _Recorded(record, history, plan)

    def make(self, key: Key) -> ExecutionPlan | None:
        """A plan with the guards that the profile asks for; None where there can be none, or they failed too often."""
        found = self._recorded.get(key)
        if found is None or found.rounds > PROFILING.rounds:
            return None
        start = time.perf_counter()
        graph, record = copy_graph(found.record.graph), found.record
        if any(node.kind in _LEFT_BY_HAND for node in graph.all_nodes()):
            return None
        history = replace(found.history, passes=[*found.history.passes])
        notes = place_guards(graph)
        history.note("place_guards", graph, True, time.perf_counter() - start)
        if sum(note.fate in ("kept", "moved") for note in notes) > MAX_BAILOUTS:
            return None
        middle = time.perf_counter()
        sites = insert_bailouts(graph, self.name, partial(self._fail, key))
        history.note("insert_bailouts", graph, bool(sites), time.perf_counter() - middle)
        history.run(AFTER_GUARDS, graph)
        plan = finish_plan(self.name, graph, self.reader, key, history)
        plan.record, plan.guards, plan.bailouts = record, tuple(notes), tuple(sites)
        history.seconds = time.perf_counter() - start
        return plan

    def _fail(self, key: Key, site: BailoutSite, failure: GuardFailure) -> None:
        found = self._recorded[key]
        event = GuardFailed(self.name, site.value, site.range, str(failure.expected), str(failure.actual))
        found.history.tell(event)
        if failure.requested or site.count < PROFILING.failures:
            return
        found.rounds += 1
        found.record.wanted = found.record.runs + 1
        self.forget(key)
