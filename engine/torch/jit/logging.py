"""`torch.jit.logging`: named counters, and the options and stream of the log of passes.

In: `add_stat_value(name, number)`.  Out: the counters of the logger that was set, `get_counter_val(name)`.  In programs
the two functions are operators, which count at every run; traces record `add_stat_value` alone.
"""

from __future__ import annotations

from typing import Any, Final

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.hooks import HOOKS
from engine.ir.pass_log import get_logging_option as get_logging_option
from engine.ir.pass_log import set_limits as set_limits
from engine.ir.pass_log import set_logging_option as set_logging_option
from engine.ir.pass_log import set_logging_stream as set_logging_stream
from engine.lang.counters import AggregationType as AggregationType
from engine.lang.counters import LockingLogger as LockingLogger
from engine.lang.counters import LoggerBase as LoggerBase
from engine.lang.counters import NoopLogger as NoopLogger
from engine.lang.counters import set_logger as set_logger


def _operator(name: str) -> Op:
    (found,) = table.overloads(name)
    return found


_ADD: Final = _operator("prim::AddStatValue")
_TIME: Final = _operator("prim::TimePoint")


def add_stat_value(stat_name: str, val: int) -> None:
    """Add a number to the counter of that name."""
    if HOOKS.trace is None:
        _ADD.impl(stat_name, val)
    else:  # operators without tensors are not traced of themselves
        HOOKS.trace(_ADD, (stat_name, val), _ADD.body)


def time_point() -> int:
    """A time in nanoseconds, for differences."""
    return int(_TIME.impl())


for _function, _op in ((add_stat_value, _ADD), (time_point, _TIME)):
    _known: Any = _function
    _known.torch_path = f"torch.ops.{_op.name.replace('::', '.')}"
