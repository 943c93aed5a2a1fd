"""The worker: whoever dies, hangs or talks nonsense, the other one goes on."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.fuser.backend import processes, tiering, worker

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs sockets with names")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of its own, in which this thread may ask a worker; none is started."""
    folder = tmp_path / "kernels"
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(folder))
    monkeypatch.delenv("TSREPL_WORKER", raising=False)
    monkeypatch.setattr(worker, "_STATE", worker._State())
    monkeypatch.setattr(tiering, "is_beside", lambda: True)
    monkeypatch.setattr(processes, "start", lambda *given: False)
    found = worker._place()
    assert found is not None
    return found


Start = Callable[[worker.Handlers], threading.Thread]


@pytest.fixture
def serve(place: Path) -> Iterator[Start]:
    """Serves in a thread of this process, until the test is over."""
    started: list[threading.Thread] = []

    def start(handlers: worker.Handlers) -> threading.Thread:
        thread = threading.Thread(target=worker.serve, args=(handlers,))
        started.append(thread)
        thread.start()
        _until(lambda: _is_there(place))
        return thread

    yield start
    worker._hang_up()
    place.unlink(missing_ok=True)
    for thread in started:
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture(autouse=True)
def _stays_in_front(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "nice", lambda niceness: 0)


def _is_there(place: Path) -> bool:
    found = worker._connected(place)
    if found is not None:
        found.close()
    return found is not None


