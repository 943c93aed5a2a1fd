"""Futures: settled once, from anywhere."""

import logging
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.executor.concurrency.futures import Future, collect_all, launch, wait, wait_all
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
    with pytest.raises(ExecutionError, match="error when running the callback: ValueError: bad"):
        after.wait()


def test_an_error_waits_for_whoever_waits() -> None:
    def fail() -> None:
        raise ExecutionError("no luck")

    future = launch(fail)
    assert future.done()
    with pytest.raises(ExecutionError, match="no luck"):
        future.wait()


ASKED = [
    lambda f: f.wait(), lambda f: f.value(), wait, lambda f: wait_all([f]), lambda f: collect_all([f]).wait(),
    lambda f: f.converted(str).wait(), lambda f: collect_all([collect_all([f])]).wait(),
]  # fmt: skip


@pytest.mark.parametrize("ask", ASKED)
def test_an_error_that_is_given_is_raised_as_it_is(ask) -> None:
    future, error = Future(), KeyError("mine")
    future.set_exception(error)
    with pytest.raises(KeyError) as caught:
        ask(future)
    assert caught.value is error


def test_only_errors_are_given() -> None:
    with pytest.raises(AssertionError, match="3 is of type <class 'int'>, not an Exception"):
        Future().set_exception(3)


def test_the_error_of_a_listener_is_logged_and_stops_nobody(caplog) -> None:
    future, seen = Future(), []
    future.add_done_callback(lambda f: 1 / 0)
    future.add_done_callback(seen.append)
    with caplog.at_level(logging.ERROR):
        future.set_result(1)
        future.add_done_callback(lambda: 2)
    assert seen == [future]
    assert ["ZeroDivisionError" in caplog.text, "TypeError" in caplog.text] == [True, True]


@pytest.mark.parametrize("count", [0, 1, 2, 30])
def test_many_are_there_when_the_last_is(count) -> None:
    futures = [Future() for _ in range(count)]
    together = collect_all(iter(futures))
    for place, future in reversed([*enumerate(futures)]):
        assert not together.done()
        future.set_result(place)
    assert together.wait() == futures
    assert wait_all(futures) == [*range(count)]


def test_many_that_are_set_at_one_time_are_collected_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        for _ in range(50):
            futures = [Future() for _ in range(8)]
            together = collect_all(futures)
            [*pool.map(lambda each: each.set_result(1), futures)]
            assert together.wait() == futures


def test_the_first_program_that_fails_ends_the_waiting_and_a_given_error_does_not() -> None:
    pending, failed, given = Future(), Future(), Future()
    given.set_exception(KeyError("mine"))
    together = collect_all([pending, given])
    assert not together.done()
    failed.fail(ExecutionError("no luck"))
    with pytest.raises(ExecutionError, match="no luck"):
        wait_all([pending, failed])
    early = collect_all([pending, failed, given])
    pending.set_result(1)
    with pytest.raises(KeyError):
        together.wait()
    with pytest.raises(ExecutionError, match="no luck"):
        early.wait()


@pytest.mark.parametrize("ask", [wait, lambda f: wait_all([f]), lambda f: collect_all((Future(), f))])
def test_what_is_no_future_is_refused(ask) -> None:
    with pytest.raises(ExecutionError, match="Future can't be None"):
        ask(None)
    with pytest.raises(TypeError, match="a Future was expected, but found int"):
        ask(3)


def test_a_future_is_not_pickled() -> None:
    with pytest.raises(ExecutionError, match=r"Can not pickle torch\.futures\.Future"):
        pickle.dumps(Future())
