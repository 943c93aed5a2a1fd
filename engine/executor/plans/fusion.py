"""Plans whose groups of nodes run as kernels.

In: a plan's graph, of which nothing is recorded.  Out: the plan's function at each time: first the one without
groups; once compiling pays, one whose groups note what they are called with; then one that calls kernels.

A group keeps the function that does the same without a kernel: it runs while there is no kernel for the arguments of a
call, and raises the errors of the program.  Kernels are made for what calls really come with, `MAX_KERNELS` for a group
at most.  A node that no kernel can hold is left out, and the others are grouped anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from operator import itemgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Protocol

from engine.aten.values import libraries
from engine.aten.values.tensor import Tensor
from engine.executor.bytecode.code import Code
from engine.executor.codegen.fusion_groups import (
    FUSION_GROUP,
    TENSOREXPR_GROUP,
    Choice,
    Whole,
    dissolve,
    form_groups,
    on,
    whole,
    with_known_dtypes,
)
from engine.executor.codegen.source import GeneratedSource, Slot
from engine.executor.plans import tiers, trials, verifying
from engine.executor.plans.history import PlanHistory, passes_of
from engine.executor.plans.kept_plans import KeptPlan
from engine.executor.plans.lowered import Compiler, Example, Layout, Lowered, Sizes, example_of, layout_of
from engine.executor.plans.pipelines import BEFORE_FUSION
from engine.executor.plans.plan_events import GroupFormed, KernelCompiled, NodeNotFused
from engine.executor.plans.switches import SWITCHES, tell
from engine.executor.plans.tiers import FOLLOWERS, Run, Tiered
from engine.executor.profiling.settings import PROFILING
from engine.fuser.backend import tiering, worker
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph, Node
from engine.ir.ops import op_of
from engine.lang import scalars
from engine.lang.deferred import deferred
from engine.lang.locks import lock
from engine.lang.progress import step
from engine.lang.records import dataclass

if TYPE_CHECKING:
    from engine.fuser.backend import cpython_abi, machine
    from engine.fuser.groups import from_graph, fusion_group
    from engine.fuser.stubs import binding as bindings
    from engine.fuser.stubs import cost as costs
else:
    cpython_abi = deferred("engine.fuser.backend.cpython_abi")
    machine = deferred("engine.fuser.backend.machine")
    from_graph = deferred("engine.fuser.groups.from_graph")
    fusion_group = deferred("engine.fuser.groups.fusion_group")
    bindings = deferred("engine.fuser.stubs.binding")
    costs = deferred("engine.fuser.stubs.cost")

MAX_KERNELS: Final = 4
"""The number of different kernels that a group is compiled to."""
MAX_FAILURES: Final = 8
"""The number of failed guards of a group that are remembered."""


class Write(Protocol):
    """Writes the function of a graph, with these slots for its groups."""

    def __call__(self, graph: Graph, groups: Mapping[Node, Slot]) -> tuple[GeneratedSource, Run]: ...


Install = Callable[[Graph, GeneratedSource, Run], None]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of a group: arguments like those that it was made for, seconds to make it."""

    lowered: Lowered
    example: Sequence[Any]
    seconds: float
    ratio: float = 0.0
    """The time of a call, in times of that without the kernel (`trials.py`); 0 where that was not measured."""

    @property
    def binding(self) -> bindings.Binding:
        return self.lowered.binding

    def run_alone(self, group: FusedGroup) -> Run:
        """The kernel as a function, whether calls run it or not."""
        return self.lowered.compiler.bind(group.name, [self.lowered.prepared], group.miss)

    @property
    def cost(self) -> costs.Cost | None:
        """The work of a call with such arguments."""
        return self.lowered.compiler.cost(self.binding, self.example)


