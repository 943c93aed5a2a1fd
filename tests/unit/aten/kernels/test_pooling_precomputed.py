"""Pooling done a second time: the same bits as the first time, and as one window after the other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import engine.aten.ops.pooling  # noqa: F401  (registers the operators)
from engine.aten.dispatch.compose import run
from engine.aten.values.tensor import Tensor, tensor

CASES = [*itertools.product((2, 3), (1, 2), (0, 1), (False, True))]


def windows(x: np.ndarray, kernel: int, stride: int, padding: int, ceil_mode: bool, value: float) -> np.ndarray:
    """(batch, channels, tall, broad, kernel, kernel), what lies outside being `value`."""
    places = []
    for size in x.shape[2:]:
        span = size + 2 * padding - kernel
        count = (-(-span // stride) if ceil_mode else span // stride) + 1
        places.append(count - (ceil_mode and (count - 1) * stride >= size + padding))
    after = [
        max((count - 1) * stride + kernel - size - padding, 0) for count, size in zip(places, x.shape[2:], strict=True)
    ]
    whole = np.pad(x, ((0, 0), (0, 0), *((padding, each) for each in after)), constant_values=value)
    seen = np.lib.stride_tricks.sliding_window_view(whole, (kernel, kernel), (2, 3))
    return seen[:, :, ::stride, ::stride][:, :, : places[0], : places[1]]


@pytest.mark.parametrize(("kernel", "stride", "padding", "ceil_mode"), CASES)
def test_greatest_and_averages(kernel: int, stride: int, padding: int, ceil_mode: bool) -> None:
    x = np.random.default_rng(kernel).normal(size=(2, 3, 7, 8))
    sizes = ([kernel] * 2, [stride] * 2, [padding] * 2)
    greatest = windows(x, kernel, stride, padding, ceil_mode, -np.inf).max((-1, -2))
    sums = windows(x, kernel, stride, padding, ceil_mode, 0.0).sum((-1, -2))
    for given in (x, x, x.swapaxes(2, 3).copy().swapaxes(2, 3)):
        assert np.array_equal(run("max_pool2d", Tensor(given), *sizes, [1, 1], ceil_mode).array, greatest)
        found = run("avg_pool2d", Tensor(given), *sizes, ceil_mode, True, 4)
        np.testing.assert_allclose(found.array, sums / 4, rtol=1e-12)
        assert found.array.flags.c_contiguous


def test_a_sum_of_negative_zeros_is_zero() -> None:
    for _ in range(2):
        found = run("avg_pool1d", tensor([[[-0.0, -0.0]]]), [2], [2], [0], False, True)
        assert not np.signbit(found.array).any()


def test_even_parts_are_windows_and_others_are_not() -> None:
    x = np.random.default_rng(0).normal(size=(2, 6, 9))
    even = run("adaptive_avg_pool2d", Tensor(x), [3, 3]).array
    np.testing.assert_allclose(even, x.reshape(2, 3, 2, 3, 3).mean((2, 4)), rtol=1e-10)
    uneven = run("adaptive_avg_pool2d", Tensor(x), [4, 2]).array
    np.testing.assert_allclose(uneven[:, 0, 0], x[:, :2, :5].mean((1, 2)), rtol=1e-10)
    assert run("adaptive_avg_pool2d", Tensor(x), [0, 3]).array.shape == (2, 0, 3)


def test_infinity_stays_in_its_part() -> None:
    x = np.ones((1, 4, 4), np.float32)
    x[0, 0, 0] = np.inf
    assert run("adaptive_avg_pool2d", Tensor(x), [2, 2]).array.tolist() == [[[np.inf, 1.0], [1.0, 1.0]]]
