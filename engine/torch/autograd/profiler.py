"""`torch.autograd.profiler`: counts and times of operators.

In: a `with` block.  Out: the operators that ran in it, with their counts and times, as a table.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from engine.aten.values.hooks import HOOKS
from engine.lang.records import dataclass


@dataclass(slots=True)
class Average:
    """The number of calls of one operator, and their total time in seconds."""

    key: str
    count: int = 0
    seconds: float = 0.0

    @property
    def cpu_time_total(self) -> float:
        """The total time in microseconds."""
        return self.seconds * 1e6

    self_cpu_time_total = cpu_time_total


class Averages(list[Average]):
    """One entry for each operator."""

    def table(self, sort_by: str | None = None, row_limit: int = 100, **_: Any) -> str:
        """A table with a line for each operator, sorted by time, or by count if `sort_by` is "count"."""
        order = sorted(self, key=lambda each: -each.count if sort_by == "count" else -each.seconds)
        rows = [f"{each.key:<40}{each.count:>10}{each.cpu_time_total:>14.1f}us" for each in order[:row_limit]]
        total = f"Self CPU time total: {sum(each.seconds for each in self) * 1e6:.1f}us"
        return "\n".join([f"{'Name':<40}{'# of Calls':>10}{'CPU total':>16}", *rows, total])


class profile:
    """`with profile() as p:` counts and times the operators inside; `p.key_averages().table()` shows them."""

    def __init__(self, enabled: bool = True, **_: Any) -> None:
        self.enabled = enabled
        self._averages: dict[str, Average] = {}
        self._running = threading.local()

    def __enter__(self) -> profile:
        if self.enabled:
            HOOKS.step_in(self._timed)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.enabled:
            HOOKS.step_out(self._timed)

    def _timed(self, op: Any, args: tuple[Any, ...], run: Callable[..., Any]) -> Any:
        # Operators that this one is made of count as part of it.
        if getattr(self._running, "is_timed", False):
            return run(*args)
        self._running.is_timed = True
        begin = time.perf_counter()
        try:
            return run(*args)
        finally:
            seconds = time.perf_counter() - begin
            self._running.is_timed = False
            entry = self._averages.setdefault(op.name, Average(op.name))
            entry.count, entry.seconds = entry.count + 1, entry.seconds + seconds

    def key_averages(self, *_: Any, **__: Any) -> Averages:
        return Averages(self._averages.values())

    @property
    def self_cpu_time_total(self) -> float:
        return sum(each.cpu_time_total for each in self._averages.values())

    def table(self, **options: Any) -> str:
        return self.key_averages().table(**options)

    def step(self) -> None:
        """No effect: all steps are recorded together."""

    def __str__(self) -> str:
        return self.table()


class record_function:
    """Accepts a name for a block, and has no effect: operators are listed by their own names."""

    torch_path = "torch.autograd.profiler.record_function"

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *exception: object) -> None: ...
