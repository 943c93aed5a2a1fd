"""`GraphExecutor`: the plans of one function, and the choice among them.

In: a `Function`.  Out: its `GraphExecutor`, made when the function first runs.  It holds the `Code` that the
interpreter executes, that of a copy of the graph after the required passes, and for each combination of arguments that
calls come with an `ExecutionPlan`, specialised and optimized for it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial, reduce
from typing import TYPE_CHECKING, Any, Final

from engine.aten.values.hooks import HOOKS
from engine.executor.bytecode.code import Code
from engine.executor.plans import tiers
from engine.executor.plans.early_calls import EarlyCalls
from engine.executor.plans.first_call import runs_before_plan, size_of
from engine.executor.plans.pipelines import BEFORE_EXECUTION
from engine.executor.plans.plan import RECENT, ExecutionPlan
from engine.executor.plans.plan_cache import CacheStatistics, PlanCache, PlanCounts
from engine.executor.plans.profiled import ProfiledPlans, Recorded
from engine.executor.plans.spec import Key, SpecReader
from engine.executor.plans.switches import SWITCHES, is_leaving, tell
from engine.executor.profiling.settings import PROFILING
from engine.fuser.backend import tiering
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.unit import Function
from engine.lang import scalars
from engine.lang.deferred import deferred
from engine.lang.interpreter_settings import collecting_rarely
from engine.lang.locks import lock
from engine.lang.records import dataclass
from engine.passes.pipeline import run_pipeline

if TYPE_CHECKING:
    from engine.executor.codegen import fusion_groups
    from engine.executor.plans import kept_plans, making, plan_events, shown_graph
    from engine.executor.plans.kept_plans import KeptPlan
    from engine.executor.plans.tiers import Run
    from engine.fuser.backend import worker
else:
    fusion_groups = deferred("engine.executor.codegen.fusion_groups")
    making, plan_events = deferred("engine.executor.plans.making"), deferred("engine.executor.plans.plan_events")
    kept_plans = deferred("engine.executor.plans.kept_plans")
    shown_graph = deferred("engine.executor.plans.shown_graph")
    worker = deferred("engine.fuser.backend.worker")

MAX_PLANS: Final = 20
"""The number of plans that a function keeps at most."""


@dataclass(slots=True)
class DirectEntry:
    """The kernels that `Function.entry` runs: those of a `plan` that is nothing else."""

    function: Function
    plan: ExecutionPlan | None = None

    def set(self, plan: ExecutionPlan, bind: Callable[[Run], Run] | None) -> None:
        """Let calls from Python go straight to the kernels of the plan; None: no more."""
        if plan.is_dropped if bind is not None else self.plan is not plan:
            return
        whole_call = CALLS.of(self.function) if bind is not None and CALLS.of is not None else None
        self.function.entry = bind(whole_call) if bind is not None and whole_call is not None else None
        self.plan = plan


class GraphExecutor:
    """Runs one function.  `boundary` holds the conversions for calls from Python, which `engine.executor.calls` makes
    once.

    `_recent` is the plan that ran last, and its key, `_passing` what ran last where that is no plan that is kept;
    `_ahead` has what runs in place of plans that are not there yet, by their keys; `_due` is the key of the first call
    until the second one comes, `_asked` has those that the thread that compiles makes.  `_size` is the number of nodes
    that plans are made of (`size_of`), once it was needed.  `early` is told of the first calls, while they `is_early`.
    """

    __slots__ = (
        "_ahead", "_anywhere", "_asked", "_calls", "_code", "_direct", "_dropped", "_due", "_graph", "_is_begun",
        "_lookups", "_made", "_passing", "_recent", "_refused", "_settled", "_size", "boundary", "cache", "early",
        "function", "is_early", "profiled", "reader",
    )  # fmt: skip

    def __init__(
        self, function: Function, device: scalars.device | None = scalars.CPU, direct: DirectEntry | None = None
    ) -> None:
        """`device` is the device of all tensors; None: any.  Executors of one function share `direct`."""
        self.function = function
        self._anywhere: GraphExecutor | None = None
        self._direct = direct or DirectEntry(function)
        self.reader = SpecReader(function.graph.inputs, device)
        self.cache: PlanCache[ExecutionPlan] = PlanCache(MAX_PLANS, self._drop)
        self.profiled = ProfiledPlans(function.name, lambda: self.graph, self.reader, self._forget)
        self.boundary: Any = None
        self.early, self.is_early = EarlyCalls(), True
        self._graph: Graph | None = None
        self._code: Code | None = None
        self._recent: tuple[Key, ExecutionPlan | None] = ((), None)
        self._dropped = PlanCounts()
        self._passing: ExecutionPlan | None = None
        self._ahead: dict[Key, ExecutionPlan] = {}
        self._due: Key | None = None
        self._asked: set[Key] = set()
        self._made: set[Key] = set()
        self._refused: dict[Key, str] = {}
        self._calls = itertools.count()
        self._lookups = 0
        self._settled = 0
        self._size: float | None = None
        self._is_begun = False

    @property
    def anywhere(self) -> GraphExecutor:
        """The executor of the function for tensors on any device, made when first asked for."""
        if self._anywhere is None:
            self._anywhere = GraphExecutor(self.function, None, self._direct)
        return self._anywhere

    @property
    def graph(self) -> Graph:
        """The generic graph, which runs for any arguments, made when first asked for: a plan on disk needs none.

        Raises what is wrong with the program whatever it is called with.
        """
        if self._graph is None:
            made = copy_graph(self.function.graph)
            run_pipeline(BEFORE_EXECUTION, made)
            self._graph = self._graph or made  # another thread may have been faster
        return self._graph

    @property
    def direct(self) -> ExecutionPlan | None:
        """The plan whose kernels calls from Python go straight to, by `Function.entry`."""
        return self._direct.plan

    @property
    def code(self) -> Code:
        """The instructions for the interpreter, made when first asked for, and when operators have begun anew."""
        if self._code is None or not self._code.is_current:
            self._code = Code(self.graph, self.function.name)
        return self._code

    @property
    def executors(self) -> Sequence[GraphExecutor]:
        """This one and `anywhere`, if that was ever asked for; the one that calls go to now is the last."""
        if self._anywhere is None:
            return (self,)
        return (self, self._anywhere) if HOOKS.devices else (self._anywhere, self)

    @property
    def plans(self) -> list[ExecutionPlan]:
        """The plans of all executors, the most recently used last; those that calls ran ahead of are made now."""
        for each in self.executors:
            each._catch_up()
        return [plan for each in self.executors for plan in each.cache.plans()]

    @property
    def records(self) -> list[Recorded]:
        """The profiles of all executors."""
        return [record for each in self.executors for record in each.profiled.recorded.values()]

    @property
    def recent_graph(self) -> Graph:
        """The graph of what ran last, else the generic one; do not change it."""
        plan = self._recently
        return shown_graph.shown_graph(plan.optimized or plan) if plan else self.graph

    @property
    def optimized_graph(self) -> Graph:
        """The same; where the interpreter ran in place of a plan, that is made, or waited for."""
        return _awaited(plan) if (plan := self._recently) else self.graph

    @property
    def _recently(self) -> ExecutionPlan | None:
        """The plan, or the run without one, that came last."""
        return next((plan for each in reversed(self.executors) if (plan := each._recent[1] or each._passing)), None)

    @property
    def recent_plan(self) -> ExecutionPlan | None:
        """The plan that ran last, or that the last call ran ahead of; None if that was a profiled run."""
        for each in self.executors:
            each._catch_up()
        return next((plan for each in reversed(self.executors) if (plan := each._recent[1] or each._overtaken)), None)

    def timed(self, call: Run, *args: Any) -> Any:
        """The result of a call of the function, one of the first, with the calls of itself that it makes."""
        self.is_early = False
        start = time.perf_counter_ns()
        try:
            return call(*args)
        finally:
            self.is_early = not self.early.note(time.perf_counter_ns() - start, self._recently)

    @property
    def _overtaken(self) -> ExecutionPlan | None:
        """The plan that the last call ran ahead of, once it is there."""
        passing = self._passing
        return passing.optimized if passing is not None and passing.have_made is not None else None

    def profile_next(self) -> None:
        """Have the next call profiled; if there is a plan for it, that is made anew."""
        (self.anywhere if HOOKS.devices else self)._profile_next()

    def _profile_next(self) -> None:
        self.settle()
        self.profiled.is_wanted, self._recent, self.function.entry = True, ((), None), None

    @property
    def dropped(self) -> PlanCounts:
        """The counts of the plans that are no more."""
        return reduce(PlanCounts.__add__, (each._dropped for each in self.executors))

    @property
    def statistics(self) -> CacheStatistics:
        """Statistics of the look-ups of plans; reading them changes none."""
        return reduce(CacheStatistics.__add__, (each._statistics() for each in self.executors))

    def _statistics(self) -> CacheStatistics:
        found = self.cache.statistics
        return replace(found, hits=self._calls_so_far() - found.misses)

    def _calls_so_far(self) -> int:
        self._lookups += 1
        return next(self._calls) - self._lookups + 1

    def settle(self, under_way: int = 0) -> None:
        """Count the calls since the last time, less those under way, for the plan that has run them.

        A call that comes with the same key as the one before finds its plan without counting for it.
        """
        calls, plan = self._calls_so_far() - under_way, self._recent[1]
        if plan is not None:
            plan.hits += calls - self._settled
        self._settled = calls

    def plan_for(self, inputs: Sequence[Any]) -> ExecutionPlan:
        """The plan for such inputs, made if there is none; inputs like those of the call before skip the look-up."""
        key = self.reader.read(*inputs)
        next(self._calls)
        known, plan = self._recent
        if key == known and plan is not None:
            if SWITCHES.listeners:
                tell(plan_events.PlanLookup(self.function.name, plan.spec, True))
            return plan
        return self._look_up(key, inputs)

    def _look_up(self, key: Key, inputs: Sequence[Any]) -> ExecutionPlan:
        self.settle(under_way=1)
        before, is_first, self._is_begun = self._recent[1] or self._passing, not self._is_begun, True
        inlines = self.function.inlines
        if is_first and self._may_run_before_plan() and self._may_interpret_first(key, inputs):
            plan = self._interpreted(key, "a first call")
            if inlines and not is_leaving():
                self._run_ahead(key, plan, before)
                self._due = key
            else:
                self._lookups += 1  # a call that finds no plan, and asks for none
            return self._pass(plan)
        if self._ahead and self._may_interpret(key) and (ahead := self._meanwhile(key, before)) is not None:
            return self._pass(ahead)
        if inlines and self._may_be_profiled(key):
            profiling = self.profiled.profiling_plan(key, self.cache.has(key))
            if profiling is not None:
                self._lookups += 1  # a call that finds no plan, and makes none
                profiling.optimized = before if before is None or before.entry else before.optimized
                return self._pass(profiling)
            waits = tiering.mode() == "background" and not PROFILING.guards_groups
            if waits and key in self.profiled.recorded and not self.cache.has(key):
                return self._pass(self._made_aside(key, self._ahead_of(key, before)))
        plan, hit = self.cache.get(key, lambda: self._make(key), misses=key not in self._ahead)
        self._recent, self._passing = (key, plan), None
        self._is_there(key, plan)
        if not hit:
            self._settled += 1  # the call that made a plan is none that found one
        if not plan.occasion:
            plan.occasion = self._occasion(key, plan, before)
        if SWITCHES.listeners:
            tell(plan_events.PlanLookup(self.function.name, plan.spec, hit, "" if hit else plan.occasion))
        return plan

    def _occasion(self, key: Key, plan: ExecutionPlan, before: ExecutionPlan | None) -> str:
        """The reason why a call made its plan: the first of its kind, the difference from the call before, or what
        became of the plan that there was."""
        if key in self._made:
            return "profiled anew" if key in self.profiled.recorded else "evicted"
        self._made.add(key)
        return (before is not None and plan.spec.difference(before.spec)) or "first call"

    def _pass(self, plan: ExecutionPlan) -> ExecutionPlan:
        """A plan that is not kept, for one call."""
        self._recent, self._passing = ((), None), plan
        return plan

    def _meanwhile(self, key: Key, before: ExecutionPlan | None) -> ExecutionPlan | None:
        """The generic graph for the interpreter, while that is the key's tier; None where this call makes the plan.

        See Note [Tiers].
        """
        ahead = self._ahead_of(key, before)
        if self._size is None:
            self._size = size_of(self.function, tiers.SMALL)
        if ahead.spent < tiers.making_takes(self._size):
            return ahead
        return None if self._size <= tiers.SMALL else self._made_aside(key, ahead)

    def _ahead_of(self, key: Key, before: ExecutionPlan | None) -> ExecutionPlan:
        """The run in place of the plan of the key, whose time counts from the second call on."""
        found = self._ahead.get(key)
        if found is None or key == self._due:
            found = self._interpreted(key, "there is no plan yet")
            self._run_ahead(key, found, before)
        return found

    def _made_aside(self, key: Key, ahead: ExecutionPlan) -> ExecutionPlan:
        """The same, while the thread that compiles makes the plan."""
        if key not in self._asked:
            self._asked.add(key)
            ahead.reason = "its plan is being made"
            worker.in_background(partial(self._make_ahead, key))
        return ahead

    def _interpreted(self, key: Key, reason: str) -> ExecutionPlan:
        """The generic graph, in place of a plan."""
        spec = self.reader.spec(key)
        return ExecutionPlan(self.function.name, spec, self.graph, reason=reason, stands_in=True, _code=self.code)

    def _run_ahead(self, key: Key, plan: ExecutionPlan, before: ExecutionPlan | None) -> None:
        """Let this run until there is a plan for the key; the first call that it runs is the one that finds none."""
        known = self._ahead.get(key)
        if known is None:
            self.cache.statistics.misses += 1
            self._settled += 1
        plan.occasion = known.occasion if known is not None else self._occasion(key, plan, before)
        self._ahead[key], plan.have_made = plan, self._catch_up
        if key == self._due:
            self._due = None

    def _make_ahead(self, key: Key) -> None:
        """Make the plan of a key; if that fails, the interpreter goes on."""
        self._is_there(key, self.cache.get(key, lambda: self._make(key), misses=0)[0])

    def _is_there(self, key: Key, plan: ExecutionPlan) -> None:
        """Tell what ran ahead of the plan."""
        self._asked.discard(key)
        if (ahead := self._ahead.pop(key, None)) is not None:
            ahead.optimized, plan.occasion = plan, ahead.occasion
            if key == self._due:
                self._due = None
            else:
                plan.spent = ahead.spent

    def _catch_up(self) -> None:
        """Have the plans that calls ran ahead of: made here, unless the thread that compiles is about it."""
        for key in [*self._ahead]:
            self._make_ahead(key)

    def wait(self) -> None:
        """Until no plan is being made in the background."""
        if any(each._asked for each in self.executors):
            tiering.wait()

    def _drop(self, plan: ExecutionPlan) -> None:
        plan.is_dropped = True
        self._dropped += plan.counts
        self._direct.set(plan, None)

    def _may_run_before_plan(self) -> bool:
        return not (SWITCHES.listeners or self.profiled.is_wanted or PROFILING.is_enabled)

    def _may_interpret(self, key: Key) -> bool:
        """True where the interpreter may run in place of the first plan, or of one that it runs in place of already."""
        if tiering.mode() != "background" or not self._may_run_before_plan() or self.cache.has(key):
            return False
        return (key in self._ahead and key != self._due) or len(self.cache) == 0

    def _may_interpret_first(self, key: Key, inputs: Sequence[Any]) -> bool:
        """True of a first call that is the interpreter's: it takes less time than a plan, of which there is none."""
        inlines = self.function.inlines
        is_kept = inlines and tiering.mode() == "background" and self._is_kept(key)
        return not is_kept and runs_before_plan(self.graph, inputs, once=not inlines)

    def _is_kept(self, key: Key) -> bool:
        """True if another process made the plan, which is there in less time than a call takes without it."""
        kept = self.kept(key) if self._may_be_kept() else None
        return kept is not None and kept.has("plan")

    def _may_be_kept(self) -> bool:
        """False where no process kept a plan of the function, or it is in no archive, which takes longer to find."""
        return self.function.program is not None and kept_plans.may_be_kept(self.function.program, self.function)

    def kept(self, key: Key, *, writes: bool = False) -> KeptPlan | None:
        """The graphs on disk of the plan of a key, or their place; None where none are kept.  See `KeptPlan.of`."""
        return kept_plans.KeptPlan.of(self.function, self.reader, key, writes=writes)

    def _may_be_profiled(self, key: Key) -> bool:
        """True where plans are made for tensors on one device."""
        return self.reader.device is not None or self.reader.accelerator(key) is not None

    def _make(self, key: Key) -> ExecutionPlan:
        plan = self.profiled.make(key) or self.plan_of(key)
        if key in self._refused:
            plan.history.tell(plan_events.KeptRefused(self.function.name, "a plan", self._refused[key]))
        if plan.fusion is not None:
            plan.fusion.offer = partial(self._direct.set, plan)
        if plan.scalar is not None:
            plan.scalar.offer = partial(self._direct.set, plan)
        if SWITCHES.listeners:
            seconds, nodes = plan.history.seconds, sum(1 for _ in plan.graph.all_nodes())
            tier = "generated" if plan.entry else "interpreted"
            tell(plan_events.PlanCompiled(self.function.name, plan.spec, tier, seconds, nodes, plan.reason))
            if len(self.cache) >= self.cache.bound:
                tell(plan_events.PlanEvicted(self.function.name, len(self.cache)))
        return plan

    def plan_of(self, key: Key) -> ExecutionPlan:
        """A new plan without guards."""
        place = cache(partial(self.kept, key, writes=tiering.mode() == "background"))
        is_small = self._size is not None and self._size <= tiers.SMALL
        kept = None if is_small and not self._may_be_kept() else place()
        kind = fusion_groups.TENSOREXPR_GROUP if PROFILING.is_enabled else fusion_groups.FUSION_GROUP
        plan = making.make_plan(
            self.function.name, lambda: self.graph, self.reader, key, inlines=self.function.inlines, kind=kind,
            kept=kept, place=place, refuse=partial(self._refuse, key),
        )  # fmt: skip
        if kept is None and is_small and plan.fusion is None:  # the worker, which forms groups, keeps others
            tiering.in_background(partial(_keep, place, plan.graph))
        return plan

    def _refuse(self, key: Key, difference: str) -> None:
        """A plan from disk does something else than the interpreter: have it made anew."""
        self._refused[key] = difference
        self._forget(key)

    def _forget(self, key: Key) -> None:
        """Drop the plan of a key, which will be made anew."""
        self.settle()
        self.cache.forget(key)
        self._recent, self._passing = ((), None), self._recent[1]


