"""Tracing switched on and off.

In: the state of a trace.  Out: inside of `recording(state)`, this thread is recorded.  The hooks are set while any
thread traces, and each asks for the trace of its own thread; others go on as without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from engine.aten.values.hooks import HOOKS, Tracer
from engine.aten.values.tensor import Tensor
from engine.frontend.tracing.calls import record_call, record_module
from engine.frontend.tracing.forks import record_fork, record_wait
from engine.frontend.tracing.leaks import value_of_member
from engine.frontend.tracing.position import DATAFLOW, warn
from engine.frontend.tracing.python_calls import record_function
from engine.frontend.tracing.recording import MAKERS, record_constant, record_operator
from engine.frontend.tracing.state import TracingState, active, current, has_trace
from engine.lang.locks import lock

_BAKED_IN: Final = (
    "{} results are registered as constants in the trace. That is harmless when the values are the same at every call; "
    "in any other case, this might cause the trace to be incorrect."
)


class _Tracer:
    """The tracer of all threads, see `Tracer`."""

    has_trace = staticmethod(has_trace)
    member = staticmethod(value_of_member)
    module = staticmethod(record_module)
    call = staticmethod(record_call)
    fork = staticmethod(record_fork)
    wait = staticmethod(record_wait)
    function = staticmethod(record_function)

    def lost(self, kind: str) -> None:
        if current() is not None:
            warn(DATAFLOW.format(kind))

    def constant(self, made: Tensor, maker: str) -> None:
        state = current()
        if state is None:
            return
        if maker.startswith("torch."):
            warn(_BAKED_IN.format(maker.partition(" of ")[0]))
        if maker in MAKERS:
            record_constant(state, made, MAKERS[maker])


_TRACER: Final[Tracer] = _Tracer()
_lock: Final = lock()
_running: Final[list[TracingState]] = []
"""The states of all traces that are under way, in whatever threads."""


@contextmanager
def recording(state: TracingState) -> Iterator[None]:
    """Record this thread while the context lasts."""
    with _lock:
        if not _running:
            HOOKS.tracer = _TRACER
            HOOKS.step_in(record_operator, innermost=True)
        _running.append(state)
    try:
        with active(state):
            yield
    finally:
        with _lock:
            _running.remove(state)
            if not _running:
                HOOKS.step_out(record_operator)
                HOOKS.tracer = None
