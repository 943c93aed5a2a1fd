"""Futures: settled once, from anywhere."""

import threading

import pytest

from engine.executor.futures import Future, launch
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
    with pytest.raises(AssertionError, match="twice"):
        future.set_result(2)


def test_an_error_waits_for_whoever_waits() -> None:
    def fail() -> None:
        raise ExecutionError("no luck")

    future = launch(fail)
    assert future.done()
    with pytest.raises(ExecutionError, match="no luck"):
        future.wait()
