"""Futures: results that arrive later, made by `fork` and awaited by `wait`.

In: a result from elsewhere.  Out: a `Future`, with the methods that PyTorch's has; an error is kept until somebody
waits.  `launch` does work at once, on the thread that asks for it; `collect_all` and `wait_all` wait for several.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import count
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self
from weakref import WeakSet

from engine.aten.values.hooks import HOOKS, NOT_TRACED
from engine.executor.concurrency.workers import WORKERS
from engine.lang.deferred import deferred
from engine.lang.errors import ArgumentTypeError, ExecutionError
from engine.lang.locks import condition

if TYPE_CHECKING:
    import logging
else:
    logging = deferred("logging")

DoneCallback = Callable[["Future"], object]


class LostFutureError(ExecutionError):
    """A thread of the process that forked this one was to give the result."""


_OF_THREADS: Final[WeakSet[Future]] = WeakSet()
"""Futures that are not set by the program, but by forked functions and what follows them."""


class Future:
    """A value that is there or will be.  Set once, from any thread."""

    __slots__ = ("__weakref__", "_callbacks", "_changed", "_done", "_error", "_is_given", "_value")
    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)

    def __init__(self, *, devices: Any = None) -> None:
        self._changed = condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._is_given = False
        self._callbacks: list[DoneCallback] = []

    @classmethod
    def completed(cls, value: Any) -> Future:
        """A future whose result is there."""
        made = cls()
        made.set_result(value)
        return made

    def done(self) -> bool:
        return self._done

    def set_result(self, value: Any) -> None:
        """Complete it.  Raises ExecutionError when it is complete."""
        self._settle(value, None)

    def set_exception(self, error: Exception) -> None:
        """Complete it with an error, which `wait` raises as it is.  Raises ExecutionError when it is complete."""
        assert isinstance(error, Exception), f"{error} is of type {type(error)}, not an Exception."
        self._settle(None, error, given=True)

    def fail(self, error: BaseException) -> None:
        """Complete it with the error of a program, of which `wait` raises one like it for everybody who waits."""
        self._settle(None, error)

    def value(self) -> Any:
        """The result; raises ExecutionError when the work failed or when there is none yet, and a given error."""
        if not self._done:
            raise ExecutionError("the future is not complete yet", hints=("wait() waits until it is",))
        if self._error is None:
            return self._value
        if self._is_given or isinstance(self._error, AssertionError):  # that is a mistake of ours
            raise self._error
        raise ExecutionError(str(self._error)) from self._error

    def wait(self) -> Any:
        """The result, once it is there; raises ExecutionError when the work failed, and a given error."""
        if not self._done:
            with WORKERS.blocking(), self._changed:
                self._changed.wait_for(lambda: self._done)
        result = self.value()
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.wait(self, result)) is not NOT_TRACED:
            return traced
        return result

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """The future of what `callback(self)` gives once this one is complete, with an error or without."""
        following = self._followed()

        def go_on(future: Future) -> None:
            try:
                result = callback(future)
            except Exception as error:
                following.fail(ExecutionError(_IN_CALLBACK.format(type(error).__name__, error)))
            else:
                following.set_result(result)

        self.when_done(go_on)
        return following

    def converted(self, convert: Callable[[Any], Any]) -> Future:
        """The future of `convert(result)`, with this one's error if there is one."""
        following = self._followed()

        def go_on(future: Future) -> None:
            try:
                following.set_result(convert(future.value()))
            except Exception as error:
                following._settle(None, error, given=future._is_given)

        self.when_done(go_on)
        return following

    def _followed(self) -> Future:
        """A new future that is set when this one is."""
        return Future().of_threads() if self in _OF_THREADS else Future()

    def add_done_callback(self, callback: DoneCallback) -> None:
        """Call `callback(future)` when the future is settled: at once if it is, else on the thread that settles it.

        What the callback returns is not used, and its error is logged.
        """

        def call(future: Future) -> None:
            try:
                callback(future)
            except Exception as error:
                logging.getLogger("engine.futures").exception(_IN_CALLBACK.format(type(error).__name__, error))

        self.when_done(call)

    def when_done(self, callback: DoneCallback) -> None:
        """`add_done_callback` of a callback that raises nothing."""
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def of_threads(self) -> Self:
        """Itself, known as one that a thread of this process sets: a child has none of them, and does not wait."""
        _OF_THREADS.add(self)
        return self

    def lose(self) -> None:
        """In a child: fail, unless it is complete.  Callbacks are the parent's."""
        if not self._done:
            self._callbacks, self._error, self._done = [], LostFutureError(_LOST), True

    def _settle(
        self, value: Any, error: BaseException | None, *, given: bool = False, unless_done: bool = False
    ) -> None:
        with self._changed:
            if self._done and not isinstance(self._error, LostFutureError):  # a worker that forks goes on in the child
                if unless_done:
                    return
                raise ExecutionError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
                    "completed once."
                )
            self._value, self._error, self._is_given, self._done = value, error, given, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)

    def __reduce__(self) -> Any:
        raise ExecutionError(
            "Can not pickle torch.futures.Future", hints=("wait for it, and pickle the result: torch.save(f.wait())",)
        )

    def __repr__(self) -> str:
        state = "failed" if self._error else "done" if self._done else "pending"
        return f"<Future {state}>"


_IN_CALLBACK: Final = "Got the following error when running the callback: {}: {}"
_LOST: Final = (
    "the future belongs to the process that forked this one, which has none of its threads; "
    "wait for it before os.fork(), or fork the function here"
)


def _in_child() -> None:
    for each in [*_OF_THREADS]:
        each.lose()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def launch(work: Callable[[], Any]) -> Future:
    """The complete future of the work's result or ExecutionError; the work is done at once."""
    future = Future()
    try:
        future.set_result(work())
    except ExecutionError as error:
        future.fail(error)
    return future


def collect_all(futures: Iterable[Future]) -> Future:
    """The future of the list of these futures, complete when all are, and at once when the program of one fails.

    Its `wait` raises the error of the first in the list that has one.  Raises ExecutionError for None among them,
    ArgumentTypeError for what is no future.
    """
    all_of_them, complete = [*map(_checked, futures)], count(1)
    collected = next((each._followed() for each in all_of_them if each in _OF_THREADS), Future())

    def one_more(future: Future) -> None:
        if future._error is not None and not future._is_given:
            collected._settle(None, future._error, unless_done=True)
        elif next(complete) == len(all_of_them):  # which one thread finds
            error = next((each._error for each in all_of_them if each._error is not None), None)
            collected._settle(all_of_them, error, given=error is not None, unless_done=True)

    for future in all_of_them:
        future.when_done(one_more)
    if not all_of_them:
        collected.set_result([])
    return collected


def wait_all(futures: Iterable[Future]) -> list[Any]:
    """The results of the futures, once all are there.  Raises the error of one that failed, and as `collect_all`."""
    return [future.wait() for future in collect_all(futures).wait()]


def _checked(future: Any) -> Future:
    if future is None:
        raise ExecutionError("Future can't be None")
    if not isinstance(future, Future):
        raise ArgumentTypeError(f"a Future was expected, but found {type(future).__name__}")
    return future


def wait(future: Future) -> Any:
    """The future's result.  Raises the function's error as ExecutionError, and as `collect_all`."""
    return _checked(future).wait()
