"""Explanations of what a function runs: its plans, how they were made, their kernels, and why the rest has none.

In: a `Function`.  Out: an `Explanation`: its plans, for each the passes that made it, its guards, its groups with
source lines, the kernels with their text, cost and machine code, its differentiable graphs, and for each node outside
a reason; and the profiles of its calls.  All is read from what the plans keep; texts of machine code are made when
they are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.executor.codegen.fusion_groups import is_fusion_group
from engine.executor.plans import trials
from engine.executor.plans.differentiation import DifferentiableGroup, Specialised, Variant
from engine.executor.plans.early_calls import CallClass
from engine.executor.plans.executor import GraphExecutor, executor_of
from engine.executor.plans.explained_profiles import (
    GuardExplanation,
    ProfileExplanation,
    explain_guards,
    explain_record,
)
from engine.executor.plans.explanation_text import page
from engine.executor.plans.fusion import FusedGroup, Kernel, PlanFusion
from engine.executor.plans.history import Origin, PassRun, PlanHistory
from engine.executor.plans.kernel_lines import KernelLines, lines_of_kernel
from engine.executor.plans.plan import ExecutionPlan
from engine.executor.plans.plan_cache import CacheStatistics, PlanCounts
from engine.executor.plans.shown_graph import argument_text, shown_graph
from engine.executor.plans.source_lines import SourceLine, line_of_node
from engine.executor.profiling.profiles import type_text
from engine.fuser.backend import machine, tiering
from engine.fuser.backend.listings import Listings
from engine.fuser.gpu.inspection import Inspection, inspect
from engine.fuser.ir.kernel_text import numbered
from engine.fuser.library import store
from engine.fuser.stubs.cost import Cost
from engine.ir.facts.program_text import value_name
from engine.ir.graph import Graph, Node, Value
from engine.ir.ops import op_of
from engine.ir.unit import Function
from engine.lang.errors import EngineError
from engine.lang.records import dataclass
from engine.lang.types import TensorType


@dataclass(frozen=True, slots=True)
class KernelExplanation:
    """A kernel: its text, what calls have to be like (`arguments`, `guards`), seconds to make it, and the work of a
    call like the one that it was made for (None where that is not known from sizes).

    Of one that was on disk all but the seconds is worked out when it is looked at.
    """

    seconds: float
    _kernel: Kernel
    _run: Callable[..., Any]
    _graph: Graph

    @property
    def name(self) -> str:
        return self._kernel.binding.kernel.name

    @property
    def text(self) -> str:
        return self._kernel.lowered.compiler.show(self._kernel.binding.kernel)

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(map(argument_text, self._kernel.binding.arguments))

    @property
    def guards(self) -> tuple[str, ...]:
        return tuple(map(self._kernel.lowered.compiler.show, self._kernel.binding.guards))

    @property
    def cost(self) -> Cost | None:
        return self._kernel.cost

    @property
    def ratio(self) -> float:
        """The time of a call, in times of that without the kernel, as it was measured; 0 where it was not."""
        return self._kernel.ratio

    @property
    def is_used(self) -> bool:
        """False where it takes less time without the kernel."""
        return not trials.is_slower(self._kernel.ratio)

    @property
    def listings(self) -> Listings:
        """LLVM and assembly, each line with that of `text` that it is from."""
        return Listings(self._kernel.binding.kernel)

    def lines(self, of: Inspection | None = None) -> KernelLines:
        """Facts about the lines of `text`, or of the text of the kernel on a GPU."""
        return lines_of_kernel(numbered(self._kernel.binding.kernel) if of is None else of.kernel, self._graph)

    def on_gpu(self, target: str) -> Inspection:
        """The same group for the same arguments on a GPU, as `sm_90`.  Raises NotFused, MachineError."""
        return inspect(self._graph, self._kernel.binding, self._kernel.example, target)

    def code(self) -> machine.Code:
        """LLVM before and after its passes, and assembly.  Raises MachineError."""
        return machine.compile_program(machine.program(self._kernel.binding.kernel))

    def measure(self, seconds: float = 0.02) -> float | None:
        """The seconds of a call on random numbers: the fastest of as many as fit in the time given.

        None where the kernel takes no such numbers: by integers of 1 it may index what has one element, by those of 0
        divide.
        """
        for least in (1, 0):
            args = [_random(value, least) for value in self._kernel.example]
            with suppress(EngineError, ArithmeticError):
                return self._fastest(args, seconds)
        return None

    def _fastest(self, args: Sequence[Any], seconds: float) -> float:
        best, end = float("inf"), time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            self._run(*args)
            best = min(best, time.perf_counter() - start)
        return best


@dataclass(frozen=True, slots=True)
class GroupExplanation:
    """Nodes that run together: the lines that they are from, their graph, the kernels made of it so far.

    `fallbacks` counts calls that no kernel took, which ran the graph without one; `failures` are the arguments of the
    first of these that came when there were kernels."""

    name: str
    lines: tuple[SourceLine, ...]
    graph: str
    kernels: tuple[KernelExplanation, ...]
    fallbacks: int
    failures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeOutside:
    """An operator on tensors that runs in no kernel, or is in no differentiable graph."""

    kind: str
    line: SourceLine | None
    why: str


@dataclass(frozen=True, slots=True)
class CapturedValue:
    """A value that the forward graph keeps for the backward one: an argument, or computed there."""

    value: str
    type: str
    bytes: int
    is_argument: bool


@dataclass(frozen=True, slots=True)
class SplitExplanation:
    """A differentiable graph split for arguments of one set of types: the gradients of those `required` are made.

    `forward` is f, `backwards` each df; `forward_plans` and `backward_plans` are what runs for them.
    """

    arguments: tuple[str, ...]
    required: tuple[str, ...]
    forward: Graph
    backwards: tuple[Graph, ...]
    captured: tuple[CapturedValue, ...]
    forward_plans: tuple[PlanExplanation, ...]
    backward_plans: tuple[PlanExplanation, ...]


@dataclass(frozen=True, slots=True)
class DifferentiableExplanation:
    """Nodes whose gradient is compiled: the lines that they are from, their graph, and what it was split into."""

    name: str
    lines: tuple[SourceLine, ...]
    graph: Graph
    splits: tuple[SplitExplanation, ...]


@dataclass(frozen=True, slots=True)
class PlanExplanation:
    """A plan: the arguments that it is for, and `why` it has no groups, if it has none.

    `tier` is "generated" or "interpreted"; `seconds` is what the plan cost to make, `hits` the calls that found it,
    `misses` the calls of its groups that no kernel took, `failures` those of its guards.
    Calls that go straight to the kernel of a plan that is one (`is_direct`) are not counted.  `events` are those of its
    groups and kernels, oldest first.  `parts` are the plans of the graphs that its differentiable graphs became;
    `why_undifferentiated` says why there are none, and `undifferentiated` which nodes are in none.  `occasion` is the
    difference between the call that the plan was made for and the call before, `interpreted` the seconds that the
    interpreter ran in place of the plan, from the second call on.
    """

    arguments: str
    why: str
    groups: tuple[GroupExplanation, ...]
    unfused: tuple[NodeOutside, ...]
    tier: str
    graph: Graph
    source: str
    _history: PlanHistory
    events: tuple[Any, ...]
    hits: int
    misses: int
    failures: int
    seconds: float
    is_direct: bool
    parts: tuple[PlanExplanation, ...]
    guards: tuple[GuardExplanation, ...]
    differentiable: tuple[DifferentiableExplanation, ...]
    undifferentiated: tuple[NodeOutside, ...]
    why_undifferentiated: str
    occasion: str
    interpreted: float

    @property
    def origin(self) -> Origin | None:
        """The process that made the plan, which was taken from disk; None where this one did."""
        return self._history.origin

    @property
    def passes(self) -> tuple[PassRun, ...]:
        """The passes that made it; of a plan that was on disk they run now."""
        return tuple(self._history.passes)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The plans of a function, the most recently used last, what became of the look-ups for them, the counts of the
    plans that were dropped, the profiles of its calls, why (parts of) the library of operators are of no use here, so
    that operators run on numpy, and its first calls.  Its text is a page that tells of them in short."""

    function: str
    mode: tiering.Mode
    plans: tuple[PlanExplanation, ...]
    statistics: CacheStatistics
    dropped: PlanCounts
    profiles: tuple[ProfileExplanation, ...]
    library: tuple[str, ...]
    early: tuple[CallClass, ...]

    def __str__(self) -> str:
        return page(self)


