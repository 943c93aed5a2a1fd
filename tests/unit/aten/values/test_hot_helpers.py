"""An implementation that takes a hot helper's slot is what everyone calls, until it gives the slot back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.aten.values import hot_helpers
from engine.aten.values.hot_helpers import HOT
from engine.aten.values.tensor import Tensor, tensor


@pytest.fixture
def counted() -> Iterator[list[int]]:
    """The number of calls of `fresh`, which an implementation counts."""
    before, count = HOT.fresh, [0]

    def counting(result: Any) -> Tensor:
        count[0] += 1
        return before(result)

    hot_helpers.take("fresh", counting)
    yield count
    hot_helpers.take("fresh", before)


def test_who_takes_a_slot_is_called(counted: list[int]) -> None:
    x = tensor([-1.0, 2.0])
    assert x.nonzero().tolist() == [[0], [1]]
    assert counted[0] > 0


def test_a_slot_is_given_back(counted: list[int]) -> None:
    hot_helpers.give_back("fresh")
    assert HOT.fresh is hot_helpers.DEFINITIONS["fresh"]
    assert tensor([-1.0, 2.0]).nonzero().tolist() == [[0], [1]]
    assert counted == [0]


def test_every_slot_has_a_definition() -> None:
    assert sorted(hot_helpers.DEFINITIONS) == sorted(hot_helpers.HotHelpers.__slots__)
