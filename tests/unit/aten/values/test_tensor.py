"""Tensors: construction, memory, conversion to Python."""

from __future__ import annotations

import numpy as np
import pytest

from engine.aten.values.tensor import Tensor, from_numpy, tensor
from engine.lang import scalars
from engine.lang.errors import OperatorError, OperatorTypeError, OperatorValueError


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (1, scalars.int64),
        (1.5, scalars.float32),
        (True, scalars.bool_),
        (1j, scalars.complex64),
        ([1, 2.5], scalars.float32),
        ([True, 2], scalars.int64),
        ([], scalars.float32),
        (np.zeros(2), scalars.float64),
        (np.zeros(2, np.int16), scalars.int16),
    ],
)
def test_values_decide_the_dtype(data: object, expected: scalars.dtype) -> None:
    assert tensor(data).dtype is expected


def test_a_given_dtype_wins() -> None:
    assert tensor([1, 2], dtype=scalars.bfloat16).dtype is scalars.bfloat16


def test_tensor_copies_and_from_numpy_shares() -> None:
    array = np.zeros(2, np.float32)
    copy, shared = tensor(array), from_numpy(array)
    array[0] = 1
    assert (copy.tolist(), shared.tolist()) == ([0.0, 0.0], [1.0, 0.0])


def test_a_strided_array_keeps_its_layout() -> None:
    buffer = np.arange(12, dtype=np.float32)
    strided = np.lib.stride_tricks.as_strided(buffer, (2, 3), (4, 16))
    copy = tensor(strided)
    assert copy.stride() == (1, 4)
    np.testing.assert_array_equal(copy.array, strided)
    assert not np.shares_memory(copy.array, buffer)


@pytest.mark.parametrize(
    ("data", "error"),
    [([[1], [1, 2]], OperatorValueError), ("abc", OperatorTypeError), ({}, OperatorError)],
)
def test_what_is_no_tensor_is_refused(data: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        tensor(data)


def test_only_fractions_can_require_grad() -> None:
    with pytest.raises(OperatorError, match="floating point and complex"):
        tensor([1], requires_grad=True)
    assert tensor([1.0], requires_grad=True).requires_grad


def test_views_share_a_storage_and_its_version() -> None:
    whole = tensor([[1.0, 2.0], [3.0, 4.0]])
    row = whole[1]
    row.add_(1)
    assert whole.tolist() == [[1.0, 2.0], [4.0, 5.0]]
    assert row.memory is whole.memory
    assert (row._version, whole._version) == (1, 1)
    assert row.storage_offset() == 2


def test_numbers_come_out_as_python_numbers() -> None:
    assert tensor(2.5).item() == 2.5
    assert int(tensor([3])) == 3
    assert [1, 2, 3][tensor(1)] == 2
    assert tensor([1.0, 2.0], dtype=scalars.bfloat16).tolist() == [1.0, 2.0]
    with pytest.raises(OperatorError, match="2 elements cannot be converted to Scalar"):
        tensor([1, 2]).item()
    with pytest.raises(OperatorError, match="ambiguous"):
        bool(tensor([1, 2]))


def test_length_and_iteration() -> None:
    pairs = tensor([[1, 2], [3, 4]])
    assert len(pairs) == 2
    assert [row.tolist() for row in pairs] == [[1, 2], [3, 4]]
    with pytest.raises(TypeError, match="0-d tensor"):
        len(tensor(1))


def test_tensors_hash_by_identity() -> None:
    a, b = tensor([1]), tensor([1])
    assert len({a, b, a}) == 2


def test_shape_prints_as_size() -> None:
    assert repr(tensor(np.zeros((2, 3))).shape) == "torch.Size([2, 3])"


def test_numpy_of_a_leaf_that_requires_grad_is_refused() -> None:
    with pytest.raises(OperatorError, match="detach"):
        tensor([1.0], requires_grad=True).numpy()


def test_an_array_function_takes_a_tensor() -> None:
    assert np.asarray(tensor([1, 2])).tolist() == [1, 2]
    assert isinstance(tensor([1]) + np.array([2]), Tensor)
