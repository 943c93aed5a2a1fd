"""Errors and interrupts of compiled functions that Python cells call."""

from __future__ import annotations

import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

Run = Callable[[str], Any]
BOOM = "def boom(x: Tensor):\n    y = x + 1\n    return y.view(7)"
COUNT = (
    "def count(n: int) -> int:\n    total = 0\n    for i in range(n):\n"
    "        total = (total * 3 + i) % 1000003\n    return total"
)


def shown(shell: InteractiveShell, cell: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    shell.run_cell(cell, store_history=True)
    return re.sub(r"\x1b\[[\d;]*m", "", "".join(capsys.readouterr()))


def test_a_failing_program_shows_its_own_lines_and_the_caller_s(
    shell: InteractiveShell, script: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    script(BOOM)
    shell.user_ns["x"] = np.ones((2, 3))
    said = shown(shell, "def through(x):\n    return boom(x)\nthrough(x)", capsys)
    assert said.count("shape '[7]' is invalid for input of size 6") == 1
    assert "return y.view(7)" in said and "<--- HERE" in said
    assert "cell 2, line 3" in said and "cell 2, line 2, in through" in said and "cell 1, line 4, in boom" in said
    assert "engine/" not in said and "Traceback" not in said


def test_wrong_arguments_are_told_without_frames_of_the_engine(
    shell: InteractiveShell, script: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    script(BOOM)
    said = shown(shell, "boom(1, 2, 3)", capsys)
    assert "expected at most 1 argument(s) but received 3" in said and "boom(1, 2, 3)" in said
    assert "engine/" not in said


def test_cells_of_python_are_named_in_every_error(
    shell: InteractiveShell, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run("import engine.torch as torch\nfrom engine.torch import nn")
    run("class P(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.x = 1 / n")
    assert "cell 2, line 4, in __init__" in shown(shell, "%%torchscript\np = P(0)", capsys)
    assert "cell 4, line 3" in shown(shell, "@torch.jit.script\ndef g(x):\n    return x + unknown", capsys)
    run("%%torchscript\nclass Q(nn.Module):\n    def forward(self, x):\n        return x.view(7)")
    said = shown(shell, "Q()(torch.ones(2))", capsys)
    assert "cell 6, line 1" in said and "cell 5, line 4, in forward" in said


def test_other_errors_are_shown_as_ever(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    assert "ZeroDivisionError" in shown(shell, "1 / 0", capsys)
    assert "KeyboardInterrupt" in shown(shell, "raise KeyboardInterrupt", capsys)


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("x = torch.randn(3)", "import engine.torch as torch"),
        ("import torch", "import engine.torch as torch"),
        ("from torch import nn", "import engine.torch as torch"),
        ("import torch.nn.functional as F", "import engine.torch as torch"),
        ("nn.Linear(2, 3)", "from engine.torch import nn"),
        ("def f(x):\n    return F.relu(x)\nf(1)", "import engine.torch.nn.functional as F"),
    ],
)
def test_names_that_cells_of_torchscript_know_have_an_import(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], cell: str, line: str
) -> None:
    said = shown(shell, cell, capsys)
    assert f"hint: {line}" in said and "Error" in said
    shell.run_cell(line, store_history=True)
    if "import torch" not in cell and "from torch" not in cell:
        assert "Error" not in shown(shell, cell, capsys).replace("TypeError", "")


def test_other_names_have_none(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    for cell in ("nothing", "import nothing_like_that"):
        assert "hint" not in shown(shell, cell, capsys)


@pytest.mark.parametrize("cell", ["boom(1, 2, 3)", "boom(torch.ones(3))"])
def test_ipython_keeps_of_an_error_what_was_shown(
    shell: InteractiveShell, script: Run, run: Run, capsys: pytest.CaptureFixture[str], cell: str
) -> None:
    """And formats no traceback of its own, for which it would parse the engine's files."""
    history: Any = shell.history_manager
    if not hasattr(history, "exceptions"):
        pytest.skip("this IPython keeps no errors")
    run("import engine.torch as torch")
    script(BOOM)
    said = shown(shell, cell, capsys)
    kept = history.exceptions[shell.execution_count - 1]["traceback"]
    assert re.sub(r"\x1b\[[\d;]*m", "", "\n".join(kept)).strip() == said.strip()


@pytest.mark.parametrize("cell", ["count(1000000000000)", "%%torchscript\ncount(1000000000000)"])
def test_an_interrupt_stops_a_loop_at_once_and_names_its_line(
    shell: InteractiveShell, script: Run, capsys: pytest.CaptureFixture[str], cell: str
) -> None:
    script(COUNT)
    for _ in range(3):
        script("count(100000)")
    assert all(_delay_of_interrupt(shell, cell, capsys) < 0.2 for _ in range(3))


def _delay_of_interrupt(shell: InteractiveShell, cell: str, capsys: pytest.CaptureFixture[str]) -> float:
    """Seconds of the processor from an interrupt of the cell to its end, which has to name the line of the loop."""
    main, sent = threading.main_thread().ident, list[float]()
    assert main is not None
    clock = time.pthread_getcpuclockid(main)  # the loop runs until it is stopped, and others do not count

    def interrupt() -> None:
        sent.append(time.clock_gettime(clock))
        signal.pthread_kill(main, signal.SIGINT)

    timer = threading.Timer(0.5, interrupt)
    timer.start()
    said = shown(shell, cell, capsys)
    late = time.clock_gettime(clock) - sent[0]
    timer.join()
    assert "in count" in said and "for i in range(n)" in said and "Interrupted" in said
    return late


EAGER = {
    "an operator": "y = torch.randn(20)",
    "a method": "y = x.sort()",
    "in a function": "def through(x):\n    return torch.tanh(x)\nthrough(x)",
    "a module": "linear(x)",
    "another program": "other(x)",
    "its compilation": "torch.jit.script(through)",
}
STEPS = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55)
"""Frames of the engine that a cell enters before it is interrupted."""


@pytest.mark.parametrize("cell", EAGER.values(), ids=EAGER)
def test_an_interrupt_blames_only_what_was_running(
    shell: InteractiveShell, script: Run, run: Run, capsys: pytest.CaptureFixture[str], cell: str
) -> None:
    """Wherever the engine is interrupted, the lines shown are those of this cell and of what it calls."""
    run("import engine.torch as torch\nx, linear = torch.ones(4), torch.nn.Linear(4, 4)")
    run("def through(x):\n    return x + 1")
    script(COUNT)
    script("def other(x):\n    return x * 2 + 1\nother(torch.ones(4))")
    run("for _ in range(5): count(100000)")
    shell.run_cell(cell, store_history=True)  # what is made on first use is there then
    stopped = 0
    for steps in STEPS:
        with interrupted_after(steps):
            said = shown(shell, cell, capsys)
        stopped += "Interrupted" in said
        assert "in count" not in said and "for i in range(n)" not in said, said
        assert "Traceback" not in said and "engine/" not in said and "tsrepl/" not in said, said
        if "Interrupted" in said:
            assert f"cell {shell.execution_count - 1}, line " in said
    assert stopped


NEAR_MAGICS = {
    "%tsjit_grph f": "%tsjit_graph", "%tsjt_graph f": "%tsjit_graph", "%tsjit_reprt f out.html": "%tsjit_report",
    "%%torchscrip\nx": "%%torchscript", "%%torch_script\nx": "%%torchscript",
}  # fmt: skip
VIEWED = (
    "%tsjit_kernels program(x, x)", "%tsjit_passes program(x, x)", "%tsjit_trace program(x, x)",
    "%tsjit_profile program(x, x)", "%tsjit_profile --types program(x, x)", "%tsjit_guards program(x, x)",
    "%tsjit_debug program(x, x)", "%tsjit_graph program", "%%torchscript\nprogram(x, x)",
    "%%torchscript\ndef program(a, b):\n    return torch.tanh(a * b) + 2",
)  # fmt: skip


@pytest.mark.parametrize("cell", VIEWED)
def test_after_an_interrupt_a_view_and_what_it_shows_work(
    shell: InteractiveShell, script: Run, run: Run, capsys: pytest.CaptureFixture[str], cell: str
) -> None:
    """Whatever is interrupted, the compiling, the run or the debugging."""
    run("import engine.torch as torch\nx = torch.zeros(4)")
    stopped = 0
    for steps in (0, 5, 40, 200, 1000, 4000):
        script("def program(a, b):\n    return torch.tanh(a * b) + 2")
        with interrupted_after(steps):
            said = shown(shell, cell, capsys)
        stopped += "Interrupted" in said
        assert "Traceback" not in said, said
        assert "Interrupted" not in (again := shown(shell, cell, capsys)) and "rror: " not in again, again
        assert run("program(x, x).tolist()") == [2.0] * 4
        if "debug" in cell:
            run("%tsjit_debug q")
    assert stopped


INTERRUPTING = """
def trace(frame, event, arg):
    global left
    left -= str(frame.f_globals.get("__name__", "")).startswith("engine.") and is_of_a_cell(frame)
    if left < 0:
        sys.settrace(None)
        raise KeyboardInterrupt

def is_of_a_cell(frame):
    while frame is not None and "<ipython" not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None
"""
"""A function that sees each call; it is told as one of the engine's, since an interrupt comes from no code."""


@contextmanager
def interrupted_after(steps: int) -> Iterator[None]:
    """An interrupt as the engine enters a frame for the first time after so many steps, within the block."""
    made = {"__name__": "engine.interrupting", "sys": sys, "left": steps}
    exec(INTERRUPTING, made)
    before = sys.gettrace()
    sys.settrace(made["trace"])
    try:
        yield
    finally:
        sys.settrace(before)


def test_after_unloading_errors_have_python_s_traceback_again(
    shell: InteractiveShell, script: Run, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    script(BOOM)
    run("%unload_ext tsrepl")
    assert "Traceback" in shown(shell, "boom(1, 2, 3)", capsys)


def test_attributes_that_are_not_there_are_told_by_the_cell_s_line(
    shell: InteractiveShell, script: Run, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    script("class Net(nn.Module):\n    def forward(self, x: Tensor):\n        return x\nm = Net()")
    said = shown(shell, "def through(m):\n    return m.forwrd\nthrough(m)", capsys)
    assert "AttributeError" in said and "forward" in said and "cell 2, line 2, in through" in said
    assert "engine/" not in said and said.count("line 2, in through") == 1
    assert "Traceback" in shown(shell, "(1).nothing", capsys)


def test_magics_that_are_not_there_have_a_name_near(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    for wrong, right in NEAR_MAGICS.items():
        assert f"not found; did you mean '{right}'" in shown(shell, wrong, capsys), wrong
    assert "did you mean" not in shown(shell, "%nothing_like_that", capsys)
