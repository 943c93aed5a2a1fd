"""Work in pieces gives what the whole gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch.calls import call
from engine.aten.kernels import convolution_depthwise, recurrence
from engine.aten.kernels.blocks import BLOCK, choose, contiguous_copy, in_blocks
from engine.aten.kernels.windows import Space
from engine.aten.values.tensor import Tensor, tensor
from engine.aten.values.xp import Array

SOURCE = np.random.default_rng(0)
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0]


@pytest.mark.parametrize("count", [0, 7, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_every_element_is_visited(count: int) -> None:
    x = np.arange(count, dtype=np.float32)
    assert np.array_equal(in_blocks(np.sqrt, x), np.sqrt(x))


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x[::2].T,
        lambda x: x.reshape(3, 100, 200).transpose(0, 2, 1),
        lambda x: x.reshape(3, 100, 200).transpose(2, 0, 1),
        lambda x: x[:, ::-1],
        lambda x: np.broadcast_to(x[:1], (300, 200)),
    ],
)
def test_copies_of_transposed_arrays(view: Callable[[Array], Array]) -> None:
    x = view(SOURCE.standard_normal((300, 200)))
    copy = contiguous_copy(x)
    assert copy.flags.c_contiguous
    assert np.array_equal(copy, x)
    assert not np.shares_memory(copy, x)


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "multiplier"),
    [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 1), (3, 1, 2, 2), (1, 1, 1, 2)],
)
def test_depthwise_convolutions_equal_one_channel_at_a_time(
    stride: int, padding: int, dilation: int, multiplier: int
) -> None:
    values = SOURCE.standard_normal((2, 3, 11, 9))
    weights = SOURCE.standard_normal((3 * multiplier, 1, 3, 2))
    shape = [[stride] * 2, [padding] * 2, [dilation] * 2]

    def run(x: Tensor, w: Tensor, groups: int) -> Tensor:
        result: Tensor = call("conv2d", (x, w, None, *shape, groups), {})
        return result

    x, w = tensor(values, requires_grad=True), tensor(weights, requires_grad=True)
    together = run(x, w, 3)
    together.sum().backward()
    y, v = tensor(values, requires_grad=True), tensor(weights, requires_grad=True)
    alone = [run(y[:, i : i + 1], v[multiplier * i : multiplier * (i + 1)], 1) for i in range(3)]
    apart = call("cat", (alone, 1), {})
    apart.sum().backward()
    assert np.allclose(together.detach().numpy(), apart.detach().numpy())
    assert x.grad is not None and y.grad is not None and np.allclose(x.grad.numpy(), y.grad.numpy())
    assert w.grad is not None and v.grad is not None and np.allclose(w.grad.numpy(), v.grad.numpy())


def test_depthwise_blocks_cover_all_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    x, kernels = SOURCE.standard_normal((1, 7, 5, 5)), SOURCE.standard_normal((7, 3, 3))
    space = Space((3, 3), (1, 1), (1, 1), (1, 1))
    whole = (
        convolution_depthwise.forward(x, kernels, space, (5, 5)),
        convolution_depthwise.to_kernels(x, x, (3, 3), space),
    )
    monkeypatch.setattr(convolution_depthwise, "_BLOCK", 50)
    assert np.array_equal(convolution_depthwise.forward(x, kernels, space, (5, 5)), whole[0])
    assert np.allclose(convolution_depthwise.to_kernels(x, x, (3, 3), space), whole[1])


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("has_biases", [True, False])
def test_unrecorded_recurrent_layers_equal_recorded_ones(kind: str, has_biases: bool) -> None:
    gates = {"lstm": 4, "gru": 3}[kind]
    shapes = [(gates * 5, 4), (gates * 5, 5)] + ([(gates * 5,)] * 2 if has_biases else [])
    values = [SOURCE.standard_normal(shape) for shape in shapes * 2]
    x, h = tensor(SOURCE.standard_normal((6, 2, 4))), tensor(SOURCE.standard_normal((2, 2, 5)))
    state = [h, h * 2] if kind == "lstm" else h

    def run(requires_grad: bool) -> list[list[float]]:
        params = [tensor(v, requires_grad=requires_grad) for v in values]
        results = call(kind, (x, state, params, has_biases, 1, 0.0, False, True, False), {})
        return [r.detach().numpy().ravel().tolist() for r in results]

    for quick, slow in zip(run(False), run(True), strict=True):
        assert quick == pytest.approx(slow, abs=1e-12)


def test_the_state_given_is_not_written_to() -> None:
    h, c, x = (SOURCE.standard_normal(shape) for shape in ((1, 3), (1, 3), (2, 1, 3)))
    before = h.copy(), c.copy()
    w = SOURCE.standard_normal((12, 3))
    recurrence.lstm(x, (h, c), (w, w, None, None), False)
    assert np.array_equal(h, before[0]) and np.array_equal(c, before[1])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(7,), (4096,), (130, 257), (3, 100, 90)])
def test_choosing(kind: Any, shape: tuple[int, ...]) -> None:
    a, b = (SOURCE.standard_normal(shape).astype(kind) for _ in range(2))
    a.reshape(-1)[:5] = b.reshape(-1)[-5:] = SPECIAL
    condition = SOURCE.random(shape) > 0.5
    turned = np.asfortranarray(a)
    for first, second in ((a, b), (kind(2.5), b), (a, kind(-0.0)), (turned, b), (kind(1), kind(2)), (a[:1], b)):
        expected = np.where(condition, first, second)
        found = choose(condition, first, second)
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert found.tobytes() == expected.tobytes()


def test_dtypes_that_differ_are_promoted() -> None:
    condition = SOURCE.random(5000) > 0.5
    single, double = np.ones(5000, np.float32), np.zeros(5000)
    assert choose(condition, single, double).dtype == np.float64
    assert choose(condition, np.arange(5000), double).dtype == np.float64
