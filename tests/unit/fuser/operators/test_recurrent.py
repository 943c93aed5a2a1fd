"""Recurrent layers as kernels equal numpy's: kinds, directions, biases, batches and sizes around tiles."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.kernels import recurrence
from engine.fuser.backend import tiering
from engine.fuser.operators import recurrent

_KINDS = tuple(recurrence.GATES)


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compile at once, and however little work there is."""
    before = tiering.mode()
    tiering.set_mode("eager")
    monkeypatch.setattr(recurrent, "LEAST", 0)
    yield
    tiering.set_mode(before)


def _given(kind: str, steps: int, m: int, n: int, k: int, has_biases: bool) -> tuple[Any, Any, Any]:
    random, rows = np.random.default_rng(m + n + k), recurrence.GATES[kind] * n

    def of(*shape: int) -> Any:
        return (random.standard_normal(shape) / np.sqrt(n)).astype(np.float32)

    state = tuple(of(m, n) for _ in range(2 if kind == "lstm" else 1))
    biases = (of(rows), of(rows)) if has_biases else (None, None)
    return of(steps, m, k), state, (of(rows, k), of(rows, n), *biases)


def _flat(ran: Any) -> list[Any]:
    outputs, state, kept = ran
    return [outputs, *state, *kept]


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize(("steps", "m", "n", "k"), [(7, 8, 40, 5), (1, 1, 1, 1), (4, 3, 150, 9), (3, 13, 33, 40),
                                                    (2, 64, 64, 64)])  # fmt: skip
def test_equals_numpy(kind: str, steps: int, m: int, n: int, k: int) -> None:
    for has_biases, backwards in ((True, False), (True, True), (False, False)):
        given = _given(kind, steps, m, n, k, has_biases)
        before = [each.copy() for each in given[1]]
        found = recurrent.layer(kind, *given, backwards, keeps=True)
        assert found is not None
        for a, b in zip(_flat(found), _flat(recurrence.LAYERS[kind](*given, backwards)), strict=True):
            assert a.dtype == np.float32
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        for a, b in zip(given[1], before, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 7, 12, 13, 30])
def test_the_library_has_layers_of_any_size(kind: str, m: int, library: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no backward pass wants to know of the steps, and nothing is compiled for a layer of its own."""
    monkeypatch.setattr(recurrent, "LEAST", 2**62)
    for steps, n, k in ((1, 1, 1), (3, 33, 5), (5, 64, 40)):
        for has_biases, backwards in itertools.product((True, False), repeat=2):
            x, state, weights = _given(kind, steps, m, n, k, has_biases)
            one_bias = (*weights[:3], None) if has_biases else weights
            for each in (weights, one_bias):
                found = recurrent.layer(kind, x, state, each, backwards, keeps=False)
                assert found is not None
                wanted = recurrence.LAYERS[kind](x, state, each, backwards)
                for a, b in zip((found[0], *found[1]), (wanted[0], *wanted[1]), strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
            assert recurrent.layer(kind, x, state, weights, backwards, keeps=True) is None
    tiering.set_mode("off")
    assert recurrent.layer(kind, x, state, weights, False, keeps=False) is None


@pytest.mark.parametrize("kind", _KINDS)
def test_keeps_nothing_unasked(kind: str) -> None:
    given = _given(kind, 3, 2, 20, 6, True)
    kept, unkept = (recurrent.layer(kind, *given, False, keeps=keeps) for keeps in (True, False))
    assert kept is not None
    assert unkept is not None
    np.testing.assert_array_equal(kept[0], unkept[0])
    assert unkept[2][1].size == 0


def test_leaves_the_rest_to_numpy() -> None:
    x, state, weights = _given("gru", 3, 2, 8, 4, True)
    w_ih, w_hh, b_ih, b_hh = weights
    assert recurrent.layer("gru", x.astype(np.float64), state, weights, False, False) is None
    assert recurrent.layer("gru", x, state, (w_ih, np.asfortranarray(w_hh), b_ih, b_hh), False, False) is None
    assert recurrent.layer("gru", x[..., :0], state, (w_ih[:, :0], w_hh, b_ih, b_hh), False, False) is None


def test_infinite_and_missing_numbers() -> None:
    x, state, weights = _given("rnn_relu", 3, 3, 17, 4, True)
    x[0, 1, 2], x[1, 2, 0] = np.nan, np.inf
    found = recurrent.layer("rnn_relu", x, state, weights, False, False)
    assert found is not None
    with np.errstate(all="ignore"):
        expected = recurrence.LAYERS["rnn_relu"](x, state, weights, False)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("batch_first", [True, False])
def test_modules(kind: str, batch_first: bool) -> None:
    """Two layers in both directions, and their gradients, as without machine code."""
    torch.manual_seed(0)
    module = getattr(torch.nn, kind)(12, 20, 2, bidirectional=True, batch_first=batch_first)
    x = torch.randn(5, 4, 12)

    def run() -> list[Any]:
        module.zero_grad()
        with torch.no_grad():
            plain = module(x)[0]
        output = module(x)[0]
        (output * output).sum().backward()
        return [plain, output, *(each.grad for each in module.parameters())]

    found = run()
    tiering.set_mode("off")
    for a, b in zip(found, run(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
