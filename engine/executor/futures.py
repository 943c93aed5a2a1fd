"""Results that arrive later: what `fork` gives and `wait` takes.

In: work to do, or a result from elsewhere.  Out: a `Future`.  `launch` does the work at once, on the thread
that forks, so that programs print and fail in one order every time; an error is kept until somebody waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from engine.lang.errors import ExecutionError

DoneCallback = Callable[["Future"], object]


class Future:
    """A value that is there or will be.  Set once, from any thread."""

    __slots__ = ("_callbacks", "_changed", "_done", "_error", "_value")

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: Exception | None = None
        self._callbacks: list[DoneCallback] = []

    def done(self) -> bool:
        return self._done

    def set_result(self, value: Any) -> None:
        self._settle(value, None)

    def set_exception(self, error: Exception) -> None:
        self._settle(None, error)

    def value(self) -> Any:
        """The result of a settled future; raises ExecutionError when the work failed."""
        assert self._done, "a future was asked for its value too early"
        if self._error is not None:
            raise ExecutionError(str(self._error)) from self._error
        return self._value

    def wait(self) -> Any:
        """The result, once it is there; raises ExecutionError when the work failed."""
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        return self.value()

    def add_done_callback(self, callback: DoneCallback) -> None:
        """Call `callback(future)` when the future is settled: at once if it is, else on the thread that settles it."""
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def _settle(self, value: Any, error: Exception | None) -> None:
        with self._changed:
            assert not self._done, "a future was settled twice"
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)

    def __repr__(self) -> str:
        state = "failed" if self._error else "done" if self._done else "pending"
        return f"<Future {state}>"


def launch(work: Callable[[], Any]) -> Future:
    """Do the work and keep what comes of it."""
    future = Future()
    try:
        future.set_result(work())
    except ExecutionError as error:
        future.set_exception(error)
    return future
