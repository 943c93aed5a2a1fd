"""The place in a program where Ctrl-C stopped it.

In: the KeyboardInterrupt.  Out: the calls that were under way, outermost first.  It stands alone because nobody pays
for it but who was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType

from engine.executor.bytecode.traceback import CallSite, frames_of_node
from engine.executor.interpreter.interpreter import InterpreterState
from engine.executor.plans.executor import RECENT
from engine.executor.plans.plan import generated_frames
from engine.ir.graph import Graph
from engine.ir.match import callee_of
from engine.lang.errors import CallFrame


def interrupted_calls(error: KeyboardInterrupt) -> list[CallFrame]:
    """The calls under way; none if no program ran.

    Machine code has no place of its own: where a whole function is one kernel, its first loop stands for it.
    """
    traces = list(_traces(error.__traceback__))
    if not any(str(trace.tb_frame.f_globals.get("__name__", "")).startswith("engine.") for trace in traces):
        return []
    sites = [*_generated(error.__traceback__), *_interpreted(traces)]
    node = sites[-1].node if sites else None
    callee = RECENT.ran() if not sites else callee_of(node) if node is not None else None
    sites += [] if callee is None else list(_in_machine_code(callee.name, callee.graph))
    return _frames(sites)


def calls_under_way(state: InterpreterState) -> list[CallFrame]:
    """The calls of a run that stands between two instructions, or in the middle of one, outermost first."""
    return _frames(_sites(state))


def _frames(sites: Iterable[CallSite]) -> list[CallFrame]:
    return [frame for site in sites if site.node is not None for frame in frames_of_node(site.node, site.function)]


def _sites(state: InterpreterState) -> Iterator[CallSite]:
    return (CallSite(frame.code.name, frame.instruction.node) for frame in state.frames)


def _traces(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _generated(trace: TracebackType | None) -> Iterator[CallSite]:
    for plan, _, node, _ in generated_frames(trace):
        yield CallSite(plan.name, node)


def _interpreted(traces: list[TracebackType]) -> Iterator[CallSite]:
    states = (trace.tb_frame.f_locals.get("self") for trace in traces if trace.tb_frame.f_code.co_name == "_advance")
    for state in states:
        if isinstance(state, InterpreterState):
            yield from _sites(state)


def _in_machine_code(name: str, graph: Graph) -> Iterator[CallSite]:
    """The first loop of a function that runs without any trace in Python."""
    node = next((node for node in graph.all_nodes() if node.kind == "prim::Loop"), None)
    if node is not None:
        yield CallSite(name, node)
