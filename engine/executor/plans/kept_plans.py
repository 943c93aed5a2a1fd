"""Graphs of plans on disk: a process that finds them runs no pass for a plan.

In: a function of a program that is known by a key, the key of a call.  Out: `KeptPlan`: the graphs that some process
made of the same, or a place for those that this one makes.  They lie beside the machine code (see Note [Trusting the
cache]).

Note [What plans are made of]
The program, of which the function's own graph and those that may be inlined are made; dtypes, ranks and devices of
tensors, which require grad, whether gradients are recorded, the dtype of new tensors; and the engine's sources.
Nothing is kept while somebody watches passes or changes what they do, and of programs whose graphs somebody has in
hand (`Program.open`).
"""

from __future__ import annotations

import marshal
import sys
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal, Self, get_args

from engine.aten.values import xp
from engine.aten.values.promotion import DEFAULTS
from engine.executor.plans.spec import Key, SpecReader
from engine.executor.plans.switches import SWITCHES
from engine.executor.profiling.settings import PROFILING
from engine.fuser.backend import kernel_cache, worker
from engine.ir.flat import NotPlain, Program, flatten, unflatten
from engine.ir.flat_program import written
from engine.ir.graph import Graph, Node
from engine.ir.rewrites import is_watched
from engine.ir.unit import Function
from engine.lang.interpreter_settings import deep_recursion
from engine.lang.records import dataclass

_FORMAT: Final = "plan 4"

Graphs = Literal["plan", "groups"]
"""The plan's graph, and that with its groups."""
Kinds = Literal["plan", "groups", "calls"]
Calls = list[list[tuple[tuple[Any, ...], float]]]
"""For each group examples as plain data (`lowered.flat_example`), with what was measured (`fusion.Kernel.ratio`)."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A graph, what was noted of its nodes, and when it was made, in seconds of the epoch."""

    graph: Graph
    notes: dict[Node, str]
    made: float


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """Graphs of one plan, and the calls that its groups came with."""

    program: Program
    function: Function
    call: Key
    made_of: tuple[str, ...]

    @classmethod
    def of(cls, function: Function, reader: SpecReader, key: Key, *, writes: bool = False) -> Self | None:
        """The graphs of the function's plan for such a key; None where none are kept.

        `writes`: a program that is in no archive is written as plain data, which takes a part of what a plan takes.
        """
        if reader.device is None or is_watched() or SWITCHES.listeners or PROFILING.is_enabled:
            return None
        if kernel_cache.directory() is None or (program := _program_of(function, writes)) is None:
            return None
        state = program.key
        if not state:
            return None
        call = str(reader.spec(key)), str(function.inlines), str(DEFAULTS.floating)
        facts = _FORMAT, sys.version, _engine(), state, function.qualname
        return cls(program, function, key, (*facts, *call))

    def is_made_beside(self) -> bool:
        """True once the worker has made the graphs, or has found that it cannot; False, unless the thread that compiles
        asks, for which nobody waits."""
        if not worker.is_wanted():
            return False
        try:
            program = self.program.sent()
        except NotPlain:
            return False
        floating = xp.FROM_NUMPY[DEFAULTS.floating].number
        job = program, self.program.key, self.function.qualname, _sent_key(self.call), self.made_of, floating
        return worker.does(worker.PLAN, *job)

    def find(self, what: Graphs) -> Kept | None:
        """A graph, and what was noted of its nodes; None where nothing was kept."""
        data = kernel_cache.load(self._key(what))
        if data is None:
            return None
        flat, noted, made = marshal.loads(data)
        try:
            with deep_recursion():
                graph = unflatten(flat, self.program)
        except NotPlain:
            return None
        nodes = [*graph.all_nodes()] if noted else []
        return Kept(graph, {nodes[number]: text for number, text in noted}, made)

    def keep(self, what: Graphs, graph: Graph, notes: Mapping[Node, str] | None = None) -> None:
        """Keep a graph with notes of some of its nodes, if it refers to nothing that has no name."""
        known = notes or {}
        noted = [(number, known[node]) for number, node in enumerate(graph.all_nodes()) if node in known]
        try:
            with deep_recursion():
                data = marshal.dumps((flatten(graph, self.program), noted, time.time()))
        except (NotPlain, ValueError):
            return
        kernel_cache.store(self._key(what), data)
        if what == "plan" and not may_be_kept(self.program, self.function):
            kernel_cache.store(_sign(self.program, self.function), b"")

    def has(self, what: Graphs) -> bool:
        """True if something was kept, which may turn out to be of no use."""
        return kernel_cache.has(self._key(what))

    def find_calls(self) -> Calls:
        """The calls that kernels of groups were made for, for each group, newest first."""
        data = kernel_cache.load(self._key("calls"))
        found: Calls = [] if data is None else marshal.loads(data)
        return found

    def keep_calls(self, calls: Calls) -> None:
        """Keep such calls in place of those before."""
        kernel_cache.store(self._key("calls"), marshal.dumps(calls))

    def forget(self) -> None:
        """Remove all of it."""
        for what in get_args(Kinds):
            kernel_cache.discard(self._key(what))

    def _key(self, what: Kinds) -> str:
        return kernel_cache.key_of((what, *self.made_of), what)


def may_be_kept(program: Program, function: Function) -> bool:
    """True if some process kept a plan of the program's function, as one look tells; also one of another engine."""
    return kernel_cache.has(_sign(program, function))


def _sign(program: Program, function: Function) -> str:
    """The key of what stands for all plans of a function."""
    return kernel_cache.key_of((_FORMAT, program.key, function.qualname), "planned")


@cache
def _engine() -> str:
    return kernel_cache.state_of_engine(*kernel_cache.ROOMS)


def _program_of(function: Function, writes: bool) -> Program | None:
    """The program that the function is part of; None where there is no plain data of it."""
    if function.program is not None or not writes:
        return function.program
    try:
        return written(function)
    except NotPlain:
        return None


def _sent_key(key: Key) -> tuple[Any, ...]:
    """The key of a call for tensors of the CPU, as plain data."""
    grad_mode, *parts = key
    return grad_mode, *(part and (xp.FROM_NUMPY[part[0]].number, *part[1:]) for part in parts)


def received_key(data: tuple[Any, ...]) -> Key:
    """The key again."""
    grad_mode, *parts = data
    return grad_mode, *(part and (xp.numpy_dtype(part[0]), *part[1:]) for part in parts)
