"""`torch.nn.functional` from Python, and by names in programs."""

import pytest

import engine as torch
from engine import Tensor
from engine.torch.nn import functional as F

relu = F.relu
matmul = torch.matmul


def test_composed_functions_and_operators() -> None:
    x = torch.tensor([-1.0, 2.0])
    assert F.relu(x).tolist() == [0.0, 2.0]
    assert F.relu(x, inplace=True) is not None
    assert x.tolist() == [0.0, 2.0]
    assert F.linear(torch.ones(1, 2), torch.ones(3, 2)).tolist() == [[2.0] * 3]
    pooled, places = F.max_pool2d(torch.tensor([[[[1.0, 3.0], [2.0, 0.0]]]]), 2, return_indices=True)
    assert (pooled.item(), places.item()) == (3.0, 1)
    assert F.max_pool2d(torch.ones(1, 1, 2, 2), kernel_size=2).shape == (1, 1, 1, 1)


def uses_names(x: Tensor) -> Tensor:
    return relu(matmul(x, x))


def test_functions_under_names_of_their_own() -> None:
    function = torch.script(uses_names)
    assert "aten::matmul" in str(function.graph)
    assert function(torch.ones(1, 1)).tolist() == [[1.0]]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'linea'; did you mean 'linear'"):
        F.linea  # noqa: B018
