"""Dimensions, shapes and strides."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engine.aten.kernels.rules import (
    broadcast_shapes,
    infer_size,
    is_dense,
    overlaps_partly,
    view_strides,
    wrap_dim,
    wrap_dims,
)
from engine.lang.errors import OperatorError, OperatorIndexError


def test_dimensions_count_from_both_ends() -> None:
    assert [wrap_dim(d, 3) for d in (0, 2, -1, -3)] == [0, 2, 2, 0]
    assert wrap_dim(-1, 0) == 0
    with pytest.raises(OperatorIndexError, match=r"expected to be in range of \[-3, 2\], but got 3"):
        wrap_dim(3, 3)
    with pytest.raises(OperatorError, match="dim 1 appears multiple times"):
        wrap_dims([1, -1], 2)


@pytest.mark.parametrize(
    ("shape", "count", "expected"), [([2, 3], 6, (2, 3)), ([2, -1], 6, (2, 3)), ([-1], 0, (0,)), ([], 1, ())]
)
def test_one_size_is_worked_out(shape: list[int], count: int, expected: tuple[int, ...]) -> None:
    assert infer_size(shape, count) == expected


@pytest.mark.parametrize(
    ("shape", "count", "message"),
    [
        ([4], 6, r"shape '\[4\]' is invalid for input of size 6"),
        ([-1, 4], 6, "invalid for input of size 6"),
        ([-1, -1], 6, "only one dimension can be inferred"),
        ([-1, 0], 0, "ambiguous"),
    ],
)
def test_what_cannot_be_worked_out(shape: list[int], count: int, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        infer_size(shape, count)


def test_broadcasting() -> None:
    assert broadcast_shapes((2, 1), (3,)) == (2, 3)
    assert broadcast_shapes((0, 1), (1, 4)) == (0, 4)
    with pytest.raises(OperatorError, match=r"tensor a \(2\) must match the size of tensor b \(3\) .* dimension 1"):
        broadcast_shapes((4, 2), (3,))


SHAPES = [(24,), (2, 12), (4, 6), (2, 3, 4), (2, 2, 6), (4, 3, 2), (1, 24), (2, 1, 12), (2, 3, 1, 4)]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_views_in_another_shape(order: tuple[int, ...], shape: tuple[int, ...]) -> None:
    array = np.arange(24).reshape(2, 3, 4).transpose(order)
    strides = view_strides(array, shape)
    copied = array.reshape(shape)
    if strides is None:
        assert not np.shares_memory(copied, array)
    else:
        view = np.lib.stride_tricks.as_strided(array, shape, strides)
        np.testing.assert_array_equal(view, copied)


def test_density_and_overlap() -> None:
    array = np.zeros((4, 6))
    assert is_dense(array.T)
    assert not is_dense(array[:, ::2])
    assert overlaps_partly(array, array[0])
    assert not overlaps_partly(array[0], array[1])
    assert not overlaps_partly(array, array[:])
