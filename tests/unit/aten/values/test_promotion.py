"""Promotion of dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from engine.aten.values import xp
from engine.aten.values.promotion import converted, fit, promote_types, result_type
from engine.aten.values.tensor import tensor
from engine.lang.errors import OperatorError

ZERO_DIM = np.zeros((), np.float64)
FLOATS = np.zeros(2, np.float32)
INTS = np.zeros(2, np.int32)
BOOLS = np.zeros(2, np.bool_)
HALVES = np.zeros(2, np.float16)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((INTS, FLOATS), xp.FLOAT32),
        ((INTS, 2.5), xp.FLOAT32),
        ((INTS, 2), xp.INT32),
        ((INTS, True), xp.INT32),
        ((BOOLS, 2), xp.INT64),
        ((BOOLS, 2.5), xp.FLOAT32),
        ((FLOATS, ZERO_DIM), xp.FLOAT32),
        ((INTS, ZERO_DIM), xp.FLOAT64),
        ((HALVES, 2.5), xp.FLOAT16),
        ((HALVES, 1j), xp.COMPLEX32),
        ((FLOATS.astype(np.float64), 1j), xp.COMPLEX128),
        ((ZERO_DIM, 2), xp.FLOAT64),
        ((INTS, np.zeros((), np.int64)), xp.INT32),
        ((2, 3.0), xp.FLOAT32),
    ],
)
def test_dimensions_beat_zero_dim_beats_numbers(values: tuple[object, ...], expected: xp.NumpyDtype) -> None:
    assert result_type(values) == expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (xp.UINT8, np.dtype(np.int8), np.dtype(np.int16)),
        (xp.FLOAT16, xp.BFLOAT16, xp.FLOAT32),
        (xp.BFLOAT16, xp.FLOAT64, xp.FLOAT64),
        (xp.BFLOAT16, xp.INT64, xp.BFLOAT16),
        (xp.INT64, xp.FLOAT16, xp.FLOAT16),
        (xp.FLOAT64, xp.COMPLEX64, xp.COMPLEX128),
        (xp.FLOAT16, xp.COMPLEX32, xp.COMPLEX32),
        (xp.BFLOAT16, xp.COMPLEX32, xp.COMPLEX64),
        (xp.FLOAT32, xp.COMPLEX32, xp.COMPLEX64),
        (xp.INT64, xp.COMPLEX32, xp.COMPLEX32),
        (xp.BOOL, xp.UINT8, xp.UINT8),
    ],
)
def test_pairs(a: xp.NumpyDtype, b: xp.NumpyDtype, expected: xp.NumpyDtype) -> None:
    assert promote_types(a, b) == promote_types(b, a) == expected


def test_whole_numbers_wrap() -> None:
    assert fit(300, xp.UINT8) == 44
    assert fit(-1, xp.UINT8) == 255
    assert fit(2**63, xp.INT64) == -(2**63)
    assert (tensor(np.array([255], np.uint8)) + 1).tolist() == [0]
    assert (tensor([2**62]) * 4).tolist() == [0]


def test_numbers_without_a_place_are_refused() -> None:
    with pytest.raises(OperatorError, match="cannot be converted to type float without overflow"):
        converted(1j, xp.FLOAT32)
    with pytest.raises(OperatorError, match="int64_t"):
        converted(float("inf"), xp.INT64)


def test_results_of_operators() -> None:
    whole = tensor([1, 2])
    assert (whole / 2).dtype.name == "float32"
    assert (whole + 1.5).dtype.name == "float32"
    assert (whole == 1).dtype.name == "bool"
    assert whole.sum().dtype.name == "int64"
    assert tensor(np.zeros(2, np.int8)).sum().dtype.name == "int64"
    with pytest.raises(OperatorError, match=r"result type Float can't be cast to the desired output type Long"):
        whole.add_(1.5)
