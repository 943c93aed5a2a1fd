"""The threads of parallel loops: a native pool that sleeps when there is nothing to do, and lets interrupts in.

In: `set_num_threads`; the default is the number of processors that this process may use.  Out: `address`, of C
functions that native code calls.  `i64 tsrepl_parallel(i64 (*body)(void *context, i64 begin, i64 end), void *context,
i64 n, i64 grain)` cuts 0 … n into some parts for each thread, none smaller than `grain`; a grain below 0 says that each
index has as much work as so many grains.  It gives 0, or the code of a part that failed: others may be left undone
then.  `i64 tsrepl_poll()` and `i64 tsrepl_watch(i64 by)`: see Note [Interrupts].

Note [The pool]
Threads are made by pthreads and never touch Python.  The word "job" says which parts nobody has begun: the number of
the job, the end of those parts and their start, in 32, 16 and 16 bits.  Whoever has time takes a part by compare and
exchange, the caller from the front and workers from the back, so that with two threads each stays in its own half of
memory, and a thread that the system holds up delays one part only.  A worker that comes late finds no part, and what it
may read of the job ("body", "context", "n", "parts") stays as it is while it has one, since the caller waits until
"pending" parts are done.  Where the borders of parts are depends on the number of threads alone.

Who waits looks at the word for a moment, since kernels often follow one another closely, then sleeps on it (futex); the
word beside it counts the sleepers, so that nobody is woken by a system call who is awake.  "busy" admits one job at a
time: a loop inside a loop, or one of another thread of Python meanwhile, runs in its own thread alone, so nobody waits
for somebody who waits.  Workers beyond "threads" sleep on that word.  A forked child has none of its parent's workers
and gets its own.  Where there is no futex, loops run in one thread.

Note [Interrupts]
Native code that may take long is begun with `tsrepl_watch(1)` and ended with `tsrepl_watch(-1)`; both do nothing but
in Python's main thread, which alone is interrupted.  Within, `tsrepl_poll()` lets handlers of signals run, at most once
in an "interval", and gives `STOPPED` with an error of Python that is set if one raises; to a worker it gives the code
of the job.  Who gets a code leaves with it.  What takes less than the interval is never stopped; its interrupt is
Python's, after the call, as is one that comes after the last poll.  While handlers run nobody watches, as what they
call may not look for errors.

Pieces of work are what lies between two polls, mostly some milliseconds:

- of a parallel loop a part of the caller's, which is short for that (`_FINE`), also where it is alone;
- of a long loop of the library's functions that is in no parallel one, about a million rounds (`in_pieces`);
- of what one thread writes in an order, as `index_put_` does, about 256 KiB (`put_in_order` of `moving_calls`).

One index of a parallel loop is one piece however long it takes, as no inner loop polls: the row of a norm or softmax,
the plane of an image that is pooled, or that batch norm goes through, the matrices of one product of a batch, and of
one product the tile of results, whatever its depth.  What a call does before it gives up the interpreter lock has no
poll either: a look at all indices or truths, copies that fit into the cache.
`tests/table/test_library_interrupts.py` holds each stub to this.

The system often wakes a worker on the processor of the caller, which then stands still; two threads that take turns
there stay for many jobs.  So the caller notes its processor ("home"), and a worker that finds itself there moves away.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.fuser.backend.symbols import PARALLEL, POLL, WATCH, compiled_ahead
from engine.lang.deferred import deferred
from engine.lang.interpreter_settings import BLAS
from engine.lang.locks import lock
from engine.lang.records import dataclass

if TYPE_CHECKING:
    from engine.fuser.backend import machine
else:
    machine = deferred("engine.fuser.backend.machine")  # not needed where the library of operators has the pool

_FUTEX: Final = {"x86_64": 202, "aarch64": 98}.get(platform.machine()) if sys.platform == "linux" else None
"""The number of the system call."""
_WAIT, _WAKE = 128, 129
"""Operations of futexes that one process uses."""
_ALL: Final = 2**31 - 1
"""So many sleepers are woken."""
_SPINS: Final = 4000
"""Looks at a word before a thread sleeps on it: about 100 microseconds."""
_PARTS: Final = 32
"""Parts of a job for each thread: the more, the less one that is held up delays all; the fewer, the longer they are."""
_FINE: Final = 64
"""Grains that a part has at most, unless there are too many parts then: what one thread does between two polls."""
_MANY: Final = 0xFFFF
"""Parts that a job has at most."""
STOPPED: Final = -3
"""The code of what an interrupt stopped; an error of Python is set."""
INTERVAL: Final = 50_000_000
"""Nanoseconds between two looks for signals."""
_CLOCK: Final = getattr(time, "CLOCK_MONOTONIC", 1)
_MOST: Final = 1024
"""Threads that the pool has at most."""
_LAYOUT: Final = (
    "job", "pending", "busy", "threads", "home", "body", "context", "n", "parts", "code",
    "main", "watched", "due", "interval", "mark",
)  # fmt: skip
"""The pool's state: words of 64 bits, a cache line apart, each with the number of its sleepers beside it.  "code": of a
part that failed.  "main": Python's main thread; "watched": how often it watches; "due": when it looks next.  "mark":
the key under which workers have something of their own."""
_LINE: Final = 64
_PROCESSORS: Final = 1024
"""Processors that the masks of a thread tell of."""
_SIGNALS: Final = 128
"""Bytes that a set of signals has at most."""
_WORKER, _STATE = "tsrepl_worker", "tsrepl_pool_state"
"""Functions of the native code besides `tsrepl_parallel`."""
_SYMBOLS: Final = (PARALLEL, POLL, WATCH, _WORKER, _STATE)


@dataclass(slots=True)
class _Pool:
    """`state` is the address of the words that native code shares; `code`: of functions, by symbol; `workers` run
    besides the caller."""

    state: int
    code: Mapping[str, int]
    workers: int = 0
    lock: Any = field(default_factory=lock)

    def word(self, name: str) -> Any:
        return ctypes.c_int64.from_address(self.state + _LAYOUT.index(name) * _LINE)

    def resize(self, threads: int) -> None:
        """Have at least so many threads, if they are to be had, and let jobs use that many."""
        with self.lock:
            while self.workers < threads - 1 and _start(self.code[_WORKER], self.workers + 1):
                self.workers += 1
            word = self.word("threads")
            word.value = min(threads, self.workers + 1)
            if _FUTEX is not None:
                ctypes.CDLL(None).syscall(_FUTEX, ctypes.byref(word), _WAKE, _ALL, None)

    def clear(self, main: int) -> None:
        """No workers, no job, and nobody who sleeps.

        In a child of a handler that forked in a poll, the caller of the job is there, in its last part: it was stopped.
        """
        self.workers = 0
        mark = self.word("mark").value
        ctypes.memset(self.state, 0, len(_LAYOUT) * _LINE)
        words = {"main": main, "code": STOPPED, "pending": 1, "interval": INTERVAL, "mark": mark}
        for name, value in words.items():
            self.word(name).value = value


_pool: _Pool | None = None
_wanted: int = 0
_making: Final = lock()


def get_num_threads() -> int:
    """The number of threads that a parallel loop uses at most."""
    return _wanted or _available()


def set_num_threads(count: int) -> None:
    """Let parallel loops, and numpy's products, use so many threads.  Raises ValueError for less than 1."""
    global _wanted
    if count < 1:
        raise ValueError("set_num_threads expects a positive integer")
    _wanted = count
    if _pool is not None:
        _pool.resize(_size())
    _set_blas_threads(count)


