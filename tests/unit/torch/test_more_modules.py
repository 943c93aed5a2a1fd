"""Distributions, transformations of functions, checkpoints, the profiler: what scripts import besides nn and optim."""

from __future__ import annotations

import importlib

import pytest

import engine.torch as torch
from engine.torch import distributions as dist
from engine.torch import nn
from engine.torch.func import functional_call, grad, hessian, jacrev, vmap
from engine.torch.utils.checkpoint import checkpoint, checkpoint_sequential


@pytest.mark.parametrize(
    "name",
    [
        "autograd.function", "autograd.functional", "autograd.profiler", "backends.cudnn", "distributions",
        "nn.functional", "nn.parallel", "nn.utils.parametrizations", "nn.utils.prune", "nn.utils.rnn",
        "optim.lr_scheduler", "optim.swa_utils", "profiler", "utils.checkpoint", "utils.data.dataloader",
        "utils.data.dataset", "utils.data.sampler", "utils.dlpack", "version",
    ],
)  # fmt: skip
def test_modules_are_found_by_their_paths(name: str) -> None:
    importlib.import_module(f"engine.torch.{name}")


def test_there_is_no_accelerator() -> None:
    assert not torch.cuda.is_available()
    assert not torch.accelerator.is_available()
    assert not torch.backends.mps.is_available()
    torch.set_default_device("cpu")
    with torch.device("cpu"):
        assert torch.ones(1).device == torch.device("cpu")
    with pytest.raises(AssertionError, match=r"cupy|NVIDIA GPU"):
        torch.set_default_device("cuda")


def test_normal() -> None:
    normal = dist.Normal(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
    torch.testing.assert_close(normal.log_prob(torch.tensor([0.5, 0.5])), torch.tensor([-1.0439385, -1.6433358]))
    torch.testing.assert_close(normal.entropy(), torch.tensor([1.4189385, 2.1120858]))
    assert normal.sample((3,)).shape == (3, 2)
    assert repr(normal) == "Normal(loc: torch.Size([2]), scale: torch.Size([2]))"
    torch.testing.assert_close(
        dist.kl_divergence(dist.Normal(0.0, 1.0), dist.Normal(1.0, 2.0)), torch.tensor(0.4431472)
    )
    loc = torch.zeros(1, requires_grad=True)
    dist.Normal(loc, 1.0).rsample().sum().backward()
    assert loc.grad.tolist() == [1.0]
    assert dist.Independent(normal, 1).log_prob(torch.zeros(2)).shape == ()


def test_discrete_distributions() -> None:
    categories = dist.Categorical(torch.tensor([0.25, 0.25, 0.5]))
    torch.testing.assert_close(categories.log_prob(torch.tensor(2)), torch.tensor(0.5).log())
    torch.testing.assert_close(categories.entropy(), torch.tensor(1.0397208))
    assert categories.sample((5, 2)).shape == (5, 2)
    assert set(dist.Categorical(torch.tensor([0.0, 1.0])).sample((4,)).tolist()) == {1}
    bits = dist.Bernoulli(torch.tensor([0.3]))
    torch.testing.assert_close(bits.log_prob(torch.ones(1)), torch.tensor([0.3]).log())
    with pytest.raises(ValueError, match="not both"):
        dist.Bernoulli()
    with pytest.raises(ValueError, match="greater than 0"):
        dist.Normal(0.0, -1.0)


def test_transformations_of_functions() -> None:
    x = torch.tensor([1.0, 2.0])
    assert grad(lambda t: (t**2).sum())(x).tolist() == [2.0, 4.0]
    assert jacrev(lambda t: t**2)(x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert hessian(lambda t: (t**3).sum())(x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert vmap(lambda a, b: a @ b, in_dims=(0, None))(torch.ones(3, 2), x).tolist() == [3.0] * 3
    layer = nn.Linear(2, 1)
    given = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    before = layer.weight
    assert functional_call(layer, given, (x,)).tolist() == [3.0]
    assert layer.weight is before
    with pytest.raises(KeyError, match="wieght"):
        functional_call(layer, {"wieght": x}, (x,))


def test_checkpoints_give_the_same_gradients() -> None:
    layers = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    x = torch.ones(1, 2, requires_grad=True)
    layers(x).sum().backward()
    wanted, weight = x.grad, layers[0].weight.grad
    for run in (lambda: checkpoint(layers, x, use_reentrant=False), lambda: checkpoint_sequential(layers, 2, x)):
        x.grad = None
        layers.zero_grad()
        run().sum().backward()
        torch.testing.assert_close(x.grad, wanted)
        torch.testing.assert_close(layers[0].weight.grad, weight)


def test_the_profiler_counts_operators() -> None:
    with torch.autograd.profiler.profile() as found:
        for _ in range(3):
            torch.ones(2) + 1
    counts = {each.key: each.count for each in found.key_averages()}
    assert counts["aten::add"] == 3
    assert "aten::add" in found.key_averages().table(sort_by="cpu_time_total", row_limit=5)


def test_what_is_not_supported_says_so() -> None:
    with pytest.raises(RuntimeError, match="sparse tensors are not supported"):
        torch.ones(2).to_sparse()
    with pytest.raises(TypeError, match="not supported"):
        torch.ones(2, dtype=torch.qint8)


def test_methods_are_found_by_the_class() -> None:
    assert torch.Tensor.relu(torch.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]
    assert list(map(torch.Tensor.item, torch.arange(2))) == [0, 1]
    assert torch.tensor([2, 1, 2]).unique().tolist() == [1, 2]
    assert [part.tolist() for part in torch.tensor([[0, 3]]).nonzero(as_tuple=True)] == [[0], [1]]
    with pytest.raises(AttributeError, match="did you mean"):
        torch.Tensor.relux  # noqa: B018


def test_parameters_and_sizes_are_saved_as_such(tmp_path: object) -> None:
    path = f"{tmp_path}/a.pt"
    torch.save([nn.Parameter(torch.ones(2)), torch.ones(2, 3).shape, torch.float16], path)
    parameter, size, dtype = torch.load(path)
    assert isinstance(parameter, nn.Parameter)
    assert (parameter.requires_grad, size, dtype) == (True, torch.Size([2, 3]), torch.float16)
