"""Recursive filters, transducers' loss and alignment; numbers from torchaudio 2.11."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.aten.autograd import gradcheck
from engine.aten.dispatch import table
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError


def run(name: str, *args: Any) -> Any:
    entry = table.find(f"torchaudio::{name}")
    assert entry is not None
    return entry.run(*args)


def wave(*shape: int, d: Any = np.float32) -> Tensor:
    return Tensor(np.sin(np.arange(np.prod(shape)) * 0.7).reshape(shape).astype(d))


FACTORS = Tensor(np.array([[0.25, -0.5, 1], [0.5, 0.25, 1]], np.float32))

FILTERED = [[[0.0, 0.0, 0.0, 0.6442, 1.3076, 1.3559, 0.6861], [0.0, 0.0, -0.3508, -0.7839, -0.6111, -0.0866, 0.344]]]
OVERDRIVEN = [
    [0.6979, -0.7541],
    [0.6913, -0.7505],
    [[0.0, 0.7479, 1.0572, 0.9501], [0.4097, -0.4294, -0.9624, -1.0541]],
]
TRANSDUCED = {
    (-1.0, True): ([7.3607, 5.8059], [-0.2995, -0.3963, 0.0], 13.9293),
    (0.1, True): ([7.3607, 5.8059], [-0.1, -0.1, 0.0], 6.3402),
    (-1.0, False): ([7.3607, 5.8059], [-0.5749, -0.4251, 0.0], 10.0),
}
PATHS = {(1, 1, 3): [1, 0, 0, 1, 0, 3, 3, 0], (2,): [2, 2, 2, 2, 2, 2, 2, 2], (3, 1, 2, 1): [3, 0, 0, 1, 2, 1, 1, 0]}


def test_the_filter_writes_behind_what_it_looks_back_at() -> None:
    result = Tensor(np.zeros((1, 2, 7), np.float32))
    assert run("_lfilter_core_loop", wave(1, 2, 5), FACTORS, result) is result
    assert np.round(result.array.astype(float), 4).tolist() == FILTERED


def test_long_signals_are_filtered_in_machine_code_alike() -> None:
    signals = wave(1, 2, 50_000)
    results = [np.zeros((1, 2, n + 2), np.float32) for n in (50, *[50_000] * 8)]
    for result in results:
        given = Tensor(np.ascontiguousarray(signals.array[:, :, : result.shape[2] - 2]))
        run("_lfilter_core_loop", given, FACTORS, Tensor(result))
    assert all(np.allclose(results[0], result[:, :, :52], atol=1e-6) for result in results)


def test_the_filter_with_factors_of_its_inputs() -> None:
    a, b = np.array([[2, -1, 0.5]]), np.array([[1, 0.5, 0.25]])
    x = np.sin(np.arange(6) * 0.7).reshape(1, 1, 6)
    wanted = np.zeros(6)
    for t in range(6):
        ahead = sum(b[0, k] * x[0, 0, t - k] for k in range(3) if t >= k)
        wanted[t] = (ahead - sum(a[0, k] * wanted[t - k] for k in (1, 2) if t >= k)) / a[0, 0]
    found = run("_lfilter", Tensor(x), Tensor(a), Tensor(b))
    assert np.allclose(found.array[0, 0], wanted)
    inputs = [Tensor(given.copy()).requires_grad_(True) for given in (x, a, b)]
    assert gradcheck(lambda *args: run("_lfilter", *args), inputs)


def test_overdrive_keeps_where_it_was() -> None:
    before, out, result = Tensor(np.zeros(2, np.float32)), Tensor(np.zeros(2, np.float32)), wave(2, 4)
    run("_overdrive_core_loop", wave(2, 4), Tensor(np.tanh(wave(2, 4).array)), before, out, result)
    assert [np.round(each.array.astype(float), 4).tolist() for each in (before, out, result)] == OVERDRIVEN


LOGITS = (2, 4, 3, 5)
TARGETS = Tensor(np.array([[1, 2], [3, 4]], np.int32))
LENGTHS = [Tensor(np.array(each, np.int32)) for each in ([4, 3], [2, 1])]


@pytest.mark.parametrize(("clamp", "fused"), [(-1.0, True), (0.1, True), (-1.0, False)])
def test_costs_and_gradients_of_transducers(clamp: float, fused: bool) -> None:
    logits = wave(*LOGITS) if fused else wave(*LOGITS).log_softmax(-1)
    costs, gradients = run("rnnt_loss_forward", logits, TARGETS, *LENGTHS, 0, clamp, fused)
    wanted_costs, wanted_row, wanted_sum = TRANSDUCED[clamp, fused]
    assert np.allclose(costs.array, wanted_costs, atol=1e-4)
    assert np.allclose(gradients.array[1, 1, :, 0], wanted_row, atol=1e-4)
    assert np.allclose(np.abs(gradients.array).sum(), wanted_sum, atol=1e-3)
    assert not gradients.array[1, 3].any()


def test_the_gradient_of_a_transducer_is_what_it_says() -> None:
    logits = wave(*LOGITS).requires_grad_(True)
    costs, gradients = run("rnnt_loss", logits, TARGETS, *LENGTHS, 0, -1.0, True)
    (costs * Tensor(np.array([1, 2], np.float32))).sum().backward()
    assert np.allclose(logits.grad.array[1], 2 * gradients.array[1])


@pytest.mark.parametrize("text", PATHS)
def test_a_text_is_laid_along_speech(text: tuple[int, ...]) -> None:
    scores = Tensor(np.log(np.abs(np.sin(np.arange(32) * 1.3)) + 0.1).reshape(1, 8, 4).astype(np.float32))
    lengths = [Tensor(np.array([n])) for n in (8, len(text))]
    found, given = run("forced_align", scores, Tensor(np.array([text])), *lengths, 0)
    assert found.array.tolist() == [PATHS[text]]
    assert (given.array == scores.array).all()


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("_lfilter_core_loop", (wave(1, 2, 5), FACTORS, wave(1, 2, 6)), r"gives \[1, 2, 7\], not \[1, 2, 6\]"),
        ("_lfilter_core_loop", (wave(2, 5), FACTORS, wave(1, 2, 7)), "3 dimensions"),
        ("_overdrive_core_loop", (wave(2, 4), wave(2, 3), wave(2), wave(2), wave(2, 4)), "one number for each"),
        ("rnnt_loss_forward", (wave(*LOGITS), TARGETS, LENGTHS[1], LENGTHS[1], 0, -1.0, True), "input length mismatch"),
        ("rnnt_loss_forward", (wave(*LOGITS), TARGETS, *LENGTHS, 5, -1.0, True), "blank and targets"),
        (
            "forced_align",
            (wave(1, 3, 4), Tensor(np.array([[1, 1, 1]])), Tensor(np.array([3])), Tensor(np.array([3])), 0),
            "number of repeats: 2",
        ),
    ],
)
def test_what_is_refused(name: str, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        run(name, *args)