def wake_blas() -> None:
    """Let numpy's products and linear algebra use as many threads as parallel loops, if they were begun with one."""
    if BLAS.is_asleep:
        _set_blas_threads(get_num_threads())


def _set_blas_threads(count: int) -> None:
    BLAS.is_asleep = False
    set_blas_threads = _blas_function("set_num_threads")
    if set_blas_threads is not None:
        set_blas_threads(count)


def blas_threads() -> int | None:
    """The number of threads that numpy's OpenBLAS uses; None where numpy has another library."""
    found = _blas_function("get_num_threads")
    return found() if found is not None else None


def _blas_function(name: str) -> Any:
    """A function of the OpenBLAS that numpy multiplies with; None where it has another library."""
    core: Any = getattr(np, "_core", None) or np.core
    try:
        library = ctypes.CDLL(core._multiarray_umath.__file__)
    except (AttributeError, OSError):
        return None
    spelled = (f"scipy_openblas_{name}64_", f"scipy_openblas_{name}", f"openblas_{name}64_", f"openblas_{name}")
    return next((found for each in spelled if (found := getattr(library, each, None)) is not None), None)


def address(symbol: str) -> int:
    """The address of a function of the pool; the first call starts the threads.  Raises MachineError."""
    global _pool
    with _making:
        if _pool is None:
            code = compiled_ahead(_SYMBOLS) or machine.compile_program(program()).addresses
            state = ctypes.CFUNCTYPE(ctypes.c_int64)(code[_STATE])()
            made = _Pool(state, code)
            if _FUTEX is not None:
                ctypes.CDLL(None).pthread_key_create(ctypes.byref(made.word("mark")), None)
            made.clear(threading.main_thread().ident or 0)
            made.resize(_size())
            _pool = made
            wake_blas()
        return _pool.code[symbol]


