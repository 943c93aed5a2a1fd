"""Traced numbers, which keep the tensor that they were computed from.

In: a 0-dim tensor that stands where a number is wanted.  Out: the number; while a program is traced, one that still
knows its tensor, so that the trace can record how it was computed.  Traced programs do not meet them: they go from the
call of an operator to the tracer, and through the functions of the library, which are written for numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from engine.aten.values import xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor


class TracedInt(int):
    """An int with its tensor; results of arithmetic with it are traced, too."""

    tensor: Tensor

    def __add__(self, other: int) -> int:
        return _computed(operator.add, self, other)

    def __radd__(self, other: int) -> int:
        return _computed(operator.add, other, self)

    def __sub__(self, other: int) -> int:
        return _computed(operator.sub, self, other)

    def __rsub__(self, other: int) -> int:
        return _computed(operator.sub, other, self)

    def __mul__(self, other: int) -> int:
        return _computed(operator.mul, self, other)

    def __rmul__(self, other: int) -> int:
        return _computed(operator.mul, other, self)

    def __floordiv__(self, other: int) -> int:
        return _computed(operator.floordiv, self, other)

    def __rfloordiv__(self, other: int) -> int:
        return _computed(operator.floordiv, other, self)

    def __neg__(self) -> int:
        return _computed(operator.mul, self, -1)


class TracedFloat(float):
    """A float with its tensor."""

    tensor: Tensor


def is_traced() -> bool:
    """True if this thread is traced."""
    return HOOKS.tracer is not None and HOOKS.tracer.has_trace()


def number_of(tensor: Tensor) -> Any:
    """`tensor.item()`, as a traced number while tracing.  Raises OperatorError unless the tensor has one element."""
    if not is_traced() or tensor.array.size != 1:
        return tensor.item()
    number = xp.to_list(tensor.array.reshape(()))
    kind = _KINDS.get(type(number))
    if kind is None:
        return tensor.item()
    traced = kind(number)
    traced.tensor = tensor
    return traced


def int_of(tensor: Tensor) -> Any:
    """`int(tensor)`, as a traced int while tracing."""
    number = number_of(tensor)
    return number if isinstance(number, TracedInt) else int(tensor)


def plain(value: Any) -> Any:
    """The plain number of a traced one; anything else unchanged."""
    if isinstance(value, TracedInt):
        return int(value)
    return float(value) if isinstance(value, TracedFloat) else value


def _computed(function: Callable[[Any, Any], Any], a: Any, b: Any) -> int:
    if not is_traced() or not (isinstance(a, int) and isinstance(b, int)):
        number: int = function(plain(a), plain(b))
    else:
        number = number_of(function(*(n.tensor if isinstance(n, TracedInt) else n for n in (a, b))))
    return number


_KINDS: Final[dict[type, Any]] = {int: TracedInt, float: TracedFloat}
