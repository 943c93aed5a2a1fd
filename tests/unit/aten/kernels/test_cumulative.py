"""Running sums and products are taken in double precision and rounded."""

from __future__ import annotations

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.kernels.cumulative import running

SOURCE = np.random.default_rng(0)


@pytest.mark.parametrize("function", [np.add, np.multiply])
@pytest.mark.parametrize(
    ("shape", "axis"), [((7,), 0), ((40000,), 0), ((30, 700, 2), 1), ((3, 90, 80), 1), ((300, 90), 0)]
)
def test_every_way_is_rounded_once(function: np.ufunc, shape: tuple[int, ...], axis: int) -> None:
    x = SOURCE.standard_normal(shape).astype(np.float32)
    expected = function.accumulate(x.astype(np.float64), axis=axis).astype(np.float32)
    assert np.array_equal(running(function, x, axis, in_double=True), expected)
    assert np.array_equal(running(function, x, axis), function.accumulate(x, axis=axis))


def test_halves_run_in_single_precision() -> None:
    x = SOURCE.standard_normal(5000).astype(np.float16)
    expected = np.add.accumulate(x.astype(np.float32)).astype(np.float16)
    assert np.array_equal(torch.from_numpy(x).cumsum(0).numpy(), expected)


def test_one_number() -> None:
    assert torch.tensor(2.0, dtype=torch.float16).cumsum(0).dtype is torch.float16


def test_running_extremes_name_the_last_place_and_keep_nan() -> None:
    values, places = torch.tensor([1.0, 3.0, 3.0, 2.0, float("nan"), 5.0]).cummax(0)
    assert places.tolist() == [0, 1, 2, 2, 4, 4]
    assert np.array_equal(values.numpy(), np.array([1, 3, 3, 3, np.nan, np.nan], np.float32), equal_nan=True)
    assert torch.tensor([[2, 2], [1, 3]]).cummin(0)[1].tolist() == [[0, 0], [1, 0]]
