"""The law of interrupts: whatever stub serves a long call, an interrupt stops it soon, and nothing else is the worse.

Each form of call, of many rows, takes its caller some tens of milliseconds (`LEAST`).  An interrupt that comes early in
it is raised when at most some of that has passed (`SOON`), both counted in the caller's time of the processor, so that
what else the machine does matters little.  Afterwards nobody holds the arguments, what was made is gone, what is
written has the next version and no other has, nobody works or watches, and the same stubs give what they gave before.
Signals are looked for more often than programs do it (`OFTEN`), so that what is held is the length of pieces of work.
"""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
import timeit
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pytest

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.fuser.backend import threads
from engine.fuser.backend.symbols import POLL
from engine.fuser.library import calls, serving
from tests.table.library_samples import missed

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such clocks")

Function = Callable[..., Any]
Make = Callable[[int], list[Any]]
Interrupt = Callable[[float], Any]
LEAST: Final = 0.035
"""Seconds of the processor that a long call takes its caller at least."""
MOST: Final = 8
"""So many times the size that is tried first, a call has to take that long."""
EARLY: Final = 0.01
"""Seconds of the processors after which the interrupt comes."""
SOON: Final = 0.6
"""The part of a call's time in which it has to be raised."""
TRIES: Final = 3
"""Interrupts of a call, of which one has to come through soon: on a busy machine the system tells of some late."""
OFTEN: Final = 1_000_000
"""Nanoseconds between two looks for signals."""

# ------------------------------------------------------------------ arguments


def rows(count: int, *width: int, d: Any = np.float32) -> Tensor:
    """Rows of `width` numbers, all alike."""
    return Tensor(
        np.ascontiguousarray(np.broadcast_to(row(int(np.prod(width)), d).array.reshape(width), (count, *width)))
    )


def row(width: int, d: Any = np.float32) -> Tensor:
    """As many different numbers."""
    return Tensor((np.linspace(0.1, 1.9, width) * (1 if np.dtype(d).kind == "f" else 3)).astype(d))


def gaps(count: int, width: int) -> Tensor:
    """Rows of which every second number counts."""
    return Tensor(rows(count, 2 * width).array[:, ::2])


def turned(count: int, width: int, d: Any = np.float32) -> Tensor:
    """Rows whose numbers are far from one another in memory."""
    return Tensor(np.ascontiguousarray(np.broadcast_to(row(width, d).array[:, None], (width, count))).T)


def deep(count: int) -> Tensor:
    """Seven dimensions in another order than in memory."""
    return Tensor(rows(8 * 8 * 4 * 4 * 8 * 8, count).array.reshape(8, 8, 4, 4, 8, 8, count).transpose())


def room(count: int, width: int) -> Tensor:
    return Tensor(np.zeros((count, width), np.float32))


def named(count: int, size: int) -> Tensor:
    """Indices below `size`."""
    return Tensor(np.arange(count) * 7919 % size)


def places(count: int, size: int) -> Tensor:
    """As many indices below `size` in each row."""
    return Tensor(np.ascontiguousarray(np.broadcast_to(named(size, size).array, (count, size))))


def chosen(count: int, width: int) -> Tensor:
    """A mask of every second number of rows."""
    return Tensor(np.ascontiguousarray(np.broadcast_to(np.arange(width) % 2 == 0, (count, width))))


def recorded(x: Tensor) -> Tensor:
    """The tensor, of which calls are recorded."""
    x.requires_grad_()
    return x


# ------------------------------------------------------------------ calls


@dataclass(frozen=True)
class Long:
    """Calls of an operator, for any size; `size`: one at which they may take long."""

    name: str
    size: int
    make: Make

    @property
    def op(self) -> Op:
        found = table.find(f"aten::{self.name}")
        assert found is not None
        return found

    def stubs(self) -> Function:
        """The stubs of the operator, with nothing behind them."""
        op = self.op
        serving.record(op)
        return serving._chained(op.name, serving._known(op, is_hooked=True), missed)


