"""Normalization some rows at a time, and of groups at once, comes to what it is by definition."""

from __future__ import annotations

import numpy as np
import pytest

from engine.aten.autograd import no_grad
from engine.aten.dispatch.calls import call
from engine.aten.kernels.blocks import BLOCK
from engine.aten.values.tensor import Tensor

RANDOM = np.random.default_rng(5)


def randn(*shape: int) -> Tensor:
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize("shape", [(3, 4), (2, 5, 1), (7, 40), (3, BLOCK // 8, 20), (2, 2 * BLOCK), (0, 4), (4,)])
def test_layer_norm_is_that_of_each_row(shape: tuple[int, ...]) -> None:
    x, weight, bias = randn(*shape), randn(shape[-1]), randn(shape[-1])
    found, mean, rstd = call("native_layer_norm", (x, [shape[-1]], weight, bias, 1e-5), {})
    exact = x.array.astype(np.float64)
    wanted = (exact - exact.mean(-1, keepdims=True)) / np.sqrt(exact.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found.array, wanted * weight.array + bias.array, rtol=1e-4, atol=1e-4)
    assert mean.array.shape == rstd.array.shape == (*shape[:-1], 1)


def test_rows_do_not_depend_on_how_many_there_are() -> None:
    x = randn(BLOCK // 4, 12)
    whole, part = (call("layer_norm", (rows, [12]), {}).array for rows in (x, x[5:6]))
    assert (whole[5:6] == part).all()


@pytest.mark.parametrize("affine", [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("shape", [(2, 6, 5, 4), (3, 6), (0, 6, 2), (2, 6, 0)])
def test_group_norm_is_the_same_whether_it_is_recorded_or_not(
    shape: tuple[int, ...], affine: tuple[bool, bool]
) -> None:
    x = randn(*shape)
    weight, bias = (randn(6) if wanted else None for wanted in affine)
    x.requires_grad = True
    recorded = call("group_norm", (x, 3, weight, bias), {})
    with no_grad():
        quick = call("group_norm", (x, 3, weight, bias), {})
    assert recorded.requires_grad and not quick.requires_grad
    np.testing.assert_allclose(recorded.array, quick.array, rtol=1e-5, atol=1e-5)
