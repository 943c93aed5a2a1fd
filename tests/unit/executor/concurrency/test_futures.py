"""Futures: settled once, from anywhere."""

import threading

import pytest

from engine.executor.concurrency.futures import Future, launch
from engine.lang.errors import ExecutionError


def test_wait_returns_what_another_thread_sets() -> None:
    future = Future()
    threading.Timer(0.01, future.set_result, [3]).start()
    assert future.wait() == 3
    assert repr(future) == "<Future done>"


def test_callbacks_run_once_before_or_after() -> None:
    future, seen = Future(), []
    future.add_done_callback(lambda f: seen.append(("early", f.value())))
    future.set_result(1)
    future.add_done_callback(lambda f: seen.append(("late", f.value())))
    assert seen == [("early", 1), ("late", 1)]
    with pytest.raises(ExecutionError, match="completed Future as complete again"):
        future.set_result(2)


def test_there_is_no_value_before_it_is_there() -> None:
    with pytest.raises(ExecutionError, match="not complete"):
        Future().value()


def test_then_gives_the_future_of_what_follows() -> None:
    future = Future()
    after = future.then(lambda f: f.value() + 1).then(lambda f: f.value() * 10)
    assert not after.done()
    future.set_result(3)
    assert (after.wait(), future.then(lambda f: -f.wait()).value()) == (40, -3)


def test_the_error_of_a_callback_is_that_of_its_future() -> None:
    future = Future()
    after = future.then(lambda f: f.value())
    future.set_exception(ValueError("bad"))
    with pytest.raises(ExecutionError, match="error when running the callback: ExecutionError: bad"):
        after.wait()


def test_an_error_waits_for_whoever_waits() -> None:
    def fail() -> None:
        raise ExecutionError("no luck")

    future = launch(fail)
    assert future.done()
    with pytest.raises(ExecutionError, match="no luck"):
        future.wait()
