"""A stream through `silero_vad.jit` gives PyTorch's probabilities, and what is saved here PyTorch runs alike."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import numpy as np
import pytest

import engine

torch = pytest.importorskip("torch", reason="compares with a real PyTorch, which is not installed here")
pytestmark = pytest.mark.peer

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "silero_vad.py"))


def theirs(path: Path, signal: np.ndarray) -> list[float]:
    model = torch.jit.load(str(path))
    model.reset_states()
    with torch.no_grad():
        return [model(torch.from_numpy(chunk.copy()), EXAMPLE["RATE"]).item() for chunk in signal.reshape(-1, 512)]


def test_the_same_probabilities(tmp_path: Path) -> None:
    path = os.environ.get("SILERO_VAD") or EXAMPLE["find_model"]()
    if not path:
        pytest.skip("the model is not here: pip install --no-deps silero-vad, or SILERO_VAD=path of silero_vad.jit")
    signal = EXAMPLE["speech_like"](2.0)
    model = engine.load(path)
    ours = EXAMPLE["probabilities"](model, signal)
    model.reset_states()
    model.save(tmp_path / "again.pt")
    assert np.abs(np.array(ours) - theirs(Path(path), signal)).max() < 1e-5
    assert np.abs(np.array(ours) - theirs(tmp_path / "again.pt", signal)).max() < 1e-5
