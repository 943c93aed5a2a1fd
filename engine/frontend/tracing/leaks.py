"""Members of `Tensor` by which values leak into Python, so that a trace cannot follow them.

In: such a member, read or called while a trace is under way.  Out: its value in a thread that is traced.  Most members
warn, with the position in the program, and have their usual value; sizes and transpositions are recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from engine.aten.dispatch.calls import call
from engine.aten.values.hooks import NOT_TRACED
from engine.aten.values.tensor import Tensor
from engine.frontend.tracing.position import DATAFLOW, warn
from engine.frontend.tracing.recording import sizes_of
from engine.frontend.tracing.state import TracingState, current

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
    "__index__": DATAFLOW.format("a Python index"),
    "item": DATAFLOW.format("a Python number"),
    "tolist": DATAFLOW.format("a Python list"),
    "numpy": DATAFLOW.format("a NumPy array"),
    "__array__": DATAFLOW.format("a NumPy array"),
    "__len__": _LENGTH,
    "__repr__": DATAFLOW.format("a Python string"),
}
"""Method -> its warning."""
_OPERATORS: Final = {"T": "numpy_T", "mT": "mT", "mH": "mH", "H": "matrix_H", "nelement": "numel", "data": "detach"}
"""Member -> the operator that is recorded for it."""


def value_of_member(name: str, tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The value of a member of `Tensor` in a traced thread, NOT_TRACED in others."""
    state = current()
    return NOT_TRACED if state is None else _MEMBERS[name](state, tensor, *args, **kwargs)


def _leaking(name: str, message: str, state: TracingState, tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
    warn(message)
    with state.pause():
        return getattr(tensor, name)(*args, **kwargs)


def _recorded(operator: str, state: TracingState, tensor: Tensor) -> Any:
    return call(operator, (tensor,), {})


def _iterating(state: TracingState, tensor: Tensor) -> Any:
    warn(_ITERATION)
    return NOT_TRACED


def _shape(state: TracingState, tensor: Tensor) -> Any:
    if state.parameter_names:  # functions of the standard library take numbers
        return NOT_TRACED
    with state.pause():
        return sizes_of(state, tensor)


_MEMBERS: Final[dict[str, Callable[..., Any]]] = {
    **{name: partial(_leaking, name, message) for name, message in _LEAKS.items()},
    **{name: partial(_recorded, operator) for name, operator in _OPERATORS.items()},
    "__iter__": _iterating, "shape": _shape,
}  # fmt: skip
