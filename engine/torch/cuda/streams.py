"""`torch.cuda`: streams and events.

In: work for a GPU.  Out: `Stream`s, whose work runs in order, and `Event`s, which mark and time points in streams.
Without a GPU, making one raises OperatorAssertionError; `stream(None)` may be entered anywhere.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Any

from engine.lang import scalars
from engine.lang.errors import OperatorValueError
from engine.torch.cuda.machine import machine, number_of


class Stream:
    """A queue of work for a GPU; a smaller `priority` value runs first."""

    device_type = "cuda"

    def __init__(self, device: Any = None, priority: int = 0, *, handle: Any = None) -> None:
        self.device = scalars.device("cuda", number_of(device))
        if handle is None:
            with machine().on(self.device.index):
                handle = machine().cuda.Stream(non_blocking=True, priority=priority)
        self.handle, self.priority = handle, priority
        self._entered: list[AbstractContextManager[Any]] = []

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest and the highest priority that streams of GPUs have."""
        return 0, -1

    @property
    def device_index(self) -> int:
        index = self.device.index
        assert index is not None
        return index

    @property
    def cuda_stream(self) -> int:
        """The driver's handle of the stream, as a number."""
        return int(self.handle.ptr)

    @property
    def stream_id(self) -> int:
        """A number that tells streams of a device apart."""
        return self.cuda_stream

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
        """Make the stream's future work wait for the event, if it was recorded."""
        if event.recorded is not None:
            self.handle.wait_event(event.recorded)

    def wait_stream(self, stream: Stream) -> None:
        """Make the stream's future work wait for the present work of the other stream."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        """Make the stream and its device current."""
        with ExitStack() as entered:
            entered.enter_context(machine().on(self.device.index))
            entered.enter_context(self.handle)
            self._entered.append(entered.pop_all())
        return self

    def __exit__(self, *exception: Any) -> None:
        self._entered.pop().__exit__(*exception)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream and self.device == other.device

    def __hash__(self) -> int:
        return hash((self.device, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library has made, by the number of its handle."""

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        index = number_of(device)
        with machine().on(index):
            super().__init__(index, handle=machine().cuda.ExternalStream(stream_ptr))


class Event:
    """A mark in a stream, which the GPU reaches when the work before it is finished.

    `recorded` is the library's event, made on the device of the stream where it is first recorded; None before.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        machine()
        self.is_timed, self._blocking, self._interprocess = enable_timing, blocking, interprocess
        self.recorded: Any = None
        self.device: scalars.device | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Mark the present end of the stream's work; None is the current stream."""
        found = current_stream() if stream is None else stream
        if self.recorded is None:
            self.device = found.device
            with machine().on(found.device.index):
                self.recorded = machine().cuda.Event(
                    block=self._blocking, disable_timing=not self.is_timed, interprocess=self._interprocess
                )
        self.recorded.record(found.handle)

    def wait(self, stream: Stream | None = None) -> None:
        """Make the stream's future work wait for the event."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """True if the work before the event is finished, or it was never recorded."""
        return self.recorded is None or bool(self.recorded.done)

    def synchronize(self) -> None:
        """Wait for the event, if it was recorded."""
        if self.recorded is not None:
            self.recorded.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to the other.  Raises OperatorValueError if one has no time, or was not
        recorded."""
        if not (self.is_timed and end_event.is_timed):
            raise OperatorValueError(
                "Both events must be created with argument 'enable_timing=True'.",
                hints=("write torch.cuda.Event(enable_timing=True)",),
            )
        if self.recorded is None or end_event.recorded is None:
            raise OperatorValueError(
                "Both events must be recorded before calculating elapsed time.", hints=("call event.record()",)
            )
        return float(machine().cuda.get_elapsed_time(self.recorded, end_event.recorded))

    def __repr__(self) -> str:
        return f"<torch.cuda.Event on {self.device}>" if self.device else "<torch.cuda.Event, not recorded>"


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
    """Make this stream, and its device, the current one."""
    machine().cuda.Device(stream.device.index).use()
    stream.handle.use()
