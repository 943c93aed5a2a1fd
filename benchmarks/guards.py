"""What guards of profiled plans cost: of an LSTM cell that nothing fails in, and of one whose first guard fails.

    python benchmarks/guards.py

Times are the best of several rounds, in microseconds a call.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import engine.torch as torch
from engine.executor.profiling.settings import PROFILING
from engine.fuser.backend import tiering

CELL: Final = """
def cell(x, h, c, w_ih, w_hh, b_ih, b_hh):
    gates = torch.mm(x, w_ih.t()) + torch.mm(h, w_hh.t()) + b_ih + b_hh
    i, f, g, o = gates.chunk(4, 1)
    c2 = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c2), c2
"""
WIDTH: Final = 32
ROUNDS: Final = 30


def _best(*calls: Callable[[], object], count: int = 1000) -> list[float]:
    """Microseconds of each call in its best round; rounds take turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, found in zip(calls, times, strict=True):
            start = time.perf_counter()
            for _ in range(count):
                call()
            found.append((time.perf_counter() - start) / count * 1e6)
    return [min(found) for found in times]


def _warm(arguments: Sequence[Any], *, profiled: bool) -> Any:
    """The cell with a plan of its own, and with kernels."""
    torch.jit.flags.set_profiling_mode(profiled)
    cell = torch.jit.CompilationUnit(CELL).cell
    for _ in range(3):
        _best(lambda: cell(*arguments))
        tiering.wait()
    return cell


def _arguments(batch: int) -> list[torch.Tensor]:
    sizes = [(batch, WIDTH)] * 3 + [(4 * WIDTH, WIDTH)] * 2 + [(4 * WIDTH,)] * 2
    return [torch.randn(*size) for size in sizes]


def main() -> None:
    arguments, others = _arguments(1), _arguments(2)
    with torch.no_grad():
        cell, guarded_cell = _warm(arguments, profiled=False), _warm(arguments, profiled=True)
        (plan,) = guarded_cell.get_debug_state().execution_plans.values()
        count = plan.code.num_bailouts()
        plain, guarded = _best(lambda: cell(*arguments), lambda: guarded_cell(*arguments))
        PROFILING.failures = sys.maxsize  # else the plan would be made anew, without this guard

        def unoptimised() -> None:
            with torch.jit.optimized_execution(False):
                guarded_cell(*others)

        failed, interpreted = _best(lambda: guarded_cell(*others), unoptimised, count=100)
    print(f"without guards      {plain:6.2f}")
    print(f"with {count} guards       {guarded:6.2f}   {guarded - plain:+.2f} for the guards")
    print(f"unoptimised         {interpreted:6.2f}")
    print(f"first guard fails   {failed:6.2f}   {failed - interpreted:+.2f} beside the unoptimised run")


if __name__ == "__main__":
    main()
