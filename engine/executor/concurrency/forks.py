"""Forked functions: each a task of the workers, which goes on elsewhere whenever it has to wait.

In: a function and its arguments.  Out: the future of its result.  A function that can wait is run by the interpreter,
whose state leaves the thread when it comes to a future that is not complete, and is taken up by some thread when it is.
Whether operators are recorded for gradients goes with the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from engine.aten.dispatch.grad_mode import MODE, restore
from engine.executor.concurrency.futures import Future
from engine.executor.concurrency.workers import WORKERS


class Suspendable(Protocol):
    """A run: `resume` continues to the end (True), or to a future that is not complete."""

    result: Any
    waiting_for: Future | None

    def resume(self) -> bool: ...


Beginning = Callable[[Sequence[Any]], Suspendable | Callable[[], Any]]
"""Maps arguments to a run that may suspend, or to a function that does all the work."""


class ForkedTask:
    """One forked function."""

    __slots__ = ("_begin", "_inputs", "_mode", "_run", "future")

    def __init__(self, begin: Beginning, inputs: Sequence[Any]) -> None:
        self.future = Future().of_threads()
        self._begin: Beginning | None = begin
        self._inputs = inputs
        self._run: Suspendable | None = None
        self._mode = (MODE.enabled, MODE.inference)

    def go_on(self) -> None:
        """Work until the function ends or waits; never raises."""
        before = (MODE.enabled, MODE.inference)
        restore(self._mode)
        try:
            finished, result = self._advance()
        except BaseException as error:
            self.future.fail(error)
            return
        finally:
            self._mode = (MODE.enabled, MODE.inference)
            restore(before)
        if finished:
            self.future.set_result(result)
            return
        assert self._run is not None
        assert self._run.waiting_for is not None
        self._run.waiting_for.when_done(lambda _: WORKERS.submit(self.go_on))

    def _advance(self) -> tuple[bool, Any]:
        if self._begin is not None:
            begin, inputs = self._begin, self._inputs
            self._begin, self._inputs = None, ()
            begun = begin(inputs)
            if callable(begun):
                return True, begun()
            self._run = begun
        assert self._run is not None
        return self._run.resume(), self._run.result


def fork(begin: Beginning, inputs: Sequence[Any]) -> Future:
    """The future of the function's result, which a worker computes."""
    task = ForkedTask(begin, inputs)
    WORKERS.submit(task.go_on)
    return task.future