def explain(function: Function) -> Explanation:
    """The plans of a function and their kernels; calls make plans."""
    executor: GraphExecutor = executor_of(function)
    for each in executor.executors:
        each.settle()
    plans = tuple(_plan(plan, executor.direct is plan) for plan in executor.plans)
    profiles = tuple(map(explain_record, executor.records))
    facts = executor.statistics, executor.dropped, profiles, store.troubles(), executor.early.so_far()
    return Explanation(function.name, tiering.mode(), plans, *facts)


def _plan(plan: ExecutionPlan, is_direct: bool = False) -> PlanExplanation:
    plan.catch_up()
    parts = [plan, *_differentiated(plan)]
    for part in parts[1:]:
        part.catch_up()
    groups = tuple(group for part in parts for group in _groups(part))
    history, counts = plan.history, plan.counts
    return PlanExplanation(
        str(plan.spec), "" if groups else _why_no_groups(plan), groups,
        tuple(node for part in parts for node in _unfused(part)), "generated" if plan.entry else "interpreted",
        shown_graph(plan), plan.source, replace(history, steps=[*history.steps]), tuple(history.events), counts.hits,
        counts.misses, counts.failures, history.seconds, is_direct, tuple(map(_plan, parts[1:])), explain_guards(plan),
        tuple(_differentiable(plan)),
        tuple(_undifferentiated(plan)), _why_not_differentiated(plan), plan.occasion,
        plan.spent / 1e9,
    )  # fmt: skip


