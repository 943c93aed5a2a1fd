"""`torch.profiler`: the profiler of `torch.autograd.profiler`, which records some steps of a loop.

In: a `with` block, and a schedule that says of each step whether it is recorded.  Out: what ran in the steps that are.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

from engine.torch.autograd import profiler
from engine.torch.autograd.profiler import record_function as record_function


class ProfilerActivity(Enum):
    """Kinds of activity to record; only those of the CPU are."""

    CPU = 0
    CUDA = 1


class ProfilerAction(Enum):
    """The ways to treat a step of a loop."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


Schedule = Callable[[int], ProfilerAction]


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0) -> Schedule:
    """A schedule of rounds: `wait` steps without, `warmup` steps that are not kept, `active` steps that are, so often
    as `repeat` says (0: always), behind the first `skip_first` steps."""
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        at, round = (step - skip_first) % length, (step - skip_first) // length
        if step < skip_first or (repeat and round >= repeat) or at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if at == length - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Any:
    """For `on_trace_ready`: write each trace to a file in the folder."""

    def write(p: profile) -> None:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        p.export_chrome_trace(folder / f"{name}.{time.time_ns()}.pt.trace.json")

    return write


_KEPT = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:
    """Records the steps of a block that the `schedule` says, all of them without one; `step()` begins the next.

    `on_trace_ready` is called with the profile when a round of the schedule, or the block, is over.  `activities` and
    other options are accepted, and have no effect.
    """

    def __init__(
        self, *, activities: Any = None, schedule: Schedule | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None, record_shapes: bool = False, **_: Any,
    ) -> None:  # fmt: skip
        self._schedule = schedule or (lambda _: ProfilerAction.RECORD)
        self._on_trace_ready, self._shapes = on_trace_ready, record_shapes
        self.step_num = 0
        self._profiler: profiler.profile | None = None
        self._is_open = False

    def start(self) -> None:
        """Begin the first step."""
        self._begin()

    def stop(self) -> None:
        """End the last step."""
        if self._end():
            self._tell()

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def step(self) -> None:
        """The next step of the loop begins."""
        last = self._schedule(self.step_num)
        self.step_num += 1
        following = self._schedule(self.step_num)
        if last in _KEPT and following in _KEPT and last is not ProfilerAction.RECORD_AND_SAVE:
            return
        if self._end():
            self._tell()
        self._begin()

    def _begin(self) -> None:
        if self._schedule(self.step_num) in _KEPT:
            self._profiler, self._is_open = profiler.profile(record_shapes=self._shapes), True
            self._profiler.__enter__()

    def _end(self) -> bool:
        """True if something was recorded."""
        ended, self._is_open = self._is_open, False
        if ended and self._profiler is not None:
            self._profiler.__exit__(None, None, None)
        return ended

    def _tell(self) -> None:
        if self._on_trace_ready is not None:
            self._on_trace_ready(self)

    def _made(self) -> profiler.profile:
        if self._profiler is None:
            raise RuntimeError("nothing is recorded yet: the profiler has not begun a step that its schedule keeps")
        return self._profiler

    def events(self) -> profiler.EventList:
        """The events of the steps that were recorded last.  Raises RuntimeError where there are none yet."""
        return self._made().events()

    def key_averages(self, group_by_input_shape: bool = False, **_: Any) -> profiler.EventList:
        return self._made().key_averages(group_by_input_shape)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        self._made().export_chrome_trace(path)
