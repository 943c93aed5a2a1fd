"""Named counters of numbers that programs add up while they run.

In: numbers by name, from any thread.  Out: sums or averages of the logger that is set; at first one that keeps nothing.
"""

from __future__ import annotations

import time
from collections import defaultdict
from enum import Enum

from engine.lang.locks import lock


class AggregationType(Enum):
    """The aggregate of its numbers that a counter shows."""

    SUM = 0
    AVG = 1


class LoggerBase:
    """The base of loggers, which collect numbers by name."""

    def add_stat_value(self, stat_name: str, val: int) -> None:
        raise NotImplementedError

    def get_counter_val(self, name: str) -> int:
        """The counter's value; 0 before the first number."""
        raise NotImplementedError


class NoopLogger(LoggerBase):
    """A logger that ignores everything."""

    def add_stat_value(self, stat_name: str, val: int) -> None:
        """Ignore the number."""

    def get_counter_val(self, name: str) -> int:
        return 0


class LockingLogger(LoggerBase):
    """A logger that sums or averages the numbers, from any thread."""

    def __init__(self) -> None:
        self._lock = lock()
        self._sums: dict[str, int] = defaultdict(int)
        self._counts: dict[str, int] = defaultdict(int)
        self._kinds: dict[str, AggregationType] = {}

    def add_stat_value(self, stat_name: str, val: int) -> None:
        with self._lock:
            self._sums[stat_name] += int(val)
            self._counts[stat_name] += 1

    def set_aggregation_type(self, stat_name: str, type: AggregationType) -> None:
        self._kinds[stat_name] = type

    def get_counter_val(self, name: str) -> int:
        with self._lock:
            if self._kinds.get(name, AggregationType.SUM) is AggregationType.SUM or not self._counts[name]:
                return self._sums[name]
            return self._sums[name] // self._counts[name]


_current: LoggerBase = NoopLogger()


def set_logger(logger: LoggerBase) -> LoggerBase:
    """Make this the current logger; the previous one."""
    global _current
    before, _current = _current, logger
    return before


def add_stat_value(stat_name: str, val: int) -> None:
    """Add a number to the counter of that name."""
    _current.add_stat_value(stat_name, val)


def time_point() -> int:
    """A time in nanoseconds, for differences."""
    return time.perf_counter_ns()
