"""Strategies: how a group's work is cut into loops, for a kind of machine.

In: nothing.  Out: `HOST` and `GPU`, which a group and its scheduler read.
"""

from __future__ import annotations

from typing import Final

from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class Strategy:
    """Numbers of elements, and what iterations of independent loops are.

    `long`: from which on a reduction of all elements is done in parts of `block`; `long_row`, `long_column`: from which
    on each of several sums along rows, down columns is.

    `is_threaded`: each iteration is a thread of its own.  Columns stay apart then, all independent loops are marked, a
    reduction of everything shares no nest with what is computed for each element, every reduction is an `Accumulate`
    where it can be, and kernels call no functions and end at their end.
    """

    block: int
    long: int
    long_row: int
    long_column: int
    is_threaded: bool


HOST: Final = Strategy(1 << 12, 1 << 15, 1 << 18, 1 << 13, is_threaded=False)
GPU: Final = Strategy(1 << 10, 1 << 13, 1 << 16, 1 << 11, is_threaded=True)
