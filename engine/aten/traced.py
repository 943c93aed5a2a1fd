"""Numbers that remember the tensor they came from.

In: a 0-dim tensor that stands where an operator takes a number.  Out: the number; while a program is traced, one that
still knows its tensor, so that the trace can record how it was computed.  Such numbers go from the call of an operator
straight to the tracer; programs do not meet them.
"""

from __future__ import annotations

from typing import Any

from engine.aten.dispatch import HOOKS
from engine.aten.tensor import Tensor, xp_tolist


class TracedInt(int):
    """An int with its tensor."""

    tensor: Tensor


class TracedFloat(float):
    """A float with its tensor."""

    tensor: Tensor


def number_of(tensor: Tensor) -> Any:
    """What `tensor.item()` gives.  Raises OperatorError unless the tensor has one element."""
    if HOOKS.trace is None or tensor.array.size != 1:
        return tensor.item()
    number = xp_tolist(tensor.array.reshape(()))
    kind = _KINDS.get(type(number))
    if kind is None:
        return tensor.item()
    traced = kind(number)
    traced.tensor = tensor
    return traced


def int_of(tensor: Tensor) -> Any:
    """What `int(tensor)` gives."""
    number = number_of(tensor)
    return number if isinstance(number, TracedInt) else int(tensor)


_KINDS: dict[type, Any] = {int: TracedInt, float: TracedFloat}