@dataclass(eq=False, slots=True)
class FusedGroup:
    """A group of a plan, and its slot there: `run` is the function that calls get."""

    name: str
    node: Node
    owner: PlanFusion
    kernels: list[Kernel] = field(default_factory=list)
    slower: list[Kernel] = field(default_factory=list)
    """Those that are not used, as it takes less time without them."""
    on_trial: list[Lowered] = field(default_factory=list)
    """Of the kernels those that may turn out to be slower."""
    waiting: dict[Layout, Example] = field(default_factory=dict)
    """Examples of calls that kernels are to be made for."""
    done: set[Layout] = field(default_factory=set)
    """Those that kernels were made for."""
    stored: dict[Layout, Example] = field(default_factory=dict)
    """Those that there were kernels for on disk."""
    fallbacks: int = 0
    """Calls that no kernel took, but for those that ran while the first one was being made."""
    failures: list[str] = field(default_factory=list)
    """Arguments, as text, that no kernel took although there were some: the first `MAX_FAILURES`."""
    run: Run = field(init=False)
    _unfused: Run | None = None

    def __post_init__(self) -> None:
        self.run = self.miss

    @property
    def unfused(self) -> Run:
        """The function without kernels, written when it is first needed."""
        if self._unfused is None:
            self._unfused = self.owner.write(self.graph, {})[1]
        return self._unfused

    @property
    def graph(self) -> Graph:
        found: Graph = self.node.attr("Subgraph")
        return found

    @property
    def known(self) -> set[Layout]:
        """The calls that there is nothing to be made for."""
        return self.done | self.stored.keys()

    @property
    def is_asked(self) -> bool:
        """True if the program asks how a result lies in memory, where those of kernels have no gaps."""
        users = [op_of(use.user) for value in self.node.outputs for use in value.uses]
        return any(op is not None and op.name in _ASKING for op in users)

    @property
    def bindings(self) -> list[bindings.Binding]:
        return [kernel.binding for kernel in self.kernels]

    @property
    def lowered(self) -> list[Lowered]:
        """The kernels as the compiler made them."""
        return [kernel.lowered for kernel in self.kernels]

    @property
    def prepared(self) -> list[Any]:
        """The kernels as the compiler binds them."""
        return [each.prepared for each in self.lowered]

    def miss(self, *args: Any) -> Any:
        """A call that no kernel takes.  Arguments that raise get none."""
        known, has_room = len(self.kernels), len(self.done) < MAX_KERNELS
        at_once = has_room and tiering.mode() == "eager" and layout_of(args) not in self.known
        result = tiering.in_parts(self.unfused, args, once=at_once)
        self.fallbacks += 1
        if self.kernels and len(self.failures) < MAX_FAILURES:
            self.failures.append(", ".join(map(_shown, args)))
        if not has_room or (self.is_asked and not _has_no_gaps(result)):
            return result
        self.owner.want(self, args, result if isinstance(result, tuple) else (result,))
        return result if len(self.kernels) == known or self.run is self._unfused else self.run(*args)


_ASKING: Final = frozenset({"aten::stride", "aten::is_contiguous"})


def _has_no_gaps(result: Any) -> bool:
    results = result if isinstance(result, tuple) else (result,)
    return all(bindings.is_in_order(each.array) for each in results if isinstance(each, Tensor))


def _shown(value: Any) -> str:
    if not isinstance(value, Tensor):
        return repr(value)
    gaps = (
        ""
        if bindings.is_in_order(value.array)
        else f", strides={[s // value.array.itemsize for s in value.array.strides]}"
    )
    return f"{value.dtype.ir_name}({', '.join(map(str, value.array.shape))}{gaps})"


def _is_like(layout: Layout, args: Sequence[Any]) -> bool:
    return layout_of(args) == layout


def _example(value: Any) -> Any:
    """The value, or for a tensor another one of its form that holds one element and is not read."""
    return Tensor(libraries.like(value.array)) if isinstance(value, Tensor) else value


