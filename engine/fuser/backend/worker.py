"""The process that compiles for all programs of a user, and the way to it.

In: jobs, which are plain data, of the thread that compiles (`tiering.py`).  Out: they are done in another process,
whose results lie on disk (`kernel_cache.py`), so that the program goes on at its full speed.  Who gets no process does
the job in that thread.

Note [The worker]
There is one for each user, machine, and state of the engine, started as soon as a program has something for the thread
that compiles, and gone when no job has come for a while.  It listens in the folder of machine code, which is the user's
alone, and holds a lock there, so of several that start at once one stays.  Programs send a job and wait for a word that
it is done: where the worker dies, a program notices an end of file, and where the program dies, the worker does; both
go on.  A program that wants to fork, or ends, waits no longer: the job is asked for again afterwards, and may be done
by then.
"""

from __future__ import annotations

import atexit
import marshal
import os
import platform
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from engine.fuser.backend import code, kernel_cache, private_files, processes, tiering
from engine.fuser.backend.pace import BRISK, Pace, give_way
from engine.lang.locks import lock
from engine.lang.records import dataclass

Job = tuple[Any, ...]
"""The name of what is to be done, and what it is to be done with: numbers, strings, bytes, and tuples of them."""
Handlers = Mapping[str, Callable[..., object]]

IDLE: Final = 30.0
"""Seconds without a job until the worker goes."""
START: Final = 20.0
"""Seconds that a worker may take to start."""
LONG: Final = 120.0
"""Seconds after which a job is taken for one that never ends."""
AGAIN: Final = 60.0
"""Seconds until a worker is asked for again where there was none to be had."""
_TICK: Final = 0.05
"""Seconds between two looks at whether the program wants to fork, or ends."""
_ATTEMPTS: Final = 3
"""Workers that may die of a job."""
_PATIENCE: Final = 1.0
"""Seconds that a worker may take to accept a program."""
_LENGTH: Final = 8
"""Bytes of the length that stands before a message."""
_MOST: Final = 1 << 28
"""Bytes of the longest message."""
COMPILE: Final = "compile"
"""The job of LLVM's text: the key of its code, the text."""
LOWER: Final = "lower"
"""The job of a group: its graph, an example of a call, sizes that it is for alone, the dtype of new tensors."""
PLAN: Final = "plan"
"""The job of a function: its program, the program's key, its name, the key of a call, what its plan is made of, the
dtype of new tensors."""
_SETTING: Final = "TSREPL_WORKER"
"""0: no process compiles beside the program."""
_MAIN: Final = "engine.executor.plans.jobs"
"""The module whose `main` serves."""


@dataclass(slots=True)
class _State:
    """The connection of this process; until when (`time.monotonic`) a worker that was started may come, and from when
    on one may be asked for again."""

    connection: socket.socket | None = None
    process: int = 0
    expected: float = 0.0
    not_before: float = 0.0


_STATE: Final = _State()


# ------------------------------------------------------------------ programs


def in_background(task: tiering.Task) -> None:
    """Let the thread that compiles do this, which needs the worker: that starts meanwhile, if need be.

    The thread that asks sees to that.  It has the interpreter's lock, which that other one gets for moments only: to
    look at the engine's sources, which takes milliseconds here, would take it a tenth of a second.
    """
    if _may_be_had() and not _is_coming() and not is_there():
        with suppress(OSError):  # whoever waits for the worker comes to it, too
            place = _place()
            if place is not None and not _serves(place):
                _start()
    tiering.in_background(task)


def is_there() -> bool:
    """True if this process has a connection to the worker, which may have gone meanwhile."""
    return _STATE.connection is not None and _STATE.process == os.getpid()


def is_wanted() -> bool:
    """True in the thread that compiles beside the program, unless there is no worker to be had."""
    return tiering.is_beside() and _may_be_had()


def _may_be_had() -> bool:
    return os.environ.get(_SETTING) != "0" and time.monotonic() >= _STATE.not_before


def does(*job: Any) -> bool:
    """True once the worker has done the job, or has found that it cannot be done; False where there is no worker.

    It is asked by the thread that compiles alone, since others have somebody waiting for them.
    Raises `tiering.Postponed` where the program forks or ends.
    """
    if not is_wanted():
        return False
    try:
        message = _message(job)
    except ValueError:  # it nests too deeply
        return False
    for attempt in range(_ATTEMPTS):
        if attempt > 0:
            _hang_up()
            time.sleep(_TICK)  # a worker that ends may take a moment until it listens no more
        try:
            connection = _connection()
            if connection is None:
                return False
            mistake = _answer(connection, message)
        except _Stopped:
            _hang_up()
            raise tiering.Postponed from None
        except TimeoutError:
            break
        except (OSError, ValueError, EOFError, TypeError):  # it is gone, or answers what is no answer
            continue
        if mistake:
            tiering.note_mistake(f"in the worker: {mistake}")
        return True
    _hang_up()
    _STATE.not_before = time.monotonic() + AGAIN
    return False


def _answer(connection: socket.socket, message: bytes) -> Any:
    """The word of the worker once it is done: a mistake of ours, or nothing.

    Raises _Stopped, TimeoutError, EOFError or OSError.
    """
    connection.settimeout(LONG)
    connection.sendall(message)
    until = time.monotonic() + LONG
    connection.settimeout(_TICK)

    def wait() -> None:
        if tiering.has_to_stop():
            raise _Stopped
        if time.monotonic() > until:
            raise TimeoutError

    return _received(connection, wait)


def _connection() -> socket.socket | None:
    """The connection to the worker, which is started if need be; None where there is none."""
    if not is_there():  # a child has its own
        _hang_up()
        place = _place()
        _STATE.connection = None if place is None else _connected(place) or _started(place)
        _STATE.process, _STATE.expected = os.getpid(), 0.0
        atexit.register(_hang_up)
    return _STATE.connection


