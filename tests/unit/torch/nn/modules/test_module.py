"""Module: what belongs where, walks, modes, hooks, state, text."""

from collections.abc import Callable
from typing import Any

import pytest

import engine as torch
from engine import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 3)
        self.norm = nn.BatchNorm1d(3)
        self.again = self.fc
        self.register_buffer("scratch", torch.zeros(2), persistent=False)
        self.register_parameter("none", None)
        self.number = 3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.fc(x))


def test_attributes_go_into_their_tables() -> None:
    net = Net()
    assert [name for name, _ in net.named_children()] == ["fc", "norm"]
    assert [name for name, _ in net.named_modules()] == ["", "fc", "norm"]
    assert [name for name, _ in net.named_parameters()] == ["fc.weight", "fc.bias", "norm.weight", "norm.bias"]
    assert [name for name, _ in net.named_parameters(recurse=False)] == []
    assert [name for name, _ in net.named_buffers()][:2] == ["scratch", "norm.running_mean"]
    assert isinstance(net.fc.weight, nn.Parameter)
    assert isinstance(net.fc.weight, torch.Tensor)
    assert not isinstance(net.scratch, nn.Parameter)
    assert net.fc.weight.requires_grad
    assert net.none is None
    assert net.get_submodule("norm") is net.norm
    assert net.get_parameter("fc.bias") is net.fc.bias
    assert {"fc", "number", "scratch"} <= set(dir(net))


def test_assignments_replace_and_deletions_remove() -> None:
    net = Net()
    net.fc = nn.Identity()
    assert isinstance(net.fc, nn.Identity)
    net.none = nn.Parameter(torch.ones(1))
    assert [name for name, _ in net.named_parameters(recurse=False)] == ["none"]
    del net.none
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'none'"):
        net.none  # noqa: B018


@pytest.mark.parametrize(("wrong", "error", "message"), [
    (lambda net: setattr(net.fc, "weight", 3), TypeError, "cannot assign 'int' as parameter 'weight'"),
    (lambda net: setattr(net, "fc", 3), TypeError, "cannot assign 'int' as child module 'fc'"),
    (lambda net: setattr(net, "scratch", 3), TypeError, "cannot assign 'int' as buffer 'scratch'"),
    (lambda net: net.register_buffer("a.b", None), KeyError, "can't be empty or contain"),
    (lambda net: net.register_buffer("number", None), KeyError, "already exists"),
    (lambda net: net.register_parameter("p", torch.ones(1)), TypeError, "cannot assign 'torch.Fl.*' object"),
    (lambda net: net.add_module("m", 3), TypeError, "int is not a Module subclass"),
    (lambda net: net.numbr, AttributeError, "did you mean 'number'"),
    (lambda net: net.to(torch.int64), TypeError, "only accepts floating point"),
    (lambda net: nn.Module()(1), NotImplementedError, "missing the required"),
])  # fmt: skip
def test_what_does_not_belong_is_refused(wrong: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong(Net())


def test_a_module_must_be_initialized_first() -> None:
    class Early(nn.Module):
        def __init__(self) -> None:
            self.fc = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"before Module\.__init__"):
        Early()


def test_modes_reach_all_modules() -> None:
    net = Net().eval()
    assert [module.training for module in net.modules()] == [False] * 3
    seen: list[str] = []
    net.train().apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "BatchNorm1d", "Net"]
    assert all(module.training for module in net.modules())


def test_dtypes_change_in_place_and_leave_integers_alone() -> None:
    net = Net()
    weight = net.fc.weight
    net.double()
    assert net.fc.weight is weight
    assert weight.dtype is torch.float64
    assert net.norm.num_batches_tracked.dtype is torch.int64
    assert net(torch.ones(2, 2, dtype=torch.float64)).dtype is torch.float64


def test_requires_grad_and_zero_grad() -> None:
    net = Net().requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in net.parameters())
    net.zero_grad()
    assert all(parameter.grad is None for parameter in net.parameters())


def test_state_goes_from_one_module_to_another() -> None:
    one, two = Net(), Net()
    state = one.state_dict()
    assert list(state)[:2] == ["fc.weight", "fc.bias"]
    assert "scratch" not in state
    assert two.load_state_dict(state) == ([], [])
    assert two.fc.weight.tolist() == one.fc.weight.tolist()
    assert two.fc.weight is not one.fc.weight


def test_state_that_does_not_fit_is_refused() -> None:
    net = Net()
    state = {"fc.bias": torch.ones(3), "fc.weight": torch.ones(9), "more": torch.ones(1)}
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    told = str(caught.value)
    assert "size mismatch for fc.weight" in told
    assert 'Unexpected key(s) in state_dict: "more"' in told
    assert 'Missing key(s) in state_dict: "norm.weight"' in told
    result = net.load_state_dict({"fc.bias": torch.ones(3), "more": torch.ones(1)}, strict=False)
    assert result.unexpected_keys == ["more"]
    assert net.fc.bias.tolist() == [1.0] * 3


def test_hooks_see_and_change_what_goes_through() -> None:
    relu, seen = nn.ReLU(), []
    before = relu.register_forward_pre_hook(lambda module, inputs: inputs[0] * 2)
    relu.register_forward_hook(lambda module, inputs, output: seen.append(output.tolist()))
    with relu.register_forward_hook(lambda module, inputs, output: output + 1):
        assert relu(torch.ones(1)).tolist() == [3.0]
    before.remove()
    assert relu(torch.ones(1)).tolist() == [1.0]
    assert seen == [[2.0], [1.0]]


def test_text() -> None:
    assert repr(nn.Linear(2, 3)) == "Linear(in_features=2, out_features=3, bias=True)"
    net = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh()))
    assert repr(net) == "Sequential(\n  (0): ReLU()\n  (1): Sequential(\n    (0): Tanh()\n  )\n)"
    assert repr(nn.Sequential()) == "Sequential()"
