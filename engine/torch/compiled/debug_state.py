"""The state of a function's executor under the names that scripts for PyTorch use.

In: a compiled function.  Out: `GraphExecutorState`, from `get_debug_state()`: the generic graph, and the plans that
calls have made, whose bailouts can be counted and asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.executor.bytecode.code import Code as Instructions
from engine.executor.plans.executor import GraphExecutor
from engine.executor.plans.plan import ExecutionPlan
from engine.executor.plans.plan_cache import PlanCounts
from engine.executor.plans.spec import ArgumentSpec
from engine.lang.deferred import deferred
from engine.lang.errors import ArgumentError
from engine.lang.records import dataclass

if TYPE_CHECKING:
    from engine.executor.plans import shown_graph
    from engine.torch.compiled import graphs
else:
    graphs = deferred("engine.torch.compiled.graphs")
    shown_graph = deferred("engine.executor.plans.shown_graph")


@dataclass(frozen=True, slots=True)
class Code:
    """The instructions of a plan."""

    _plan: ExecutionPlan

    def num_bailouts(self) -> int:
        """The number of guards that leave the plan where they fail; 0 for a plan made without profiling."""
        return len(self._plan.bailouts)

    def request_bailout(self, index: int) -> None:
        """Have a guard fail when it is checked next.  Raises ArgumentError for one that there is not."""
        count = self.num_bailouts()
        if not 0 <= index < count:
            hint = "plans have bailouts after torch.jit.flags.set_profiling_mode(True)"
            raise ArgumentError(f"there is no bailout {index}, of {count}", hints=(hint,) if not count else ())
        self._plan.request_bailout(index)

    def __str__(self) -> str:
        return str(self._plan.code)


@dataclass(frozen=True, slots=True)
class ExecutionPlanState:
    """A plan: `graph` is the one that runs, with its groups and what they check."""

    _plan: ExecutionPlan

    @property
    def graph(self) -> graphs.Graph:
        return graphs.Graph(shown_graph.shown_graph(self._plan))

    @property
    def code(self) -> Code:
        return Code(self._plan)


@dataclass(frozen=True, slots=True)
class GraphExecutorState:
    """The state when it was asked for."""

    _executor: GraphExecutor

    @property
    def graph(self) -> graphs.Graph:
        """The graph that runs for any arguments."""
        return graphs.Graph(self._executor.graph)

    @property
    def fallback(self) -> Instructions:
        """The instructions of that graph, which the interpreter runs where no plan is made."""
        return self._executor.code

    @property
    def dropped_plans(self) -> PlanCounts:
        """The number of plans that were evicted, or dropped as their guards failed, and what became of their calls."""
        return self._executor.dropped

    @property
    def execution_plans(self) -> dict[ArgumentSpec, ExecutionPlanState]:
        """The plans by the properties of the arguments that they are for; those being made are waited for."""
        self._executor.wait()
        return {plan.spec: ExecutionPlanState(plan) for plan in self._executor.plans}
