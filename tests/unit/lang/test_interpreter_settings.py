"""The garbage collector is held back, and the recursion limit raised, for the time of a block."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any
from weakref import ref

import pytest

from engine.fuser.backend import tiering
from engine.fuser.backend.threads import blas_threads
from engine.lang import interpreter_settings
from engine.lang.interpreter_settings import (
    BLAS_VARIABLES,
    MAX_HEIGHT,
    OBJECTS,
    PATIENCE,
    collecting_rarely,
    deep_recursion,
    importing,
    loading,
    yielding,
)


@pytest.fixture(autouse=True)
def _plain_settings() -> Iterator[None]:
    """No thread compiles, and no test before has left a setting (hypothesis puts back the recursion limit that it
    found, which may have been raised by a thread that compiled)."""
    tiering.wait()
    before = gc.get_threshold(), sys.getrecursionlimit()
    gc.set_threshold(700, 10, 10)
    sys.setrecursionlimit(1000)
    yield
    gc.set_threshold(*before[0])
    sys.setrecursionlimit(before[1])


def test_it_is_held_back_inside_and_as_before_afterwards() -> None:
    with collecting_rarely():
        assert gc.get_threshold()[0] == OBJECTS
        with collecting_rarely():
            pass
        assert gc.get_threshold()[0] == OBJECTS
    assert gc.get_threshold()[0] == 700


def test_an_error_leaves_it_as_before() -> None:
    with pytest.raises(ZeroDivisionError):
        collecting_rarely()(lambda: 1 / 0)()
    assert gc.get_threshold()[0] == 700


def test_a_collector_that_is_off_or_rarer_stays_so() -> None:
    for threshold in (0, OBJECTS + 1):
        gc.set_threshold(threshold)
        with collecting_rarely():
            assert gc.get_threshold()[0] == threshold
        assert gc.get_threshold()[0] == threshold


def test_the_last_thread_that_leaves_ends_it() -> None:
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with collecting_rarely():
            inside.set()
            leave.wait(10)

    other = threading.Thread(target=stay)
    with collecting_rarely():
        other.start()
        assert inside.wait(10)
    assert gc.get_threshold()[0] == OBJECTS
    leave.set()
    other.join()
    assert gc.get_threshold()[0] == 700


def test_garbage_goes_inside_too() -> None:
    collected = []
    gc.callbacks.append(lambda phase, info: collected.append(info["collected"]) if phase == "stop" else None)
    try:
        with collecting_rarely():
            for _ in range(2 * OBJECTS):
                ring: list[object] = []
                ring.append(ring)
    finally:
        gc.callbacks.pop()
    assert sum(collected) >= OBJECTS


def depth(levels: int) -> int:
    return 0 if levels == 0 else 1 + depth(levels - 1)


def test_the_limit_is_raised_inside_and_restored() -> None:
    before = sys.getrecursionlimit()
    with deep_recursion():
        assert depth(MAX_HEIGHT * 10) == MAX_HEIGHT * 10
        inside = sys.getrecursionlimit()
        with deep_recursion():
            assert sys.getrecursionlimit() == inside
        assert sys.getrecursionlimit() == inside
    assert sys.getrecursionlimit() == before


def test_the_interpreter_lock_changes_hands_soon_inside_and_as_before_afterwards() -> None:
    before = sys.getswitchinterval()
    with yielding():
        assert sys.getswitchinterval() == pytest.approx(min(before, PATIENCE))
    assert sys.getswitchinterval() == before


def test_nothing_is_collected_while_modules_load() -> None:
    gc.enable()
    with loading():
        assert not gc.isenabled()
    assert gc.isenabled()


@pytest.fixture
def thawed() -> Iterator[None]:
    """Nothing is put aside; afterwards, all is again (`tests/conftest.py`)."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("thawed")
def test_what_was_loaded_is_not_looked_through_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with loading():
        pass
    assert gc.get_freeze_count() == 0
    with loading():
        monkeypatch.setitem(sys.modules, "loaded_here", sys)
    assert gc.get_freeze_count() > 0


_COUNTING = """
import os
from engine.lang.interpreter_settings import loading
with loading():
    import numpy
from engine.fuser.backend import tiering
from engine.fuser.backend.threads import blas_threads, get_num_threads, wake_blas
print(blas_threads(), "OPENBLAS_NUM_THREADS" in os.environ)
wake_blas()
print(blas_threads() == get_num_threads())
"""


