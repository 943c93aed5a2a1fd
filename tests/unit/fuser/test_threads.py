"""The pool: every index once, whoever calls, also within a parallel loop, from several threads, in children."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine.fuser import machine, threads
from engine.fuser.kernel import (
    Allocate,
    Buffer,
    For,
    Kernel,
    Load,
    Name,
    Scalar,
    Statement,
    Store,
    add,
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
        Allocate(Buffer("own", "f64", (room,))),
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


def test_at_least_one_thread() -> None:
    with pytest.raises(ValueError, match="positive"):
        threads.set_num_threads(0)
