"""Work that a traced program does elsewhere: `torch.jit.fork`, and `wait` for its future.

In: the function that is forked and its arguments; a future that is waited for.  Out: a `prim::fork` node whose subgraph
is what the function did, and an `aten::wait` node.  What the function computes is known outside through its future
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.aten.values.hooks import NOT_TRACED
from engine.frontend.tracing.calls import fresh, take_apart
from engine.frontend.tracing.position import range_of
from engine.frontend.tracing.state import Scope, current
from engine.frontend.tracing.values import put_together
from engine.ir.graph import Graph
from engine.lang.types import FutureType


def record_fork(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], completed: Callable[[Any], Any]
) -> Any:
    """The future of the call, made by `completed` of its result, which is recorded; NOT_TRACED without a trace."""
    state = current()
    if state is None:
        return NOT_TRACED
    state.look_around()
    state.graph.current_range = range_of(state.frame)
    body, outer = Graph(), state.scope
    node = state.graph.append("prim::fork", [], 0).set_attr("Subgraph", body)
    state.scope = state.add_scope(Scope(body, None, outer, node, is_fork=True))
    try:
        result = function(*args, **kwargs)
        value = put_together(state, result)
    finally:
        state.scope = outer
    body.register_output(value)
    future = completed(result)
    state.set_value(future, node.add_output(FutureType(value.type)))
    return future


def record_wait(future: Any, result: Any) -> Any:
    """The result with other tensors, which stand for what waiting for the future gives; NOT_TRACED for any other."""
    state = current()
    if state is None or not state.knows(future):
        return NOT_TRACED
    state.look_around()
    state.graph.current_range = range_of(state.frame)
    value = state.carry(state.values[id(future)][1], state.scope)
    assert isinstance(value.type, FutureType)
    waited = state.graph.append("aten::wait", [value], [value.type.element]).output
    with state.pause():
        result = fresh(result, set(state.values))
        take_apart(state, result, waited)
    return result