K: Final = 1 << 10
INT16: Final = 2
ONES: Final = [[1, 1], [1, 1], [1, 1]]
WINDOWS: Final = [[3, 3], [2, 2], [1, 1]]


def norms(width: int) -> list[Any]:
    return [*(row(width) for _ in range(4)), False, 0.1, 1e-5, False]


def images(count: int) -> list[Tensor]:
    return [rows(count * 4, 32, 32, 32), rows(32, 32, 3, 3)]


LONG: Final[Mapping[str, Long]] = {
    "functions": Long("exp", 161, lambda n: [rows(n * K, 256)]),
    "two operands": Long("atan2", 93, lambda n: [rows(n * K, 256), rows(n * K, 256)]),
    "numbers": Long("pow.Tensor_Scalar", 68, lambda n: [rows(n * K, 256), 2.5]),
    "comparisons": Long("lt.Tensor", 765, lambda n: [rows(n * K, 1), row(256)]),
    "masks": Long("where.self", 212, lambda n: [chosen(n * K, 256), rows(n * K, 1), row(256)]),
    "gaps": Long("exp", 127, lambda n: [gaps(n * K, 256)]),
    "turned": Long("add.Tensor", 136, lambda n: [turned(n * K, 256), rows(n * K, 1), 1]),
    "many dimensions": Long("mul.Tensor", 340, lambda n: [deep(2 * n), row(8)]),
    "several dtypes": Long("add.Tensor", 212, lambda n: [rows(n * K, 1), row(256, np.int64), 1]),
    "half precision": Long("exp", 187, lambda n: [rows(n * K, 256, d=np.float16)]),
    "double precision": Long("tanh", 59, lambda n: [rows(n * K, 256, d=np.float64)]),
    "whole numbers": Long("mul.Tensor", 127, lambda n: [rows(n * K, 1, d=np.int64), row(256, np.int64)]),
    "in place": Long("pow_.Scalar", 68, lambda n: [rows(n * K, 256), 0.9]),
    "in place, with gaps": Long("exp_", 153, lambda n: [gaps(n * K, 256)]),
    "out": Long("add.out", 255, lambda n: [rows(n * K, 1), row(256), 1, room(n * K, 256)]),
    "out, turned": Long("exp.out", 68, lambda n: [rows(n * K, 256), turned(n * K, 256)]),
    "copies into": Long("copy_", 102, lambda n: [room(n * K, 256), turned(n * K, 256)]),
    "copies": Long("clone", 204, lambda n: [rows(n * K, 256)]),
    "copies in order": Long("contiguous", 102, lambda n: [turned(n * K, 256)]),
    "conversions": Long("to.dtype", 204, lambda n: [rows(n * K, 256), INT16, False, False, None]),
    "conversions in order": Long("to.dtype", 204, lambda n: [turned(n * K, 256), INT16, False, False, None]),
    "conversions into": Long("copy_", 102, lambda n: [room(n * K, 256), turned(n * K, 256, np.float64)]),
    "fills": Long("fill.Scalar", 297, lambda n: [room(n * K, 256), 2.0]),
    "zeros": Long("zero_", 68, lambda n: [turned(n * K, 256)]),
    "sums": Long("sum.dim_IntList", 5100, lambda n: [rows(n * K, 7), [1], False]),
    "extremes": Long("argmax", 480, lambda n: [rows(n * K, 256), 1, False]),
    "pairs": Long("max.dim", 102, lambda n: [rows(n * K, 256), 1, False]),
    "logsumexp": Long("logsumexp", 212, lambda n: [rows(n * K, 256), [1], False]),
    "softmax": Long("softmax.int", 144, lambda n: [rows(n * K, 256), -1, None]),
    "softmax of columns": Long("softmax.int", 170, lambda n: [rows(n, 256, 256), 1, None]),
    "softmax over rows": Long("softmax.int", 13, lambda n: [rows(n * K, 256), 0, None]),
    "layer_norm": Long("layer_norm", 187, lambda n: [rows(n * K, 256), [256], row(256), row(256), 1e-5, True]),
    "native_layer_norm": Long("native_layer_norm", 187, lambda n: [rows(n * K, 256), [256], row(256), row(256), 1e-5]),
    "var_mean": Long("var_mean.dim", 187, lambda n: [rows(n * K, 256), [1], True, False]),
    "batch_norm": Long("batch_norm", 187, lambda n: [rows(n * K, 256), *norms(256)]),
    "batch_norm of images": Long("batch_norm", 340, lambda n: [rows(n * 8, 64, 16, 16), *norms(64)]),
    "losses": Long("soft_margin_loss", 170, lambda n: [rows(n * K, 256), rows(n * K, 256), 1]),
    "mm": Long("mm", 13, lambda n: [rows(n * K, 512), rows(512, 512)]),
    "mm, turned": Long("mm", 13, lambda n: [rows(n * K, 512), turned(512, 512)]),
    "mm of few rows": Long("mm", 136, lambda n: [rows(3, 512), rows(512, n * K)]),
    "addmm": Long("addmm", 13, lambda n: [row(512), rows(n * K, 512), rows(512, 512), 1, 1]),
    "matmul": Long("matmul", 13, lambda n: [rows(n, K, 512), rows(512, 512)]),
    "bmm": Long("bmm", 93, lambda n: [rows(n * 64, 64, 64), rows(n * 64, 64, 64)]),
    "linear": Long("linear", 13, lambda n: [rows(n * K, 512), rows(512, 512), row(512)]),
    "conv2d": Long("conv2d", 54, lambda n: [*images(n), row(32), *ONES, 1]),
    "max_pool2d": Long("max_pool2d", 102, lambda n: [rows(n * 16, 32, 32, 32), *WINDOWS, [1, 1], False]),
    "avg_pool2d": Long("avg_pool2d", 102, lambda n: [rows(n * 16, 32, 32, 32), *WINDOWS, False, True, None]),
    "adaptive_avg_pool2d": Long("adaptive_avg_pool2d", 850, lambda n: [rows(n * K, 8, 2, 2), [1, 1]]),
    "cat": Long("cat", 187, lambda n: [[rows(n * K, 128), rows(n * K, 128)], 1]),
    "stack": Long("stack", 187, lambda n: [[rows(n * K, 128), rows(n * K, 128)], 1]),
    "embedding": Long("embedding", 255, lambda n: [rows(K, 256), named(n * K, K)]),
    "index_select": Long("index_select", 20, lambda n: [rows(K, 256), 1, named(n * K, 256)]),
    "index": Long("index.Tensor", 255, lambda n: [rows(K, 256), [named(n * K, K)]]),
    "gather": Long("gather", 51, lambda n: [rows(n * K, 256), 1, places(n * K, 256), False]),
    "gather of columns": Long("gather", 51, lambda n: [rows(n * K, 256), 0, places(n * K, 256), False]),
    "index_put_": Long("index_put_", 6800, lambda n: [rows(K, 4), [named(n * K, K)], rows(n * K, 4)]),
    "index_put_ of one": Long("index_put_", 6800, lambda n: [rows(K, 4), [named(n * K, K)], row(1)]),
    "index_put_ by masks": Long("index_put_", 51, lambda n: [rows(n * K, 256), [chosen(n * K, 256)], row(n * K * 128)]),
    "rows back": Long("_layer_norm_backward", 51, lambda n: [*[rows(n * K, 256)] * 2, [256], row(256), 1e-5]),
    "channels": Long(
        "native_batch_norm", 51, lambda n: [rows(8, 16 * n, K * 2), *[row(16 * n)] * 2, *[None] * 2, True, 0.1, 1e-5]
    ),
    "windows": Long(
        "max_pool2d_with_indices", 51, lambda n: [rows(n, 16, 64, 256), *[[2, 2]] * 2, [0, 0], [1, 1], False]
    ),
    "values at places": Long("scatter_.src", 51, lambda n: [room(n * K, 256), 1, places(n * K, 256), rows(n * K, 256)]),
    "rows in order": Long("sort", 13, lambda n: [rows(n * K, 256), 1, False]),
    "recorded functions": Long("exp", 161, lambda n: [recorded(rows(n * K, 256))]),
    "recorded linear": Long("linear", 13, lambda n: [rows(n * K, 512), recorded(rows(512, 512)), recorded(row(512))]),
    "recorded embedding": Long("embedding", 255, lambda n: [recorded(rows(K, 256)), named(n * K, K), -1, False, False]),
}  # fmt: skip


