"""The history of a plan: the passes that made it, and the events of its life.

In: a graph, and passes to run on it.  Out: a `PlanHistory`: a `PassRun` for each pass, with the graph before and after
it, and the events about the plan's groups and kernels.  While nobody watches passes they are not noted as they run:
copies of graphs are a fifth of what a plan takes.  They run again when somebody asks for them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Final, Literal, TypeVar

from engine.executor.plans.switches import SWITCHES, tell
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.rewrites import is_watched
from engine.lang.records import dataclass
from engine.passes.pipeline import run_pass

T = TypeVar("T")
MAX_KEPT: Final = 1000
"""Nodes up to which copies of a graph are kept between its passes; of longer graphs the times alone."""
MAX_EVENTS: Final = 200
"""Events that are kept of one plan, the first ones."""


@dataclass(frozen=True, slots=True)
class PassRun:
    """One pass over the plan's graph.  `before` and `after` are copies, the same one where nothing changed; None of
    graphs of more than `MAX_KEPT` nodes.  `nodes` counts those after it; `changes` are (kind, how many more there are
    now), the largest first; `options` are those that the pass ran with, "simplify=False"."""

    name: str
    changed: bool
    seconds: float
    before: Graph | None
    after: Graph | None
    nodes: int = 0
    changes: tuple[tuple[str, int], ...] = ()
    options: str = ""

    @property
    def title(self) -> str:
        """The name of the pass, with its options if it has some: "inline(simplify=False)"."""
        return f"{self.name}({self.options})" if self.options else self.name


Postponed = Callable[[], Sequence[PassRun]]
"""Runs passes."""


Maker = Literal["the worker", "another program"]


@dataclass(frozen=True, slots=True)
class Origin:
    """A process that made a graph: the worker, for this one, or another program; `made` is seconds of the epoch."""

    maker: Maker
    made: float


@dataclass(eq=False, slots=True)
class PlanHistory:
    """`seconds` is the cost of making the plan, `moments` the seconds between the beginning and each event; graphs of
    up to `most_kept` nodes are kept."""

    steps: list[PassRun | Postponed] = field(default_factory=list)
    """The passes that ran, and those to be run when somebody asks for them."""
    events: list[Any] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)
    seconds: float = 0.0
    begun: float = field(default_factory=time.perf_counter)
    is_silent: bool = False
    """True where nothing is noted of passes."""
    origin: Origin | None = None
    """The maker of the plan's graph; None where this process made it."""
    most_kept: int = field(default_factory=lambda: MAX_KEPT)
    _last: Graph | None = None
    _kinds: Counter[str] = field(default_factory=Counter)

    @property
    def passes(self) -> Sequence[PassRun]:
        """All passes; those that were postponed run now."""
        found: list[PassRun] = []
        for step in self.steps:
            found += [step] if isinstance(step, PassRun) else step()
        self.steps = [*found]
        return found

    def made(self, make: Callable[[PlanHistory], T], graph_of: Callable[[T], Graph]) -> T:
        """The result of `make`, which runs passes with a history: this one if somebody watches passes, else one that
        notes nothing, as if the graph had been on disk."""
        if SWITCHES.listeners or is_watched():
            return make(self)
        result = make(PlanHistory(is_silent=True))
        self.restart(graph_of(result), partial(passes_of, make))
        return result

    def restart(self, graph: Graph, passes: Postponed) -> None:
        """Go on from a graph that was made elsewhere; who asks has the passes run that make it."""
        self.steps.append(passes)
        self.begin(graph)

    def begin(self, graph: Graph) -> None:
        """Take the graph as what the next pass starts from; nobody may change it later."""
        if self.is_silent:
            return
        self._kinds = _kinds(graph)
        self._last = None if self._kinds.total() > self.most_kept else graph

    def run(self, names: Iterable[str], graph: Graph, **options: Any) -> bool:
        """Run passes on the graph; True if one changed it."""
        listener = tell if SWITCHES.listeners else None
        changed = False
        for name in names:
            start = time.perf_counter()
            found = run_pass(name, graph, listener, **options)
            given = ", ".join(f"{option}={value!r}" for option, value in options.items())
            self.note(name, graph, found, time.perf_counter() - start, given)
            changed |= found
        return changed

    def note(self, name: str, graph: Graph, changed: bool, seconds: float, options: str = "") -> None:
        """Add a step that has made this graph of the one before."""
        if self.is_silent:
            return
        before, kinds = self._last, self._kinds
        if changed:
            self._kinds = _kinds(graph)
        if changed and before is not None:
            self._last = copy_graph(graph) if self._kinds.total() <= self.most_kept else None
        changes = _changes(kinds, self._kinds) if changed else ()
        self.steps.append(PassRun(name, changed, seconds, before, self._last, self._kinds.total(), changes, options))

    def tell(self, event: Any) -> None:
        """Keep an event about the plan, and tell the listeners."""
        if len(self.events) < MAX_EVENTS:
            self.events.append(event)
            self.moments.append(time.perf_counter() - self.begun)
        if SWITCHES.listeners:
            tell(event)


def passes_of(make: Callable[[PlanHistory], object]) -> Sequence[PassRun]:
    """The passes that `make` runs with a history of its own."""
    history = PlanHistory()
    make(history)
    return history.passes


def _kinds(graph: Graph) -> Counter[str]:
    return Counter(node.kind for node in graph.all_nodes())


def _changes(before: Counter[str], after: Counter[str]) -> tuple[tuple[str, int], ...]:
    more = [(kind, after[kind] - before[kind]) for kind in before | after]
    return tuple(sorted(((kind, count) for kind, count in more if count), key=lambda each: (-abs(each[1]), each[0])))