def _differentiated(plan: ExecutionPlan) -> Iterator[ExecutionPlan]:
    """The plans of the forward and backward graphs that the plan's differentiable graphs are split into."""
    for group in plan.differentiation.groups if plan.differentiation is not None else ():
        for variant in group.variants.values():
            for graph in (variant.forward, *(backward.run for backward in variant.backwards.values())):
                yield from graph.plans.values()


def _groups(plan: ExecutionPlan) -> Iterator[GroupExplanation]:
    if (fusion := _running(plan)) is not None:
        yield from map(_group, fusion.groups)


def _running(plan: ExecutionPlan) -> PlanFusion | None:
    """The groups that calls of the plan run now."""
    return plan.fusion if plan.fusion is not None and plan.fusion.fused is plan.graph else None


def _why_no_groups(plan: ExecutionPlan) -> str:
    if tiering.mode() == "off":
        return "the compile mode is off"
    if plan.scalar is not None:
        return plan.scalar.why
    if plan.fusion is None:
        return plan.why_unfused
    if plan.fusion.unavailable or plan.fusion.fused is None:
        return plan.fusion.unavailable or "it has not run for long enough"
    return "; ".join(dict.fromkeys(plan.fusion.refused.values())) or "no kernel holds any of it"


# ------------------------------------------------------------------ groups


def _group(group: FusedGroup) -> GroupExplanation:
    kernels = tuple(
        KernelExplanation(each.seconds, each, each.run_alone(group), group.graph)
        for each in (*group.kernels, *group.slower)
    )
    failures = tuple(group.failures)
    return GroupExplanation(
        group.name, lines_of(group.graph.nodes()), str(group.graph), kernels, group.fallbacks, failures
    )


def lines_of(nodes: Iterable[Node]) -> tuple[SourceLine, ...]:
    """The lines of the program that the nodes are from."""
    lines = dict.fromkeys(line for node in nodes if (line := line_of_node(node)) is not None)
    return tuple(sorted(lines, key=lambda line: (line.file, line.number)))


