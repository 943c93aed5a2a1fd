"""`torch.nn.utils`: computed parameters, norms, pruning."""

from __future__ import annotations

import pytest

import engine.torch as torch
from engine.torch import nn
from engine.torch.nn.utils import parametrizations, parametrize, prune


class Skew(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        upper = x.triu(1)
        return upper - upper.transpose(-1, -2)

    def right_inverse(self, x):  # type: ignore[no-untyped-def]
        return x.triu(1)


def test_a_computed_parameter_is_assigned_through_its_inverse() -> None:
    layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Skew())
    wanted = torch.tensor([[0.0, 1.0, 2.0], [-1.0, 0.0, 3.0], [-2.0, -3.0, 0.0]])
    layer.weight = wanted
    assert torch.equal(layer.weight, wanted)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert torch.equal(layer.weight, wanted)


def test_weight_norm_learns_lengths_and_directions() -> None:
    layer = nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    parametrizations.weight_norm(layer)
    torch.testing.assert_close(layer.weight, before)
    assert list(layer.state_dict()) == [
        "bias", "parametrizations.weight.original0", "parametrizations.weight.original1",
    ]  # fmt: skip
    layer(torch.ones(1, 3)).sum().backward()
    assert layer.parametrizations.weight.original0.grad.shape == (2, 1)


def test_the_older_weight_norm() -> None:
    layer = nn.utils.weight_norm(nn.Linear(3, 2))
    assert sorted(dict(layer.named_parameters())) == ["bias", "weight_g", "weight_v"]
    layer.weight_g.data.mul_(2)
    doubled = layer(torch.ones(1, 3)).detach()
    nn.utils.remove_weight_norm(layer)
    assert sorted(dict(layer.named_parameters())) == ["bias", "weight"]
    torch.testing.assert_close(layer(torch.ones(1, 3)).detach(), doubled)


@pytest.mark.parametrize("make", [parametrizations.spectral_norm, nn.utils.spectral_norm])
def test_spectral_norm(make: object) -> None:
    layer = make(nn.Linear(4, 3))  # type: ignore[operator]
    for _ in range(60):
        layer(torch.ones(1, 4))
    assert abs(torch.linalg.matrix_norm(layer.weight.detach(), 2).item() - 1) < 1e-3


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2)])
def test_orthogonal(shape: tuple[int, int]) -> None:
    weight = parametrizations.orthogonal(nn.Linear(*shape)).weight
    small = weight @ weight.T if weight.shape[0] <= weight.shape[1] else weight.T @ weight
    torch.testing.assert_close(small, torch.eye(min(shape)), atol=1e-5, rtol=1e-5)


def test_pruning_keeps_zeros_while_training() -> None:
    layer = nn.Linear(4, 3)
    prune.l1_unstructured(layer, "weight", amount=0.5)
    assert int((layer.weight == 0).sum()) == 6
    assert prune.is_pruned(layer)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    layer(torch.ones(2, 4)).pow(2).sum().backward()
    optimizer.step()
    layer(torch.ones(1, 4))
    prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
    assert int((layer.weight == 0).all(1).sum()) >= 1
    prune.remove(layer, "weight")
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight"]
    assert not prune.is_pruned(layer)


def test_pruning_over_several_layers() -> None:
    one, two = nn.Linear(2, 2), nn.Linear(2, 2)
    one.weight.data.fill_(0.1)
    two.weight.data.fill_(1.0)
    prune.global_unstructured([(one, "weight"), (two, "weight")], pruning_method=prune.L1Unstructured, amount=4)
    assert (int((one.weight == 0).sum()), int((two.weight == 0).sum())) == (4, 0)
    with pytest.raises(ValueError, match="smaller"):
        prune.random_unstructured(one, "weight", amount=9)
