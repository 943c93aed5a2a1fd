"""The first few of many, found without sorting the rest."""

from __future__ import annotations

import numpy as np
import pytest

from engine.aten.ops.sorting import order, topk
from engine.aten.values.xp import Array


def in_full(x: Array, k: int, dim: int, largest: bool) -> Array:
    return np.take(order(x, dim, largest), np.arange(k), axis=dim)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("shape", "dim", "k"), [((7, 90), 1, 5), ((90, 7), 0, 11), ((200,), 0, 1)])
def test_the_places_are_those_of_a_full_sort(shape: tuple[int, ...], dim: int, k: int, largest: bool) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    values, places = topk(x, k, dim, largest, True)
    assert (places == in_full(x, k, dim, largest)).all()
    assert (values == np.take_along_axis(x, places, dim)).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, 9.0])
def test_equal_values_and_nan_go_by_the_full_sort(value: float) -> None:
    x = np.arange(2000, dtype=np.float64) % 1000 / 1000
    x[[40, 700, 1999]] = value
    assert (topk(x, 3, 0, True, True)[1] == in_full(x, 3, 0, True)).all()
    assert (topk(x, 4, 0, False, True)[1] == in_full(x, 4, 0, False)).all()
