"""A forked process waits for no thread of its parent: futures that these were to give fail there, the program's own do
not, and the parent's go on."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import engine.torch as torch
from engine.executor.concurrency.forks import fork
from engine.executor.concurrency.futures import Future
from engine.lang.errors import ExecutionError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")

PROGRAM = """
def double(x: int):
    return 2 * x

def after(f: Future[int], x: int):
    own = torch.jit.fork(double, x)
    return torch.jit.wait(own) + torch.jit.wait(f)
"""


def in_child(work: Callable[[], None]) -> str:
    """What went wrong in a child of this process, "" if nothing did within some seconds."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        watch = threading.Timer(20, lambda: (os.write(into, b"it hangs"), os._exit(1)))
        watch.start()
        try:
            work()
        except BaseException as error:
            os.write(into, repr(error).encode())
        os._exit(0)
    os.close(into)
    os.waitpid(child, 0)
    with open(out) as pipe:
        return pipe.read()


def pending() -> tuple[Future, threading.Event]:
    """The future of a function that ends with 5 once the event is set."""
    go_on, began = threading.Event(), threading.Event()

    def work() -> Any:
        began.set()
        go_on.wait(60)
        return 5

    def begin(_: Sequence[Any]) -> Callable[[], Any]:
        return work

    future = fork(begin, ())
    began.wait()
    return future, go_on


WAYS: dict[str, Callable[[Future], Any]] = {
    "itself": lambda future: future.wait,
    "then": lambda future: future.then(lambda done: done.value() + 1).wait,
    "converted": lambda future: future.converted(str).wait,
    "both": lambda future: future.then(lambda done: done.value()).converted(str).wait,
    "wait": lambda future: lambda: torch.jit.wait(future),
    "a program": lambda future: lambda: torch.jit.CompilationUnit(PROGRAM).after(future, 3),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_child_is_told_that_nobody_gives_the_result(way: str) -> None:
    future, go_on = pending()
    wait = WAYS[way](future)

    def work() -> None:
        with pytest.raises(ExecutionError, match="forked this one"):
            wait()

    assert in_child(work) == ""
    go_on.set()
    assert future.wait() == 5
    wait()


def test_a_child_has_forks_and_futures_of_its_own() -> None:
    own, done = Future(), Future.completed(3)
    unit = torch.jit.CompilationUnit(PROGRAM)

    def work() -> None:
        threading.Timer(0.05, lambda: own.set_result(4)).start()
        assert own.wait() == 4
        assert unit.after(done, 2) == 7

    assert in_child(work) == ""


def test_a_worker_that_forks_goes_on_in_the_child() -> None:
    told: list[str] = []

    def begin(_: Sequence[Any]) -> Callable[[], Any]:
        return lambda: told.append(in_child(lambda: sys.stdout.flush()))

    fork(begin, ()).wait()
    assert told == [""]
