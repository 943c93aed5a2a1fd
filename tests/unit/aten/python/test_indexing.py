"""Python's indexing of tensors agrees with numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.aten.values.tensor import tensor
from engine.lang.errors import OperatorError, OperatorIndexError

ARRAY = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
MASK = ARRAY % 3 == 0

INDICES: list[Any] = [
    0, -1, (1, 2), (1, 2, 3), slice(0, 1), (slice(None), 1), (Ellipsis, 0), (0, Ellipsis), None, (None, 0),
    (slice(None), slice(0, 3, 2)), (Ellipsis, None), ([0, 1],), ([1, 0], slice(None), [0, 3]), (slice(None), [0, 2]),
    (0, [0, 2]), MASK, (MASK[0, :, 0].nonzero()[0],), (slice(None), np.array([[0, 1], [2, 0]])), (slice(1, -1),),
]  # fmt: skip


def as_tensors(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(as_tensors, index))
    return tensor(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reading(index: Any) -> None:
    expected = ARRAY[tuple(index) if isinstance(index, tuple) else index]
    np.testing.assert_array_equal(tensor(ARRAY)[as_tensors(index)].array, expected)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_writing(index: Any) -> None:
    expected, written = ARRAY.copy(), tensor(ARRAY)
    expected[tuple(index) if isinstance(index, tuple) else index] = -1
    written[as_tensors(index)] = -1
    np.testing.assert_array_equal(written.array, expected)


def test_numbers_and_slices_give_views() -> None:
    whole = tensor(ARRAY)
    assert whole[0, 1:].memory is whole.memory


@pytest.mark.parametrize("index", [2, (0, 3), (0, 0, 0, 0), ([5],)])
def test_what_is_outside_is_refused(index: Any) -> None:
    with pytest.raises(OperatorIndexError):
        tensor(ARRAY)[index]


def test_a_value_must_fit() -> None:
    with pytest.raises(OperatorError, match="must match"):
        tensor(ARRAY)[0] = tensor([1.0, 2.0])
    with pytest.raises(OperatorError, match="step of a slice must be greater than zero"):
        tensor(ARRAY)[::-1]


@pytest.mark.parametrize(
    "index",
    [0, -1, slice(1, 3), slice(None, None, 2), (0, 1), (0, 1, 2), (slice(None), 1), (..., 0), (1, ...),
     (0, slice(5, 9)), slice(-2, None)],
)  # fmt: skip
def test_plain_indices_show_what_numpy_shows_in_the_same_memory(index: Any) -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    x = tensor(values)
    view = x[index]
    assert isinstance(view.array, np.ndarray)
    assert np.array_equal(view.array, values[index])
    view.add_(1)
    assert np.array_equal(x.array[index], values[index] + 1)
    assert x._version == view._version == 1
    recorded = tensor(values, requires_grad=True)[index]
    assert recorded.shape == view.shape and recorded.array.strides == view.array.strides


def test_numbers_are_written_where_the_index_shows() -> None:
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    x[0, 1] = 7
    x[1] = 0.5
    assert x.tolist() == [[1.0, 7.0], [0.5, 0.5]]
    assert x._version == 2
    with pytest.raises(IndexError):
        x[2] = 1.0


def test_values_may_have_more_dimensions_of_one_element() -> None:
    x = tensor([0.0, 0.0, 0.0, 0.0])
    x[tensor([1, 3])] = tensor([[[5.0, 6.0]]])
    x[x == 0] = tensor([[1.0, 2.0]])
    assert x.tolist() == [1.0, 5.0, 2.0, 6.0]
    x[tensor([0])] = tensor([[9.0]])
    x[:2] = tensor([[[7.0, 8.0]]])
    assert x.tolist() == [7.0, 8.0, 2.0, 6.0]
