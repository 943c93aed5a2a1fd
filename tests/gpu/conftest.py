"""The device of these tests: a GPU where there is one, and its double everywhere, which shows that the tests are sound.

`pytest tests/gpu -m gpu` runs them on a GPU alone, and skips with the reason where there is none.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.aten.devices import philox
from engine.aten.kernels.random import generator
from engine.aten.values import libraries
from engine.lang.errors import OperatorError
from tests.table.device_double import double


@pytest.fixture(params=["double", pytest.param("gpu", marks=pytest.mark.gpu)])
def cuda(request: pytest.FixtureRequest) -> Iterator[str]:
    """Which of the two it is."""
    generator().manual_seed(0)
    philox.restart(0)
    if request.param == "double":
        with double():
            yield request.param
        return
    try:
        libraries.library("cuda")
    except OperatorError as error:
        pytest.skip(str(error).partition("\n")[0])
    yield request.param


@pytest.fixture(params=["double", pytest.param("gpu", marks=pytest.mark.gpu)])
def two(request: pytest.FixtureRequest) -> Iterator[str]:
    """Two devices; gives the one that is not the current one."""
    if request.param == "double":
        with double(devices=2):
            yield "cuda:1"
        return
    if not libraries.is_there("cuda") or libraries.library("cuda").count() < 2:
        pytest.skip("there are no two GPUs")
    yield "cuda:1"


@pytest.fixture(autouse=True)
def _plans(plans_at_once: None) -> None:
    """First calls have plans, whose kernels these tests are of."""
