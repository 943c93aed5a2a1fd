"""`GraphExecutor`: the plans of one function, and the choice among them.

In: a `Function`.  Out: its `GraphExecutor`, made when the function first runs.  It holds the `Code` that the
interpreter executes, that of a copy of the graph after the required passes, and for each combination of arguments that
calls come with an `ExecutionPlan`, specialised and optimized for it.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from engine.executor.bytecode.code import Code
from engine.executor.plans.pipelines import BEFORE_EXECUTION
from engine.executor.plans.plan import ExecutionPlan, make_plan
from engine.executor.plans.plan_cache import CacheStatistics, PlanCache
from engine.executor.plans.plan_events import PlanCompiled, PlanEvicted, PlanLookup
from engine.executor.plans.spec import Key, SpecReader
from engine.executor.plans.switches import SWITCHES, tell
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.unit import Function
from engine.lang import scalars
from engine.lang.interpreter_settings import collecting_rarely
from engine.passes.pipeline import run_pipeline

MAX_PLANS: Final = 20
"""The number of plans that a function keeps at most."""


class GraphExecutor:
    """Runs one function.  `graph` is the generic graph, which runs for any arguments; `boundary` holds the conversions
    for calls from Python, which `engine.executor.calls` makes once."""

    __slots__ = (
        "_anywhere", "_calls", "_code", "_lookups", "_recent", "boundary", "cache", "function", "graph", "reader",
    )  # fmt: skip

    def __init__(self, function: Function, device: scalars.device | None = scalars.CPU) -> None:
        """`device` is the device of all tensors; None: any."""
        self.function = function
        self._anywhere: GraphExecutor | None = None
        self.graph: Graph = copy_graph(function.graph)
        run_pipeline(BEFORE_EXECUTION, self.graph)
        self.reader = SpecReader(self.graph.inputs, device)
        self.cache: PlanCache[ExecutionPlan] = PlanCache(MAX_PLANS)
        self.boundary: Any = None
        self._code: Code | None = None
        self._recent: tuple[Key, ExecutionPlan | None] = ((), None)
        self._calls = itertools.count()
        self._lookups = 0

    @property
    def anywhere(self) -> GraphExecutor:
        """The executor of the function for tensors on any device, made when first asked for."""
        if self._anywhere is None:
            self._anywhere = GraphExecutor(self.function, None)
        return self._anywhere

    @property
    def code(self) -> Code:
        """The instructions for the interpreter, made when first asked for."""
        if self._code is None:
            self._code = Code(self.graph, self.function.name)
        return self._code

    @property
    def recent_graph(self) -> Graph:
        """The graph of the plan that ran last, else the generic one; do not change it."""
        plan = self._recent[1] or (self._anywhere._recent[1] if self._anywhere else None)
        return plan.graph if plan else self.graph

    @property
    def statistics(self) -> CacheStatistics:
        """Statistics of the plan cache; reading them changes none."""
        found = self.cache.statistics
        calls = next(self._calls) - self._lookups
        self._lookups += 1
        return replace(found, hits=calls - found.misses)

    def plan_for(self, inputs: Sequence[Any]) -> ExecutionPlan:
        """The plan for such inputs, made if there is none; inputs like those of the call before skip the look-up."""
        key = self.reader.read(*inputs)
        next(self._calls)
        known, plan = self._recent
        if key == known and plan is not None:
            if SWITCHES.listeners:
                tell(PlanLookup(self.function.name, plan.spec, True))
            return plan
        return self._look_up(key)

    def _look_up(self, key: Key) -> ExecutionPlan:
        before = self._recent[1]
        plan, hit = self.cache.get(key, lambda: self._make(key))
        self._recent = (key, plan)
        if SWITCHES.listeners:
            reason = "" if hit else "first call" if before is None else plan.spec.difference(before.spec) or "evicted"
            tell(PlanLookup(self.function.name, plan.spec, hit, reason))
        return plan

    def _make(self, key: Key) -> ExecutionPlan:
        start = time.perf_counter()
        plan = make_plan(self.function.name, self.graph, self.reader, key)
        if SWITCHES.listeners:
            seconds, nodes = time.perf_counter() - start, sum(1 for _ in plan.graph.all_nodes())
            tier = "generated" if plan.entry else "interpreted"
            tell(PlanCompiled(self.function.name, plan.spec, tier, seconds, nodes, plan.reason))
            if len(self.cache) >= self.cache.bound:
                tell(PlanEvicted(self.function.name, len(self.cache)))
        return plan


_GUARD: Final = threading.Lock()
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
    with _GUARD:
        lock = _LOCKS.setdefault(function, threading.RLock())
    with lock:
        if function.executor is None:
            if function.before_run is not None:
                function.before_run()
            function.executor = GraphExecutor(function)
    with _GUARD:
        _LOCKS.pop(function, None)


def code_of(function: Function) -> Code:
    return executor_of(function).code


class _Recent:
    """A cell for the plan that ran last, in any thread."""

    __slots__ = ("plan",)

    def __init__(self) -> None:
        self.plan: ExecutionPlan | None = None


RECENT: Final = _Recent()


def last_executed_optimized_graph() -> Graph | None:
    """The graph of the plan that ran last; None before any has."""
    return RECENT.plan.graph if RECENT.plan else None
