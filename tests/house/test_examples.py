"""The examples that train: short runs lower the loss."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"train_{name}.py"))


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