def _available() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _size() -> int:
    """The threads that the pool shall have."""
    return min(get_num_threads(), _MOST) if _FUTEX else 1


def _start(worker: int, number: int) -> bool:
    """Start a thread that takes no signals; False where there is none to be had."""
    libc = ctypes.CDLL(None)
    handle = ctypes.c_ulong()
    all_signals, before = (ctypes.create_string_buffer(_SIGNALS) for _ in range(2))
    libc.sigfillset(all_signals)
    libc.pthread_sigmask(int(signal.SIG_SETMASK), all_signals, before)
    try:
        failed = libc.pthread_create(ctypes.byref(handle), None, ctypes.c_void_p(worker), ctypes.c_void_p(number))
        if not failed:
            libc.pthread_detach(handle)
        return not failed
    finally:
        libc.pthread_sigmask(int(signal.SIG_SETMASK), before, None)


def _forked() -> None:
    """A child begins with no workers and no job."""
    if _pool is None:
        return
    _pool.clear(threading.get_ident())  # which is the main thread now
    _pool.resize(_size())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

# ------------------------------------------------------------------ native code


class _Writer:
    """Builder of a function that reads and writes the pool's words."""

    def __init__(self, function: Any) -> None:
        self.ir = import_module("llvmlite.ir")
        self.function = function
        self.whole, self.half, self.pointer = self.ir.IntType(64), self.ir.IntType(32), self.ir.PointerType()
        self.b = self.ir.IRBuilder(function.append_basic_block("entry"))

    def block(self, name: str) -> Any:
        return self.function.append_basic_block(name)

    def place(self, name: str, beside: int = 0) -> Any:
        state = self.function.module.globals["state"]
        return self.b.gep(state, [self.whole(0), self.whole(_LAYOUT.index(name) * _LINE // 8 + beside)])

    def load(self, name: str, beside: int = 0) -> Any:
        return self.b.load_atomic(self.place(name, beside), "seq_cst", 8)

    def store(self, name: str, value: Any) -> None:
        self.b.store_atomic(value, self.place(name), "seq_cst", 8)

    def count(self, name: str, by: Any, beside: int = 0) -> Any:
        """The word before it is counted up."""
        number = self.whole(by) if isinstance(by, int) else by
        return self.b.atomic_rmw("add", self.place(name, beside), number, "seq_cst")

    def is_main(self) -> Any:
        """True in Python's main thread."""
        here = self.b.call(self.declared("pthread_self", self.whole, []), [])
        return self.b.icmp_signed("==", here, self.load("main"))

    def mark(self, function: str, *given: Any) -> Any:
        """A call for what this thread has under the key of workers."""
        key = self.b.trunc(self.load("mark"), self.half)
        return self.b.call(self.declared(function, self.whole, [each.type for each in (key, *given)]), [key, *given])

    def now(self) -> Any:
        """Nanoseconds of a clock that goes on."""
        with self.b.goto_entry_block():
            room = self.b.alloca(self.ir.ArrayType(self.whole, 2))
        self.b.call(self.declared("clock_gettime", self.half, [self.half, self.pointer]), [self.half(_CLOCK), room])
        seconds, rest = (self.b.load(self.b.gep(room, [self.whole(0), self.whole(i)])) for i in range(2))
        return self.b.add(self.b.mul(seconds, self.whole(10**9)), rest)

    def polled(self) -> Any:
        """The code of a poll."""
        return self.b.call(self.function.module.globals[POLL], [])

    def wait(self, name: str, until: Any) -> Any:
        """Look at a word until the condition holds for it; sleep on it after a while.  Gives the word."""
        before = self.b.block
        look, again, pause, sleep, done = map(self.block, ("look", "again", "pause", "sleep", "done"))
        self.b.branch(look)
        self.b.position_at_end(look)
        spins = self.b.phi(self.whole)
        spins.add_incoming(self.whole(0), before)
        found = self.load(name)
        self.b.cbranch(until(found), done, again)
        self.b.position_at_end(again)
        self.b.cbranch(self.b.icmp_signed("<", spins, self.whole(_SPINS)), pause, sleep)
        self.b.position_at_end(pause)
        if platform.machine() == "x86_64":
            self.b.call(self.declared("llvm.x86.sse2.pause", self.ir.VoidType(), []), [])
        spins.add_incoming(self.b.add(spins, self.whole(1)), pause)
        self.b.branch(look)
        self.b.position_at_end(sleep)
        self.count(name, 1, beside=1)
        self.futex(name, _WAIT, self.b.trunc(found, self.half))
        self.count(name, -1, beside=1)
        spins.add_incoming(self.whole(0), sleep)
        self.b.branch(look)
        self.b.position_at_end(done)
        return found

    def futex(self, name: str, operation: int, value: Any) -> None:
        """The system call, on the lower half of a word; nothing where there is none."""
        if _FUTEX is not None:
            call = self.declared("syscall", self.whole, [self.whole], var_arg=True)
            none = self.ir.Constant(self.pointer, None)
            self.b.call(call, [self.whole(_FUTEX), self.place(name), self.half(operation), value, none])

    def wake(self, name: str) -> None:
        """Wake those who sleep on a word that has just changed."""
        with self.b.if_then(self.b.icmp_signed("!=", self.load(name, beside=1), self.whole(0))):
            self.futex(name, _WAKE, self.half(_ALL))

    def processor(self) -> Any:
        """The number of the processor that the thread is on."""
        if _FUTEX is None:
            return self.whole(0)
        return self.b.zext(self.b.call(self.declared("sched_getcpu", self.half, []), []), self.whole)

    def move_away(self) -> None:
        """Leave the caller's processor, if there are others that the thread may use."""
        if _FUTEX is None:
            return
        here = self.processor()
        is_home = self.b.icmp_unsigned("==", here, self.load("home"))
        with self.b.if_then(self.b.and_(is_home, self.b.icmp_unsigned("<", here, self.whole(_PROCESSORS)))):
            with self.b.goto_entry_block():
                masks = self.b.alloca(self.ir.ArrayType(self.whole, _PROCESSORS // 64))
            self.masked("sched_getaffinity", masks)
            place = self.b.gep(masks, [self.whole(0), self.b.lshr(here, self.whole(6))])
            allowed = self.b.load(place)
            bit = self.b.shl(self.whole(1), self.b.and_(here, self.whole(63)))
            for each in (self.b.and_(allowed, self.b.not_(bit)), allowed):
                self.b.store(each, place)
                self.masked("sched_setaffinity", masks)

    def masked(self, name: str, masks: Any) -> None:
        """A call for this thread's mask of processors."""
        function = self.declared(name, self.half, [self.half, self.whole, self.pointer])
        address = self.b.bitcast(masks, self.pointer)
        self.b.call(function, [self.half(0), self.whole(_PROCESSORS // 8), address])

    def declared(self, name: str, result: Any, types: list[Any], var_arg: bool = False) -> Any:
        known = self.function.module.globals.get(name)
        signature = self.ir.FunctionType(result, types, var_arg)
        return known if known is not None else self.ir.Function(self.function.module, signature, name)

    def run(self, body: Any, context: Any, begin: Any, end: Any) -> Any:
        """The code of a function that is given by its address."""
        signature = self.ir.FunctionType(self.whole, [self.whole, self.whole, self.whole])
        return self.b.call(self.b.inttoptr(body, signature.as_pointer()), [context, begin, end])

    def part(self, body: Any, context: Any, n: Any, parts: Any, number: Any) -> Any:
        """The code of a part, by its number."""
        size, longer = self.b.sdiv(n, parts), self.b.srem(n, parts)

        def start(number: Any) -> Any:
            is_longer = self.b.icmp_signed("<", number, longer)
            return self.b.add(self.b.mul(size, number), self.b.select(is_longer, number, longer))

        return self.run(body, context, start(number), start(self.b.add(number, self.whole(1))))

    def leave(self, code: Any) -> None:
        """Let nobody begin another part of the job."""
        self.store("code", code)
        look, none = self.block("drop"), self.block("dropped")
        self.b.branch(look)
        self.b.position_at_end(look)
        job = self.load("job")
        first, end = self.left(job)
        rest = self.b.sub(end, first)
        emptied = self.b.sub(job, self.b.shl(rest, self.whole(16)))
        done = self.b.cmpxchg(self.place("job"), job, emptied, "seq_cst", "seq_cst")
        self.b.cbranch(self.b.extract_value(done, 1), none, look)
        self.b.position_at_end(none)
        self.count("pending", self.b.neg(rest))

    def failed(self, code: Any) -> Any:
        """True if it is no 0."""
        return self.b.icmp_signed("!=", code, self.whole(0))

    def or_polled(self, code: Any, polls: Any) -> Any:
        """The code, or if that is 0, that of a poll if there is to be one."""
        with self.b.goto_entry_block():
            room = self.b.alloca(self.whole)
        self.b.store(code, room)
        with self.b.if_then(self.b.and_(polls, self.b.not_(self.failed(code)))):
            self.b.store(self.polled(), room)
        return self.b.load(room)

    def left(self, job: Any) -> tuple[Any, Any]:
        """The first of the parts that nobody has begun, and the end of them."""
        mask = self.whole(0xFFFF)
        return self.b.and_(job, mask), self.b.and_(self.b.lshr(job, self.whole(16)), mask)

    def is_open(self, job: Any) -> Any:
        """True if there is a part that nobody has begun."""
        return self.b.icmp_signed("!=", *self.left(job))

    def parts(self, is_worker: bool, polls: Any = None) -> None:
        """Take part after part and do it, until none is left; wake the caller after the last.  `polls`: whether to poll
        after each."""
        claim, take, work, done = map(self.block, ("claim", "take", "work", "taken"))
        self.b.branch(claim)
        self.b.position_at_end(claim)
        job = self.load("job")
        first, end = self.left(job)
        self.b.cbranch(self.is_open(job), take, done)
        self.b.position_at_end(take)
        number, step = (self.b.sub(end, self.whole(1)), -(1 << 16)) if is_worker else (first, 1)
        claimed = self.b.cmpxchg(self.place("job"), job, self.b.add(job, self.whole(step)), "seq_cst", "seq_cst")
        self.b.cbranch(self.b.extract_value(claimed, 1), work, claim)
        self.b.position_at_end(work)
        body, context, n, parts = map(self.load, ("body", "context", "n", "parts"))
        code = self.part(body, context, n, parts, number)
        if polls is not None:
            code = self.or_polled(code, polls)
        with self.b.if_then(self.failed(code)):
            self.leave(code)
        with self.b.if_then(self.b.icmp_signed("==", self.count("pending", -1), self.whole(1))):
            self.wake("pending")
        self.b.branch(claim)
        self.b.position_at_end(done)


def program() -> machine.Program:
    """The pool's native code."""
    return machine.Program(f"threads {_FUTEX}", _module, _SYMBOLS)


def _module() -> Any:
    ir = import_module("llvmlite.ir")
    made = ir.Module("threads")
    made.triple = import_module("llvmlite.binding").get_default_triple()
    state = ir.GlobalVariable(made, ir.ArrayType(ir.IntType(64), len(_LAYOUT) * _LINE // 8), "state")
    state.linkage, state.align, state.initializer = "internal", _LINE, ir.Constant(state.value_type, None)
    whole = ir.IntType(64)
    _poll(_Writer(ir.Function(made, ir.FunctionType(whole, []), POLL)))
    _watch(_Writer(ir.Function(made, ir.FunctionType(whole, [whole]), WATCH)))
    _parallel(_Writer(ir.Function(made, ir.FunctionType(whole, [whole] * 4), PARALLEL)))
    _worker(_Writer(ir.Function(made, ir.FunctionType(whole, [whole]), _WORKER)))
    address = ir.IRBuilder(ir.Function(made, ir.FunctionType(whole, []), _STATE).append_basic_block("entry"))
    address.ret(address.ptrtoint(state, whole))
    return made


def _watch(w: _Writer) -> None:
    """See Note [Interrupts]."""
    (by,) = w.function.args
    with w.b.if_then(w.is_main()):
        w.count("watched", by)
        with w.b.if_then(w.b.icmp_signed(">", by, w.whole(0))):
            w.store("due", w.b.add(w.now(), w.load("interval")))
    w.b.ret(w.whole(0))


def _poll(w: _Writer) -> None:
    """See Note [Interrupts]."""
    none = w.whole(0)
    with w.b.if_then(w.b.not_(w.is_main())):
        if _FUTEX is None:
            w.b.ret(none)
        else:
            w.b.ret(w.b.select(w.b.icmp_signed("==", w.mark("pthread_getspecific"), none), none, w.load("code")))
    with w.b.if_then(w.b.icmp_signed("==", w.load("watched"), none)):
        w.b.ret(none)
    now = w.now()
    with w.b.if_then(w.b.icmp_signed("<", now, w.load("due"))):
        w.b.ret(none)
    watched = w.load("watched")
    w.store("watched", none)
    held = w.b.call(w.declared("PyGILState_Ensure", w.half, []), [])
    stopped = w.b.call(w.declared("PyErr_CheckSignals", w.half, []), [])
    w.b.call(w.declared("PyGILState_Release", w.ir.VoidType(), [w.half]), [held])
    w.store("watched", watched)
    w.store("due", w.b.add(w.now(), w.load("interval")))
    w.b.ret(w.b.select(w.b.icmp_signed("==", stopped, w.half(0)), none, w.whole(STOPPED)))


def _parallel(w: _Writer) -> None:
    """The caller: publish the job, do parts of it, wait for those of others."""
    body, context, n, grain = w.function.args
    one, threads = w.whole(1), w.load("threads")

    def least(a: Any, b: Any) -> Any:
        return w.b.select(w.b.icmp_signed("<", a, b), a, b)

    def most(a: Any, b: Any) -> Any:
        return w.b.select(w.b.icmp_signed(">", a, b), a, b)

    whole = w.b.sdiv(n, most(grain, one))
    grains = w.b.select(w.b.icmp_signed(">", grain, one), whole, w.b.mul(n, most(w.b.neg(grain), one)))
    fine = least(w.b.sdiv(grains, w.whole(_FINE)), w.whole(_MANY))
    parts = least(whole, most(fine, w.b.mul(threads, w.whole(_PARTS))))
    polls = w.b.and_(w.b.icmp_signed("!=", w.load("watched"), w.whole(0)), w.is_main())
    alone, several, mine = map(w.block, ("alone", "several", "mine"))
    is_worth_it = w.b.and_(*(w.b.icmp_signed(">", each, one) for each in (parts, threads)))
    w.b.cbranch(is_worth_it, several, alone)
    w.b.position_at_end(several)
    was_busy = w.b.atomic_rmw("xchg", w.place("busy"), one, "seq_cst")
    w.b.cbranch(w.b.icmp_signed("==", was_busy, w.whole(0)), mine, alone)
    w.b.position_at_end(alone)
    _alone(w, polls, w.b.select(polls, most(fine, one), one))
    w.b.position_at_end(mine)
    told = {
        "home": w.processor(), "body": body, "context": context, "n": n, "parts": parts, "pending": parts,
        "code": w.whole(0),
    }  # fmt: skip
    for name, value in told.items():
        w.store(name, value)
    number = w.b.add(w.b.lshr(w.load("job"), w.whole(32)), one)
    w.store("job", w.b.or_(w.b.shl(number, w.whole(32)), w.b.shl(parts, w.whole(16))))
    w.wake("job")
    w.parts(is_worker=False, polls=polls)
    w.wait("pending", lambda found: w.b.icmp_signed("==", found, w.whole(0)))
    code = w.load("code")
    w.store("busy", w.whole(0))
    w.b.ret(code)


def _alone(w: _Writer, polls: Any, parts: Any) -> None:
    """All parts in this thread."""
    body, context, n, _ = w.function.args
    before, loop, following, done = w.b.block, *map(w.block, ("loop", "following", "done"))
    w.b.branch(loop)
    w.b.position_at_end(loop)
    number = w.b.phi(w.whole)
    number.add_incoming(w.whole(0), before)
    code = w.or_polled(w.part(body, context, n, parts, number), polls)
    after = w.b.add(number, w.whole(1))
    w.b.cbranch(w.b.or_(w.failed(code), w.b.icmp_signed("==", after, parts)), done, following)
    w.b.position_at_end(following)
    number.add_incoming(after, following)
    w.b.branch(loop)
    w.b.position_at_end(done)
    w.b.ret(code)


def _worker(w: _Writer) -> None:
    """A thread: wait until its number is below that of the threads and there is a job, then do parts of it."""
    (number,) = w.function.args
    if _FUTEX is not None:
        w.mark("pthread_setspecific", number)
    loop = w.block("loop")
    w.b.branch(loop)
    w.b.position_at_end(loop)
    w.wait("threads", lambda found: w.b.icmp_signed("<", number, found))
    w.wait("job", w.is_open)
    w.move_away()
    with w.b.if_then(w.b.icmp_signed("<", number, w.load("threads"))):
        w.parts(is_worker=True)
    w.b.branch(loop)