def test_each_stub_that_works_for_long_is_tried() -> None:
    """Stubs of views move no more than fits into the cache."""
    tried = {form.stub for each in LONG.values() for form in serving._forms(each.op)}
    assert {*calls._SERVED} - tried <= {"serve_shown", "serve_parted"}


# ------------------------------------------------------------------ interrupts


@pytest.fixture(autouse=True)
def _served(library: None) -> None:
    """The library is there, and serves."""


def word(name: str) -> Any:
    """A word that the pool's native code shares."""
    threads.address(POLL)
    assert threads._pool is not None
    return threads._pool.word(name)


@pytest.fixture(autouse=True)
def _often() -> Iterator[None]:
    """Signals are looked for often, by two threads' work."""
    before = threads.get_num_threads(), word("interval").value
    threads.set_num_threads(2)
    word("interval").value = OFTEN
    yield
    threads.set_num_threads(before[0])
    word("interval").value = before[1]


@pytest.fixture
def interrupts() -> Iterator[Interrupt]:
    """Interrupts the program when it has used so many seconds of the processors."""
    before = signal.signal(signal.SIGPROF, signal.default_int_handler)
    yield partial(signal.setitimer, signal.ITIMER_PROF)
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def long_call(of: Long, stubs: Function) -> tuple[list[Any], float]:
    """Arguments of a call that takes long, and the caller's time of the processor for it."""
    size = of.size
    while True:
        given = of.make(size)
        took = min(seconds(stubs, given), seconds(stubs, given))  # the first one may ask the system for memory
        if took >= LEAST:
            return given, took
        assert size < MOST * of.size, f"a call of size {size} takes {took} seconds"
        size *= 2


