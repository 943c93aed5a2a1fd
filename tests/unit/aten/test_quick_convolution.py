"""Convolutions done a second time: as the first time, to the last bit that the order of sums allows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engine.aten.ops.convolution import _QUICK, convolution
from engine.lang.errors import OperatorError

CASES = [
    (x, w, stride, padding, dilation, groups)
    for (x, w), stride, padding, dilation, groups in itertools.product(
        [
            ((1, 4, 9), (6, 4, 3)),
            ((2, 4, 9), (6, 4, 1)),
            ((1, 4, 8, 7), (2, 4, 3, 2)),
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
