"""The pool: every index once, whoever calls, also within a parallel loop, from several threads, in children."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from engine.fuser.backend import machine, threads, to_llvm
from engine.fuser.backend.symbols import PARALLEL
from engine.fuser.ir.kernel import (
    Buffer,
    For,
    Kernel,
    Load,
    Name,
    Scalar,
    Statement,
    Store,
    add,
    allocate,
    apply,
    constant,
    convert,
    index,
)

_N, _I, _J = (Name(each, "i64") for each in "nij")


def _kernel(body: Statement) -> Any:
    parameters = (Scalar("n", "i64"), Buffer("x", "f64", (_N,), access="inout"))
    return machine.callable_kernel(Kernel("counting", parameters, (For("i", index(0), _N, (body,), kind="parallel"),)))


def _count_up(i: Name) -> Store:
    return Store("x", (i,), apply("add", Load("x", (i,), "f64"), constant(1, "f64")))


@pytest.fixture(scope="module")
def counting() -> Any:
    return _kernel(_count_up(_I))


@pytest.fixture(autouse=True)
def _four_threads() -> Iterator[None]:
    before = threads.get_num_threads()
    threads.set_num_threads(4)
    yield
    threads.set_num_threads(before)


def test_every_index_once(counting: Any) -> None:
    for count in (1, 3, 4, 2):
        threads.set_num_threads(count)
        assert threads.get_num_threads() == count
        for n in (0, 1, 7, 1 << 20, (1 << 20) + 5):
            x = np.zeros(n)
            assert counting(n, x) == 0
            assert (x == 1).all()


def test_many_jobs_in_a_row(counting: Any) -> None:
    x = np.zeros(1 << 18)
    for _ in range(500):
        counting(x.size, x)
    assert (x == 500).all()


def test_calls_from_several_threads(counting: Any) -> None:
    arrays = [np.zeros(1 << 18) for _ in range(6)]

    def call(x: Any) -> None:
        for _ in range(50):
            counting(x.size, x)

    workers = [threading.Thread(target=call, args=(x,)) for x in arrays]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert all((x == 50).all() for x in arrays)


def test_memory_of_each_thread() -> None:
    """An allocated buffer in a parallel loop is the thread's own."""
    room = index(100)
    body = (
        allocate("own", "f64", room),
        For("j", index(0), room, (Store("own", (_J,), convert(add(_I, _J), "f64")),)),
        Store("x", (_I,), Load("own", (index(99),), "f64")),
    )
    parameters = (Scalar("n", "i64"), Buffer("x", "f64", (_N,), access="inout"))
    loop = For("i", index(0), _N, body, kind="parallel")
    kernel = machine.callable_kernel(Kernel("own", parameters, (loop,)))
    x = np.zeros(50_000)
    assert kernel(x.size, x) == 0
    np.testing.assert_array_equal(x, np.arange(x.size) + 99)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_children_have_threads_of_their_own(counting: Any) -> None:
    x = np.zeros(1 << 20)
    counting(x.size, x)
    child = os.fork()
    if child == 0:
        for _ in range(20):
            counting(x.size, x)
        os._exit(0 if (x == 21).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    counting(x.size, x)
    assert (x == 2).all()


_BODY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_PARALLEL = ctypes.CFUNCTYPE(ctypes.c_int64, _BODY, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def _parts(n: int, grain: int, inner: Any = None) -> list[tuple[int, int]]:
    """The parts of a job, in order, each of which calls `inner` first."""
    found: list[tuple[int, int]] = []

    def body(_: Any, begin: int, end: int) -> int:
        if inner is not None:
            inner()
        found.append((begin, end))
        return 0

    assert _PARALLEL(threads.address(PARALLEL))(_BODY(body), None, n, grain) == 0
    return sorted(found)


def _are_all(parts: list[tuple[int, int]], n: int) -> bool:
    ends = [0, *(end for _, end in parts)]
    return ends[:-1] == [begin for begin, _ in parts] and ends[-1] == n


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000, 2**50])
@pytest.mark.parametrize("grain", [0, 1, 2, 400])
def test_parts_are_the_whole_and_no_smaller_than_the_grain(n: int, grain: int) -> None:
    parts = _parts(n, grain)
    assert _are_all(parts, n)
    assert len(parts) == 1 or min(end - begin for begin, end in parts) >= grain
    assert parts == _parts(n, grain)


