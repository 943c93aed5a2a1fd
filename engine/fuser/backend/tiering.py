"""When machine code is made: the mode that users choose, and the one thread that compiles.

In: tasks of those who count calls and find that compiling pays.  Out: the tasks, done one after the other in a thread
of their own (`in_background`), the newest first: that is of what runs now, while others may be of what ran before.  The
mode is one of `MODES`; `TSREPL_COMPILE` in the environment gives the first one.

Note [Forks]
A child would find the locks of LLVM and of imports taken by a thread that it does not have.  So nobody compiles while a
thread forks: the task under way is finished first, and what waits goes on waiting, in both processes.  Where a task
does not end in time, the child compiles nothing any more.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final, Literal, get_args

from engine.lang import locks
from engine.lang.errors import ArgumentError, did_you_mean
from engine.lang.interpreter_settings import yielding
from engine.lang.records import dataclass

Mode = Literal["background", "eager", "off"]
"""background: while the program goes on; eager: before the first call; off: never, results are the interpreter's."""
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
Task = Callable[[], None]

_PATIENCE: Final = 5.0
"""Seconds that a fork waits for the task under way; most take a tenth of one."""
_MAX_FAILURES: Final = 20


@dataclass(slots=True)
class _State:
    """`lock` is held for a moment, `compiling` during compilation.  `forks`: how many threads are about to fork."""

    mode: Mode
    followed: Mode | None
    """The mode that the followers know."""
    followers: list[Task] = field(default_factory=list)
    """Functions that are called when the mode changes."""
    tasks: list[Task] = field(default_factory=list)
    failures: deque[str] = field(default_factory=lambda: deque(maxlen=_MAX_FAILURES))
    lock: Any = field(default_factory=locks.lock)
    compiling: Any = field(default_factory=locks.lock)
    worker: threading.Thread | None = None
    forks: int = 0
    is_cut_off: bool = False
    """True in a child whose parent was compiling."""


def _checked(mode: str) -> Mode:
    for known in MODES:
        if mode == known:
            return known
    raise ArgumentError(f"there is no compile mode '{mode}'", hints=(f"one of {', '.join(MODES)}", *_near(mode)))


def _near(mode: str) -> tuple[str, ...]:
    return tuple(did_you_mean(mode, MODES))


_FIRST: Final = _checked(os.environ.get("TSREPL_COMPILE") or "background")
_STATE: Final = _State(_FIRST, _FIRST)


# ------------------------------------------------------------------ the mode


def mode() -> Mode:
    """The mode in force; "off" where nothing can be compiled any more."""
    return "off" if _STATE.is_cut_off else _STATE.mode


def set_mode(mode: str) -> None:
    """Choose when machine code is made from now on, and used.  Raises ArgumentError for a mode that is none.

    The mode changes between tasks: what a task finds at its beginning holds until it has installed what it made.
    """
    chosen = _checked(mode)
    with _STATE.compiling:
        _STATE.mode = chosen
        if chosen != _STATE.followed:
            _STATE.followed = None  # until all have: who is interrupted may choose again
            for follow in tuple(_STATE.followers):
                try:
                    follow()
                except Exception as error:
                    note_failure(error)
            _STATE.followed = chosen


def when_mode_changes(follow: Task) -> None:
    """Call this whenever the mode has changed."""
    _STATE.followers.append(follow)


class _Asks(threading.local):
    kernels = True


_ASKS: Final = _Asks()


def asks_for_kernels() -> bool:
    """False while groups and operators run without kernels in this thread, and none are made for what they are called
    with."""
    return _ASKS.kernels


@contextmanager
def without_kernels() -> Iterator[None]:
    """While the block runs, plans form groups, and nobody in this thread asks for kernels: those take long to make, and
    what is done in the block is done once."""
    _ASKS.kernels, before = False, _ASKS.kernels
    try:
        yield
    finally:
        _ASKS.kernels = before


def in_parts(run: Callable[..., Any], args: Sequence[Any], *, once: bool) -> Any:
    """`run(*args)`, which does operator by operator what is compiled as a whole; where that is at `once`, after this
    call, operators are not compiled for it, too."""
    if not once:
        return run(*args)
    with without_kernels():
        return run(*args)


