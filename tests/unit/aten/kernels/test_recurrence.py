"""Recurrent steps over bare arrays: what the operators compute one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.autograd.check import gradcheck, gradgradcheck


def tensors(batch: int, biased: bool, *, grad: bool) -> list[Any]:
    torch.manual_seed(1)
    made = [torch.randn(batch, 3), torch.randn(batch, 4), torch.randn(batch, 4), torch.randn(16, 3), torch.randn(16, 4)]
    if biased:
        made += [torch.randn(16), torch.randn(16)]
    return [t.requires_grad_(grad) for t in made]


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("biased", [True, False])
def test_a_cell_unrecorded_is_the_recorded_one(batch: int, biased: bool) -> None:
    x, h, c, *weights = tensors(batch, biased, grad=True)
    recorded = torch.lstm_cell(x, (h, c), *weights)
    with torch.no_grad():
        plain = torch.lstm_cell(x, (h, c), *weights)
    for ours, theirs in zip(plain, recorded, strict=True):
        assert theirs.requires_grad
        assert not ours.requires_grad
        assert np.allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-6, atol=1e-7)


def test_a_cell_writes_to_none_of_its_arguments() -> None:
    x, h, c, *weights = tensors(2, True, grad=False)
    before = [t.clone() for t in (x, h, c, *weights)]
    torch.lstm_cell(x, (h, c), *weights)
    assert all(torch.equal(was, now) for was, now in zip(before, (x, h, c, *weights), strict=True))


def test_a_cell_without_batch_and_in_other_dtypes() -> None:
    x, h, c, *weights = tensors(1, True, grad=False)
    whole = torch.lstm_cell(x, (h, c), *weights)[0]
    assert torch.allclose(torch.lstm_cell(x[0], (h[0], c[0]), *weights)[0], whole[0])
    doubles = torch.lstm_cell(x.double(), (h.double(), c.double()), *(w.double() for w in weights))
    assert doubles[0].dtype is torch.float64
    assert torch.allclose(doubles[0].float(), whole)


KINDS = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def layer(kind: str, biased: bool, d: Any = None, directions: int = 1) -> tuple[Any, list[Any], list[Any]]:
    """An input, the states and the weights of a layer, which require grad."""
    torch.manual_seed(2)
    shapes = [(KINDS[kind] * 4, 3), (KINDS[kind] * 4, 4)] + [(KINDS[kind] * 4,)] * (2 * biased)
    weights = [torch.randn(*shape, dtype=d or torch.float64) for shape in shapes * directions]
    states = [torch.randn(directions, 2, 4, dtype=d or torch.float64) for _ in range(1 + (kind == "lstm"))]
    x = torch.randn(5, 2, 3, dtype=d or torch.float64)
    for t in (x, *states, *weights):
        t.requires_grad_(True)
    return x, states, weights


def ran(kind: str, x: Any, states: list[Any], weights: list[Any], biased: bool, both_ways: bool = False) -> Any:
    hx = states if kind == "lstm" else states[0]
    return getattr(torch, kind)(x, hx, weights, biased, 1, 0.0, True, both_ways, False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("both_ways", [True, False])
def test_gradients_of_layers_are_those_of_their_steps(kind: str, biased: bool, both_ways: bool) -> None:
    x, states, weights = layer(kind, biased, directions=1 + both_ways)
    inputs = [x, *states, *weights]

    def loss() -> Any:
        results = ran(kind, x, states, weights, biased, both_ways)
        return sum((r.sin() * (i + 1)).sum() for i, r in enumerate(results))

    once = torch.autograd.grad(loss(), inputs)
    again = torch.autograd.grad(loss(), inputs, create_graph=True)
    for quick, made_of_others in zip(once, again, strict=True):
        assert made_of_others.requires_grad and not quick.requires_grad
        assert np.allclose(quick.numpy(), made_of_others.detach().numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_layers_by_differences(kind: str) -> None:
    x, states, weights = layer(kind, True)

    def run(x: Any, *rest: Any) -> Any:
        return ran(kind, x, list(rest[: len(states)]), list(rest[len(states) :]), True)

    assert gradcheck(run, (x, *states, *weights))
    if kind != "rnn_relu":
        assert gradgradcheck(lambda x: run(x, *states, *weights)[0], (x,))


@pytest.mark.parametrize("kind", KINDS)
def test_layers_of_which_only_a_last_state_is_used(kind: str) -> None:
    x, states, weights = layer(kind, True)
    last = ran(kind, x, states, weights, True)[1]
    (alone,) = torch.autograd.grad(last.sum(), [x])
    (of_output,) = torch.autograd.grad(ran(kind, x, states, weights, True)[0][-1].sum(), [x])
    assert torch.allclose(alone, of_output)


def test_an_input_that_is_computed_from_a_state_counts_once() -> None:
    x, _, weights = layer("gru", True)
    start = torch.randn(1, 2, 4, dtype=torch.float64, requires_grad=True)

    def loss() -> Any:
        return ran("gru", x * start.sum(), [start * 2], weights, True)[0].square().sum()

    (quick,) = torch.autograd.grad(loss(), [start])
    (made_of_others,) = torch.autograd.grad(loss(), [start], create_graph=True)
    assert torch.allclose(quick, made_of_others.detach())


def test_the_node_of_a_layer_is_named_as_in_pytorch() -> None:
    shown = [ran(kind, *layer(kind, True), True)[0].grad_fn.name() for kind in ("lstm", "gru", "rnn_tanh")]
    assert shown == ["MkldnnRnnLayerBackward0", "StackBackward0", "StackBackward0"]
