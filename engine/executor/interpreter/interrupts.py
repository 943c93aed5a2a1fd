"""The place in a program where Ctrl-C or an error stopped it.

In: the traceback.  Out: the calls that were under way, outermost first; the outermost call from Python, with its
arguments.  It stands alone because nobody pays for it but who was stopped.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, NamedTuple

from engine.executor.bytecode.traceback import CallSite, frames_of_node
from engine.executor.interpreter.interpreter import InterpreterState, run
from engine.executor.plans.plan import generated_frames
from engine.ir.graph import Graph
from engine.ir.match import callee_of
from engine.ir.unit import Function
from engine.lang.errors import CallFrame

DIRECT_CALLS: Final[set[CodeType]] = set()
"""The code of Python functions that call the machine code of a function by themselves: of `function`, on `args`.  Who
has such a function adds it."""


class ProgramCall(NamedTuple):
    """A call of a program from Python; `is_plain` says that the arguments are values of programs already, one for each
    of the function's."""

    function: Function
    args: Sequence[Any]
    is_plain: bool


def interrupted_calls(error: KeyboardInterrupt) -> list[CallFrame]:
    """The calls under way; none if no program ran.

    Machine code has no place of its own: where a whole function is one kernel, its first loop stands for it.
    """
    traces = [each for each in _traces(error.__traceback__) if each.tb_frame.f_code is not _handlers_code()]
    sites = [*_generated(error.__traceback__), *_interpreted(traces)]
    node = sites[-1].node if sites else None
    callee = _called(traces[-1].tb_frame) if traces and not sites else callee_of(node) if node is not None else None
    callee = callee.function if isinstance(callee, ProgramCall) else callee
    sites += [] if callee is None else list(_in_machine_code(callee.name, callee.graph))
    return _frames(sites)


def _handlers_code() -> CodeType | None:
    """The code of the function that raised the interrupt, if it is one of Python: it is no part of what ran."""
    return getattr(signal.getsignal(signal.SIGINT), "__code__", None)


def outermost_call(trace: TracebackType | None) -> ProgramCall | None:
    """The first call of a program in a traceback; None if there is none."""
    found = [call for each in _traces(trace) if (call := _called(each.tb_frame)) is not None]
    of_first = (call for call in found if call.function is found[0].function and call.is_plain)
    return next(of_first, found[0]) if found else None


def _called(frame: FrameType) -> ProgramCall | None:
    """The program's function that a frame of Python calls, with its arguments."""
    variables = frame.f_locals
    if frame.f_code is run.__code__:
        return ProgramCall(variables["executor"].function, variables["inputs"], True)
    function = variables.get("function") if frame.f_code in DIRECT_CALLS else None
    return ProgramCall(function, variables["args"], False) if isinstance(function, Function) else None


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