def _keep(place: Callable[[], KeptPlan | None], graph: Graph) -> None:
    if (kept := place()) is not None:
        kept.keep("plan", graph)


@dataclass(slots=True)
class Calls:
    """A slot for the layer above, which knows how values go from Python and back."""

    of: Callable[[Function], Run | None] | None = None
    """Gives the call of a function from Python with positional arguments; None where there is no such call."""


CALLS: Final = Calls()
_GUARD: Final = lock()
_LOCKS: Final[dict[Function, Any]] = {}
"""A lock for each function whose executor is being made; one for all would block, since making one may run others."""


def executor_of(function: Function) -> GraphExecutor:
    """The function's executor.  Compiles the function if need be; raises CompileError."""
    if function.executor is None:
        _make_executor(function)
    assert isinstance(function.executor, GraphExecutor)
    return function.executor


@collecting_rarely()
def _make_executor(function: Function) -> None:
    function.ensure_defined()  # not with its lock: who defines may run functions
    with _GUARD:
        own = _LOCKS.setdefault(function, lock())
    try:
        with own:
            if function.executor is None:
                if function.before_run is not None:
                    function.before_run()
                function.executor = GraphExecutor(function)
    finally:
        with _GUARD:
            _LOCKS.pop(function, None)


def code_of(function: Function) -> Code:
    return executor_of(function).code


def last_executed_optimized_graph() -> Graph | None:
    """The graph of the plan that ran last, which may be that of a backward pass; of a run that was profiled, only where
    the function has no plan yet.  None before any has run, and once that is gone."""
    ran = RECENT.ran()
    plan = executor_of(ran).direct if isinstance(ran, Function) else ran
    return _awaited(plan) if plan else None


def _awaited(plan: ExecutionPlan) -> Graph:
    """The plan's graph with its checks; where the interpreter ran in place of a plan, that of the plan, which is waited
    for if it is being made."""
    if plan.have_made is not None:
        plan.have_made()
        if plan.optimized is not None:
            plan.optimized.form_groups()
    return shown_graph.shown_graph(plan.optimized or plan)