@dataclass(eq=False, slots=True, weakref_slot=True)
class PlanFusion(Tiered):
    """The state of one plan on its way to kernels.

    `otherwise` starts the plan where nothing is fused; `entry` gives the plan's function, and `enter_by` sets it alone.
    Groups and kernels are made while no other thread compiles (`tiering.compiling`); the lock is held for a moment.
    """

    name: str
    graph: Graph
    compiler: Compiler
    write: Write
    install: Install
    otherwise: Callable[[], None]
    entry: Callable[[], Run]
    enter_by: Callable[[Run], None]
    offer: Callable[[Callable[[Run], Run] | None], None] = lambda bind: None
    """Takes a way to the kernels of a plan that is one group: given a function for other arguments, a function that
    runs them; None where there are none."""
    kind: str = FUSION_GROUP
    """The kind of node that its groups are."""
    accelerator: scalars.device | None = None
    """The device of the tensors that kernels are for; None: the CPU."""
    history: PlanHistory = field(default_factory=PlanHistory)
    kept: KeptPlan | None = None
    """Its graphs on disk, if it was looked for them."""
    place: Callable[[], KeptPlan | None] = lambda: None
    """Looks for them, and finds their place."""
    doubt: Callable[[Callable[[], object]], None] = lambda remove: None
    """Has the plan compared with the interpreter, and what it is given called where that differs."""
    groups: list[FusedGroup] = field(default_factory=list)
    refused: dict[Node, str] = field(default_factory=dict)
    """Nodes that are part of no kernel, and why."""
    fused: Graph | None = None
    """The graph with its groups, once they are formed."""
    unavailable: str = ""
    """The reason why no kernels can be made."""
    _whole: Whole | None = None
    """The group that does all of it, but for guards."""
    _written: tuple[GeneratedSource, Run] | None = None
    """The text with the groups that there are, and its function."""
    _is_regrouped: bool = False
    """True if a node turned out to fit in no kernel, so that groups are others than those that are kept."""
    _count: int = 0
    _lock: Any = field(default_factory=lock)

    def __post_init__(self) -> None:
        FOLLOWERS.add(self)
        if self.compiler.keeper is None:
            self.kept, self.place = None, lambda: None

    @property
    def mode(self) -> tiering.Mode:
        """The compile mode; with guards on groups, plans that fuse at once are made by the calls that want them."""
        mode = tiering.mode()
        return "eager" if mode != "off" and PROFILING.guards_groups and PROFILING.fuses_at_once else mode

    @property
    def is_made(self) -> bool:
        """True once groups are formed."""
        return self.fused is not None

    def install_for(self, mode: tiering.Mode) -> None:
        """Enter the tier for this mode; groups that another process formed, for which it paid, are there at once, where
        that need not wait for another thread."""
        if self.is_made or mode != "background" or self.kept is None or not self.kept.has("groups"):
            Tiered.install_for(self, mode)
            return
        with tiering.compiling_if_free() as is_free:
            if is_free:
                self.make()
            Tiered.install_for(self, mode)

    def run_plainly(self) -> None:
        self.offer(None)
        self.otherwise()

    def run_by(self, wrapped: Callable[[Run], Run]) -> None:
        source, run = self.write(self.graph, {})
        self.install(self.graph, source, wrapped(run))

    def follow_mode(self) -> None:
        self.offer(None)
        Tiered.follow_mode(self)  # classes with slots are made twice, and super() finds the first

    # -- groups

    @property
    def choice(self) -> Choice:
        """The nodes that kernels may hold."""
        chosen = self.compiler.is_fusible
        if self.kind == TENSOREXPR_GROUP:
            chosen = with_known_dtypes(chosen)
        return chosen if self.accelerator is None else on(self.accelerator, chosen)

    def make(self) -> None:
        """Form the first groups, or take those that were kept, or that the worker makes."""
        self.kept = self.kept or self.place()
        found = self.kept.find("groups") if self.kept is not None else None
        if found is None and self.kept is not None and self._is_sooner_beside() and self.kept.is_made_beside():
            found = self.kept.find("groups")
        if found is not None and self.kept is not None:
            self.doubt(self.kept.forget)
            self.fused, self.refused = found.graph, found.notes
            self.history.restart(self.fused, partial(passes_of, self._formed))
            nodes = self.fused.find_all_nodes(self.kind)
        else:
            self.fused, nodes, self.refused = self.history.made(self._formed, itemgetter(0))
            if self.kept is not None:
                self.kept.keep("groups", self.fused, self.refused)
                if not self.kept.has("plan"):
                    self.kept.keep("plan", self.graph)
        self._take(nodes)
        if found is not None:
            self._take_stored()

    def _is_sooner_beside(self) -> bool:
        """True if the worker would form the groups sooner: it is there, or they are more than what is formed here while
        it starts."""
        return worker.is_there() or sum(1 for _ in self.graph.all_nodes()) > tiers.SMALL

    def _formed(self, history: PlanHistory) -> tuple[Graph, list[Node], dict[Node, str]]:
        """A copy of the graph with groups, these, and the nodes that are in none, with the reasons."""
        graph, refused = copy_graph(self.graph), dict[Node, str]()
        history.begin(self.graph)
        history.run(BEFORE_FUSION, graph)
        return graph, self._groups_of(graph, refused, history), refused

    def _groups_of(self, graph: Graph, refused: dict[Node, str], history: PlanHistory) -> list[Node]:
        start = time.perf_counter()
        listener = tell if SWITCHES.listeners else None
        nodes = form_groups(graph, self.kind, self.choice, refused, listener)
        history.note("create_fusion_groups", graph, bool(nodes), time.perf_counter() - start)
        return nodes

    def _group_again(self) -> None:
        """Form groups of what is in none any more."""
        assert self.fused is not None
        self._is_regrouped = True
        self._take(self._groups_of(self.fused, self.refused, self.history))

    def _take(self, nodes: Sequence[Node]) -> None:
        """Let these be the groups."""
        assert self.fused is not None
        known = {group.node: group for group in self.groups}
        if not known and (found := whole(self.fused)) is not None:
            self._whole, nodes = found, [found.group]
        self.groups = [known.get(node) or self._new_group(node) for node in nodes]
        self._written = None

    def _new_group(self, node: Node) -> FusedGroup:
        graph: Graph = node.attr("Subgraph")
        self._count += 1
        group = FusedGroup(f"{self.name}_{self._count}", node, self)
        self.history.tell(GroupFormed(self.name, group.name, str(graph)))
        return group

    def run_made(self) -> None:
        """Let the plan run its groups, in which kernels take the place of what runs now."""
        assert self.fused is not None
        if not self.groups:
            self.otherwise()
            return
        if self._written is None:
            self._written = self.write(self.fused, {group.node: group for group in self.groups})
        source, run = self._written
        with self._lock:
            for group in self.groups:
                if group.run is group._unfused:
                    group.run = group.miss
            self.install(self.fused, source, self.groups[0].run if self._is_bare else run)
        self.offer_kernels()

    @property
    def _is_bare(self) -> bool:
        """True if the plan's function is that of its group."""
        return self._whole is not None and not self._whole.is_guarded and not verifying.is_wanted()

    def offer_kernels(self) -> None:
        """Let calls go straight to the kernels of a plan that is one group, behind guards that these check as well."""
        if self._whole is None or verifying.is_wanted():
            return
        if self.groups[0].kernels and not self.groups[0].on_trial:
            self.offer(partial(self.compiler.bind, self.groups[0].name, self.groups[0].prepared))

    # -- kernels

    def _take_stored(self) -> None:
        """Bind the kernels that are on disk for calls like those of other processes."""
        assert self.kept is not None
        try:
            for group, calls in zip(self.groups, self.kept.find_calls(), strict=False):
                for example, ratio in ((example_of(flat), ratio) for flat, ratio in calls):
                    start = time.perf_counter()
                    lowered = self.compiler.stored(group.graph, example, self._sizes)
                    if lowered is not None:
                        self._bind(group, lowered, start, ratio)
                        group.stored[layout_of(example[0])] = example
        except (cpython_abi.AbiError, machine.MachineError, MemoryError) as why:
            self._give_up(str(why))

    def _is_worth_keeping(self) -> bool:
        """True once all groups have kernels; before, where kernels come one by one, as in mode "eager", only when their
        number is a power of two, since the calls of all groups are written anew each time."""
        made = [bool(group.kernels or group.slower) for group in self.groups]
        return self.mode != "eager" or all(made) or sum(made).bit_count() == 1

    def _keep_calls(self) -> None:
        """Keep the newest calls that there are kernels for, for the groups that other processes form."""
        if self.kept is not None and not self._is_regrouped:
            kernels = [[*group.slower, *group.kernels][-MAX_KERNELS:] for group in self.groups]
            calls = [[(each.lowered.flat, each.ratio) for each in reversed(of)] for of in kernels]
            self.kept.keep_calls([[(flat, ratio) for flat, ratio in of if flat is not None] for of in calls])

    def want(self, group: FusedGroup, args: Sequence[Any], results: Sequence[Any]) -> None:
        """Have a kernel made for such arguments; it is there afterwards in eager mode."""
        if tiering.mode() == "off" or not tiering.asks_for_kernels() or (key := layout_of(args)) in group.known:
            return
        with self._lock:
            is_new = key not in group.waiting
            group.waiting[key] = [_example(value) for value in args], [_example(value) for value in results]
        if self.mode == "eager":
            self.compile_waiting()
            return
        self._run_unfused(group)
        if is_new:
            tiering.in_background(self.compile_waiting)

    def _run_unfused(self, group: FusedGroup) -> None:
        """Let calls of a group that waits for its first kernel ask for nothing, until `run_made`."""
        with self._lock:
            if group.waiting and not group.kernels:
                group.run = group.unfused
                if self._is_bare:
                    self.enter_by(group.run)

    def compile_waiting(self) -> None:
        """Make the kernels that groups wait for, and let the plan run with them."""
        with tiering.compiling():
            waiting = [group for group in self.groups if group.waiting]
            try:
                for group in waiting:
                    self._compile(group)
            except (cpython_abi.AbiError, machine.MachineError, MemoryError) as why:
                self._give_up(str(why) or "there is no memory for kernels")
            if not self.unavailable and not {*waiting} <= {*self.groups}:
                self._group_again()
            if waiting and tiering.mode() != "off":
                self.run_made()
                if self._is_worth_keeping():
                    self._keep_calls()

    def _compile(self, group: FusedGroup) -> None:
        for layout, example in [*group.waiting.items()]:
            if group not in self.groups:  # its nodes were put back for arguments before these
                return
            try:
                if len(group.done) < MAX_KERNELS:
                    self._add_kernel(group, example)
            except from_graph.NotFused as why:
                self._leave_out(group, why, example[0])
            except (cpython_abi.AbiError, machine.MachineError, MemoryError):
                raise
            except Exception as error:
                tiering.note_failure(error)
                self._leave_out(group, from_graph.NotFused(group.graph.return_node, "a mistake of the compiler"), ())
            with self._lock:
                group.done.add(layout)
                del group.waiting[layout]

    def _add_kernel(self, group: FusedGroup, example: Example) -> None:
        start = time.perf_counter()
        self._tell_progress()
        lowered = self.compiler.lowered(group.graph, example, self._sizes)
        if tiering.mode() == "background" and not verifying.is_wanted():
            group.on_trial.append(lowered)
        self._bind(group, lowered, start)
        self._tell_progress()

    @property
    def _sizes(self) -> Sizes:
        """The sizes that kernels are for alone: those that guards of the whole plan ask for."""
        return self._whole.sizes if self._whole is not None and self._whole.is_guarded else ()

    def _bind(self, group: FusedGroup, lowered: Lowered, start: float, ratio: float = 0.0) -> None:
        """Let calls have the kernel, on which work began then, unless it is known to be slower than what they run."""
        is_slower = trials.is_slower(ratio)
        run = None if is_slower else self._bound(group, [*group.lowered, lowered])
        seconds = time.perf_counter() - start
        kernels = group.slower if is_slower else group.kernels
        with self._lock:
            group.run = run or group.run
            kernels.append(Kernel(lowered, lowered.example[0], seconds, ratio))
        self.history.tell(KernelCompiled(self.name, group.name, seconds))

    def _bound(self, group: FusedGroup, kernels: Sequence[Lowered]) -> Run:
        """The group's function with these kernels; new ones are on trial, and those from disk may have to be compared
        first."""
        doubtful = [each for each in kernels if each.is_doubtful] if verifying.is_wanted() else []
        proved = [each for each in kernels if each not in doubtful and each not in group.on_trial]
        run = self.compiler.bind(group.name, [each.prepared for each in proved], group.miss)
        for each in reversed([each for each in kernels if each not in proved]):
            alone = self.compiler.bind(group.name, [each.prepared], lambda *args: verifying.NOT_TAKEN)
            if each in doubtful:
                trust, refuse = partial(self._trust, group, each), partial(self._refuse, group, each)
                run = verifying.verified(alone, lambda: Code(group.graph, group.name), trust, refuse, run)
            else:
                takes, tell = partial(_is_like, layout_of(each.example[0])), partial(self._tell_ratio, group, each)
                run = trials.on_trial(alone, group.unfused, takes, tell, run)
        return run

    def _tell_ratio(self, group: FusedGroup, lowered: Lowered, ratio: float) -> None:
        """Let the thread that compiles end the trial of a kernel, which calls need not wait for."""
        tiering.in_background(partial(self._end_trial, group, lowered, ratio))

    def _end_trial(self, group: FusedGroup, lowered: Lowered, ratio: float) -> None:
        """Let calls have the kernel, or not, from here on, in this process and in others."""
        if lowered not in group.on_trial:  # it was bound anew meanwhile, and told of twice
            return
        group.on_trial.remove(lowered)
        measured = [
            Kernel(each.lowered, each.example, each.seconds, ratio) for each in group.kernels if each.lowered is lowered
        ]
        group.kernels = [each for each in group.kernels if each.lowered is not lowered]
        (group.slower if trials.is_slower(ratio) else group.kernels).extend(measured)
        if group in self.groups and tiering.mode() != "off":
            group.run = self._bound(group, group.lowered)
            self.run_made()
            if not any(each.on_trial for each in self.groups):
                self._keep_calls()

    def _trust(self, group: FusedGroup, lowered: Lowered) -> None:
        """A kernel from disk does what the interpreter does."""
        lowered.is_doubtful = False
        with tiering.compiling():
            group.run = self._bound(group, group.lowered)

    def _refuse(self, group: FusedGroup, lowered: Lowered, difference: str) -> None:
        """A kernel from disk does something else: have it made anew."""
        with tiering.compiling():
            self.compiler.forget(lowered)
            group.kernels = [each for each in group.kernels if each.lowered is not lowered]
            layout = layout_of(lowered.example[0])
            group.stored.pop(layout, None)
            group.done.discard(layout)
            group.run = self._bound(group, group.lowered)
        verifying.tell(self.history, self.name, "a kernel", difference)

    def _tell_progress(self) -> None:
        """Let those who wait know how many groups have kernels."""
        step("compiling kernels", self.name, sum(bool(each.kernels) for each in self.groups), len(self.groups))

    def _give_up(self, why: str) -> None:
        """Run without groups: there is no machine code to be had."""
        self.unavailable = why
        for group in self.groups:
            group.run = group.unfused
            group.waiting.clear()
        self.groups.clear()

    def _leave_out(self, group: FusedGroup, why: from_graph.NotFused, example: Sequence[Any]) -> None:
        """Put the group's nodes back, to be grouped without those that no kernel can hold."""
        nodes = {why.node} if why.node in {*group.graph.nodes()} else _users_of_strangers(group.graph, example)
        for node in nodes:
            self.history.tell(NodeNotFused(self.name, node.kind, node.range, str(why)))
        group.run = group.unfused
        self.refused |= dict.fromkeys(dissolve(group.node, nodes), str(why))
        self.groups.remove(group)
        self._whole = None


def _users_of_strangers(graph: Graph, example: Sequence[Any]) -> set[Node]:
    """The nodes that take arguments of which there are no kernels; all, if there are none."""
    strange = [value for value, given in zip(graph.inputs, example, strict=False) if not _is_known(given)]
    return {use.user for value in strange for use in value.uses} - {graph.return_node} or {*graph.nodes()}


def _is_known(value: Any) -> bool:
    return (
        value.array.dtype in fusion_group.TYPES
        if isinstance(value, Tensor)
        else isinstance(value, (int, float, NoneType))
    )
