"""Containers as Python sequences and mappings."""

from collections import OrderedDict

import pytest

import engine as torch
from engine import nn


def test_a_sequential_calls_its_modules_in_order() -> None:
    net = nn.Sequential(OrderedDict(same=nn.Identity(), relu=nn.ReLU()))
    assert net(torch.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]
    assert net.relu is net[1] is net[-1]
    assert len(net[:1]) == 1


def test_a_module_list_is_a_list() -> None:
    layers = nn.ModuleList([nn.ReLU()])
    layers.append(nn.Tanh()).extend([nn.Sigmoid()])
    layers.insert(1, nn.Identity())
    assert [type(layer).__name__ for layer in layers] == ["ReLU", "Identity", "Tanh", "Sigmoid"]
    del layers[0]
    layers[0] = nn.GELU()
    assert [name for name, _ in layers.named_children()] == ["0", "1", "2"]
    assert [type(layer).__name__ for layer in layers[1:]] == ["Tanh", "Sigmoid"]
    with pytest.raises(IndexError, match="index 3 is out of range"):
        layers[3]
    with pytest.raises(NotImplementedError):
        layers(torch.ones(1))


def test_a_module_dict_is_a_dict() -> None:
    named = nn.ModuleDict({"a": nn.ReLU()})
    named["b"] = nn.Tanh()
    assert ("a" in named, len(named), list(named), list(named.keys())) == (True, 2, ["a", "b"], ["a", "b"])
    assert [type(module).__name__ for module in named.values()] == ["ReLU", "Tanh"]
    assert type(named.pop("a")).__name__ == "ReLU"
    del named["b"]
    named.update([("c", nn.ReLU())])
    assert dict(named.items()) == {"c": named["c"]}
    named.clear()
    assert len(named) == 0


def test_parameters_in_a_list_and_in_a_dict() -> None:
    values = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1))])
    assert all(isinstance(value, nn.Parameter) for value in values)
    assert [name for name, _ in values.named_parameters()] == ["0", "1"]
    values[1] = torch.ones(3)
    assert (values[1].tolist(), len(values), len(values[:1])) == ([1.0] * 3, 2, 1)
    named = nn.ParameterDict({"w": torch.ones(2)})
    assert ("w" in named, len(named), list(named), list(named.keys())) == (True, 1, ["w"], ["w"])
    assert [name for name, _ in named.items()] == ["w"]
    assert next(iter(named.values())) is named["w"]
    del named["w"]
    assert not list(named.parameters())


def test_text() -> None:
    layers = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Sequential(nn.Tanh())])
    assert repr(layers) == "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Sequential(\n    (0): Tanh()\n  )\n)"
    assert "(0): Parameter containing: [torch.float32 of size 2x1]" in repr(nn.ParameterList([torch.ones(2, 1)]))
