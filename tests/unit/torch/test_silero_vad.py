"""The example with a model of others: what it finds is what PyTorch 2.13 found, chunk by chunk."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine

EXAMPLE = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "silero_vad.py"))
RECORDED = [float(line) for line in Path(__file__).with_name("silero_probabilities.txt").read_text().split()]


@pytest.fixture(scope="module")
def path() -> Path:
    found = os.environ.get("SILERO_VAD") or EXAMPLE["find_model"]()
    if not found:
        pytest.skip("the model is not here: pip install --no-deps silero-vad, or SILERO_VAD=path of silero_vad.jit")
    return Path(found)


@pytest.fixture(scope="module")
def model(path: Path) -> Any:
    return engine.load(path)


def test_the_signal_is_the_recorded_one() -> None:
    signal = EXAMPLE["speech_like"](3.84)
    assert signal.dtype == np.float32
    assert signal.size == len(RECORDED) * EXAMPLE["CHUNK"]
    assert signal[17000:17003] == pytest.approx([0.137766, 0.121622, 0.112677], abs=1e-5)


def test_probabilities(model: Any) -> None:
    found = EXAMPLE["probabilities"](model, EXAMPLE["speech_like"](3.84))
    assert np.abs(np.array(found) - RECORDED).max() < 1e-5
    assert max(found) > 0.9 > 0.1 > min(found)


def test_wrong_chunks_are_refused_as_the_model_says(model: Any) -> None:
    with pytest.raises(RuntimeError, match="Supported sampling rates"):
        model(engine.zeros(512), 11_025)
    with pytest.raises(RuntimeError, match="Provided number of samples is 600"):
        model(engine.zeros(600), 16_000)


def test_saved_twice_the_same_bytes(model: Any, tmp_path: Path) -> None:
    model.reset_states()
    first, second = tmp_path / "m.pt", tmp_path / "again" / "m.pt"
    second.parent.mkdir()
    model.save(first)
    engine.load(first).save(second)
    assert first.read_bytes() == second.read_bytes()


def test_the_encoder_alone(model: Any, tmp_path: Path) -> None:
    inner, x = model._model, engine.ones(1, 576)
    inner.cut(outputs=["encoder"]).save(tmp_path / "encoder.pt")
    whole = inner.run_until("encoder", x, engine.zeros(0))
    assert engine.equal(engine.load(tmp_path / "encoder.pt")(x), whole)
    assert (tmp_path / "encoder.pt").stat().st_size < 1_000_000