def _until(holds: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_jobs_are_plain_data_and_done_one_after_the_other(serve: Start) -> None:
    given: list[Any] = []
    serve({"note": lambda *data: given.append(data)})
    jobs = [(1, 2.5, "text", b"bytes", (None, True)), (), (("nested",) * 3,), (b"x" * 5_000_000,)]
    assert [worker.does("note", *job) for job in jobs] == [True] * 4
    assert given == jobs


def test_a_mistake_is_told_and_the_worker_goes_on(serve: Start) -> None:
    given: list[int] = []

    def divide(number: int) -> None:
        given.append(1 // number)

    serve({"divide": divide})
    assert [worker.does("divide", number) for number in (1, 0, -1)] == [True] * 3
    assert given == [1, -1]
    (mistake,) = tiering.failures()
    tiering.forget_failures()
    assert mistake.startswith("in the worker: ")
    assert "ZeroDivisionError" in mistake


def test_a_lack_of_memory_is_no_mistake(serve: Start) -> None:
    def take() -> None:
        raise MemoryError

    serve({"take": take})
    assert worker.does("take")
    assert tiering.failures() == []


def test_what_nests_too_deeply_is_not_sent(serve: Start) -> None:
    serve({"note": lambda data: None})
    nested: Any = ()
    for _ in range(5000):
        nested = (nested,)
    assert not worker.does("note", nested)
    assert worker.does("note", ())


# ------------------------------------------------------------------ no worker


def _without_a_thread_of_its_own(patch: pytest.MonkeyPatch, place: Path) -> None:
    patch.setattr(tiering, "is_beside", lambda: False)


def _unwanted(patch: pytest.MonkeyPatch, place: Path) -> None:
    patch.setenv("TSREPL_WORKER", "0")


def _without_a_store(patch: pytest.MonkeyPatch, place: Path) -> None:
    patch.setenv("TSREPL_KERNEL_CACHE", "0")


def _read_only(patch: pytest.MonkeyPatch, place: Path) -> None:
    patch.setattr(os, "access", lambda path, mode: mode != os.W_OK)


@pytest.mark.parametrize("why", [_without_a_thread_of_its_own, _unwanted, _without_a_store, _read_only])
def test_nobody_is_asked_where(
    why: Callable[[pytest.MonkeyPatch, Path], None], serve: Start, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve({"note": lambda: None})
    why(monkeypatch, place)
    assert not worker.does("note")


def test_where_none_starts_nobody_asks_again_for_a_while(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def start(module: str, environment: Any) -> bool:
        asked.append(module)
        return False

    monkeypatch.setattr(processes, "start", start)
    assert not worker.does("note")
    assert not worker.does("note")
    assert len(asked) == 1
    worker._STATE.not_before = 0.0
    assert not worker.does("note")
    assert len(asked) == 2


@pytest.mark.parametrize("error", [OSError("no more processes"), NotImplementedError(), AttributeError("posix_spawn")])
def test_a_system_that_has_no_more_processes_has_no_worker(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any, **more: Any) -> int:
        raise error

    monkeypatch.setattr(os, "posix_spawn", refuse, raising=False)
    assert not processes.start("engine.executor.plans.jobs", {})


def test_a_worker_that_comes_late_is_waited_for(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(module: str, environment: Any) -> bool:
        late.start()
        return True

    late = threading.Timer(0.2, worker.serve, ({"note": lambda: None},))
    monkeypatch.setattr(processes, "start", start)
    assert worker.does("note")
    assert worker.does("note")
    worker._hang_up()
    place.unlink()
    late.join(10)


def test_one_that_does_not_come_is_waited_for_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(processes, "start", lambda module, environment: started.append(module) or True)
    monkeypatch.setattr(worker, "START", 0.2)
    assert worker.is_wanted()
    assert not worker.does("note")
    assert not worker.is_wanted()
    assert len(started) == 1


@pytest.fixture
def asked(place: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The processes that were started, and the tasks that were left to the thread that compiles."""
    found: list[str] = []
    monkeypatch.setattr(processes, "start", lambda module, environment: found.append(module) or True)
    monkeypatch.setattr(tiering, "in_background", lambda task: found.append("task"))
    return found


def test_it_starts_once_before_anybody_asks(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        worker.in_background(lambda: None)
    assert asked == [worker._MAIN, "task", "task", "task"]
    monkeypatch.setattr(worker, "START", 0.2)
    worker._STATE.expected = time.monotonic() + worker.START
    assert not worker.does("note")
    assert asked.count(worker._MAIN) == 1


def test_one_that_was_never_asked_and_went_is_started_anew(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "START", 0.1)
    for _ in range(2):
        worker.in_background(lambda: None)
        time.sleep(2 * worker.START)
    assert asked.count(worker._MAIN) == 2
    assert not worker.does("note")
    assert asked.count(worker._MAIN) == 3


def test_none_starts_beside_one_that_serves(asked: list[str], serve: Start) -> None:
    serve({"note": lambda: None})
    worker.in_background(lambda: None)
    assert worker.does("note")
    worker.in_background(lambda: None)
    assert asked == ["task", "task"]


@pytest.mark.parametrize("why", [_unwanted, _without_a_store, _read_only])
def test_none_starts_where_nobody_is_asked(
    why: Callable[[pytest.MonkeyPatch, Path], None], asked: list[str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why(monkeypatch, place)
    worker.in_background(lambda: None)
    assert asked == ["task"]


def test_one_of_several_workers_stays(serve: Start, place: Path) -> None:
    first = serve({"note": lambda: None})
    second = serve({})
    second.join(10)
    assert (first.is_alive(), second.is_alive()) == (True, False)
    assert worker.does("note")
    assert tiering.failures() == []


def test_a_socket_that_was_left_is_replaced(serve: Start, place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left, worker._short(place) as name:
        left.bind(name)
    assert not _is_there(place)
    serve({"note": lambda: None})
    assert worker.does("note")


def test_the_path_of_the_store_may_be_long(serve: Start, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = place.parent.joinpath(*["long" * 10] * 5)
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(folder))
    found = worker._place()
    assert found is not None
    thread = threading.Thread(target=worker.serve, args=({"note": lambda: None},))
    thread.start()
    _until(found.exists)
    assert worker.does("note")
    found.unlink()
    thread.join(10)


def test_nobody_but_the_user_reaches_it(serve: Start, place: Path) -> None:
    serve({})
    assert place.stat().st_mode & 0o077 == 0


# ------------------------------------------------------------------ the end of a worker


def test_it_goes_when_no_job_comes(serve: Start, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "IDLE", 0.1)
    thread = serve({"note": lambda: None})
    thread.join(10)
    assert not thread.is_alive()
    assert not place.exists()


def test_it_stays_while_a_job_takes_long(serve: Start, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "IDLE", 0.1)
    serve({"sleep": time.sleep})
    assert worker.does("sleep", 2.5)


def test_it_goes_with_its_store(serve: Start, place: Path) -> None:
    thread = serve({"note": lambda: None})
    assert worker.does("note")
    place.unlink()
    thread.join(10)
    assert not thread.is_alive()


def test_a_program_finds_the_next_one(serve: Start, place: Path) -> None:
    given: list[int] = []
    for number in range(3):
        thread = serve({"note": given.append})
        assert worker.does("note", number)
        assert worker._STATE.connection is not None
        worker._STATE.connection.shutdown(socket.SHUT_RDWR)  # as if the worker had gone
        place.unlink()
        thread.join(10)
    assert given == [0, 1, 2]


# ------------------------------------------------------------------ nonsense


@pytest.mark.parametrize(
    "nonsense",
    [b"", b"\x00" * 7, b"\xff" * 8, (4).to_bytes(8, "little") + b"\xff" * 4, (1 << 20).to_bytes(8, "little") + b"x",
     worker._message(3), worker._message(()), worker._message(("nobody", 1)), worker._message(("note", 1, 2, 3))],
)  # fmt: skip
def test_a_worker_survives_what_programs_send(nonsense: bytes, serve: Start, place: Path) -> None:
    serve({"note": lambda: None})
    with socket.socket(socket.AF_UNIX) as made, worker._short(place) as name:
        made.connect(name)
        made.sendall(nonsense)
    assert worker.does("note")
    tiering.forget_failures()


@pytest.mark.parametrize(
    "nonsense",
    [b"", b"\x00" * 7, b"\xff" * 8, (4).to_bytes(8, "little") + b"\xff" * 4, (9).to_bytes(8, "little") + b"x"],
)
def test_a_program_survives_what_workers_answer(nonsense: bytes, place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, worker._short(place) as name:
        listener.bind(name)
        listener.listen()

        def answer() -> None:
            for _ in range(worker._ATTEMPTS):
                made, _ = listener.accept()
                with made:
                    made.recv(1 << 16)
                    made.sendall(nonsense)

        thread = threading.Thread(target=answer)
        thread.start()
        assert not worker.does("note")
        thread.join(10)
    assert worker._STATE.not_before > time.monotonic()


def test_who_never_answers_is_not_waited_for_for_ever(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LONG", 0.2)
    with socket.socket(socket.AF_UNIX) as listener, worker._short(place) as name:
        listener.bind(name)
        listener.listen()
        assert not worker.does("note")


def test_every_call_of_the_system_may_fail(serve: Start, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The n-th one, for all n: the job is done by then, or by whoever asked."""
    serve({"note": lambda: None})

    class Failing(socket.socket):
        left = 0

        def _count(self) -> None:
            Failing.left -= 1
            if Failing.left == 0:
                raise OSError("injected")

        def connect(self, *args: Any) -> None:
            self._count()
            super().connect(*args)

        def sendall(self, *args: Any) -> None:
            self._count()
            super().sendall(*args)

        def recv(self, *args: Any) -> bytes:
            self._count()
            return super().recv(*args)

    monkeypatch.setattr(socket, "socket", Failing)
    told = []
    for number in range(1, 30):
        worker._hang_up()
        worker._STATE.not_before = 0.0
        Failing.left = number
        told.append(worker.does("note"))
        if Failing.left > 0:
            break
    assert told[-1]
    assert len(told) > 4
    assert told.count(False) == 1  # where it cannot be reached; anything later is asked once more


# ------------------------------------------------------------------ whole programs

PROGRAM = """
import os, sys, threading, time
import engine, engine.torch as torch
from engine.fuser.backend import tiering, worker
worker._MAIN = "tests.unit.fuser.backend.slow_worker"
done = []
def task():
    done.append(worker.does("sleep", {seconds}))
tiering.in_background(task)
while worker._STATE.connection is None:
    time.sleep(0.005)
time.sleep(0.1)
"""


def _run(rest: str, tmp_path: Path, seconds: float = 0.0) -> tuple[str, float]:
    """What a program prints that waits for a worker, and the seconds from there to its end."""
    root = Path(__file__).parents[4]
    environment = {
        **os.environ, "TSREPL_KERNEL_CACHE": str(tmp_path / "kernels"), "PYTHONPATH": str(root),
        "TSREPL_COMPILE": "background",
    }  # fmt: skip
    begin = f"{PROGRAM.format(seconds=seconds)}start = time.perf_counter()\nprint('begun', flush=True)\n"
    text = begin + textwrap.dedent(rest)
    with subprocess.Popen([sys.executable, "-c", text], env=environment, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "begun\n"
        start = time.perf_counter()
        told = program.stdout.read()
    assert program.returncode == 0
    return told, time.perf_counter() - start


def test_a_program_that_ends_does_not_wait(tmp_path: Path) -> None:
    assert _run("", tmp_path, seconds=20)[1] < 5


def test_a_program_that_forks_does_not_wait_and_asks_again(tmp_path: Path) -> None:
    told, seconds = _run(
        """
        worker.does = lambda *job: "asked again"
        child = os.fork()
        tiering.wait()
        if child:
            os.waitpid(child, 0)
        print(done, time.perf_counter() - start < 5, flush=True)
        os._exit(0)
        """,
        tmp_path,
        seconds=20,
    )
    assert told == "['asked again'] True\n" * 2
    assert seconds < 10


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_worker_that_is_killed_is_started_anew(how: signal.Signals, tmp_path: Path) -> None:
    told, _ = _run(
        f"""
        import contextlib, socket, struct
        def pid():
            given = worker._STATE.connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            return struct.unpack("3i", given)[0]
        killed = set()
        while not done:
            with contextlib.suppress(OSError, AttributeError):
                if pid() not in killed:
                    killed.add(pid())
                    os.kill(pid(), {int(how)})
            time.sleep(0.01)
        print(done, tiering.failures(), len(killed))
        """,
        tmp_path,
        seconds=20,
    )
    assert told == f"[False] [] {worker._ATTEMPTS}\n"


def test_it_is_a_session_of_its_own_that_hears_no_interrupts(tmp_path: Path) -> None:
    told, _ = _run(
        """
        import socket, struct
        given = worker._STATE.connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        pid = struct.unpack("3i", given)[0]
        print(os.getsid(pid) != os.getsid(0), os.getpgid(pid) != os.getpgid(0))
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            print("no child")
        os.kill(pid, 9)
        """,
        tmp_path,
    )
    assert told == "True True\nno child\n"
