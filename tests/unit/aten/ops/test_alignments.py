"""Alignments of sequences: the loss by itself, with its gradient, and as the sum over every path."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engine.aten.dispatch.compose import run
from engine.aten.values.tensor import Tensor, tensor


def spelled(path: tuple[int, ...]) -> list[int]:
    """What a path says: repetitions count once, blanks (0) not at all."""
    return [label for label, _ in itertools.groupby(path) if label]


def by_paths(probs: np.ndarray, target: list[int]) -> float:
    """Minus the logarithm of the probability of all paths that say the target."""
    times, classes = probs.shape
    paths = [path for path in itertools.product(range(classes), repeat=times) if spelled(path) == target]
    total = sum(np.exp(sum(probs[t, label] for t, label in enumerate(path))) for path in paths)
    return float(-np.log(total)) if total else np.inf


@pytest.mark.parametrize("target", [[], [1], [1, 1], [2, 1], [1, 2, 1], [1, 1, 1]])
@pytest.mark.parametrize("times", [1, 3, 4])
def test_the_loss_is_the_sum_over_all_paths(target: list[int], times: int) -> None:
    scores = np.random.default_rng(times).normal(size=(times, 1, 3))
    probs = scores - np.log(np.exp(scores).sum(2, keepdims=True))
    labels = tensor(target or [0], dtype=None).array.astype(np.int64)
    given = (Tensor(labels.reshape(1, -1)), [times], [len(target)], 0, 0, False)
    alone = run("ctc_loss.IntList", Tensor(probs), *given)
    recorded = run("ctc_loss.IntList", Tensor(probs, requires_grad=True), *given)
    np.testing.assert_allclose(alone.array, [by_paths(probs[:, 0], target)], rtol=1e-10)
    assert np.array_equal(alone.array, recorded.array)
    assert recorded.requires_grad
