"""Kernels as loops over single elements, for computations that no few array operations express.

In: functions in a small part of Python that read and write flat arrays.  Out: `Loop`s.  `loop.run(work, ...)` runs
one in machine code, if it is compiled for arrays of those dtypes, else returns None, whereupon the
caller computes over whole arrays.  Called directly, a loop is a Python function, which is its definition.

Note [The language of loops]
Parameters are arrays (`Buffer`: contiguous, seen as flat, none overlaps another one that is written), `int` or
`float`. There are assignments, `if`, `while`, `for ... in range(...)`, `break`, `continue`, `return` of a whole
number (0 where none is returned); numbers, comparisons, `and`, `or`, `not`, conditional expressions (both sides are
computed); the functions of this module, `abs`, `min` and `max`, and other loops (written out in place) for their
value.  `//` and `%` are of numbers that are not negative.  Elements are computed in their own precision, smaller
whole numbers in 64 bits; single and double precision meet only where `double` or `like` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.lang.records import dataclass

Buffer = Any
"""An array whose elements are read and written by their flat index in memory order."""
Entry = Callable[..., int]
"""Machine code, called with addresses and numbers."""
Key = tuple[np.dtype[Any], ...]


@dataclass(slots=True)
class Compiler:
    """The slot that a compiler of loops takes."""

    request: Callable[[Loop, Key, int], Entry | None] | None = None
    """Given a loop, the dtypes of its arrays and how much work it is: its machine code, if that is ready."""


COMPILER: Final = Compiler()
LEAST: Final = 1024
"""Steps from which on a call of machine code pays."""


class Loop:
    """A function in the language of loops.

    `any_order` allows sums to be added up in any order, and a product and a sum to be rounded once.  `is_alike` says
    that the steps over arrays give the same bits; where they do not, machine code comes at a moment that only depends
    on what the program has done before, so that its results are the same each time.
    """

    __slots__ = ("any_order", "entries", "function", "is_alike", "waiting")

    def __init__(self, function: Callable[..., Any], any_order: bool = False, is_alike: bool = True) -> None:
        self.function = function
        self.any_order = any_order
        self.is_alike = is_alike
        self.entries: dict[Key, Entry | None] = {}
        """Machine code by the dtypes of the arrays; None where it cannot be compiled."""
        self.waiting: dict[Key, int] = {}
        """Amount of work that was run before its code was ready."""

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def run(self, work: int, *args: Any) -> int | None:
        """The result of the machine code; None, with nothing done, if it has not been compiled (yet).

        `work` is the approximate number of steps that the loop takes.
        """
        if work < LEAST or COMPILER.request is None:
            return None
        kinds, given = [], []
        for arg in args:
            if type(arg) is np.ndarray:
                flags = arg.flags
                if not (flags.c_contiguous and flags.aligned):
                    return None
                kinds.append(arg.dtype)
                given.append(arg.__array_interface__["data"][0])
            elif type(arg) is int or type(arg) is float:
                given.append(arg)
            else:
                return None
        key = tuple(kinds)
        entry = self.entries.get(key)
        if entry is None:
            entry = None if key in self.entries else COMPILER.request(self, key, work)
            if entry is None:
                return None
        return entry(*given)


def worth(x: Any) -> bool:
    """True if `x` is a numpy array large enough for machine code, and a compiler is installed."""
    return type(x) is np.ndarray and x.size >= LEAST and COMPILER.request is not None


def loop(function: Callable[..., Any]) -> Loop:
    """The function as a loop, exact."""
    return Loop(function)


def loose(function: Callable[..., Any]) -> Loop:
    """The function as a loop whose sums may be added up in any order."""
    return Loop(function, any_order=True, is_alike=False)


# ------------------------------------------------------------------ functions for loops

double: Final = np.float64
"""Conversion to double precision."""


def like(buffer: Buffer, value: Any) -> Any:
    """`value` converted to the dtype of `buffer`."""
    return buffer.dtype.type(value)


def whole(value: Any) -> int:
    """A float truncated to an integer; NaN becomes 0, values out of range are clamped."""
    if value != value:
        return 0
    return int(max(min(float(value), 9.2e18), -9.2e18))


def floor(value: Any) -> Any:
    return np.floor(value)


def nearest(value: Any) -> Any:
    """`value` rounded to the nearest integer, half to even, as a float."""
    return np.rint(value)


def root(value: Any) -> Any:
    return np.sqrt(value) if value >= 0 else value * math.nan
