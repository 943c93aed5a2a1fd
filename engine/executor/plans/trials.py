"""Kernels on trial: whether one takes less time than what it takes the place of, on this machine and for these sizes.

In: a kernel, and the function that does the same without it.  Out: a function for calls, which runs them by turns, each
call by one of both, until it is known which one is faster.  That is told once, and kept (`kept_plans.py`): nothing is
measured that the program does not need anyway.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from engine.executor.plans.tiers import Run
from engine.executor.plans.verifying import NOT_TAKEN

ROUNDS: Final = 4
"""Calls of each of both, of which the fastest counts: others were disturbed."""
SLOWER: Final = 1.05
"""A kernel that takes so many times as long is not used."""
_TICK: Final = 1e-9
"""Seconds that a call takes at least, whatever the clock says."""


def is_slower(ratio: float) -> bool:
    """True of a kernel that is not used, by its time in times of that without it."""
    return ratio > SLOWER


def on_trial(
    kernel: Run, unfused: Run, takes: Callable[[Sequence[Any]], bool], tell: Callable[[float], object], otherwise: Run
) -> Run:
    """A function that runs the kernel and `unfused` by turns for arguments that it `takes`, and `otherwise` for others.

    `tell` is told of the kernel's time in times of the other's; calls run what is faster until something else comes.
    """
    both, least, calls = (kernel, unfused), [float("inf")] * 2, 0  # `least`: the fastest call of each, in seconds
    once = iter((None,))

    def tried(*args: Any) -> Any:
        nonlocal calls
        if not takes(args):
            return otherwise(*args)
        turn = calls % 2 if calls < 2 * ROUNDS else int(is_slower(least[0] / least[1]))
        start = time.perf_counter()
        result = both[turn](*args)
        seconds = max(time.perf_counter() - start, _TICK)
        if result is NOT_TAKEN:
            return otherwise(*args)
        least[turn] = min(least[turn], seconds)
        calls += 1
        if calls >= 2 * ROUNDS:
            for _ in once:
                tell(least[0] / least[1])
        return result

    return tried
