"""The examples that train run on PyTorch when their import line is changed, and give the same losses."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="compares with a real PyTorch, which is not installed here")
pytestmark = pytest.mark.peer

EXAMPLES = Path(__file__).parents[2] / "examples"


def losses(path: Path, steps: int) -> list[float]:
    result: Any = runpy.run_path(str(path))["train"](steps)
    found: list[float] = result[1] if isinstance(result, tuple) else result
    return found


@pytest.mark.parametrize("name", ["mlp", "cnn", "char_lstm"])
def test_the_same_losses(name: str, tmp_path: Path) -> None:
    source = EXAMPLES / f"train_{name}.py"
    theirs = tmp_path / source.name
    theirs.write_text(source.read_text().replace("import engine.torch as torch", "import torch"))
    assert losses(source, 6) == pytest.approx(losses(theirs, 6), rel=1e-3)
