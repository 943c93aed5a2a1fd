"""Convolutions done a second time: as the first time, to the last bit that the order of sums allows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.ops.convolution import _QUICK, convolution
from engine.lang.errors import OperatorError
from tests.table.device_double import double

CASES = [
    (x, w, stride, padding, dilation, groups)
    for (x, w), stride, padding, dilation, groups in itertools.product(
        [
            ((1, 4, 9), (6, 4, 3)),
            ((2, 4, 9), (6, 4, 1)),
            ((1, 4, 8, 7), (2, 4, 3, 2)),
            ((2, 4, 9, 8), (6, 4, 2, 3)),
            ((3, 2, 5, 6, 4), (4, 2, 2, 2, 1)),
        ],
        (1, 2),
        (0, 1),
        (1, 2),
        (1, 2),
    )
]


@pytest.mark.parametrize(("x", "w", "stride", "padding", "dilation", "groups"), CASES)
def test_the_second_time(
    x: tuple[int, ...], w: tuple[int, ...], stride: int, padding: int, dilation: int, groups: int
) -> None:
    random = np.random.default_rng(sum(x))
    w = (w[0], w[1] // groups, *w[2:])
    a, b, c = (random.standard_normal(shape).astype(np.float32) for shape in (x, w, w[:1]))
    n = len(w) - 2
    rest = ([stride], [padding], [dilation], False, [0], groups)
    first = convolution(a, b, c, *rest)
    known = len(_QUICK)
    assert np.allclose(convolution(a, b, c, *rest), first, rtol=1e-5, atol=1e-6)
    turned = a.swapaxes(1, -1).copy().swapaxes(1, -1)
    assert np.allclose(convolution(turned, b, c, *rest), first, rtol=1e-5, atol=1e-6)
    assert np.allclose(convolution(a, b, None, *rest) + c.reshape(-1, *[1] * n), first, rtol=1e-4, atol=1e-5)
    assert len(_QUICK) <= known + 1


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("padding", [0, 1])
def test_short_lines_are_those_of_a_sum_over_windows(batch: int, padding: int) -> None:
    """What lies between the lines of an image is left out, even where it is no number."""
    random = np.random.default_rng(batch)
    x, w = random.standard_normal((batch, 3, 9, 11)), random.standard_normal((5, 3, 3, 2))
    x[:, :, 4, 10] = np.inf
    whole = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(whole, (3, 2), (2, 3))
    with np.errstate(invalid="ignore"):
        wanted = np.einsum("bchwij,ocij->bohw", windows, w)
        for _ in range(2):
            found = convolution(x, w, None, [1], [padding], [1], False, [0], 1)
            assert found.flags.c_contiguous
            np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_what_is_refused_stays_refused() -> None:
    x, w = np.ones((1, 2, 3), np.float32), np.ones((1, 2, 5), np.float32)
    for _ in range(2):
        with pytest.raises(OperatorError, match="Kernel size can't be greater"):
            convolution(x, w, None, [1], [0], [1], False, [0], 1)
    good = np.ones((1, 2, 5), np.float32)
    for _ in range(2):
        assert convolution(good, w, None, [1], [0], [1], False, [0], 1).tolist() == [[[10.0]]]
    with pytest.raises(OperatorError, match=r"Double|should be the same"):
        convolution(good.astype(np.float64), w, None, [1], [0], [1], False, [0], 1)


def test_the_argument_is_not_written_to() -> None:
    x, w = np.ones((1, 1, 4), np.float32), np.ones((1, 1, 1), np.float32)
    for _ in range(3):
        convolution(x, w, np.ones(1, np.float32), [1], [0], [1], False, [0], 1)
    assert x.tolist() == [[[1.0] * 4]]


@pytest.mark.parametrize("width", [5, 40])
def test_sizes_may_be_met_on_several_devices(width: int) -> None:
    x, w = torch.ones(1, 1, width, width), torch.ones(2, 1, 3, 3)
    with double():
        for _ in range(2):
            here, there = torch.conv2d(x, w), torch.conv2d(x.cuda(), w.cuda())
            pooled, elsewhere = torch.max_pool2d(x, 2), torch.max_pool2d(x.cuda(), 2)
            assert there.is_cuda and elsewhere.is_cuda
            assert there.cpu().equal(here) and elsewhere.cpu().equal(pooled)
