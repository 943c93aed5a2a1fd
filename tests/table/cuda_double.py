"""What manages the device of `device_double`, by the names of cupy.cuda: nothing waits, since all is done at once.

In: nothing.  Out: `cuda`, which a `Library` takes in the place of cupy.cuda.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

CURRENT: list[Stream]
CAPTURES: list[list[Callable[[], object]]] = []
"""What is captured of each capture under way."""
PROPERTIES = {
    "name": b"double", "major": 9, "minor": 0, "totalGlobalMem": 1 << 30, "multiProcessorCount": 1, "warpSize": 32,
    "maxThreadsPerMultiProcessor": 1024, "sharedMemPerBlock": 1 << 15,
}  # fmt: skip


class Stream:
    """A stream: work is done before anybody can ask."""

    null: Stream
    done = True

    def __init__(self, null: bool = False, non_blocking: bool = False, priority: int | None = None) -> None:
        self.ptr = 0 if null else id(self)

    def synchronize(self) -> None: ...

    def wait_event(self, event: Event) -> None: ...

    def begin_capture(self) -> None:
        CAPTURES.append([])

    def end_capture(self) -> Graph:
        return Graph(CAPTURES.pop())

    def use(self) -> Stream:
        CURRENT[-1] = self
        return self

    def __enter__(self) -> Stream:
        CURRENT.append(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        CURRENT.pop()


class Graph:
    """Captured work, which is done again: what the double did is done at once, while it is captured too."""

    def __init__(self, work: list[Callable[[], object]]) -> None:
        self.work = work

    def launch(self, stream: Stream | None = None) -> None:
        for each in self.work:
            each()


class MemoryPool:
    """A pool of memory."""

    def malloc(self, size: int) -> None: ...


class ExternalStream(Stream):
    """A stream of somebody else's."""

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr


class Event:
    """A moment."""

    done = True

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.is_timed, self.moment = not disable_timing, 0.0

    def record(self, stream: Stream | None = None) -> None:
        self.moment = time.perf_counter()

    def synchronize(self) -> None: ...


def _elapsed(start: Event, end: Event) -> float:
    if not (start.is_timed and end.is_timed):
        raise ValueError("the events have no times")
    return (end.moment - start.moment) * 1000


class Device:
    """A device, which is the current one while it is entered."""

    mem_info = (1 << 29, 1 << 30)

    def __init__(self, device: int | None = None) -> None:
        self.id = current_device() if device is None else device

    def use(self) -> None:
        DEVICES[-1] = self.id

    def __enter__(self) -> Device:
        DEVICES.append(self.id)
        return self

    def __exit__(self, *exception: Any) -> None:
        DEVICES.pop()


DEVICES = [0]
"""The current device is the last."""


def current_device() -> int:
    return DEVICES[-1]


class PinnedMemoryPointer(bytearray):
    """Memory that is said to be pinned."""


Stream.null = Stream(null=True)
CURRENT = [Stream.null]
cuda = SimpleNamespace(
    Stream=Stream, ExternalStream=ExternalStream, Event=Event,
    Device=Device, get_elapsed_time=_elapsed, get_current_stream=lambda: CURRENT[-1],
    runtime=SimpleNamespace(getDeviceProperties=lambda device: PROPERTIES, deviceCanAccessPeer=lambda a, b: 0),
    MemoryPool=MemoryPool, using_allocator=lambda malloc: nullcontext(),
    alloc_pinned_memory=PinnedMemoryPointer, PinnedMemoryPointer=PinnedMemoryPointer,
    nvtx=SimpleNamespace(RangePush=lambda text: None, RangePop=lambda: None, Mark=lambda text: None),
)  # fmt: skip