def _random(value: Any, least: int) -> Any:
    """Numbers in the tensor's place; integers are all `least`."""
    if not isinstance(value, Tensor):
        return value
    shown = value.array
    made = np.asarray(np.random.default_rng(0).random(shown.shape) + (0 if shown.dtype in xp.FLOATING else least))
    return Tensor(_laid_out(made.astype(shown.dtype), shown.strides))


def _laid_out(array: Any, strides: Sequence[int]) -> Any:
    """The array in memory of its own with these strides, as far as they are positive and do not overlap."""
    order = sorted(range(array.ndim), key=lambda i: -strides[i])
    back = sorted(range(array.ndim), key=order.__getitem__)
    return array.transpose(order).copy().transpose(back)


# ------------------------------------------------------------------ what runs without a kernel


def _unfused(plan: ExecutionPlan) -> Iterator[NodeOutside]:
    for node in plan.graph.all_nodes():
        if not is_fusion_group(node) and _is_on_tensors(node):
            yield NodeOutside(node.kind, line_of_node(node), _why(node, plan))


def _is_on_tensors(node: Node) -> bool:
    values = (*node.inputs, *node.outputs)
    return op_of(node) is not None and any(isinstance(value.type, TensorType) for value in values)


def _why(node: Node, plan: ExecutionPlan) -> str:
    fusion = _running(plan)
    if fusion is None:
        return _why_no_groups(plan)
    if node in fusion.refused:
        return fusion.refused[node]
    return "no neighbour shares a kernel with it" if fusion.choice(node) else "no kernel holds it"


# ------------------------------------------------------------------ gradients


def _differentiable(plan: ExecutionPlan) -> Iterator[DifferentiableExplanation]:
    for group in plan.differentiation.groups if plan.differentiation is not None else ():
        splits = tuple(_split(variant) for variant in group.variants.values())
        yield DifferentiableExplanation(group.name, lines_of(group.graph.nodes()), group.graph, splits)


def _split(variant: Variant) -> SplitExplanation:
    names, gradient = _names(variant.group), variant.gradient
    backwards = [backward.run for backward in variant.backwards.values()]
    return SplitExplanation(
        tuple(f"{name}: {_type(item.example)}" for name, item in zip(names, gradient.inputs, strict=True)),
        tuple(names[i] for i in variant.required), variant.forward.graph, tuple(run.graph for run in backwards),
        tuple(_captured(variant, is_input, i, names) for is_input, i in gradient.kept),
        _plans([variant.forward]), _plans(backwards),
    )  # fmt: skip


def _names(group: DifferentiableGroup) -> list[str]:
    inside = zip(group.node.inputs, group.graph.inputs, strict=True)
    return [_name(value, inner) for value, inner in inside]


def _name(value: Value, inner: Value) -> str:
    name = value_name(value)
    return value_name(inner) if name.startswith("%") and inner.name else name


def _type(example: Any) -> str:
    return type_text(TensorType(example.dtype, tuple(example.shape))) if isinstance(example, Tensor) else repr(example)


def _captured(variant: Variant, is_input: bool, number: int, names: Sequence[str]) -> CapturedValue:
    item = (variant.gradient.inputs if is_input else variant.gradient.results)[number]
    value, example = item.value, item.example
    name = names[number] if is_input else "" if value is None else value_name(value)
    size = example.array.size * example.array.itemsize if isinstance(example, Tensor) else 0
    return CapturedValue(name, _type(example), size, is_input)


def _plans(runs: Sequence[Specialised]) -> tuple[PlanExplanation, ...]:
    return tuple(_plan(plan) for run in runs for plan in run.plans.values())


def _why_not_differentiated(plan: ExecutionPlan) -> str:
    if plan.differentiation is None:
        return "nothing that it takes requires grad"
    if plan.differentiation.groups:
        return ""
    if tiering.mode() == "off":
        return "the compile mode is off"
    return "it has not run for long enough" if plan.differentiation.grouped is None else "no nodes make a group"


def _undifferentiated(plan: ExecutionPlan) -> Iterator[NodeOutside]:
    for node, why in plan.differentiation.outside.items() if plan.differentiation is not None else ():
        if _is_on_tensors(node):
            yield NodeOutside(node.kind, line_of_node(node), why)
