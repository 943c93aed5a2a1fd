"""Sessions of random cells, in Python and TorchScript, over a few names: both sides agree after each cell."""

from __future__ import annotations

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from .mixed_cells import problem

CELLS = 200


@settings(max_examples=4, deadline=None, phases=[Phase.generate])
@given(seed=st.integers(0, 2**31))
def test_both_sides_agree_after_each_of_200_cells(seed: int) -> None:
    assert problem(seed, CELLS) == ""