# ------------------------------------------------------------------ the thread


def in_background(task: Task) -> None:
    """Let the thread that compiles do this when it is free."""
    with _STATE.lock:
        _STATE.tasks.append(task)
        _start()


class Postponed(BaseException):
    """The task under way stops here, and is done from its beginning once that is possible: none of its mistakes."""


def is_beside() -> bool:
    """True in the thread that compiles: nobody waits for what it does."""
    return threading.current_thread() is _STATE.worker


def has_to_stop() -> bool:
    """True where the task under way should not wait for anything: a thread is about to fork, or the program ends."""
    return _STATE.forks > 0 or not threading.main_thread().is_alive()


def is_idle() -> bool:
    """True if nothing is being compiled, or waits for that."""
    return _STATE.worker is None


def wait() -> None:
    """Until nothing is being compiled, and nothing waits."""
    while (worker := _STATE.worker) is not None:
        worker.join()


def failures() -> list[str]:
    """The last errors of tasks, which are mistakes of ours: nobody waits for a task, and what runs goes on as it is."""
    return [*_STATE.failures]


def forget_failures() -> None:
    """Let `failures` be empty."""
    _STATE.failures.clear()


def note_failure(error: Exception) -> None:
    """Note a mistake of ours, which a lack of memory is not; the program goes on without machine code."""
    if not isinstance(error, MemoryError):
        note_mistake("".join(traceback.format_exception(error)))


def note_mistake(text: str) -> None:
    """Note what another process says of a mistake of ours."""
    _STATE.failures.append(text)


@contextmanager
def compiling() -> Iterator[None]:
    """Compile in this thread while no other does."""
    with _STATE.compiling:
        yield


@contextmanager
def compiling_if_free() -> Iterator[bool]:
    """The same, but that nobody waits: True if no other thread compiles."""
    is_free: bool = _STATE.compiling.acquire(blocking=False)
    try:
        yield is_free
    finally:
        if is_free:
            _STATE.compiling.release()


def _start() -> None:
    if _STATE.forks == 0 and not _STATE.is_cut_off and (_STATE.worker is None or not _STATE.worker.is_alive()):
        # no daemon: LLVM must not be at work when the process takes it down
        _STATE.worker = threading.Thread(target=_work, name="compiling")
        try:
            _STATE.worker.start()
        except RuntimeError:  # there are no more threads to be had, or Python ends: what waits goes on waiting
            _STATE.worker = None


def _work() -> None:
    """Do what waits, until the program ends or forks."""
    while (task := _next()) is not None:
        try:
            with _STATE.compiling, yielding():
                task()
        except Postponed:
            with _STATE.lock:
                _STATE.tasks.append(task)
        except Exception as error:
            note_failure(error)


def _next() -> Task | None:
    with _STATE.lock:
        if not _STATE.tasks or has_to_stop():
            _STATE.worker = None
            return None
        return _STATE.tasks.pop()


# ------------------------------------------------------------------ forks

_FORK: Final = threading.local()


def _before_fork() -> None:
    """Let the task under way end.  See Note [Forks]."""
    with _STATE.lock:
        _STATE.forks += 1
        worker = _STATE.worker
    if worker is not None and worker is not threading.current_thread():
        worker.join(_PATIENCE)
        time.sleep(0.001)  # before 3.13 that is said a little before the thread is gone, and 3.12 warns of threads
    _FORK.is_alone = _STATE.compiling.acquire(timeout=_PATIENCE)


def _in_parent() -> None:
    if _FORK.is_alone:
        _STATE.compiling.release()
    with _STATE.lock:
        _STATE.forks -= 1
        if _STATE.tasks:
            _start()


def _in_child() -> None:
    """A child has no worker of its own yet; its locks are free but for that of this thread."""
    if _FORK.is_alone:
        _STATE.compiling.release()
    _STATE.worker, _STATE.forks = None, 0
    _STATE.is_cut_off = _STATE.is_cut_off or not _FORK.is_alone
    if _STATE.tasks:
        _start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
