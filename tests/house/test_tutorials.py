"""The scripts that are compared with PyTorch elsewhere run on the engine alone, and learn."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parents[1] / "peer" / "tutorials").glob("*.py"))


@pytest.mark.parametrize("script", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_learns(script: Path) -> None:
    losses = runpy.run_path(str(script), run_name="tutorial")["main"]()["losses"]
    assert all(map(math.isfinite, losses))
    assert losses[-1] < losses[0]


def test_there_are_tutorials() -> None:
    assert len(TUTORIALS) == 8
    for script in TUTORIALS:
        assert [line for line in script.read_text().splitlines() if "engine" in line] == [
            "import engine.torch as torch"
        ]
