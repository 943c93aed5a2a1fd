"""Traced numbers, which keep the tensor that they were computed from.

In: a 0-dim tensor that stands where a number is wanted.  Out: the number; while a program is traced, one that still
knows its tensor, so that the trace can record how it was computed.  Traced programs do not meet them: they go from the
call of an operator to the tracer, and through the functions of the library, which are written for numbers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from engine.aten.values import xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.lang import scalars


def _both(function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """The methods of an operator of two numbers: with the traced one on the left, and on the right."""
    return lambda a, b: _computed(function, a, b), lambda b, a: _computed(function, a, b)


def _lost(kind: str, convert: Callable[[Any], Any]) -> Any:
    """The method of a conversion that the trace cannot follow: it warns, and gives a plain number."""

    def converted(number: Any, *rest: Any) -> Any:
        if HOOKS.tracer is not None:
            HOOKS.tracer.lost(kind)
        return convert(plain(number), *rest)

    return converted


class _Traced:
    """A number with its tensor; results of arithmetic with it are traced, too."""

    tensor: Tensor
    __add__, __radd__ = _both(operator.add)
    __sub__, __rsub__ = _both(operator.sub)
    __mul__, __rmul__ = _both(operator.mul)
    __floordiv__, __rfloordiv__ = _both(operator.floordiv)
    __truediv__, __rtruediv__ = _both(operator.truediv)
    __mod__, __rmod__ = _both(operator.mod)
    __pow__, __rpow__ = _both(operator.pow)

    def __neg__(self) -> Any:
        return _computed(operator.mul, self, -1)


class TracedInt(_Traced, int):
    """An int with its tensor."""

    __float__: Any = _lost("a Python float", float)


class TracedFloat(_Traced, float):
    """A float with its tensor."""

    __int__: Any = _lost("a Python integer", int)
    __trunc__: Any = _lost("a Python integer", math.trunc)
    __floor__: Any = _lost("a Python integer", math.floor)
    __ceil__: Any = _lost("a Python integer", math.ceil)
    __round__: Any = _lost("a Python number", round)


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


def float_of(value: Any) -> Any:
    """`float(value)` of a number or a tensor, as a traced float while tracing."""
    number = number_of(value) if isinstance(value, Tensor) and is_traced() else value
    if not isinstance(number, (TracedInt, TracedFloat)):
        return float(value)
    traced = TracedFloat(plain(number))
    traced.tensor = number.tensor
    return traced


def plain(value: Any) -> Any:
    """The plain number of a traced one; anything else unchanged."""
    if isinstance(value, TracedInt):
        return int.__int__(value)
    return float.__float__(value) if isinstance(value, TracedFloat) else value


def _computed(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """The function of the two, and of their tensors where it is traced: in double precision, unless all is whole."""
    number = function(plain(a), plain(b))
    if not is_traced() or type(number) not in _KINDS:
        return number
    operands = [each.tensor if isinstance(each, (TracedInt, TracedFloat)) else each for each in (a, b)]
    if type(number) is float:
        operands = [each.to(scalars.float64) if isinstance(each, Tensor) else each for each in operands]
    return number_of(function(*operands))


_KINDS: Final[dict[type, Any]] = {int: TracedInt, float: TracedFloat}
