"""`torch.jit.logging`: counters of a run, by name, and where the log of passes goes.

In: `add_stat_value(name, number)`.  Out: the counters of the logger that was set, `get_counter_val(name)`.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from enum import Enum

from engine.ir.pass_log import get_logging_option as get_logging_option
from engine.ir.pass_log import set_limits as set_limits
from engine.ir.pass_log import set_logging_option as set_logging_option
from engine.ir.pass_log import set_logging_stream as set_logging_stream


class AggregationType(Enum):
    """What a counter shows of the numbers it was given."""

    SUM = 0
    AVG = 1


class LoggerBase:
    """Takes numbers by name."""

    def add_stat_value(self, stat_name: str, val: int) -> None:
        raise NotImplementedError

    def get_counter_val(self, name: str) -> int:
        """What the counter shows; 0 before it was given anything."""
        raise NotImplementedError


class NoopLogger(LoggerBase):
    """Forgets what it is given."""

    def add_stat_value(self, stat_name: str, val: int) -> None:
        """Nothing happens."""

    def get_counter_val(self, name: str) -> int:
        return 0


class LockingLogger(LoggerBase):
    """Adds up what it is given, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
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
    """Let the logger take what is added; the one that did before."""
    global _current
    before, _current = _current, logger
    return before


def add_stat_value(stat_name: str, val: int) -> None:
    """Give a number to the counter of that name."""
    _current.add_stat_value(stat_name, val)


def time_point() -> int:
    """Nanoseconds since some moment."""
    return time.perf_counter_ns()
