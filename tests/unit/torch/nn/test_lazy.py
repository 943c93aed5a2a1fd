"""Lazy layers: their first input settles how many features they take."""

from __future__ import annotations

import pytest

import engine.torch as torch
from engine.torch import nn


@pytest.mark.parametrize(
    ("lazy", "shape", "becomes"),
    [
        (lambda: nn.LazyLinear(3), (2, 5), "Linear(in_features=5, out_features=3, bias=True)"),
        (lambda: nn.LazyConv2d(4, 2, groups=2), (1, 4, 5, 5),
         "Conv2d(4, 4, kernel_size=(2, 2), stride=(1, 1), groups=2)"),
        (lambda: nn.LazyConvTranspose1d(3, 2), (1, 4, 5), "ConvTranspose1d(4, 3, kernel_size=(2,), stride=(1,))"),
        (lambda: nn.LazyBatchNorm1d(eps=0.1), (4, 6),
         "BatchNorm1d(6, eps=0.1, momentum=0.1, affine=True, bias=True, track_running_stats=True)"),
        (lambda: nn.LazyInstanceNorm2d(), (1, 3, 4, 4),
         "InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"),
    ],
)  # fmt: skip
def test_the_first_input_settles_the_size(lazy: object, shape: tuple[int, ...], becomes: str) -> None:
    layer = lazy()  # type: ignore[operator]
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    assert layer.has_uninitialized_params()
    assert type(layer).__name__.startswith("Lazy")
    result = layer(torch.ones(shape))
    assert repr(layer) == becomes
    result.sum().backward()
    assert optimizer.param_groups[0]["params"][0].grad.shape == next(layer.parameters()).shape


def test_nothing_is_drawn_before() -> None:
    torch.manual_seed(0)
    lazy = nn.LazyLinear(3)
    lazy(torch.ones(1, 2))
    torch.manual_seed(0)
    assert nn.Linear(2, 3).weight.tolist() == lazy.weight.tolist()


def test_a_state_settles_the_size_too() -> None:
    known = nn.Linear(2, 3)
    lazy = nn.LazyLinear(3)
    lazy.load_state_dict(known.state_dict())
    assert lazy(torch.ones(1, 2)).tolist() == known(torch.ones(1, 2)).tolist()


@pytest.mark.parametrize("make", [lambda: nn.LazyLinear(), lambda: nn.LazyLinear(3, sizes=2)])
def test_wrong_arguments_are_refused(make: object) -> None:
    with pytest.raises(TypeError, match="argument"):
        make()  # type: ignore[operator]