def seconds(stubs: Function, given: list[Any]) -> float:
    start = time.thread_time()
    stubs(*given)
    return time.thread_time() - start


def tensors(given: list[Any]) -> list[Tensor]:
    every = itertools.chain.from_iterable(each if isinstance(each, list) else [each] for each in given)
    return [each for each in every if isinstance(each, Tensor)]


def held(given: list[Any]) -> list[tuple[int, ...]]:
    """How many hold each tensor, its array and its memory."""
    return [tuple(map(sys.getrefcount, (each, each.array, each.memory))) for each in tensors(given)]


def interrupted(stubs: Function, given: list[Any], interrupt: Callable[[], Any]) -> tuple[bool, int]:
    """Whether the call ended before the interrupt, and the bytes that it left behind."""
    ended = list[bool]()

    def call() -> None:
        interrupt()
        stubs(*given)
        ended.append(True)
        wait()

    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        with pytest.raises(KeyboardInterrupt):
            call()
        return bool(ended), tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def wait() -> None:
    """Work for some seconds, in which the interrupt comes if it is not lost."""
    end = time.process_time() + 5
    while time.process_time() < end:
        pass


def elements(stubs: Function, given: list[Any]) -> list[bytes]:
    """What a call gives and writes."""
    result = stubs(*given)
    results = [*result] if isinstance(result, tuple) else [result]
    return [each.array.tobytes() for each in (*results, *tensors(given))]


