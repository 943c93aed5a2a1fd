"""`torch.cuda`: streams and events.

In: work for a GPU.  Out: `Stream`s, whose work runs in order, and `Event`s, which mark and time points in streams.
Without a GPU, making one raises OperatorAssertionError; `stream(None)` may be entered anywhere.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from engine.lang import scalars
from engine.torch.cuda.machine import machine, number_of


class Stream:
    """A queue of work for a GPU; a smaller `priority` value runs first."""

    def __init__(self, device: Any = None, priority: int = 0, *, handle: Any = None) -> None:
        self.device = scalars.device("cuda", number_of(device))
        if handle is None:
            with machine().on(self.device.index):
                handle = machine().cuda.Stream(non_blocking=True, priority=priority)
        self.handle, self.priority = handle, priority

    @property
    def cuda_stream(self) -> int:
        """The driver's handle of the stream, as a number."""
        return int(self.handle.ptr)

    def synchronize(self) -> None:
        """Wait until the stream has finished its work."""
        self.handle.synchronize()

    def query(self) -> bool:
        """True if the stream has finished its work."""
        return bool(self.handle.done)

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event behind the present work of the stream, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Make the stream's future work wait for the event."""
        self.handle.wait_event(event.handle)

    def wait_stream(self, stream: Stream) -> None:
        """Make the stream's future work wait for the present work of the other stream."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        self.handle.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.handle.__exit__(*exception)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream and self.device == other.device

    def __hash__(self) -> int:
        return hash((self.device, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """A mark in a stream, which the GPU reaches when the work before it is finished."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.handle = machine().cuda.Event(block=blocking, disable_timing=not enable_timing, interprocess=interprocess)

    def record(self, stream: Stream | None = None) -> None:
        self.handle.record((current_stream() if stream is None else stream).handle)

    def wait(self, stream: Stream | None = None) -> None:
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """True if the work before the event is finished."""
        return bool(self.handle.done)

    def synchronize(self) -> None:
        """Wait for the event."""
        self.handle.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to the other; both were made with `enable_timing=True`."""
        return float(machine().cuda.get_elapsed_time(self.handle, end_event.handle))


class StreamContext:
    """`with stream(s):` makes that stream the current one; None has no effect."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> Stream | None:
        return None if self.stream is None else self.stream.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.stream is not None:
            self.stream.__exit__(kind, error, traceback)


def stream(stream: Stream | None) -> StreamContext:
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The current stream, which gets new work."""
    index = number_of(device)
    with machine().on(index):
        return Stream(index, handle=machine().cuda.get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """The stream that is current by default."""
    return Stream(device, handle=machine().cuda.Stream.null)


def set_stream(stream: Stream) -> None:
    """Make this stream the current one."""
    stream.handle.use()
