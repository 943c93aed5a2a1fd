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
ROUNDS: Final = 9


def _best(call: Callable[[], object], count: int = 1000) -> float:
    """Microseconds of a call in the best round."""
    times: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - start) / count)
    return min(times) * 1e6


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
        cell = _warm(arguments, profiled=False)
        plain = _best(lambda: cell(*arguments))
        guarded_cell = _warm(arguments, profiled=True)
        guarded = _best(lambda: guarded_cell(*arguments))
        (plan,) = guarded_cell.get_debug_state().execution_plans.values()
        count = plan.code.num_bailouts()
        PROFILING.failures = sys.maxsize  # else the plan would be made anew, without this guard
        failed = _best(lambda: guarded_cell(*others), 100)
        with torch.jit.optimized_execution(False):
            unoptimised = _best(lambda: guarded_cell(*others), 100)
    print(f"without guards      {plain:6.2f}")
    print(f"with {count} guards       {guarded:6.2f}   {guarded - plain:+.2f} for the guards")
    print(f"unoptimised         {unoptimised:6.2f}")
    print(f"first guard fails   {failed:6.2f}   {failed - unoptimised:+.2f} beside the unoptimised run")


if __name__ == "__main__":
    main()
