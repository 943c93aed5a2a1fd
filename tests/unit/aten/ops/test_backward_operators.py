"""Backward operators against finite differences of the forward ones, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch.compose import run
from engine.aten.values.tensor import Tensor, tensor

_STEP = 1e-6


def _random(seed: int, *shape: int) -> Tensor:
    return tensor(np.random.default_rng(seed).normal(size=shape))


def _numeric(function: Callable[..., Tensor], args: Sequence[Any], place: int, grad: Tensor) -> np.ndarray[Any, Any]:
    """d sum(function(args) * grad) / d args[place], element by element."""
    array = args[place].array
    found = np.zeros_like(array)
    for i in np.ndindex(*array.shape):
        kept = array[i]
        array[i] = kept + _STEP
        high = float((function(*args).array * grad.array).sum())
        array[i] = kept - _STEP
        low = float((function(*args).array * grad.array).sum())
        array[i] = kept
        found[i] = (high - low) / (2 * _STEP)
    return found


def _agree(forward: Callable[..., Tensor], args: list[Any], back: Callable[..., Sequence[Tensor]]) -> None:
    grad = _random(99, *forward(*args).array.shape)
    for place, got in enumerate(back(grad, *args)):
        np.testing.assert_allclose(got.array, _numeric(forward, args, place, grad), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("transposed", "groups", "stride", "padding", "dilation"),
    [(False, 1, 1, 0, 1), (False, 2, 2, 1, 1), (False, 1, 2, 2, 2), (True, 1, 1, 0, 1), (True, 2, 2, 1, 1)],
)
def test_convolution(transposed: bool, groups: int, stride: int, padding: int, dilation: int) -> None:
    geometry = ([stride] * 2, [padding] * 2, [dilation] * 2, transposed, [0, 0], groups)
    args = [_random(0, 2, 4, 6, 5), _random(1, 4, 4 // groups, 3, 2), _random(2, 4)]

    def back(grad: Tensor, x: Tensor, w: Tensor, b: Tensor) -> Sequence[Tensor]:
        result: Sequence[Tensor] = run("convolution_backward", grad, x, w, None, *geometry, [True, True, True])
        return result

    _agree(lambda x, w, b: run("convolution", x, w, b, *geometry), args, back)


def test_convolution_twice() -> None:
    geometry = ([2], [1], [1], False, [0], 2)
    args = [_random(0, 2, 4, 7), _random(1, 4, 2, 3)]
    grad_output = _random(2, *run("convolution", *args, None, *geometry).array.shape)
    weights = [_random(3, 2, 4, 7), _random(4, 4, 2, 3)]

    def weighted(go: Tensor, x: Tensor, w: Tensor) -> Tensor:
        first, second, _ = run("convolution_backward", go, x, w, None, *geometry, [True, True, False])
        return (first * weights[0]).sum() + (second * weights[1]).sum()

    def back(grad: Tensor, go: Tensor, x: Tensor, w: Tensor) -> Sequence[Tensor]:
        parts = run("_convolution_double_backward", *weights, None, go, w, x, *geometry, [True, True, True])
        return [part * grad for part in parts]

    _agree(weighted, [grad_output, *args], back)


def test_layer_norm() -> None:
    args = [_random(0, 3, 4, 5), _random(1, 4, 5), _random(2, 4, 5)]

    def back(grad: Tensor, x: Tensor, w: Tensor, b: Tensor) -> Sequence[Tensor]:
        result: Sequence[Tensor] = run("_layer_norm_backward", grad, x, [4, 5], w, 1e-5)
        return result

    _agree(lambda x, w, b: run("native_layer_norm", x, [4, 5], w, b, 1e-5)[0], args, back)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(training: bool) -> None:
    mean, var = _random(3, 3), tensor(np.random.default_rng(4).random(3) + 0.5)

    def forward(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        result: Tensor = run("native_batch_norm", x, w, b, tensor(mean), tensor(var), training, 0.1, 1e-5)[0]
        return result

    def back(grad: Tensor, x: Tensor, w: Tensor, b: Tensor) -> Sequence[Tensor]:
        result: Sequence[Tensor] = run("_batch_norm_backward", grad, x, w, mean, var, training, 1e-5)
        return result

    _agree(forward, [_random(0, 4, 3, 5), _random(1, 3), _random(2, 3)], back)


@pytest.mark.parametrize(
    ("name", "shape", "rest", "sizes"),
    [
        ("upsample_bilinear2d", (2, 3, 4, 5), (True, None, None), [7, 3]),
        ("upsample_bicubic2d", (2, 3, 4, 5), (False, None, None), [7, 3]),
        ("upsample_nearest1d", (2, 3, 5), (None,), [8]),
        ("upsample_trilinear3d", (1, 2, 3, 4, 3), (False, None, None, None), [5, 2, 4]),
    ],
)
def test_resampling(name: str, shape: tuple[int, ...], rest: tuple[Any, ...], sizes: list[int]) -> None:
    def back(grad: Tensor, x: Tensor) -> Sequence[Tensor]:
        return [run(f"{name}_backward", grad, sizes, list(x.shape), *rest)]

    _agree(lambda x: run(name, x, sizes, *rest), [_random(0, *shape)], back)


@pytest.mark.parametrize("name", ["reflection_pad2d", "replication_pad2d"])
def test_padding(name: str) -> None:
    padding = [1, 2, 2, 1]
    args = [_random(0, 2, 3, 4)]
    _agree(lambda x: run(name, x, padding), args, lambda g, x: [run(f"{name}_backward", g, x, padding)])


@pytest.mark.parametrize(
    ("ceil_mode", "include_pad", "divisor"), [(False, True, None), (True, False, None), (True, True, 3)]
)
def test_avg_pool(ceil_mode: bool, include_pad: bool, divisor: int | None) -> None:
    rest = ([3], [2], [1], ceil_mode, include_pad, divisor)
    _agree(lambda x: run("avg_pool2d", x, *rest), [_random(0, 2, 3, 6, 7)],
           lambda g, x: [run("avg_pool2d_backward", g, x, *rest)])  # fmt: skip
