"""Names of small steps stand for one thing everywhere."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from engine.aten.values import hot_helpers
from engine.aten.values.hot_helpers import join, primitive, replace


@pytest.fixture
def step() -> Iterator[str]:
    @primitive
    def doubled_for_a_test(x: int) -> int:
        return 2 * x

    yield doubled_for_a_test.__name__
    for names in (hot_helpers.DEFINITIONS, hot_helpers._current):
        del names["doubled_for_a_test"]


def test_a_step_is_replaced_where_it_is_known(step: str) -> None:
    definition = hot_helpers.DEFINITIONS[step]
    early, other, late = {step: definition}, {step: abs}, {step: definition}
    join(early)
    join(other)
    replace(step, lambda x: x + x)
    join(late)
    assert early[step] is late[step] is hot_helpers._current[step] is not definition
    assert early[step](4) == 8
    assert other[step] is abs, "that is another thing of the same name"
    replace(step, definition)
    assert early[step] is late[step] is definition


def test_environments_may_hold_anything_by_these_names(step: str) -> None:
    environment = {step: np.zeros(3)}
    join(environment)
    replace(step, lambda x: x + x)
    assert isinstance(environment[step], np.ndarray)
