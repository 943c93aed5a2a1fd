"""Faults at the n-th event of a workload: `python -m tests.fuzz.injection WORKLOAD KIND [WHICH]`.

In: a workload of `injected_workloads`, a kind of fault, and the events to try: `every` one, the first and the last that
come to a line of the engine by the same callers (`paths`), the first and the last at each line (`lines`), or so many
of those.
Out: a line for each after which the process was not as it should be.

The workload runs once, and at each of these events a child is forked, in which the fault happens; where it writes
files, it runs in a child of its own for each event.  The child then does the workload again: it has to succeed with the
same result, no lock may be left taken, no file left over, no setting of the interpreter changed.

An event is what Python takes an interrupt at (3.11 and later): a function written in Python begins, or a call of
another one returns, in a file of the engine.  Allocation is taken to fail at the same places.  Of the system
calls those count that the engine and Python's library make by functions of `os` and `io`.
"""

from __future__ import annotations

import builtins
import errno
import gc
import io
import mmap
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, Final

import engine
from engine.aten.dispatch.grad_mode import MODE
from engine.aten.values.hooks import HOOKS
from engine.fuser.backend import tiering
from engine.lang import locks
from tests.fuzz.injected_workloads import WORKLOADS, Workload

ENGINE: Final = str(Path(engine.__file__).parent) + os.sep
PATIENCE: Final = 120
"""Seconds that a child may take."""
CALLERS: Final = 3
"""Callers that tell two events at one line apart."""
tiering._PATIENCE = 0.1
"""Seconds that a fork waits for a thread that compiles, which here stands still and so lets it wait for nothing."""
BLOCKED: Final = 0.03
"""Seconds after which another thread is taken to wait for the one that was switched away from."""
SYSTEM_CALLS: Final = {
    os: ("open", "stat", "lstat", "fstat", "mkdir", "replace", "rename", "unlink", "fsync", "scandir", "utime", "close",
         "write", "link", "chmod", "listdir", "truncate", "ftruncate"),
    io: ("open",), builtins: ("open",), mmap: ("mmap",),
}  # fmt: skip
ERRORS: Final = (errno.ENOSPC, errno.EIO, errno.EMFILE, errno.EACCES, errno.EINTR)


@dataclass
class Place:
    """Events are counted, and at each of those with these numbers `happen` is called in a child."""

    numbers: frozenset[int]
    happen: Callable[[], None] = lambda: None
    count: int = 0
    at: str = ""
    """The event, in a child; "" in the process that forks."""
    names: list[str] | None = None
    """The names of all events, with those that they came by, if these are wanted."""
    wrong: int = 0
    forks: Callable[[Place], bool] = field(default=lambda place: in_child(place))

    def event(self, name: str, frame: FrameType | None = None) -> None:
        self.count += 1
        if self.names is not None:
            self.names.append(f"{name}{_callers(frame)}")
        if self.count in self.numbers and not self.at and self.forks(self):
            self.at = name
            self.happen()

    def tell(self, status: int, text: str) -> None:
        """Say what was wrong after a fault at the present event, if something was."""
        if status:
            self.wrong += 1
            print(f"at event {self.count}: {_status(status)}\n{text}", flush=True)


def _callers(frame: FrameType | None) -> str:
    """The lines of the engine that the frame was called by, the last ones."""
    callers = locks.callers(frame.f_back if frame else None)
    lines = (f" < {_line(each)}" for each in callers if each.f_code.co_filename.startswith(ENGINE))
    return "".join(islice(lines, CALLERS))


def _line(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename[len(ENGINE) :]}:{frame.f_lineno}"


@contextmanager
def interrupted_python(place: Place) -> Iterator[None]:
    """Count the events of this thread at which Python takes interrupts."""

    def look(frame: FrameType, event: str, function: Any) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(ENGINE):
            name = getattr(function, "__name__", "")
            place.event(f"{_line(frame)} {event} {name}", frame)

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