@pytest.mark.parametrize("count", [1, 4])
def test_the_code_of_a_part_that_fails_is_the_loop_s(count: int) -> None:
    threads.set_num_threads(count)
    found: list[int] = []

    def body(_: Any, begin: int, end: int) -> int:
        found.append(begin)
        time.sleep(1e-3)
        return -5 if begin == 0 else 0

    run = _PARALLEL(threads.address(PARALLEL))
    assert run(_BODY(body), None, 10_000, 1) == -5
    assert len({*found}) == len(found) < len(_parts(10_000, 1)) or count == 1
    assert run(_BODY(lambda *_: 0), None, 10_000, 1) == 0


def test_indices_that_take_long_are_parts_of_their_own() -> None:
    assert len(_parts(300, -(1 << 30))) == 300
    assert _parts(300, 0) == _parts(300, 1) != _parts(300, -(1 << 30))


@pytest.mark.parametrize("n", [1, 1 << 16])
def test_a_part_without_memory_is_told(n: int) -> None:
    m = Name("m", "i64")
    body = (allocate("own", "f64", m), Store("x", (_I,), Load("own", (index(0),), "f64")))
    parameters = (Scalar("n", "i64"), Scalar("m", "i64"), Buffer("x", "f64", (_N,), access="inout"))
    kernel = Kernel("large", parameters, (For("i", index(0), _N, body, kind="parallel"),))
    assert machine.callable_kernel(kernel)(n, 1 << 50, np.zeros(n)) == to_llvm.NO_MEMORY


def test_loops_inside_loops_from_several_threads() -> None:
    """Nobody waits for somebody who waits; while the number of threads changes."""
    inner: list[bool] = []
    outer: list[bool] = []

    def call() -> None:
        for count in (2, 5, 3, 1, 4):
            threads.set_num_threads(count)
            outer.append(_are_all(_parts(100, 1, lambda: inner.append(_are_all(_parts(7, 1), 7))), 100))

    callers = [threading.Thread(target=call) for _ in range(4)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert len(outer) == 20
    assert all(outer)
    assert all(inner)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_children_of_a_process_in_the_middle_of_a_job(counting: Any) -> None:
    x, y = np.zeros(1 << 20), np.zeros(1 << 18)
    is_over = threading.Event()

    def call() -> None:
        while not is_over.is_set():
            counting(x.size, x)

    caller = threading.Thread(target=call)
    caller.start()
    codes = []
    for _ in range(10):
        child = os.fork()
        if child == 0:
            counting(y.size, y)
            os._exit(0 if (y == 1).all() else 1)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    is_over.set()
    caller.join()
    assert codes == [0] * 10


def test_at_least_one_thread() -> None:
    with pytest.raises(ValueError, match="positive"):
        threads.set_num_threads(0)


def _of_threads(do: Callable[..., Any], *args: Any) -> list[Any]:
    """The function's results for all threads of the process, by the system's numbers, but those that end just now."""
    found = []
    for each in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):
            found.append(do(int(each), *args))
    return found


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads are not told where to run")
def test_threads_may_go_on_using_the_processors_that_they_may_use(counting: Any) -> None:
    allowed, x = os.sched_getaffinity(0), np.zeros(1 << 18)
    try:
        for some in ({min(allowed)}, allowed):
            _of_threads(os.sched_setaffinity, some)
            for _ in range(200):
                counting(x.size, x)
            time.sleep(0.05)  # until workers that came late for the last job sleep
            assert all(found == some for found in _of_threads(os.sched_getaffinity))
    finally:
        _of_threads(os.sched_setaffinity, allowed)
    assert (x == 400).all()
