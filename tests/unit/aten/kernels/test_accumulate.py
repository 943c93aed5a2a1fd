"""Numbers added into places that repeat: the same as `ufunc.at`, whatever way is taken."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from engine.aten.kernels.accumulate import accumulate, add_at

SOURCE = np.random.default_rng(0)
ROWS = SOURCE.integers(-4, 4, 9)
EVERYTHING = slice(None)
CASES: list[tuple[tuple[int, ...], Any]] = [
    ((4, 3), (SOURCE.integers(0, 4, (5, 3)), np.arange(3)[None])),
    ((4, 3), (SOURCE.integers(-4, 4, (5, 2)), SOURCE.integers(-3, 3, (5, 1)))),
    ((4,), ROWS),
    ((4, 3), ROWS),
    ((4, 3), (ROWS.reshape(3, 3),)),
    ((4, 200), (ROWS,)),
    ((50, 130), (SOURCE.integers(-50, 50, 90),)),
    ((2, 50, 70), (EVERYTHING, SOURCE.integers(-50, 50, 90))),
    ((4, 20, 10), (ROWS.reshape(3, 3).astype(np.int32),)),
    ((2, 4, 100), (EVERYTHING, ROWS)),
    ((2, 4, 3), (EVERYTHING, ROWS)),
    ((200, 4), (EVERYTHING, ROWS)),
    ((4, 4, 3), (ROWS, ROWS)),
    ((4, 3, 4), (ROWS, EVERYTHING, ROWS)),
    ((4, 3), (np.array([True, False, True, True]),)),
    ((4, 3), (np.array(2),)),
    ((4, 3), (slice(1, 3), np.array([0, 0, 2]))),
    ((4, 3), (np.empty(0, np.int64),)),
]


@pytest.mark.parametrize("function", [np.add, np.multiply, np.maximum])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("shape", "key"), CASES)
def test_every_way_gives_what_the_slow_one_gives(
    function: np.ufunc, turned: bool, shape: tuple[int, ...], key: Any
) -> None:
    target = SOURCE.standard_normal(shape).astype(np.float32)
    expected = target.copy()
    if turned:
        target = np.asfortranarray(target)
    values = SOURCE.standard_normal(expected[key].shape).astype(np.float32)
    function.at(expected, key, values)
    accumulate(function, target, key, values)
    assert np.array_equal(target, expected)


def test_one_value_for_all_places() -> None:
    target, expected = np.zeros((2, 4, 3)), np.zeros((2, 4, 3))
    accumulate(np.add, expected, (0, ROWS), np.ones(()))
    accumulate(np.add, target, (np.zeros(9, np.int64), ROWS), np.ones(()))
    assert np.array_equal(target, expected)


@pytest.mark.parametrize("key", [(np.array([4]),), (np.array([-5]),), (np.array([0]), np.array([3]))])
def test_places_that_there_are_not(key: Any) -> None:
    with pytest.raises(IndexError):
        accumulate(np.add, np.zeros((4, 3)), key, np.ones(()))


def test_halves_are_rounded_once() -> None:
    target = np.zeros(1, ml_dtypes.bfloat16)
    add_at(target, (np.zeros(600, np.int64),), np.ones(600, ml_dtypes.bfloat16))
    assert float(target[0]) == 600