@contextmanager
def interrupted_system(place: Place) -> Iterator[None]:
    """Count system calls."""
    before = [(owner, name, getattr(owner, name)) for owner, names in SYSTEM_CALLS.items() for name in names]

    def counted(name: str, function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            place.event(name)
            return function(*args, **kwargs)

        return call

    for owner, name, function in before:
        setattr(owner, name, counted(name, function))
    try:
        yield
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


# ------------------------------------------------------------------ kinds of faults


def _raising(error: Callable[[], BaseException]) -> Callable[[], None]:
    def happen() -> None:
        raise error()

    return happen


def _interrupt(workload: Workload, place: Place) -> None:
    _with_error(workload, place, _raising(KeyboardInterrupt), KeyboardInterrupt, interrupted_python)


def _no_memory(workload: Workload, place: Place) -> None:
    _with_error(workload, place, _raising(MemoryError), Exception, interrupted_python)


def _refused(workload: Workload, place: Place) -> None:
    def error() -> OSError:
        code = ERRORS[place.count % len(ERRORS)]
        return OSError(code, os.strerror(code))

    workload.left = list
    _with_error(workload, place, _raising(error), Exception, interrupted_system)


def _with_error(
    workload: Workload, place: Place, happen: Callable[[], None], expected: type[BaseException], counting: Any
) -> None:
    place.happen = happen
    try:
        with counting(place):
            result = workload.run()
    except expected:
        assert place.at
    else:
        _compare(workload, result)
    if place.at:
        _check(workload)


def _compare(workload: Workload, result: Any) -> None:
    found = workload.look(result)
    assert found == workload.expected, f"{found} and not {workload.expected}"


@dataclass
class Beside:
    """The workload in a thread of its own, which may have to wait for others."""

    workload: Workload
    results: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        try:
            self.results.append(self.workload.look(self.workload.beside()))
        except BaseException:
            self.errors.append(traceback.format_exc())


def _switch(workload: Workload, place: Place) -> None:
    """At the event another thread does the same, to its end unless it has to wait."""
    other, threads = Beside(workload), []

    def happen() -> None:
        sys.setprofile(None)
        threads.append(other.start())
        threads[0].join(BLOCKED)

    place.happen = happen
    with interrupted_python(place):
        result = workload.run()
    for thread in threads:
        thread.join(PATIENCE / 4)
        assert not thread.is_alive(), "the other thread waits for good"
    assert not other.errors, f"in the other thread: {other.errors[0]}"
    _compare(workload, result)
    assert all(each == workload.expected_beside for each in other.results), f"in the other thread: {other.results}"
    if place.at:
        _check(workload)


def _fork(workload: Workload, place: Place) -> None:
    """At the event, in a thread that is not this one, this one forks, and the child goes on."""
    reached, go_on = threading.Semaphore(0), threading.Semaphore(0)

    def wait(place: Place) -> bool:
        reached.release()
        go_on.acquire()
        return False

    def work() -> None:
        try:
            with interrupted_python(place):
                workload.run()
        finally:
            is_over.append(True)
            reached.release()

    place.forks, is_over = wait, list[bool]()
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while reached.acquire() and not is_over:
        out, into = os.pipe()
        child = Child()
        if child.is_here:
            os.close(into)
            if workload.writes:
                os.read(out, 1)  # until the parent's files are as they should be
            place.at = "in a thread of the parent"
            _check(workload)
            return
        if workload.writes:
            go_on.release()
            thread.join()
        os.close(into)
        os.close(out)
        child.ended(place)
        go_on.release()
    thread.join()


KINDS: Final[dict[str, Callable[[Workload, Place], None]]] = {
    "interrupt": _interrupt, "memory": _no_memory, "system": _refused, "switch": _switch, "fork": _fork,
}  # fmt: skip


# ------------------------------------------------------------------ children


def _settings() -> tuple[Any, ...]:
    """Settings of the interpreter and of this thread."""
    of_python = sys.getrecursionlimit(), gc.get_threshold(), sys.getswitchinterval(), gc.isenabled()
    return of_python, MODE.enabled, MODE.inference, MODE.packing, {*HOOKS.paused}, _is_traced()


def _is_traced() -> bool:
    return HOOKS.tracer is not None and HOOKS.tracer.has_trace()


def _check(workload: Workload) -> None:
    """The process is as it should be: the workload succeeds, and leaves nothing."""
    sys.setprofile(None)
    _compare(workload, workload.run())
    assert not (left := workload.left()), f"half made: {left}"
    tiering.wait()
    assert not tiering.failures(), tiering.failures()[0]
    gc.collect()
    taken: list[Any] = []
    looking = threading.Thread(target=lambda: taken.extend(each for each in locks._made if locks.is_taken(each)))
    looking.start()
    looking.join()
    assert not taken, f"{len(taken)} locks are taken"
    assert _settings() == workload.settings, f"{_settings()} and not {workload.settings}"
    left = [path for path in workload.folder.iterdir() if path.name not in workload.files]
    for path in left:
        path.unlink()  # so that those after other events are told of, and not this one again
    assert not left, f"files were left: {[path.name for path in left]}"


def _status(status: int) -> str:
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"


class Child:
    """A forked child of this process; `is_here` in the child."""

    def __init__(self) -> None:
        self._told = os.memfd_create("told") if hasattr(os, "memfd_create") else os.open(os.devnull, os.O_RDWR)
        self._id = os.fork()
        self.is_here = self._id == 0
        if self.is_here:
            os.dup2(self._told, 2)
            signal.alarm(PATIENCE)

    def ended(self, place: Place) -> None:
        """Wait for its end, and tell the place how it was."""
        _, status = os.waitpid(self._id, 0)
        with open(self._told, "rb") as errors:
            errors.seek(0)
            place.tell(status, errors.read().decode(errors="replace"))


def in_child(place: Place) -> bool:
    """True in a child of this process; here, once that has ended, False."""
    child = Child()
    if not child.is_here:
        child.ended(place)
    return child.is_here


def injected(workload: Workload, kind: str, numbers: Iterable[int]) -> int:
    """Do the workload, with a fault at these events in a child each; the number of those after which something was
    wrong."""
    gc.collect()
    gc.freeze()  # what a child collects is what is new
    if not workload.writes:
        return _injected(workload, kind, Place(frozenset(numbers)))
    place = Place(frozenset())
    for number in numbers:
        place.count = number
        if in_child(place):
            os._exit(_injected(workload, kind, Place(frozenset({number}), forks=lambda place: True)))
    return place.wrong


def _injected(workload: Workload, kind: str, place: Place) -> int:
    try:
        KINDS[kind](workload, place)
    except BaseException:
        if not place.at:
            raise
        print(f"({place.at})", traceback.format_exc(), file=sys.stderr, flush=True)
        os._exit(1)
    if place.at:
        os._exit(0)
    return place.wrong


def events_of(workload: Workload, kind: str) -> list[str]:
    """The names of the workload's events, as they come in a child."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        place = Place(frozenset(), names=[])
        with (interrupted_system if kind == "system" else interrupted_python)(place):
            workload.run()
        with open(into, "w") as pipe:
            pipe.write("\n".join(place.names or ()))
        os._exit(0)
    os.close(into)
    with open(out) as pipe:
        names = pipe.read().splitlines()
    os.waitpid(child, 0)
    return names


def chosen(names: list[str], which: str) -> list[int]:
    """The numbers of the events to try."""
    numbers = range(1, len(names) + 1)
    if which == "every":
        return [*numbers]
    if which != "paths":
        names = [name.partition(" < ")[0] for name in names]
    first = dict(zip(reversed(names), reversed(numbers), strict=True))
    found = sorted({*first.values(), *dict(zip(names, numbers, strict=True)).values()})
    count = min(int(which), len(found)) if which.isdigit() else len(found)
    return [found[i * len(found) // count] for i in range(count)]


def run(name: str, kind: str, which: str = "every") -> int:
    """Try the kind of fault at these events of the workload; the number of those after which something was wrong."""
    workload = WORKLOADS[name]()
    tiering.wait()  # whose thread changes settings as long as it compiles
    workload.settings = _settings()
    names = events_of(workload, kind)
    numbers = chosen(names, which)
    start = time.monotonic()
    wrong = injected(workload, kind, numbers)
    took = time.monotonic() - start
    print(f"{name}, {kind}: {len(numbers)} of {len(names)} events, {wrong} wrong, {took:.0f} s", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]) > 0)
