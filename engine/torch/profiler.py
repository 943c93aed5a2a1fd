"""`torch.profiler`: the same profiler as `torch.autograd.profiler`, under its newer name.

In: a `with` block.  Out: the operators that ran in it, with their counts and times.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from engine.torch.autograd import profiler
from engine.torch.autograd.profiler import record_function as record_function


class ProfilerActivity(Enum):
    """Kinds of activity to record; only those of the CPU are."""

    CPU = 0
    CUDA = 1


class profile(profiler.profile):
    """`torch.autograd.profiler.profile`; `activities` and further options are accepted and have no effect."""

    def __init__(self, *, activities: Any = None, **options: Any) -> None:
        super().__init__(**options)
