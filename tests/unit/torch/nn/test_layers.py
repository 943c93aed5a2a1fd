"""Every layer runs, gives every parameter a gradient, is copied, and gives the same when compiled."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import engine.torch as torch
from tests.peer.layer_samples import LAYERS

NOT_COMPILED = {
    "AdaptiveAvgPool2d((3, None))", "AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10], head_bias=True)",
}  # fmt: skip
"""None among the sizes, a list of parts whose number varies: PyTorch does not compile them either."""


def made(maker: str) -> tuple[Any, tuple[Any, ...]]:
    torch.manual_seed(0)
    names = {
        "torch": torch, "nn": torch.nn, "r": lambda *size: torch.randn(*size),
        "i": lambda *size: torch.randint(0, 4, size),
    }  # fmt: skip
    return eval(f"nn.{maker}", names), eval(f"({LAYERS[maker]},)", names)


def lists(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().tolist()
    return [lists(each) for each in value] if isinstance(value, (tuple, list)) else value


def tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for each in value for t in tensors(each)] if isinstance(value, (tuple, list)) else []


class WithState(torch.nn.Module):
    """Layers with several signatures are compiled where they are called."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x, state):  # type: ignore[no-untyped-def]
        return self.layer(x, state)


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize("maker", LAYERS)
def test_layer(maker: str) -> None:
    layer, args = made(maker)
    outputs = [t for t in tensors(layer(*args)) if t.requires_grad]
    if list(layer.parameters()):
        sum(t.sum() for t in outputs).backward()
        assert all(p.grad is not None and p.grad.shape == p.shape for p in layer.parameters())
    layer.eval()
    result = lists(layer(*args))
    assert str(lists(copy.deepcopy(layer)(*args))) == str(result)
    if maker not in NOT_COMPILED:
        caller = WithState(layer) if len(args) == 2 else torch.nn.Sequential(layer)
        compiled = torch.jit.script(caller if isinstance(layer, torch.nn.RNNBase) else layer)
        assert str(lists(compiled(*args))) == str(result)


def test_packed_sequences_are_run_as_their_parts() -> None:
    rnn = torch.nn.utils.rnn
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(3, 4, bidirectional=True)
    sequences = [torch.randn(length, 3) for length in (2, 4, 3)]
    packed, (hidden, _) = lstm(rnn.pack_sequence(sequences, enforce_sorted=False))
    padded, lengths = rnn.pad_packed_sequence(packed)
    assert lengths.tolist() == [2, 4, 3]
    for number, sequence in enumerate(sequences):
        output, (last, _) = lstm(sequence)
        torch.testing.assert_close(padded[: len(sequence), number], output)
        torch.testing.assert_close(hidden[:, number], last)
    assert [tuple(each.shape) for each in rnn.unpack_sequence(packed)] == [(2, 8), (4, 8), (3, 8)]


def test_a_weight_that_is_replaced_is_used() -> None:
    rnn = torch.nn.RNN(2, 3, bias=False)
    for name in ("weight_ih_l0", "weight_hh_l0"):
        setattr(rnn, name, torch.nn.Parameter(getattr(rnn, name).detach() * 0))
    assert rnn(torch.ones(4, 2))[0].abs().sum().item() == 0.0


def test_gradients_are_clipped() -> None:
    layer = torch.nn.Linear(3, 1, bias=False)
    layer(torch.ones(4, 3)).sum().backward()
    before = torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    assert before.item() == pytest.approx(48**0.5)
    assert layer.weight.grad.norm().item() == pytest.approx(1.0)
    torch.nn.utils.clip_grad_value_(layer.parameters(), 0.1)
    assert layer.weight.grad.max().item() == pytest.approx(0.1)


def test_parameters_as_a_vector_and_back() -> None:
    layer = torch.nn.Linear(2, 3)
    vector = torch.nn.utils.parameters_to_vector(layer.parameters())
    torch.nn.utils.vector_to_parameters(torch.arange(9.0), layer.parameters())
    assert tuple(vector.shape) == (9,)
    assert layer.bias.tolist() == [6.0, 7.0, 8.0]


def test_parametrized_weights() -> None:
    parametrize = torch.nn.utils.parametrize

    class Doubled(torch.nn.Module):  # type: ignore[name-defined,misc]
        calls = 0

        def forward(self, x: Any) -> Any:
            type(self).calls += 1
            return 2 * x

    layer = torch.nn.Linear(2, 1, bias=False)
    before = layer.weight.tolist()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.tolist() == [[2 * each for each in before[0]]]
    assert [name for name, _ in layer.named_parameters()] == ["parametrizations.weight.original"]
    Doubled.calls = 0
    with parametrize.cached():
        layer(torch.ones(1, 2)), layer(torch.ones(1, 2))
    assert Doubled.calls == 1
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert (layer.weight.tolist(), type(layer)) == (before, torch.nn.Linear)
