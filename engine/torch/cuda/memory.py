"""`torch.cuda`: the memory of GPUs.  In: devices.  Out: bytes; 0 without a GPU."""

from __future__ import annotations

from typing import Any

from engine.lang.errors import OperatorMemoryError, OperatorValueError
from engine.torch.cuda.machine import is_there, machine, number_of

OutOfMemoryError = OperatorMemoryError


class _Peaks:
    """The peaks of memory use, as seen by the queries so far: the library keeps no peaks itself."""

    allocated = 0
    reserved = 0

    def ask(self, device: Any) -> tuple[int, int]:
        allocated, reserved = memory_allocated(device), memory_reserved(device)
        self.allocated, self.reserved = max(self.allocated, allocated), max(self.reserved, reserved)
        return self.allocated, self.reserved


_PEAKS = _Peaks()


def memory_allocated(device: Any = None) -> int:
    """The bytes that tensors occupy."""
    return _memory(device)[0]


def memory_reserved(device: Any = None) -> int:
    """The bytes that are reserved for present and future tensors."""
    return _memory(device)[1]


def _memory(device: Any) -> tuple[int, int]:
    if not is_there():
        return 0, 0
    with machine().on(number_of(device)):
        return machine().memory()


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors occupied at any query of the memory's state."""
    return _PEAKS.ask(device)[0]


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that were reserved at any query of the memory's state."""
    return _PEAKS.ask(device)[1]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset the peaks."""
    _PEAKS.allocated = _PEAKS.reserved = 0


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = reset_peak_memory_stats
memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def empty_cache() -> None:
    """Free the memory that is reserved but unused."""
    if is_there():
        machine().release()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The free and the total memory of the device, in bytes.  Raises OperatorError without a GPU."""
    free, total = machine().cuda.Device(number_of(device)).mem_info
    return int(free), int(total)


def memory_stats(device: Any = None) -> dict[str, int]:
    """Statistics of the memory under PyTorch's names; empty without a GPU."""
    if not is_there():
        return {}
    allocated, reserved = _memory(device)
    most, held = _PEAKS.ask(device)
    return {
        "allocated_bytes.all.current": allocated, "allocated_bytes.all.peak": most,
        "reserved_bytes.all.current": reserved, "reserved_bytes.all.peak": held,
    }  # fmt: skip


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The statistics of the memory as text."""
    found = memory_stats(device) or {"there is no GPU": 0}
    return "\n".join(f"{name:<32}{count:>16,}" for name, count in found.items())


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limit allocations to that fraction of the device's memory.  Raises OperatorValueError outside of 0 to 1."""
    if not 0 <= fraction <= 1:
        raise OperatorValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    with machine().on(number_of(device)):
        machine().namespace.get_default_memory_pool().set_limit(fraction=float(fraction))


def ipc_collect() -> None:
    """No effect: no memory is shared with other processes."""
