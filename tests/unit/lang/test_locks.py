"""Locks are made in one place, and a forked child finds none taken but those of the thread that forked."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import engine
from engine.lang import locks

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
ROOT = Path(engine.__file__).parents[1]
KINDS = {"Lock", "RLock", "Condition", "Event", "Semaphore", "BoundedSemaphore", "Barrier", "allocate_lock"}
LIBRARIES = ("threading", "_thread", "multiprocessing")


def _made_in(path: Path) -> list[str]:
    """The places where the module makes a lock of Python's library, or imports the means to."""
    found: list[str] = []
    text = path.read_text(encoding="utf-8")
    if not any(name in text for name in LIBRARIES):
        return found
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in KINDS and isinstance(node.value, ast.Name):
            names = [node.attr] if node.value.id in LIBRARIES else []
        elif isinstance(node, ast.ImportFrom) and node.module in LIBRARIES:
            names = [each.name for each in node.names if each.name in KINDS]
        else:
            continue
        found += [f"{path.relative_to(ROOT)}:{node.lineno} {name}" for name in names]
    return found


def test_locks_are_made_in_one_module() -> None:
    sources = [path for folder in ("engine", "tsrepl") for path in (ROOT / folder).rglob("*.py")]
    found = [place for path in sources for place in _made_in(path)]
    assert len(sources) > 100
    assert [place for place in found if not place.startswith("engine/lang/locks.py")] == []
    assert found, "the module that makes them is found"


def in_child(check: Callable[[], bool]) -> bool:
    """True if the check holds in a forked child."""
    child = os.fork()
    if child == 0:
        ok = False
        try:
            ok = check()
        finally:
            os._exit(0 if ok else 1)
    return os.waitpid(child, 0)[1] == 0


@forks
def test_a_child_finds_what_other_threads_held_free() -> None:
    lock, other, condition = locks.lock(), locks.lock(), locks.condition()
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with lock, other, other, condition:
            held.set()
            let_go.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    try:
        assert locks.is_taken(lock)

        def all_free() -> bool:
            with condition:
                condition.notify_all()
            return lock.acquire(timeout=5) and other.acquire(timeout=5)

        assert in_child(all_free)
        assert locks.is_taken(lock), "the parent's is still taken"
    finally:
        let_go.set()
        thread.join()
    assert not locks.is_taken(lock)


@forks
def test_the_thread_that_forks_keeps_its_own() -> None:
    lock = locks.lock()
    with lock:

        def is_still_mine() -> bool:
            assert locks.is_mine(lock)
            taken: list[bool] = []
            thread = threading.Thread(target=lambda: taken.append(locks.is_taken(lock)))
            thread.start()
            thread.join()
            lock.release()
            return taken == [True] and not locks.is_mine(lock)

        assert in_child(is_still_mine)
        assert locks.is_mine(lock)


ALL_HELD = """
import io, os, signal, sys, threading
import engine, engine.torch as torch
from engine.fuser.backend import tiering
from engine.lang import locks

engine.set_compile_mode("eager")
tiering._PATIENCE = 0.1  # what holds the lock of compilation, does not let it go
TEXT = "def f(x: Tensor, n: int):\\n    for i in range(n):\\n        x = torch.tanh(x) * %r + i\\n    return x\\n"
FORKS = "def h(x):\\n    return x + %r\\ndef f(x):\\n    a = torch.jit.fork(h, x)\\n    return torch.jit.wait(a)\\n"
SHARED = torch.jit.CompilationUnit(TEXT % 3.0).f


def work(k):
    unit = torch.jit.CompilationUnit(TEXT % k)
    for _ in range(3):
        assert unit.f(torch.zeros(3), 1).tolist() == [0.0] * 3
        assert SHARED(torch.zeros(*[1] * int(4 * k)), 1).sum().item() == 0.0
    x = torch.ones(3, 3).requires_grad_()
    (torch.cumprod(x, 0) * x).sum().backward()
    assert x.grad[2].tolist() == [2.0] * 3
    torch.jit.trace(lambda a: a + k, torch.ones(2))
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), buffer)
    buffer.seek(0)
    torch.jit.load(buffer)(torch.ones(2))
    with torch.autocast("cpu"):
        torch.mm(torch.ones(2, 2), torch.ones(2, 2))
    assert torch.jit.CompilationUnit(FORKS % k).f(torch.zeros(1)).tolist() == [k]
    torch.set_num_threads(2)


work(0.25)
found = [each for each in locks._made if each is not tiering._STATE.lock]  # forks wait for that: nobody keeps it


def forked(held_locks, k):
    held, let_go = threading.Event(), threading.Event()

    def hold():
        for each in held_locks:
            each.acquire()
        held.set()
        let_go.wait()
        for each in held_locks:
            each.release()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        work(k)
        os._exit(0)
    let_go.set()
    thread.join()
    status = os.waitpid(child, 0)[1]
    if status:
        print("status", status, "with", held_locks)


forked(found, 0.5)
print(len(found) > 10)
"""


@forks
def test_a_child_works_whatever_was_held() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", ALL_HELD], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr
