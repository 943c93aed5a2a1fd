"""Where values of tensors leak into Python, so that a trace cannot follow them.

In: nothing.  Out: while a trace is under way, `Tensor` with other methods for what makes Python values of it: they
warn, with the place in the program, and do what they always do; `shape` gives sizes that the trace follows.  Swapping
the methods, rather than asking in each of them whether a trace is on, keeps them free of charge the rest of the time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, Final

from engine.aten.dispatch.autocast import under
from engine.aten.dispatch.calls import call
from engine.aten.values.hooks import HOOKS, Hook
from engine.aten.values.tensor import Size, Tensor
from engine.frontend.tracing.calls import record_call
from engine.frontend.tracing.position import DATAFLOW, warn
from engine.frontend.tracing.recording import MAKERS, record_constant, record_operator, sizes_of
from engine.frontend.tracing.state import TracingState, active, current

_ITERATION: Final = (
    "Iterating over a tensor might cause the trace to be incorrect: the number of iterations is fixed, and a tensor of "
    "another shape will not change it."
)
_LENGTH: Final = (
    "Using len to get tensor shape might cause the trace to be incorrect: the length is fixed. tensor.shape[0] would "
    "be followed."
)
_LEAKS: Final = {
    "__bool__": DATAFLOW.format("a Python boolean"),
    "__int__": DATAFLOW.format("a Python integer"),
    "__float__": DATAFLOW.format("a Python float"),
    "__complex__": DATAFLOW.format("a Python complex number"),
    "__index__": "",
    "item": DATAFLOW.format("a Python number"),
    "tolist": DATAFLOW.format("a Python list"),
    "numpy": DATAFLOW.format("a NumPy array"),
    "__array__": DATAFLOW.format("a NumPy array"),
    "__len__": _LENGTH,
    "__repr__": "",
}
"""Method -> what to warn of."""
_TRANSPOSITIONS: Final = {"T": "numpy_T", "mT": "mT", "mH": "mH", "H": "matrix_H"}
_BAKED_IN: Final = (
    "{} results are registered as constants in the trace. That is harmless when the values are the same at every call; "
    "in any other case, this might cause the trace to be incorrect."
)


def note_constant(made: Tensor, maker: str) -> None:
    """A tensor was made of Python's values: a trace can but keep them."""
    state = current()
    if state is None:
        return
    if maker.startswith("torch."):
        warn(_BAKED_IN.format(maker.partition(" of ")[0]))
    if maker in MAKERS:
        record_constant(state, made, MAKERS[maker])


def _leaking(message: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        state = current()
        if state is None:
            return original(self, *args, **kwargs)
        if message:
            warn(message)
        with state.pause():
            return original(self, *args, **kwargs)

    return method


def _iterating(original: Callable[[Tensor], Iterator[Tensor]]) -> Callable[[Tensor], Iterator[Tensor]]:
    def method(self: Tensor) -> Iterator[Tensor]:
        if current() is not None:
            warn(_ITERATION)
        return original(self)

    return method


def _traced_shape(original: Callable[[Tensor], Any], self: Tensor) -> Any:
    state = current()
    if state is None or state.parameter_names:
        return original(self)
    with state.pause():
        sizes: Any = sizes_of(state, self)
    return Size(sizes)


def _recorded_as(name: str, _: Any) -> Any:
    """A property that is an operator."""
    return property(lambda tensor: call(name, (tensor,), {}))


def _traced_data(original: Callable[[Tensor], Any], self: Tensor) -> Any:
    return original(self) if current() is None else call("detach", (self,), {})


Swap = Callable[[Any], Any]
"""Makes the member that stands in for one, given that one."""
_SWAPS: Final[dict[tuple[type, str], Swap]] = {
    **{(Tensor, name): partial(_leaking, message) for name, message in _LEAKS.items()},
    **{(Tensor, name): partial(_recorded_as, operator) for name, operator in _TRANSPOSITIONS.items()},
    (Tensor, "nelement"): lambda _: lambda tensor: call("numel", (tensor,), {}),
    (Tensor, "__iter__"): _iterating,
    (Tensor, "shape"): lambda shape: property(partial(_traced_shape, shape.__get__)),
    (Tensor, "data"): lambda data: property(partial(_traced_data, data.fget), data.fset),
}


def swap_while_tracing(owner: type, name: str, swap: Swap) -> None:
    """Let a class have another member while a trace is under way."""
    _SWAPS[owner, name] = swap


_lock = threading.Lock()
_originals: dict[tuple[type, str], Any] = {}
_watching: list[Hook | None] = []
"""Who stepped in before the first trace, and will again."""
_traces = 0


@contextmanager
def recording(state: TracingState) -> Iterator[None]:
    """Record what this thread does meanwhile."""
    _count(1)
    try:
        with active(state):
            yield
    finally:
        _count(-1)


def _count(step: int) -> None:
    """Begin with the first trace, end with the last: other threads may be tracing, too."""
    global _traces
    with _lock:
        before, _traces = _traces, _traces + step
        if before == 0:
            _originals.update((place, vars(place[0])[place[1]]) for place in _SWAPS)
            _install({place: swap(_originals[place]) for place, swap in _SWAPS.items()})
            _watching.append(HOOKS.trace)
            HOOKS.trace, HOOKS.trace_call, HOOKS.trace_constant = under(record_operator), record_call, note_constant
        elif _traces == 0:
            HOOKS.trace, HOOKS.trace_call, HOOKS.trace_constant = _watching.pop(), None, None
            _install(_originals)


def _install(members: dict[tuple[type, str], Any]) -> None:
    for (owner, name), member in members.items():
        setattr(owner, name, member)
