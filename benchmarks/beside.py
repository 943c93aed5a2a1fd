"""Several ways to do one thing, timed side by side on a machine that does other things as well.

In: for each row of a table a callable for each column (None where a column has none).  Out: the medians of the times of
one call, and of the ratios.  The columns take turns, each for a few milliseconds, and a ratio is that of two turns that
follow each other, so what slows the machine down for a while slows all columns down.  Where others use the processors
as well, CPU_TIME=1 in the environment counts the time that the process had one (of all its threads).
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

TORCH: Final[Any] = import_module("torch") if find_spec("torch") else None
"""PyTorch, where it is installed."""
Call = Callable[[], object]
_clock: Final = time.process_time if os.environ.get("CPU_TIME") else time.perf_counter
TURN: Final = 0.004
"""Seconds that a column has for one turn."""


class Measured(NamedTuple):
    """Seconds of one call by column, and by column how many times as long the first one takes."""

    seconds: dict[str, float]
    ratios: dict[str, float]


def measure(columns: Mapping[str, Call | None], seconds: float = 0.25) -> Measured:
    """Take turns for that long, at least five times."""
    calls = {name: call for name, call in columns.items() if call is not None}
    counts = {name: _calls_per_turn(call) for name, call in calls.items()}
    rounds: list[dict[str, float]] = []
    end = time.perf_counter() + seconds
    while len(rounds) < 5 or time.perf_counter() < end:
        rounds.append({name: _turn(call, counts[name]) for name, call in calls.items()})
    first, *others = calls
    medians = {name: statistics.median(r[name] for r in rounds) for name in calls}
    return Measured(medians, {name: statistics.median(r[first] / r[name] for r in rounds) for name in others})


def _calls_per_turn(call: Call) -> int:
    call()
    once = _turn(call, 1)
    return max(1, round(TURN / max(min(once, _turn(call, 5) if once < TURN else once), 1e-7)))


def _turn(call: Call, count: int) -> float:
    start = _clock()
    for _ in range(count):
        call()
    return (_clock() - start) / count


def table(
    title: str, rows: Iterable[tuple[str, Mapping[str, Call | None]]], *, unit: float = 1e-6, seconds: float = 0.25
) -> list[Measured]:
    """Print a row for each; times in `unit` seconds, then how many times as long the first column takes."""
    found: list[Measured] = []
    for name, columns in rows:
        if not found:
            heads = [f"{each:>10}" for each in columns] + [f"{'/ ' + each:>10}" for each in list(columns)[1:]]
            print(f"{title:<34}{''.join(heads)}")
        result = measure(columns, seconds)
        times = [result.seconds.get(each) for each in columns]
        ratios = [result.ratios.get(each) for each in list(columns)[1:]]
        cells = [_cell(None if t is None else t / unit, 2) for t in times] + [_cell(r, 2) for r in ratios]
        print(f"{name:<34}{''.join(cells)}", flush=True)
        found.append(result)
    return found


def _cell(value: float | None, digits: int) -> str:
    return f"{'-':>10}" if value is None else f"{value:>10.{digits}f}"


def summary(results: Iterable[Measured], column: str, limit: float) -> str:
    """How many rows keep to the limit beside that column, and the median and greatest ratio."""
    ratios = [r.ratios[column] for r in results if column in r.ratios]
    if not ratios:
        return f"{column} is not installed"
    kept = sum(ratio <= limit for ratio in ratios)
    return (
        f"{kept} of {len(ratios)} rows take at most {limit:g} times as long as {column}; "
        f"median {statistics.median(ratios):.2f}, greatest {max(ratios):.2f}"
    )
