"""Indices, layouts and memory of results, where they are easily got wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch import calls
from engine.aten.values.tensor import Tensor, tensor
from engine.lang.errors import OperatorError
from engine.lang.scalars import float64


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    return calls.call(name, args, kwargs)


def floats(*shape: int) -> Tensor:
    return tensor(np.arange(float(np.prod(shape)), dtype=np.float32).reshape(shape))


# ------------------------------------------------------------------ indices


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "words"),
    [
        ("gather", (floats(2, 3), 0, tensor([[0, 2, 0]])), RuntimeError, "index 2 is out of bounds for dimension 0"),
        ("index_select", (floats(3), 0, tensor([3])), IndexError, "index out of range in self"),
        ("index_copy", (floats(3), 0, tensor([3]), floats(1)), IndexError, "index 3 is out of bounds"),
        ("index_fill", (floats(3), 0, tensor([1.0]), 2), IndexError, "Expected dtype int64 for index."),
        ("index_fill", (floats(3), 0, tensor([1]), 2j), RuntimeError, "Converting complex Scalar to non-complex"),
        ("index_add", (floats(3), 0, tensor([[1]]), floats(1)), IndexError, "Index is supposed to be a vector, but"),
        ("index_add", (floats(3), 0, tensor([1]), floats(2)), RuntimeError, "Number of indices (1) should be equal"),
        ("index_reduce", (floats(3), 0, tensor([1]), floats(1), "sum"), RuntimeError, "to be one of prod, mean, amax"),
        ("put", (floats(3), tensor([1]), floats(2)), IndexError, "Expected source and index to have the same number"),
        ("scatter", (floats(2), 0, tensor([0]), tensor([1])), RuntimeError, "Expected self.dtype to be equal to src"),
        ("cat", ([],), ValueError, "expected a non-empty list of Tensors"),
        ("narrow", (floats(3), 0, tensor([1]), 1), RuntimeError, "start must be an 0-dim integral Tensor."),
    ],
)  # fmt: skip
def test_refusals(name: str, arguments: tuple[Any, ...], kind: type[Exception], words: str) -> None:
    with pytest.raises(OperatorError) as caught:
        call(name, *arguments)
    assert isinstance(caught.value, kind)
    assert words in str(caught.value)
    assert kind is not RuntimeError or not isinstance(caught.value, (IndexError, ValueError))


def test_unique_consecutive_along_a_dimension_counts_always() -> None:
    rows = tensor([[1, 1], [1, 1], [2, 1]])
    values, inverse, counts = call("unique_consecutive", rows, dim=0)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([[1, 1], [2, 1]], [0, 0, 1], [2, 1])
    _, inverse, counts = call("unique_consecutive", tensor([1, 1]), dim=0)
    assert inverse.array.size == counts.array.size == 0
    _, inverse, counts = call("unique_consecutive", tensor([1, 1]), dim=-1)
    assert (inverse.tolist(), counts.tolist()) == ([0, 0], [2])


def test_searching_goes_by_halving_even_where_nothing_is_sorted() -> None:
    bounds = tensor([5, 1, 3])
    assert call("searchsorted", bounds, tensor([2, 4, 6])).tolist() == [2, 3, 3]
    with pytest.raises(OperatorError, match="side and right can't be set to opposites"):
        call("searchsorted", bounds, tensor([2]), right=True, side="left")
    with pytest.raises(OperatorError, match="sorter index out of range"):
        call("searchsorted", bounds, tensor([2]), sorter=tensor([0, 1, 3]))


def test_equal_converts() -> None:
    assert call("equal", tensor([1, 2]), tensor([1.0, 2.0]))
    assert not call("equal", tensor([1, 2]), tensor([1.0, 2.5]))
    assert not call("equal", tensor([1, 2]), tensor([[1.0, 2.0]]))


# ------------------------------------------------------------------ layout and memory


@pytest.mark.parametrize("name", ["neg", "exp", "square"])
def test_results_of_expanded_tensors_are_contiguous(name: str) -> None:
    wide = floats(3).expand([2, 3])
    result = call(name, wide)
    assert result.is_contiguous()
    assert result.view([-1]).shape == (6,)


def test_the_first_operand_decides_about_the_layout() -> None:
    turned = floats(2, 3).transpose(0, 1)
    assert list(call("add", turned, turned).stride()) == [1, 3]
    assert list(call("mul", floats(3).expand([2, 3]).transpose(0, 1), 2).stride()) == [2, 1]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cummax", (floats(2, 3, 4), 1)),
        ("index_reduce", (floats(2, 3), 1, tensor([0, 2]), floats(2, 2), "mean")),
        ("masked_scatter", (floats(3), tensor([[True] * 3] * 2), floats(6))),
    ],
)
def test_these_results_are_contiguous(name: str, arguments: tuple[Any, ...]) -> None:
    result = call(name, *arguments)
    for part in result if isinstance(result, tuple) else (result,):
        assert part.is_contiguous()


def test_places_that_are_not_zero_lie_by_dimension() -> None:
    assert list(call("nonzero", tensor([[1, 0], [1, 1]])).stride()) == [1, 3]


def test_converting_complex_numbers_copies() -> None:
    numbers = tensor(np.array([1 + 2j]))
    real = call("to", numbers, float64)
    real.array[0] = 5.0
    assert numbers.array[0] == 1 + 2j


def test_ravel_of_every_other_element_is_a_copy_in_order() -> None:
    whole = floats(4)
    assert list(call("ravel", whole[::2]).stride()) == [1]
    assert np.shares_memory(call("ravel", whole).array, whole.array)


def test_parts_split_unsafely_show_the_same_memory() -> None:
    whole = floats(4)
    parts = call("unsafe_chunk", whole, 2)
    assert all(np.shares_memory(part.array, whole.array) for part in parts)


# ------------------------------------------------------------------ sequences


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("arange", (3.1,), [0, 1, 2, 3]),
        ("arange", (1.0, 5.000001, 2.0), [1, 3, 5]),
        ("range", (0.25, 3), [0, 1, 2, 3]),
    ],
)
def test_whole_sequences_between_fractions_count_the_fractions(
    name: str, arguments: tuple[Any, ...], expected: list[int]
) -> None:
    assert call(name, *arguments, dtype=2).tolist() == expected


def test_a_sequence_fills_an_out_of_any_shape() -> None:
    target = tensor(np.zeros((2, 2)))
    call("linspace", 0, 3, 4, out=target)
    assert target.tolist() == [[0, 1], [2, 3]]


def test_lerp_ends_where_it_should() -> None:
    assert call("lerp", tensor([1e16]), tensor([1.0]), 1.0).tolist() == [1.0]


def test_halves_are_divided_and_then_cut() -> None:
    a, b = (tensor(np.array([v], np.float16)) for v in (2.998, 1.0))
    assert call("div", a, b, rounding_mode="trunc").tolist() == [2.0]
    a, b = (tensor(np.array([v], np.float16)) for v in (2047.0, 0.6826))
    exact = np.float32(a.array[0]) / np.float32(b.array[0])
    assert call("div", a, b, rounding_mode="trunc").tolist() == [float(np.trunc(np.float16(exact)))]


def test_squares_of_truth_values_are_numbers() -> None:
    assert call("square", tensor([True, False])).array.dtype == np.int64


def test_a_real_factor_scales_both_parts_of_an_infinite_number() -> None:
    product = call("mul", complex("inf-infj"), 2.5)
    assert (product.real, product.imag) == (np.inf, -np.inf)
