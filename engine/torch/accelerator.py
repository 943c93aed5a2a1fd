"""`torch.accelerator`: the GPU of this machine, whatever its kind; only NVIDIA's are supported.

In: device numbers.  Out: device facts and settings; without a GPU they are False, None and 0, and calls that need a GPU
raise OperatorError.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from engine.lang import scalars
from engine.lang.errors import OperatorError
from engine.torch import cuda
from engine.torch.cuda.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
)
from engine.torch.namespace.missing_names import refuse_unknown_names

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]
is_available = cuda.is_available
device_count = cuda.device_count


def current_accelerator(check_available: bool = False) -> scalars.device | None:
    """The device `device(type='cuda')`, or None without a GPU."""
    return scalars.device("cuda") if is_available() else None


def _needed() -> None:
    """Raise OperatorError without a GPU."""
    if not is_available():
        raise OperatorError(
            "Cannot access accelerator device when none is available.",
            hints=("torch.accelerator.is_available() tells", "use device='cpu'"),
        )


def synchronize(device: Any = None) -> None:
    """Wait until the device has finished its queued work."""
    _needed()
    cuda.synchronize(device)


def current_device_index() -> int:
    _needed()
    return cuda.current_device()


def set_device_index(device: Any) -> None:
    """Make that device the one for new tensors."""
    _needed()
    cuda.set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index


def device_index(device: int | None) -> AbstractContextManager[Any]:
    """`with device_index(1):` makes that device the one for new tensors inside the block."""
    return cuda.device(device)


def current_stream(device: Any = None) -> cuda.Stream:
    _needed()
    return cuda.current_stream(device)


def set_stream(stream: cuda.Stream) -> None:
    _needed()
    cuda.set_stream(stream)


def get_memory_info(device: Any = None) -> tuple[int, int]:
    """The free and the total memory of the device, in bytes."""
    _needed()
    return cuda.mem_get_info(device)


refuse_unknown_names(__name__)
