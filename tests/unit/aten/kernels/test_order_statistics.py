"""Of equal values, the places that selections answer with."""

from __future__ import annotations

import numpy as np
import pytest

from engine.aten.kernels.order_statistics import kth_place, top_places


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 20, 61])
def test_the_kth_place_holds_the_kth_smallest(size: int) -> None:
    row = np.random.default_rng(size).integers(0, 5, size).tolist()
    for k in range(size):
        assert row[kth_place(row, k)] == sorted(row)[k]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 20, 61])
@pytest.mark.parametrize("largest", [True, False])
def test_the_top_places_hold_the_first_values_in_order(size: int, largest: bool) -> None:
    row = np.random.default_rng(size).integers(0, 5, size).tolist()
    for k in range(1, size + 1):
        places = top_places(row, k, largest)
        assert [row[i] for i in places] == sorted(row, reverse=largest)[:k]
        assert len(set(places)) == k


def test_nan_is_the_largest() -> None:
    row = [1.0, float("nan"), 3.0]
    assert kth_place(row, 2) == 1
    assert top_places(row, 1, True) == [1]
    assert top_places(row, 2, False) == [0, 2]


@pytest.mark.parametrize(
    ("row", "k", "place"),
    [
        ([1, 1, 2], 2, 2),
        ([3, 0, 0, 3, 2], 4, 0),
        ([1, 1, 3, 3, 3, 1, 1, 1], 6, 2),
        ([0, 0, 1, 0, 2, 0, 2, 3, 3, 3, 3, 3], 2, 0),
    ],
)
def test_kth_places_are_those_that_the_reference_was_seen_to_give(row: list[int], k: int, place: int) -> None:
    assert kth_place(row, k) == place


@pytest.mark.parametrize(
    ("row", "k", "largest", "places"),
    [
        ([2, 0, 0], 1, False, [1]),
        ([3, 1, 2, 3, 2], 4, True, [0, 3, 2, 4]),
        ([3, 2, 3, 1, 2, 0, 2, 1], 6, True, [0, 2, 1, 6, 4, 3]),
        ([3, 2, 3, 1, 2, 0, 2, 1], 6, False, [5, 7, 3, 4, 6, 1]),
        ([0, 1, 2, 2, 0, 0, 3, 3, 0, 2, 0, 3], 3, True, [6, 11, 7]),
    ],
)
def test_top_places_are_those_that_the_reference_was_seen_to_give(
    row: list[int], k: int, largest: bool, places: list[int]
) -> None:
    assert top_places(row, k, largest) == places
