"""The examples: short training lowers the loss, a graph is split into two whose gradients are right."""

from __future__ import annotations

import re
import resource
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import engine
from engine.fuser.backend import tiering

EXAMPLES = Path(__file__).parents[2] / "examples"


def _seconds_of_children() -> float:
    """Seconds of processors that programs took which this one started, and which have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_demo_ends_in_the_debuggers_first_stop() -> None:
    begun = _seconds_of_children()
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert _seconds_of_children() - begun < 10
    told, last = done.stdout.split("ts> %debug mlp(x)")
    changed = re.findall(r"^~ (\w+)(?:\(.*?\))?  ", told, re.M)
    assert {"inline", "peephole", "cse"} <= {*changed}
    assert re.search(r"→ +71 +x = F.gelu\(self.fc1\(x\)\)", last)


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"train_{name}.py"))


def test_the_differentiable_graph_of_a_cell_is_shown_and_right(capsys: pytest.CaptureFixture[str]) -> None:
    before = tiering.mode()
    try:
        names = runpy.run_path(str(EXAMPLES / "derivative_splitting.py"))
        names["main"]()
        arguments = [engine.randn(*sizes).requires_grad_() for sizes in names["SIZES"].values()]
        hy, _ = names["cell"](*arguments)
    finally:
        tiering.set_mode(before)
    compiled, plan, forward, backward = re.split("^# ", capsys.readouterr().out, flags=re.MULTILINE)[1:]
    assert "prim::DifferentiableGraph" not in compiled
    assert plan.count("prim::DifferentiableGraph_0(") == 1
    assert forward.count("aten::sigmoid") == 3 and "aten::sigmoid" not in backward
    assert backward.count("aten::mm") == 4
    assert hy.grad_fn.name() == "DifferentiableGraphBackward"


@pytest.mark.parametrize(("name", "steps", "share"), [("mlp", 8, 0.7), ("cnn", 25, 0.9)])
def test_short_training_lowers_the_loss(name: str, steps: int, share: float) -> None:
    losses = example(name)["train"](steps)
    assert len(losses) == steps
    assert losses[-1] < share * losses[0]


def test_the_writer_learns_is_saved_and_writes() -> None:
    names = example("char_lstm")
    model, losses = names["train"](12)
    assert losses[-1] < 0.9 * losses[0]
    text = names["write"](names["reloaded"](model), "the quick", 5)
    assert text == names["write"](model, "the quick", 5)
    assert len(text) == len("the quick") + 5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "cnn", "char_lstm"])
def test_training_reaches_its_goal(name: str) -> None:
    names = example(name)
    result = names["train"]()
    losses = result[1] if isinstance(result, tuple) else result
    assert sum(losses[-3:]) / 3 < names["GOAL"]


@pytest.mark.parametrize("name", ["mlp", "cnn", "char_lstm"])
def test_one_line_says_what_torch_is(name: str) -> None:
    text = (EXAMPLES / f"train_{name}.py").read_text()
    assert [line for line in text.splitlines() if "engine" in line] == ["import engine.torch as torch"]
