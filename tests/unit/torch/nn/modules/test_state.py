"""States of modules, and the hooks around calls, backward passes and states."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import engine.torch as torch
from engine.torch import nn


def net() -> Any:
    made = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU())
    made[0].weight.data.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    return made


def test_states_tell_versions() -> None:
    state = nn.Sequential(nn.BatchNorm1d(2)).state_dict()
    assert state._metadata == {"": {"version": 1}, "0": {"version": 2}}


def test_states_of_before_batches_were_counted_load() -> None:
    norm = nn.BatchNorm1d(2)
    old = {key: value for key, value in norm.state_dict().items() if key != "num_batches_tracked"}
    assert repr(norm.load_state_dict(old)) == "<All keys matched successfully>"


def test_assign_puts_the_given_tensors_in_place() -> None:
    layer, weight = nn.Linear(2, 2, bias=False), torch.zeros(2, 2)
    layer.load_state_dict({"weight": weight}, assign=True)
    assert isinstance(layer.weight, nn.Parameter)
    weight.fill_(3)
    assert layer.weight.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_keep_vars_and_destination() -> None:
    layer, into = net(), {"a": 1}
    state = layer.state_dict(destination=into, prefix="m.", keep_vars=True)
    assert state is into
    assert state["m.0.weight"] is layer[0].weight


def test_hooks_around_states() -> None:
    layer, seen = net(), []
    layer.register_state_dict_pre_hook(lambda module, prefix, keep: seen.append(prefix))
    layer._register_state_dict_hook(lambda module, state, prefix, metadata: state.update(extra=torch.ones(1)))
    state = layer.state_dict(prefix="p.")
    assert (seen, list(state)) == (["p."], ["p.0.weight", "extra"])

    def without_extra(module: Any, state: Any, *rest: Any) -> None:
        state.pop("extra", None)

    layer.register_load_state_dict_pre_hook(without_extra)
    layer.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    assert layer.load_state_dict({"extra": torch.ones(1)}) == ([], [])


def test_more_than_tensors_is_saved() -> None:
    class Counting(nn.Module):
        count = 3

        def get_extra_state(self) -> Any:
            return {"count": self.count}

        def set_extra_state(self, state: Any) -> None:
            self.count = state["count"]

    one, two = Counting(), Counting()
    one.count = 5
    assert list(one.state_dict()) == ["_extra_state"]
    two.load_state_dict(one.state_dict())
    assert two.count == 5


def test_backward_hooks_see_and_change_gradients() -> None:
    layer, seen = net(), []
    layer[0].register_full_backward_hook(lambda module, ins, outs: seen.append((ins, outs)))
    layer[1].register_full_backward_hook(lambda module, ins, outs: (ins[0] * 2,))
    layer.register_full_backward_pre_hook(lambda module, outs: (outs[0] * 10,))
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    layer(x).sum().backward()
    ((into,), (out,)) = seen.pop()
    assert (into.tolist(), out.tolist()) == ([[80.0, 120.0]], [[20.0, 20.0]])
    assert x.grad.tolist() == [[80.0, 120.0]]
    layer(torch.ones(1, 2)).sum().backward()
    assert seen.pop()[0] == (None,)


def test_hooks_get_keywords_and_come_first_if_asked() -> None:
    class Scaled(nn.Module):
        def forward(self, x: Any, scale: int = 1) -> Any:
            return x * scale

    layer, order = Scaled(), []
    layer.register_forward_pre_hook(lambda m, args, kw: (args, {"scale": kw["scale"] * 2}), with_kwargs=True)
    layer.register_forward_hook(lambda m, args, kw, out: out + kw["scale"], with_kwargs=True)
    layer.register_forward_hook(lambda *_: order.append("second"))
    layer.register_forward_hook(lambda *_: order.append("first"), prepend=True)
    assert layer(torch.ones(1), scale=3).tolist() == [12.0]
    assert order == ["first", "second"]


def test_buffers_by_assignment() -> None:
    module = nn.Module()
    module.kept, module.scratch = nn.Buffer(torch.ones(1)), nn.Buffer(torch.ones(1), persistent=False)
    assert list(module.state_dict()) == ["kept"]
    assert [name for name, _ in module.named_buffers()] == ["kept", "scratch"]
    assert module.get_buffer("kept").tolist() == [1.0]


def test_copies_and_pickles_of_modules() -> None:
    layer = net()
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert again[0].weight.tolist() == layer[0].weight.tolist()
        assert isinstance(again[0].weight, nn.Parameter)
        assert again(torch.ones(1, 2)).shape == (1, 2)


def test_gradients_change_dtype_with_their_parameters() -> None:
    layer = net()
    layer(torch.ones(1, 2)).sum().backward()
    layer.double()
    assert layer[0].weight.grad.dtype is torch.float64


def test_containers() -> None:
    layers = nn.Sequential(nn.ReLU(), nn.Tanh())
    assert repr(layers.pop(0)) == "ReLU()"
    assert len(layers + layers) == len(layers * 2) == 2
    layers.set_submodule("0", nn.ReLU())
    assert repr(layers[0]) == "ReLU()"
    with pytest.raises(ValueError, match="Non-positive"):
        layers * 0
    held = nn.ParameterList([torch.ones(2)])
    assert repr(held) == "ParameterList(  (0): Parameter containing: [torch.float32 of size 2])"
