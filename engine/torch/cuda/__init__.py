"""`torch.cuda`: NVIDIA GPUs.  In: devices, seeds.  Out: device facts, streams, memory use; False or 0 without a GPU.

`machine.py` finds the library; `streams.py`, `memory.py` and `random.py` hold the parts of these names.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from engine.aten.python.methods import LEGACY_TYPES
from engine.aten.values import libraries, tensor
from engine.lang import scalars
from engine.lang.records import dataclass
from engine.torch.cuda import amp, memory, nvtx, random, streams
from engine.torch.cuda.graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from engine.torch.cuda.machine import is_there, machine, number_of
from engine.torch.cuda.memory import (
    OutOfMemoryError,
    empty_cache,
    ipc_collect,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from engine.torch.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from engine.torch.cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)
from engine.torch.namespace.missing_names import refuse_unknown_names

__all__ = [
    "CUDAGraph",
    "Event",
    "ExternalStream",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "amp",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graph_pool_handle",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "nvtx",
    "random",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]


def is_available() -> bool:
    """True if there is a GPU and the library for it."""
    return is_there()


def is_initialized() -> bool:
    return "cuda" in libraries.loaded()


def init() -> None:
    """Check that there is a GPU.  Raises OperatorAssertionError without one."""
    machine()


def device_count() -> int:
    return machine().count() if is_there() else 0


def current_device() -> int:
    """The number of the current device.  Raises OperatorAssertionError without a GPU."""
    return machine().current()


def set_device(device: Any) -> None:
    """Make this device the current one, on which tensors on "cuda" are made."""
    machine().cuda.Device(number_of(device)).use()


class device:
    """`with device(1):` makes that device the current one inside the block; None or -1 has no effect."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None or device == -1 else number_of(device)
        self._entered: list[AbstractContextManager[Any]] = []

    def __enter__(self) -> None:
        if self.idx >= 0:
            self._entered.append(machine().on(self.idx))
            self._entered[-1].__enter__()

    def __exit__(self, *exception: Any) -> None:
        if self.idx >= 0:
            self._entered.pop().__exit__(*exception)


class device_of(device):
    """`with device_of(tensor):` makes the tensor's device the current one; a tensor on the CPU has no effect."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.is_cuda else None)


def synchronize(device: Any = None) -> None:
    """Wait until the device has finished its queued work.  Raises OperatorAssertionError without a GPU."""
    with machine().on(number_of(device)):
        machine().synchronize()


# -- what a device is


@dataclass(frozen=True)
class Properties:
    """The properties of a GPU."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_multi_processor: int
    shared_memory_per_block: int


def get_device_properties(device: Any = None) -> Properties:
    """The properties of a device.  Raises OperatorAssertionError without a GPU."""
    told = machine().cuda.runtime.getDeviceProperties(number_of(device))
    return Properties(
        told["name"].decode(), told["major"], told["minor"], told["totalGlobalMem"], told["multiProcessorCount"],
        told["warpSize"], told["maxThreadsPerMultiProcessor"], told["sharedMemPerBlock"],
    )  # fmt: skip


def get_device_name(device: Any = None) -> str:
    return machine().name_of(number_of(device))


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of the GPU, (major, minor)."""
    found = get_device_properties(device)
    return found.major, found.minor


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True if the GPU computes in bfloat16, from compute capability 8.0 on."""
    return is_there() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported() -> bool:
    return is_there() and get_device_capability()[0] >= 8


def get_arch_list() -> list[str]:
    """The architectures that kernels are compiled for: those of the present GPUs."""
    return [f"sm_{major}{minor}" for major, minor in {get_device_capability(i) for i in range(device_count())}]


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """True if the one device can read the other's memory."""
    one, other = number_of(device), number_of(peer_device)
    return one != other and bool(machine().cuda.runtime.deviceCanAccessPeer(one, other))


def _typed(name: str, *data: Any) -> Any:
    """A legacy constructor such as `torch.cuda.FloatTensor(values)` or `(*sizes)`."""
    made = tensor.Tensor(*data)
    return made.to(scalars.device("cuda"), LEGACY_TYPES[name])


vars().update({name: partial(_typed, name) for name in LEGACY_TYPES})

refuse_unknown_names(__name__)
