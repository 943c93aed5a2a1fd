"""Faults at the n-th event of a workload: `python -m tests.fuzz.injection WORKLOAD KIND [every | lines | COUNT]`.

In: a workload of `injected_workloads`, a kind of fault, and the events to try: every one, the first and the last at
each line of the engine, or so many of those.  Out: a line for each after which the process was not as it should be.

Each place is tried in a forked child.  Once the fault has happened the child does the workload again: it has to succeed
with the same result, no lock may be left taken, no file left over, no setting of the interpreter changed.

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
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

import engine
from engine.fuser.backend import tiering
from engine.lang import locks
from tests.fuzz.injected_workloads import WORKLOADS, Workload

ENGINE: Final = str(Path(engine.__file__).parent) + os.sep
PATIENCE: Final = 120
"""Seconds that a child may take."""
BLOCKED: Final = 0.2
"""Seconds after which another thread is taken to wait for the one that was switched away from."""
SYSTEM_CALLS: Final = {
    os: ("open", "stat", "lstat", "fstat", "mkdir", "replace", "rename", "unlink", "fsync", "scandir", "utime", "close",
         "write", "link", "chmod", "listdir", "truncate", "ftruncate"),
    io: ("open",), builtins: ("open",), mmap: ("mmap",),
}  # fmt: skip
ERRORS: Final = (errno.ENOSPC, errno.EIO, errno.EMFILE, errno.EACCES, errno.EINTR)


@dataclass
class Place:
    """Events are counted, and `happen` is called at the one with that number."""

    number: int
    happen: Callable[[], None]
    count: int = 0
    at: str = ""
    names: list[str] | None = None
    """The names of all events, if these are wanted."""

    def event(self, name: str) -> None:
        self.count += 1
        if self.names is not None:
            self.names.append(name)
        if self.count == self.number:
            self.at = name
            self.happen()


@contextmanager
def interrupted_python(place: Place) -> Iterator[None]:
    """Count the events of this thread at which Python takes interrupts."""

    def look(frame: FrameType, event: str, function: Any) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(ENGINE):
            name = getattr(function, "__name__", "")
            place.event(f"{frame.f_code.co_filename[len(ENGINE) :]}:{frame.f_lineno} {event} {name}")

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


def _interrupt(workload: Workload, number: int) -> str:
    return _with_error(workload, Place(number, _raising(KeyboardInterrupt)), KeyboardInterrupt, interrupted_python)


def _no_memory(workload: Workload, number: int) -> str:
    return _with_error(workload, Place(number, _raising(MemoryError)), Exception, interrupted_python)


def _refused(workload: Workload, number: int) -> str:
    code = ERRORS[number % len(ERRORS)]
    place = Place(number, _raising(lambda: OSError(code, os.strerror(code))))
    return _with_error(workload, place, Exception, interrupted_system)


def _with_error(workload: Workload, place: Place, expected: type[BaseException], counting: Any) -> str:
    try:
        with counting(place):
            workload.run()
    except expected:
        pass
    _check(workload)
    return place.at


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
            self.results.append(self.workload.beside())
        except BaseException:
            self.errors.append(traceback.format_exc())


def _switch(workload: Workload, number: int) -> str:
    """At the event another thread does the same, to its end unless it has to wait."""
    other, threads = Beside(workload), []

    def happen() -> None:
        threads.append(other.start())
        threads[0].join(BLOCKED)

    place = Place(number, happen)
    with interrupted_python(place):
        result = workload.run()
    for thread in threads:
        thread.join(PATIENCE / 4)
        assert not thread.is_alive(), "the other thread waits for good"
    assert not other.errors, f"in the other thread: {other.errors[0]}"
    assert result == workload.expected, f"{result} and not {workload.expected}"
    assert all(each == workload.expected_beside for each in other.results), f"in the other thread: {other.results}"
    _check(workload)
    return place.at


def _fork(workload: Workload, number: int) -> str:
    """At the event, in a thread that is not this one, this one forks, and the child goes on."""
    reached, go_on = threading.Event(), threading.Event()

    def happen() -> None:
        reached.set()
        go_on.wait(PATIENCE)

    place = Place(number, happen)

    def work() -> None:
        try:
            with interrupted_python(place):
                workload.run()
        finally:
            reached.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    reached.wait()
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(into)
        os.read(out, 1)  # until the parent's files are as they should be
        _end(lambda: _check(workload))
    go_on.set()
    thread.join(PATIENCE / 4)
    os.close(into)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child of the fork ended with {_status(status)}"
    return place.at


KINDS: Final[dict[str, Callable[[Workload, int], str]]] = {
    "interrupt": _interrupt, "memory": _no_memory, "system": _refused, "switch": _switch, "fork": _fork,
}  # fmt: skip


# ------------------------------------------------------------------ children


def _settings() -> tuple[Any, ...]:
    return sys.getrecursionlimit(), gc.get_threshold(), sys.getswitchinterval(), gc.isenabled()


def _check(workload: Workload) -> None:
    """The process is as it should be: the workload succeeds, and leaves nothing."""
    result = workload.run()
    assert result == workload.expected, f"{result} and not {workload.expected}"
    tiering.wait()
    assert not tiering.failures(), tiering.failures()[0]
    gc.collect()
    taken: list[Any] = []
    looking = threading.Thread(target=lambda: taken.extend(each for each in locks._made if locks.is_taken(each)))
    looking.start()
    looking.join()
    assert not taken, f"{len(taken)} locks are taken"
    assert _settings() == workload.settings, f"{_settings()} and not {workload.settings}"
    left = sorted(path.name for path in workload.folder.iterdir() if path.name not in workload.files)
    assert not left, f"files were left: {left}"


def _end(work: Callable[[], Any]) -> None:
    """Do the work, say what went wrong, and end this process."""
    signal.alarm(PATIENCE)
    try:
        at = work()
    except BaseException:
        print(traceback.format_exc(), file=sys.stderr, flush=True)
        os._exit(1)
    if at is not None:
        os.write(1, f"{at}\n".encode())
    os._exit(0)


def _status(status: int) -> str:
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"


def tried(workload: Workload, kind: str, number: int) -> tuple[str, str]:
    """The event with that number, "" beyond the last, and what was wrong after the fault at it, "" if nothing was."""
    out, into = os.pipe()
    told = os.memfd_create("told") if hasattr(os, "memfd_create") else os.open(os.devnull, os.O_RDWR)
    child = os.fork()
    if child == 0:
        os.dup2(into, 1)
        os.dup2(told, 2)
        _end(lambda: KINDS[kind](workload, number))
    os.close(into)
    _, status = os.waitpid(child, 0)
    with open(out, "rb") as pipe:
        at = pipe.read().decode().strip()
    with open(told, "rb") as errors:
        errors.seek(0)
        text = errors.read().decode(errors="replace")
    return at, "" if status == 0 else f"{_status(status)}\n{text}"


def events_of(workload: Workload, kind: str) -> list[str]:
    """The names of the workload's events, as they come in a child."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        place = Place(0, lambda: None, names=[])
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
    first = dict(zip(reversed(names), reversed(numbers), strict=True))
    found = sorted({*first.values(), *dict(zip(names, numbers, strict=True)).values()})
    count = len(found) if which == "lines" else min(int(which), len(found))
    return [found[i * len(found) // count] for i in range(count)]


def run(name: str, kind: str, which: str = "every") -> int:
    """Try the kind of fault at these events of the workload; the number of those after which something was wrong."""
    workload = WORKLOADS[name]()
    workload.settings = _settings()
    names = events_of(workload, kind)
    numbers = chosen(names, which)
    wrong = 0
    for number in numbers:
        at, why = tried(workload, kind, number)
        if why:
            wrong += 1
            print(f"{name}, {kind} at event {number} of {len(names)} ({at or names[number - 1]}): {why}", flush=True)
    print(f"{name}, {kind}: {len(numbers)} of {len(names)} events, {wrong} wrong", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]) > 0)
