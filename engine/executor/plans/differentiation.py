"""Plans whose operators are recorded for gradients, and run in groups all the same.

In: a plan's graph, some of whose tensors may require grad.  Out: the plan's function at each time: first the one that
records every operator; once compiling pays, one whose differentiable nodes are in `prim::DifferentiableGraph`s.

A differentiable graph is split into a forward and a backward graph for arguments of each set of sizes that calls come
with, `MAX_VARIANTS` at most.  Both run like the graphs of other plans, specialised and fused; the results have one node
in the graph that backward passes walk, `DifferentiableGraphBackward`.  Where that cannot be, the group's operators are
recorded one by one: for other sizes, for programs with hooks for saved tensors, while backward passes look for NaN.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from itertools import zip_longest
from types import ModuleType
from typing import Any, Final, Protocol

from engine.aten.autograd.node import Gradient, Node, Saved, fitted, source_of, used_twice
from engine.aten.dispatch.grad_mode import MODE, with_recording
from engine.aten.values import libraries
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor, wrapped
from engine.executor.codegen.fusion_groups import dissolve, form_differentiable_graphs, on
from engine.executor.codegen.source import GeneratedSource, Slot
from engine.executor.plans.history import PlanHistory
from engine.executor.plans.pipelines import AFTER_GROUPING, BACKWARD
from engine.executor.plans.plan import RECENT
from engine.executor.plans.plan_events import GraphDifferentiated, NodeNotFused
from engine.executor.plans.spec import Key, SpecReader
from engine.executor.plans.switches import SWITCHES, tell
from engine.executor.plans.tiers import FOLLOWERS, Run, Tiered
from engine.executor.profiling.settings import PROFILING
from engine.fuser.backend import tiering, worker
from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.clone import copy_graph
from engine.ir.facts.inference import apply_facts
from engine.ir.graph import Graph
from engine.ir.graph import Node as GraphNode
from engine.ir.ops import writes as is_write
from engine.lang import scalars
from engine.lang.generated import compile_function
from engine.lang.locks import lock
from engine.lang.records import dataclass
from engine.passes.pipeline import run_pipeline

MAX_VARIANTS: Final = 8
"""The number of sets of sizes that a group is split for."""


@dataclass(slots=True)
class Settings:
    """`threshold`: groups have as many nodes at least.  `keeps_all`: groups are formed before the first call, also of
    single nodes, as one wants who looks at them."""

    is_enabled: bool = True
    threshold: int = 2
    keeps_all: bool = False


SETTINGS: Final = Settings()


class Write(Protocol):
    """Writes the function of a graph, with these slots for its groups."""

    def __call__(self, graph: Graph, groups: Mapping[GraphNode, Slot]) -> tuple[GeneratedSource, Run]: ...


Install = Callable[[Graph, GeneratedSource, Run], None]
Make = Callable[[str, Callable[[], Graph], SpecReader, Key], Any]
"""Makes an `ExecutionPlan` of what gives the graph."""


def _autodiff(name: str) -> ModuleType:
    """A module of `engine.executor.autodiff`, which needs the compiler of TorchScript: loaded when first used."""
    return import_module(f"engine.executor.autodiff.{name}")


# ------------------------------------------------------------------ graphs that run


@dataclass(eq=False, slots=True)
class Specialised:
    """A forward or backward graph as a function of tensors, whose sizes, dtypes and devices are always the same.

    `unrecorded` is the plan while nothing is recorded; while backward passes are, there is one for each set of
    arguments that require grad.
    """

    name: str
    graph: Graph
    plan_of: Make
    device: scalars.device | None = scalars.CPU
    """The device of all tensors; None: any."""
    gradients: int = 0
    """The number of its first inputs, which are gradients: of a backward graph."""
    plans: dict[Key, Any] = field(default_factory=dict)
    unrecorded: Any = None
    reader: SpecReader = field(init=False)

    def __post_init__(self) -> None:
        self.reader = SpecReader(self.graph.inputs, self.device)

    def plan(self, args: Sequence[Any]) -> Any:
        key = self.reader.read(*args)
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans[key] = self.plan_of(self.name, lambda: self.graph, self.reader, key)
            plan.gradients = self.gradients
        return plan

    def __call__(self, *args: Any) -> Sequence[Any]:
        if MODE.enabled:
            plan = self.plan(args)
        else:
            plan = self.unrecorded
            if plan is None:
                plan = self.unrecorded = self.plan(args)
        if self.gradients:
            RECENT.ran = plan.itself
        found = plan.entry(*args)
        return found if type(found) is tuple else (found,)


@dataclass(eq=False, slots=True)
class BackwardRun:
    """A backward graph of a variant: `places` are the numbers of its results for the variant's `required` inputs,
    `fresh` those of these inputs whose gradients share memory with nothing."""

    run: Specialised
    kept: Sequence[int]
    places: Sequence[int | None]
    fresh: Sequence[int]
    gives_some: bool

    @classmethod
    def of(cls, name: str, backward: Any, required: Sequence[int], owner: PlanDifferentiation) -> BackwardRun:
        run_pipeline(BACKWARD, backward.graph, tell if SWITCHES.listeners else None)
        found = {each: place for place, each in enumerate(backward.inputs)}
        places = [found.get(each) for each in required]
        fresh = fresh_results(backward.graph)
        run = owner.specialised(name, backward.graph, len(backward.graph.inputs) - len(backward.kept))
        return cls(
            run, backward.kept, places,
            [i for i, place in enumerate(places) if place in fresh], bool(found),
        )  # fmt: skip


def fresh_results(graph: Graph) -> set[int]:
    """The numbers of results whose memory is neither an input's nor a constant's nor that of another result."""
    outputs, db = [*graph.outputs], AliasDb(graph)

    def is_fresh(place: int) -> bool:
        value, others = outputs[place], (*graph.inputs, *outputs[:place], *outputs[place + 1 :])
        is_shared = db.may_contain_alias(value, others) or db.may_alias_wildcard(value)
        return not is_shared and value.node.kind not in ("prim::Param", "prim::Constant")

    return {*filter(is_fresh, range(len(outputs)))}


@dataclass(eq=False, slots=True)
class Variant:
    """A group split for arguments of one set of sizes; `required` are the numbers of those that require grad."""

    group: DifferentiableGroup
    gradient: Any
    required: Sequence[int]
    forward: Specialised
    backwards: dict[tuple[int, ...], BackwardRun] = field(default_factory=dict)
    kept: Sequence[tuple[bool, int, bool, int]] = field(init=False)
    """Of each kept value: whether it is an input, its number, whether programs may write to it, and the number of the
    result whose history it has, else -1."""
    through: Sequence[int] = field(init=False)
    """The results of the original that have gradients."""

    def __post_init__(self) -> None:
        gradient = self.gradient
        self.through = [i for i in sorted(gradient.differentiable) if i < gradient.count]
        self.kept = [
            (is_input, i, is_input or i < gradient.count, i if not is_input and i in gradient.differentiable else -1)
            for is_input, i in gradient.kept
        ]

    def backward(self, given: tuple[int, ...]) -> BackwardRun | None:
        """The backward graph for gradients of these results; None where only that for all of them will do."""
        found = self.backwards.get(given)
        if found is None:
            graph = self.gradient.backward(given)
            if graph is None:
                return None
            name = f"{self.group.name}_backward"
            found = self.backwards[given] = BackwardRun.of(name, graph, self.required, self.group.owner)
        return found

    def run(self, args: Sequence[Any]) -> Any:
        """The results of a call that is recorded."""
        gradient = self.gradient
        taken = args if len(gradient.taken) == len(args) else [args[i] for i in gradient.taken]
        results = with_recording(False, self.forward, *taken)
        if self.required:
            self._record(args, results)
        return results[0] if gradient.count == 1 else tuple(results[: gradient.count])

    def _record(self, args: Sequence[Any], results: Sequence[Any]) -> None:
        node = DifferentiableNode(self, [source_of(args[i]) for i in self.required])
        node.outputs = [((array := each.array).shape, array.dtype) for each in results]
        for i in self.through:
            results[i].attach(node, i)
        kept = node.kept = []
        for is_input, i, is_shared, output in self.kept:
            value = args[i] if is_input else results[i]
            kept.append(Saved(value, output) if is_shared and isinstance(value, Tensor) else value)


class DifferentiableNode(Node):
    """The gradient of one run of a differentiable graph."""

    __slots__ = ("_fresh", "kept", "variant")
    kept: Sequence[Any] | None
    _fresh: Sequence[int]
    """The places of gradients that are fresh, of those of the last backward pass."""

    def __init__(self, variant: Variant, sources: Sequence[Any]) -> None:
        super().__init__(())
        self._edges, self.sources = None, sources
        self.variant = variant

    def name(self) -> str:
        return "DifferentiableGraphBackward"

    def apply(self, gradients: list[Gradient]) -> Sequence[Gradient]:
        if self.kept is None:
            raise used_twice()
        variant = self.variant
        through = variant.gradient.differentiable
        given = tuple([i for i, each in enumerate(gradients) if each is not None and i in through])
        found = variant.backwards.get(given) or variant.backward(given)
        if found is None:
            given = tuple(sorted(through))
            gradients = [
                Tensor(libraries.zeros(*form)) if each is None else each
                for each, form in zip_longest(gradients, self.outputs)
            ]
            found = variant.backward(given)
        assert found is not None
        args = [fitted(gradients[i], self.outputs[i]) for i in given]  # type: ignore[arg-type]
        kept = self.kept
        for i in found.kept:
            value = kept[i]
            args.append(value.unpack(self) if type(value) is Saved else self._with_history(value, i))
        self._fresh = found.fresh
        results = found.run(*args) if found.gives_some else ()
        return [None if place is None else results[place] for place in found.places]

    def fresh(self, found: Sequence[Gradient]) -> Container[int]:
        return {id(found[place]) for place in self._fresh}

    def _with_history(self, value: Any, place: int) -> Any:
        """An intermediate value, as a result of this node if the backward pass is recorded."""
        output = self.variant.kept[place][3]
        if not MODE.enabled or output < 0:
            return value
        value = wrapped(value.array, value._storage)
        value.attach(self, output)
        return value

    def held(self) -> Sequence[Any]:
        return self.kept or ()

    def release(self) -> None:
        self.kept = None


# ------------------------------------------------------------------ groups


@dataclass(eq=False, slots=True)
class DifferentiableGroup:
    """A group of a plan.  `unsplit` is the function that records its operators one by one."""

    name: str
    node: GraphNode
    owner: PlanDifferentiation
    unsplit: Run
    variants: dict[Any, Variant] = field(default_factory=dict)
    waiting: dict[Any, Sequence[Any]] = field(default_factory=dict)
    is_dissolved: bool = False
    key: Run = field(init=False)

    def __post_init__(self) -> None:
        self.key = _key_reader(len(self.graph.inputs), self.owner.accelerator)

    @property
    def graph(self) -> Graph:
        found: Graph = self.node.attr("Subgraph")
        return found

    @property
    def has_room(self) -> bool:
        """True if it may be split for other arguments than before."""
        return not self.is_dissolved and len(self.variants) + len(self.waiting) < MAX_VARIANTS

    @property
    def writes(self) -> bool:
        """True if a run writes to what it is given, as that of batch norms in training: no call may run twice."""
        return any(map(is_write, self.graph.nodes()))

    def run(self, *args: Any) -> Any:
        if HOOKS.trace is not None or not MODE.enabled or MODE.packing or MODE.checks_nan:
            return self.unsplit(*args)
        if HOOKS.devices and not self.is_here(args):
            return self.unsplit(*args)
        variant = self.variants.get(key := self.key(*args))
        return variant.run(args) if variant is not None else self.miss(key, args)

    def is_here(self, args: Sequence[Any]) -> bool:
        """True if the tensors are on the device that the group is for, or are numbers of the CPU."""
        accelerator = self.owner.accelerator
        if accelerator is None:
            return False
        arrays = [each.array for each in args if isinstance(each, Tensor)]
        places = [(array, libraries.device_of(array)) for array in arrays]
        return all(place == accelerator or (place == scalars.CPU and not array.ndim) for array, place in places)

    def miss(self, key: Any, args: Sequence[Any]) -> Any:
        """A call with other sizes than before.  Arguments that raise get no variant."""
        at_once = tiering.mode() == "eager" and self.has_room
        result = tiering.in_parts(self.unsplit, args, once=at_once)
        self.owner.want(self, key, args)
        variant = self.variants.get(key)
        return result if variant is None or self.writes else variant.run(args)

    def split(self, args: Sequence[Any]) -> Variant:
        """The variant for such arguments.  Raises NotDifferentiable."""
        required = [isinstance(each, Tensor) and each.requires_grad for each in args]
        gradient = _autodiff("differentiate").differentiate(self.graph, args, required)
        forward = self.owner.specialised(f"{self.name}_forward", gradient.forward)
        numbers = [i for i, each in enumerate(required) if each]
        variant = Variant(self, gradient, numbers, forward)
        given = tuple(i for i in range(gradient.count) if i in gradient.differentiable)
        if given:
            variant.backward(given)
        return variant


def _key_reader(count: int, accelerator: scalars.device | None) -> Run:
    """A function that gives sizes, dtype, requires_grad and, beside an accelerator, the device of tensors, the type of
    floats, and other values."""
    names, place = [f"v{i}" for i in range(count)], ", type(a)" * (accelerator is not None)
    text = f"def key({', '.join(names)}): return ({''.join(_part_of_key(name, place) for name in names)})"
    return compile_function(text, "key", {"Tensor": Tensor, "of": _key_of}, "<sizes>")


def _part_of_key(name: str, place: str) -> str:
    grad = f"{name}._requires_grad or {name}._base is not None and {name}.requires_grad"
    return f"((a := {name}.array).shape, a.dtype, {grad}{place}) if isinstance({name}, Tensor) else of({name}), "


def _key_of(value: Any) -> Any:
    if isinstance(value, list):
        return (list, *value)
    return float if isinstance(value, float) else (type(value), value)


def _example(value: Any) -> Any:
    """The value; a tensor without its history."""
    return Tensor(value.array, value.requires_grad) if isinstance(value, Tensor) else value


@dataclass(eq=False, slots=True, weakref_slot=True)
class PlanDifferentiation(Tiered):
    """The state of one plan on its way to differentiable graphs.

    `otherwise` starts the plan where there are none; `entry` gives the plan's function, and `enter_by` sets it alone.
    """

    name: str
    graph: Graph
    plan_of: Make
    write: Write
    install: Install
    otherwise: Callable[[], None]
    entry: Callable[[], Run]
    enter_by: Callable[[Run], None]
    history: PlanHistory = field(default_factory=PlanHistory)
    accelerator: scalars.device | None = None
    """The device of the tensors that groups are for; None: the CPU."""
    groups: list[DifferentiableGroup] = field(default_factory=list)
    refused: dict[GraphNode, str] = field(default_factory=dict)
    """Nodes that turned out to fit in no group, and why."""
    outside: dict[GraphNode, str] = field(default_factory=dict)
    """Nodes that are part of no group, and why."""
    grouped: Graph | None = None
    """The graph with its groups, once they are formed."""
    _count: int = 0
    _lock: Any = field(default_factory=lock)

    @property
    def mode(self) -> tiering.Mode:
        """The compile mode; "off" where nobody wants groups, "eager" where they are wanted at once."""
        mode = tiering.mode()
        if mode == "off" or not SETTINGS.is_enabled:
            return "off"
        return "eager" if SETTINGS.keeps_all or PROFILING.is_enabled else mode

    @property
    def is_made(self) -> bool:
        return self.grouped is not None

    def install_for(self, mode: tiering.Mode) -> None:
        Tiered.install_for(self, mode)  # classes with slots are made twice, and super() finds the first
        FOLLOWERS.add(self)  # not before, as there may be no function to be had

    def run_plainly(self) -> None:
        self.otherwise()

    def run_by(self, wrapped: Callable[[Run], Run]) -> None:
        source, run = self.write(self.graph, {})
        self.install(self.graph, source, wrapped(run))

    def specialised(self, name: str, graph: Graph, gradients: int = 0) -> Specialised:
        """A forward or backward graph of a group, as a function; so many of its inputs are gradients."""
        return Specialised(name, graph, self.plan_of, scalars.CPU if self.accelerator is None else None, gradients)

    def make(self) -> None:
        """Form the groups."""
        self.grouped = copy_graph(self.graph)
        if self.accelerator is not None:
            apply_facts(self.grouped, ("device",))
        self._group()

    def _group(self) -> None:
        assert self.grouped is not None
        known = {group.node: group for group in self.groups}
        choice, listener = _autodiff("groups").is_differentiable, tell if SWITCHES.listeners else None
        choice = choice if self.accelerator is None else on(self.accelerator, choice)
        start = time.perf_counter()
        nodes = form_differentiable_graphs(self.grouped, choice, self._threshold, self.refused, listener)
        self.history.note("create_autodiff_subgraphs", self.grouped, bool(nodes), time.perf_counter() - start)
        self.history.run(AFTER_GROUPING, self.grouped)
        self.groups = [known.get(node) or self._new_group(node) for node in nodes]
        grouped = {*nodes}
        self.outside = {node: self._why_outside(node) for node in self.grouped.all_nodes() if node not in grouped}

    @property
    def _threshold(self) -> int:
        return 1 if SETTINGS.keeps_all else SETTINGS.threshold

    def _why_outside(self, node: GraphNode) -> str:
        alone = f"it has no neighbours: a group has {self._threshold} nodes or more"
        return self.refused.get(node) or _autodiff("groups").why_outside(node) or alone

    def _new_group(self, node: GraphNode) -> DifferentiableGroup:
        self._count += 1
        name, graph = f"{self.name}_{self._count}", node.attr("Subgraph")
        return DifferentiableGroup(name, node, self, self.write(graph, {})[1])

    def run_made(self) -> None:
        assert self.grouped is not None
        if not self.groups:
            self.otherwise()
            return
        source, run = self.write(self.grouped, {group.node: group for group in self.groups})
        self.install(self.grouped, source, run)

    # -- variants

    def want(self, group: DifferentiableGroup, key: Any, args: Sequence[Any]) -> None:
        """Have the group split for such arguments, unless there are enough; it is afterwards in eager mode."""
        mode = tiering.mode()
        if mode == "off" or not group.has_room:
            return
        with self._lock:
            is_new = key not in group.waiting
            group.waiting[key] = [_example(value) for value in args]
        if mode == "eager" or PROFILING.guards_groups:
            self.split_waiting()
        elif is_new:
            worker.in_background(self.split_waiting)

    def split_waiting(self) -> None:
        """Split the groups for all arguments that wait."""
        with tiering.compiling(), tiering.without_kernels():  # derivatives are written by trying operators once
            before = [*self.groups]
            for group in before:
                self._split(group)
            if self.groups != before:
                self._group()
                if tiering.mode() != "off":
                    self.run_made()

    def _split(self, group: DifferentiableGroup) -> None:
        refusal: type[Exception] = _autodiff("specialising").NotDifferentiable
        for key, example in [*group.waiting.items()]:
            try:
                arrays = [each.array for each in example if isinstance(each, Tensor)]
                group.variants[key] = libraries.beside(arrays, group.split, example)
                forward = str(group.variants[key].forward.graph)
                self.history.tell(GraphDifferentiated(self.name, group.name, forward))
            except refusal as why:
                self._leave_out(group, getattr(why, "node", None), str(why))
            except Exception as error:
                tiering.note_failure(error)
                self._leave_out(group, None, "a mistake of the compiler")
            with self._lock:
                group.waiting.pop(key, None)

    def _leave_out(self, group: DifferentiableGroup, node: GraphNode | None, why: str) -> None:
        """Put the group's nodes back, to be grouped without the one that has no derivative; all, if it is none."""
        inner = {*group.graph.nodes()}
        nodes = {node} if node in inner else inner
        for each in nodes:
            if each is not None:
                self.history.tell(NodeNotFused(self.name, each.kind, each.range, why))
        group.variants.clear()
        if not group.is_dissolved:
            group.is_dissolved = True
            self.refused |= dict.fromkeys(dissolve(group.node, nodes), why)
            self.groups.remove(group)
