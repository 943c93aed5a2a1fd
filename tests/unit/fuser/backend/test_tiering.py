"""One thread compiles, in the mode that is chosen, and forks do not disturb it."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import engine.torch as torch
from engine.fuser.backend import tiering
from engine.lang.errors import ArgumentError


@pytest.fixture(autouse=True)
def _same_mode_after() -> Iterator[None]:
    before = tiering.mode()
    yield
    tiering.set_mode(before)


def test_tasks_are_done_one_after_the_other_in_a_thread_of_their_own() -> None:
    """The newest first."""
    seen: list[tuple[int, str]] = []
    begun, go_on = threading.Event(), threading.Event()
    tiering.in_background(lambda: (begun.set(), go_on.wait()))
    begun.wait()
    for i in range(20):
        tiering.in_background(lambda i=i: seen.append((i, threading.current_thread().name)))  # type: ignore[misc]
    go_on.set()
    tiering.wait()
    assert seen == [(i, "compiling") for i in reversed(range(20))]
    assert tiering.is_idle()


def test_a_task_may_ask_for_another() -> None:
    seen: list[int] = []
    tiering.in_background(lambda: tiering.in_background(lambda: seen.append(1)))
    tiering.wait()
    assert seen == [1]


def test_a_task_that_fails_is_noted_and_the_next_one_is_done() -> None:
    seen: list[int] = []
    tiering.in_background(lambda: seen.append(1 // 0))
    tiering.in_background(lambda: seen.append(2))
    tiering.wait()
    assert seen == [2]
    assert "ZeroDivisionError" in tiering.failures()[-1]
    tiering.forget_failures()


def test_nobody_else_compiles_meanwhile() -> None:
    order: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def task() -> None:
        begun.set()
        go_on.wait()
        order.append("task")

    tiering.in_background(task)
    begun.wait()
    other = threading.Thread(target=lambda: _note(order))
    other.start()
    go_on.set()
    other.join()
    tiering.wait()
    assert order == ["task", "other"]


def _note(order: list[str]) -> None:
    with tiering.compiling():
        order.append("other")


@pytest.mark.parametrize("mode", tiering.MODES)
def test_modes(mode: str) -> None:
    torch.set_compile_mode(mode)
    assert torch.compile_mode() == mode


def test_a_mode_that_is_none() -> None:
    with pytest.raises(ArgumentError, match="no compile mode 'eagre'") as caught:
        torch.set_compile_mode("eagre")
    assert "eager" in str(caught.value.hints)


def _run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment, check=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_the_environment_chooses_the_first_mode() -> None:
    assert _run("import engine; print(engine.compile_mode())", TSREPL_COMPILE="off") == "off"


_FORK = """
import os, sys, threading
from engine.fuser.backend import tiering
begun, seen = threading.Event(), []
def first(): begun.set(); {work}; seen.append(1)
tiering.in_background(first)
begun.wait()
tiering.in_background(lambda: seen.append(2))
tiering.in_background(lambda: seen.append(3))
tiering._PATIENCE = {patience}
child = os.fork()
if child == 0:
    tiering.wait()
    print(tiering.mode(), len(seen), flush=True)
    os._exit(0)
os.waitpid(child, 0)
{release}
tiering.wait()
print(tiering.mode(), seen)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_what_waits_at_a_fork_is_done_in_both_processes() -> None:
    program = _FORK.format(work="sum(range(10**6))", patience=5.0, release="")
    assert _run(program) == "background 3\nbackground [1, 3, 2]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_whose_parent_was_compiling_compiles_nothing() -> None:
    program = "import threading\ngo_on = threading.Event()\n" + _FORK.format(
        work="go_on.wait()", patience=0.01, release="go_on.set()"
    )
    assert _run(program) == "off 0\nbackground [1, 3, 2]"
