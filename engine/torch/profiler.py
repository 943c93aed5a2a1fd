"""`torch.profiler`: see `torch.autograd.profiler`."""

from __future__ import annotations

from enum import Enum
from typing import Any

from engine.torch.autograd import profiler
from engine.torch.autograd.profiler import record_function as record_function


class ProfilerActivity(Enum):
    """What may be watched; here that is the CPU."""

    CPU = 0
    CUDA = 1


class profile(profiler.profile):
    """As `torch.autograd.profiler.profile`; what else is asked for changes nothing."""

    def __init__(self, *, activities: Any = None, **options: Any) -> None:
        super().__init__(**options)
