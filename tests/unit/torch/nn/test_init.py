"""First values of parameters."""

import math
from collections.abc import Callable

import pytest

import engine as torch
from engine.torch.nn import Parameter, init


def test_constants() -> None:
    weight = Parameter(torch.zeros(2, 2))
    assert init.ones_(weight) is weight
    assert weight.tolist() == [[1.0, 1.0]] * 2
    assert init.zeros_(weight).tolist() == [[0.0, 0.0]] * 2
    assert init.eye_(weight).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert init.constant_(weight, 3.0).tolist() == [[3.0, 3.0]] * 2
    assert weight.requires_grad


@pytest.mark.parametrize(("fill", "bound"), [
    (init.xavier_uniform_, math.sqrt(6 / 30)), (init.kaiming_uniform_, math.sqrt(3) * math.sqrt(2) / math.sqrt(20)),
    (init.uniform_, 1.0),
])  # fmt: skip
def test_uniform_values_stay_within_their_bounds(fill: object, bound: float) -> None:
    assert callable(fill)
    values = fill(torch.zeros(10, 20)).abs()
    assert 0.5 * bound < values.max().item() <= bound


def test_normal_values_have_their_spread() -> None:
    for fill, std in ((init.normal_, 1.0), (init.xavier_normal_, math.sqrt(2 / 120)),
                      (init.kaiming_normal_, math.sqrt(2 / 60))):  # fmt: skip
        assert fill(torch.zeros(60, 60)).std().item() == pytest.approx(std, rel=0.1)


def test_gains_and_fans() -> None:
    assert init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("leaky_relu", 0.5) == math.sqrt(1.6)
    assert init.fans(torch.zeros(4, 3, 2, 2)) == (12, 16)


@pytest.mark.parametrize("wrong", [
    lambda: init.calculate_gain("odd"), lambda: init.fans(torch.zeros(3)), lambda: init.eye_(torch.ones(2)),
    lambda: init.kaiming_normal_(torch.zeros(2, 2), mode="odd"),
])  # fmt: skip
def test_impossible_values_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        wrong()
