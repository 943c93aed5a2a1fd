"""`torch.nn.modules.utils`, `torch.nn._reduction`: settings of layers as tuples and numbers.

In: a number or a sequence, the name of a reduction.  Out: a tuple of fixed length, the reduction's number.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, Final

_REDUCTIONS: Final = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """The function that repeats a number `n` times, and makes a tuple of anything else."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(itertools.repeat(x, n))

    parse.__name__ = name
    return parse


_single: Final = _ntuple(1, "_single")
_pair: Final = _ntuple(2, "_pair")
_triple: Final = _ntuple(3, "_triple")
_quadruple: Final = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """The elements in reverse order, each `n` times."""
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))


def get_enum(reduction: str) -> int:
    """The number that operators know a reduction by.  Raises ValueError for an unknown one."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction: none, mean and sum are")
    return _REDUCTIONS[reduction]