@pytest.mark.skipif(blas_threads() is None, reason="numpy multiplies with another library than OpenBLAS")
def test_numpy_begins_with_one_thread_and_gets_the_others_later() -> None:
    free = {name: value for name, value in os.environ.items() if name not in BLAS_VARIABLES}
    run = subprocess.run([sys.executable, "-c", _COUNTING], env=free, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1", "False", "True"]
    chosen = {**free, "OPENBLAS_NUM_THREADS": "2"}
    run = subprocess.run([sys.executable, "-c", _COUNTING], env=chosen, capture_output=True, text=True, check=True)
    assert run.stdout.split()[:2] == [str(min(2, os.cpu_count() or 1)), "True"]
    chosen = {**free, "OPENBLAS_NUM_THREADS": "1"}  # and it stays so
    run = subprocess.run([sys.executable, "-c", _COUNTING], env=chosen, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1", "True", str((os.cpu_count() or 1) == 1)]


DEEP = """
import sys, threading, collections
from engine.frontend.compilation.compile import compile_source
from engine.lang.errors import EngineError
TEXT = "def f(x: int) -> int:\\n    return " + "(" * 380 + "x" + ")" * 380 + "\\n"
TEXT += "def g(x: int) -> int:\\n    return " + " + ".join(["x"] * 550) + "\\n"
errors = []
def go():
    for _ in range(2):
        try:
            assert compile_source(TEXT).functions["g"].graph
        except BaseException as error:
            errors.append(error)
threads = [threading.Thread(target=go) for _ in range(6)]
[each.start() for each in threads]
[each.join() for each in threads]
print(len(errors), sys.getrecursionlimit())
"""


def test_threads_that_compile_deep_programs_at_once_leave_the_limit_as_it_was() -> None:
    done = subprocess.run([sys.executable, "-c", DEEP], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.returncode) == (["0", "1000"], 0), done.stderr[-2000:]


def test_blocks_of_threads_that_end_in_any_order_put_the_setting_back() -> None:
    before = sys.getrecursionlimit()
    first, second = deep_recursion(), deep_recursion()
    with first:
        second.__enter__()
    assert sys.getrecursionlimit() > before
    second.__exit__(None, None, None)
    assert sys.getrecursionlimit() == before


def test_a_setting_that_somebody_changed_inside_stays_so() -> None:
    before = sys.getrecursionlimit()
    try:
        with deep_recursion():
            sys.setrecursionlimit(2345)
        assert sys.getrecursionlimit() == 2345
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_has_no_blocks_of_other_threads() -> None:
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with deep_recursion():
            inside.set()
            leave.wait(20)

    before = sys.getrecursionlimit()
    other = threading.Thread(target=stay)
    other.start()
    inside.wait(20)
    child = os.fork()
    if child == 0:
        os._exit(sys.getrecursionlimit() != before)
    leave.set()
    other.join()
    assert os.waitpid(child, 0)[1] == 0
    assert sys.getrecursionlimit() == before


def _raising_at(number: int, block: Callable[[], AbstractContextManager[None]]) -> int:
    """Do a block with an error at that line of its own; the number of lines that it came to."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename != interpreter_settings.__file__:
            return trace if event == "call" else None
        count += event == "line"
        if event == "line" and count == number:
            raise MemoryError
        return trace

    sys.settrace(trace)
    try:
        with block():
            pass
    except MemoryError:
        pass
    finally:
        sys.settrace(None)
    return count


def test_who_comes_next_puts_back_what_an_error_at_any_line_left() -> None:
    setting = interpreter_settings._Raised(sys.getrecursionlimit, sys.setrecursionlimit, lambda before: before + 100)
    before, lines = sys.getrecursionlimit(), _raising_at(0, setting.held)
    assert lines > 20
    for number in range(1, lines + 1):
        _raising_at(number, setting.held)  # it may leave the lock to this thread, so the setting is the test's own
        with setting.held():
            assert sys.getrecursionlimit() > before, number
        assert sys.getrecursionlimit() == before, number


class _Circle:
    def __init__(self) -> None:
        self.itself = self


def test_what_was_there_before_an_import_is_old_and_still_collected() -> None:
    gc.collect()
    circle = _Circle()
    died = ref(circle)
    frozen, was_on = gc.get_freeze_count(), gc.isenabled()
    with importing():
        assert not gc.isenabled()
        del circle
    assert (gc.get_freeze_count(), gc.isenabled()) == (frozen, was_on)
    gc.collect(0)
    assert died() is not None or frozen, "a run over new objects does not look at it"
    gc.collect()
    assert died() is None


def test_what_a_program_put_aside_stays_there() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    with importing():
        pass
    assert gc.get_freeze_count() == frozen