@pytest.mark.parametrize("what", LONG)
def test_an_interrupt_stops_a_long_call(what: str, interrupts: Interrupt) -> None:
    of = LONG[what]
    stubs, few = of.stubs(), max(of.size // 16, 1)
    wanted = elements(stubs, of.make(few))
    given, took = long_call(of, stubs)
    is_soon = False
    for _ in range(TRIES):
        is_soon = is_soon or is_stopped_and_clean(of, stubs, given, took, interrupts)
    assert is_soon
    assert elements(stubs, of.make(few)) == wanted


def is_stopped_and_clean(of: Long, stubs: Function, given: list[Any], took: float, interrupts: Interrupt) -> bool:
    """True if an interrupt stops the call soon; raises AssertionError where it leaves something behind."""
    written = [given[i] for i, each in enumerate(of.op.schema.arguments[: len(given)]) if each.is_write]
    before, versions = held(given), [each._version for each in tensors(given)]
    start = time.thread_time()
    has_ended, left = interrupted(stubs, given, partial(interrupts, EARLY))
    is_soon = not has_ended and time.thread_time() - start < SOON * took
    assert held(given) == before
    assert left < 1 << 16
    writes = [any(each is other for other in written) for each in tensors(given)]
    assert [each._version for each in tensors(given)] == [sum(each) for each in zip(versions, writes, strict=True)]
    assert [word(name).value for name in ("busy", "watched")] == [0, 0]
    return is_soon


CAUGHT: Final = ("gaps", "softmax over rows", "mm", "embedding", "index_put_")
"""A call of each stub that shares its work in a way of its own."""


@pytest.mark.parametrize("what", CAUGHT)
def test_one_thread_looks_for_interrupts_as_well(what: str, interrupts: Interrupt) -> None:
    threads.set_num_threads(1)
    stubs = LONG[what].stubs()
    given, took = long_call(LONG[what], stubs)
    assert any(is_stopped_and_clean(LONG[what], stubs, given, took, interrupts) for _ in range(TRIES))


@pytest.mark.parametrize("what", CAUGHT)
def test_other_threads_can_interrupt(what: str) -> None:
    """Calls give up the interpreter lock, so that a thread of Python can send the signal, and it is Ctrl-C's."""
    stubs, before = LONG[what].stubs(), signal.signal(signal.SIGINT, signal.default_int_handler)
    given, _ = long_call(LONG[what], stubs)
    caller = threading.get_ident()
    other = threading.Timer(EARLY, lambda: signal.pthread_kill(caller, signal.SIGINT))
    try:
        assert not interrupted(stubs, given, other.start)[0]
    finally:
        other.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("what", CAUGHT)
def test_no_interrupt_is_lost(what: str) -> None:
    """It is raised once, in a short call or after it, whenever it comes: early, in the last part, when all is done."""
    of, ended = LONG[what], set[bool]()
    stubs, given = of.stubs(), of.make(max(of.size // 40, 1))
    took = min(timeit.repeat(lambda: stubs(*given), number=1, repeat=3))
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    word("interval").value = 0
    try:
        for delay in np.linspace(0.1, 2, 40) * took:
            ended.add(interrupted(stubs, given, partial(signal.setitimer, signal.ITIMER_REAL, delay))[0])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert ended == {False, True}


def test_handlers_that_raise_nothing_let_calls_go_on() -> None:
    """They may call the library for long themselves."""
    long, inner = LONG["functions"], LONG["softmax over rows"]
    stubs, others, found = long.stubs(), inner.stubs(), list[bytes]()
    given, inside = long.make(long.size), inner.make(2)
    wanted, expected = stubs(*given).array, others(*inside).array.tobytes()
    before = signal.signal(signal.SIGPROF, lambda *_: found.append(others(*inside).array.tobytes()))
    try:
        signal.setitimer(signal.ITIMER_PROF, EARLY)
        result = stubs(*given).array
        assert found == [expected] and np.array_equal(result, wanted)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def test_calls_of_other_threads_go_on(interrupts: Interrupt) -> None:
    """Handlers run in the main thread alone."""
    stubs, results = LONG["functions"].stubs(), list[Any]()
    given = LONG["functions"].make(LONG["functions"].size)
    wanted = stubs(*given).array
    other = threading.Thread(target=lambda: results.append(stubs(*given).array))
    other.start()
    interrupts(EARLY)
    with pytest.raises(KeyboardInterrupt):
        wait()
    other.join()
    assert np.array_equal(results[0], wanted)