def _hang_up() -> None:
    if _STATE.connection is not None:
        _STATE.connection.close()
        _STATE.connection = None


def _started(place: Path) -> socket.socket | None:
    """A connection to a new worker; None where it does not come."""
    if not _is_coming():
        _start()
    found = None
    while found is None and time.monotonic() < _STATE.expected:
        if tiering.has_to_stop():
            raise _Stopped
        time.sleep(_TICK / 10)
        found = _connected(place)
    if found is None:
        _STATE.not_before = time.monotonic() + AGAIN
    return found


def _is_coming() -> bool:
    """True while a worker that was started may not listen yet; one that came and was not asked goes after that."""
    return time.monotonic() < _STATE.expected


def _start() -> None:
    if processes.start(_MAIN, {}):
        _STATE.expected = time.monotonic() + START


def _serves(place: Path) -> bool:
    """True if a worker listens there."""
    found = _connected(place)
    if found is not None:
        found.close()
    return found is not None


def _connected(place: Path) -> socket.socket | None:
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(_PATIENCE)
    try:
        with _short(place) as name:
            made.connect(name)
    except OSError:
        made.close()
        return None
    return made


def _place() -> Path | None:
    """The socket of the worker for programs like this one; None where there can be none."""
    folder = kernel_cache.directory()
    if folder is None or not hasattr(socket, "AF_UNIX") or not os.access(folder, os.W_OK):
        return None
    key = kernel_cache.key_of(
        (platform.node(), kernel_cache.state_of_engine(*kernel_cache.ROOMS), *code.circumstances())
    )
    return folder / f"worker-{key[:16]}"


@contextmanager
def _short(place: Path) -> Iterator[str]:
    """A name of the socket that the system takes, which are short ones."""
    if len(os.fsencode(place)) < 100:
        yield os.fspath(place)
        return
    folder = os.open(place.parent, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{folder}/{place.name}"
    finally:
        os.close(folder)


# ------------------------------------------------------------------ messages


class _Stopped(Exception):
    """Somebody has to stop waiting."""


def _message(content: Any) -> bytes:
    data = marshal.dumps(content)
    return len(data).to_bytes(_LENGTH, "little") + data


def _received(connection: socket.socket, wait: Callable[[], None] = lambda: None) -> Any:
    """The next message; `wait()` is called whenever the connection's time is over, and may raise.

    Raises EOFError where the other one is gone, ValueError for what is no message.
    """
    size = int.from_bytes(_bytes(connection, _LENGTH, wait), "little")
    if size > _MOST:
        raise ValueError(f"a message of {size} bytes")
    return marshal.loads(_bytes(connection, size, wait))


def _bytes(connection: socket.socket, count: int, wait: Callable[[], None]) -> bytes:
    found = bytearray()
    while len(found) < count:
        try:
            more = connection.recv(count - len(found))
        except TimeoutError:
            wait()
            continue
        if not more:
            raise EOFError
        found += more
    return bytes(found)


# ------------------------------------------------------------------ the worker


@dataclass(slots=True)
class _Serving:
    """One worker: `busy` is held during a job; `last` is when (`time.monotonic`) one ended."""

    handlers: Handlers
    busy: Any
    last: float
    pace: Pace = field(default_factory=Pace)

    def answer(self, connection: socket.socket) -> None:
        """Do the jobs of one program, until it is gone."""
        with suppress(OSError, ValueError, EOFError, TypeError), connection:
            while True:
                connection.settimeout(None)
                name, *rest = _received(connection)
                with self.busy:
                    mistake = self.pace.run(self.mistake, name, rest)
                    self.last = time.monotonic()
                connection.sendall(_message(mistake))

    def mistake(self, name: str, data: Sequence[Any]) -> str:
        """The mistake of ours that kept the job from being done; empty if it was done, or there is no memory."""
        try:
            self.handlers[name](*data)
        except MemoryError:
            return ""
        except Exception as error:
            return "".join(traceback.format_exception(error))
        return ""

    def is_wanted(self, place: Path, made: os.stat_result) -> bool:
        """False where no job has come for a while, or nobody can find the worker any more."""
        if time.monotonic() - self.last > IDLE and self.busy.acquire(blocking=False):
            self.busy.release()
            return False
        try:
            found = place.lstat()
        except OSError:
            return False
        return (found.st_ino, found.st_dev) == (made.st_ino, made.st_dev)


def serve(handlers: Handlers) -> None:
    """Do jobs for programs, one after the other, until none has come for a while; at once if another one serves."""
    place = _place()
    if place is None:
        return
    give_way(BRISK)
    with private_files.alone(place.with_name(f"{place.name}.lock")) as is_alone:
        if is_alone:
            _listen(place, handlers)


def _listen(place: Path, handlers: Handlers) -> None:
    serving = _Serving(handlers, lock(), time.monotonic())
    with socket.socket(socket.AF_UNIX) as listener:
        made = _bound(listener, place)
        try:
            while serving.is_wanted(place, made):
                with suppress(TimeoutError):
                    connection, _ = listener.accept()
                    threading.Thread(target=serving.answer, args=(connection,), daemon=True).start()
        finally:
            with suppress(OSError):
                os.unlink(place)


def _bound(listener: socket.socket, place: Path) -> os.stat_result:
    """Let the socket have that name, and nobody but the user reach it."""
    with suppress(FileNotFoundError):
        os.unlink(place)
    before = os.umask(0o077)
    try:
        with _short(place) as name:
            listener.bind(name)
    finally:
        os.umask(before)
    listener.listen()
    listener.settimeout(1.0)
    return place.lstat()
