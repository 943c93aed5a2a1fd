"""assert_close and make_tensor."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch
from engine.torch.testing import assert_close, make_tensor

t = torch.tensor
NAN = float("nan")


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (t([1.0, 2.0]), t([1.0, 2.000001]), {}), (1.0, 1.0 + 1e-9, {}), ([t(1.0), 2], [t(1.0), 2], {}),
        ({"a": t([1])}, {"a": t([1])}, {}), (t([NAN]), t([NAN]), {"equal_nan": True}), (None, None, {}),
        (t([1.0]), t([1.05]), {"rtol": 0.1, "atol": 0.0}), (t([1.0]), t([1.0]).double(), {"check_dtype": False}),
        (t([1.0, 2.0]).half(), t([1.0, 2.001]).half(), {}), (t([1j]), t([1j]), {}),
        (t([float("inf")]), t([float("inf")]), {}),
    ],
)  # fmt: skip
def test_close(actual: Any, expected: Any, options: dict[str, Any]) -> None:
    assert_close(actual, expected, **options)


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (t([1.0, 2.0]), t([1.0, 2.1]), r"Mismatched elements: 1 / 2 \(50.0%\)\nGreatest absolute difference: 0.0999"),
        (t([[1, 2], [3, 4]]), t([[1, 2], [9, 4]]), r"not equal!\n(.|\n)*at index \(1, 0\)"),
        (t(1.0), t(2.0), "but got 1"),
        ([t(1.0), t(1.0)], [t(1.0), t(2.0)], r"for item \[1\]"),
        ({"a": 1}, {"b": 1}, "keys of the mappings"),
        ([1], [1, 2], "length of the sequences"),
        (t([1.0]), t([1.0]).double(), "attribute 'dtype' do not match"),
        (t([1.0]), t([1.0, 2.0]), "attribute 'shape'"),
        (t([NAN]), t([NAN]), "Mismatched elements: 1 / 1"),
        (None, t(1.0), "None mismatch"),
        (t([True]), t([False]), "not equal"),
    ],
)  # fmt: skip
def test_not_close(actual: Any, expected: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_close(actual, expected)


def test_what_cannot_be_compared() -> None:
    with pytest.raises(TypeError):
        assert_close(t(1.0), "1")
    with pytest.raises(ValueError, match="rtol and atol"):
        assert_close(1.0, 1.0, rtol=1.0)
    with pytest.raises(AssertionError, match=r"^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match=r"^mine: Scalars"):
        assert_close(1, 2, msg=lambda found: f"mine: {found}")


@pytest.mark.parametrize("name", ["uint8", "int64", "bool", "float16", "float64", "complex64"])
def test_tensors_of_every_kind_are_made(name: str) -> None:
    dtype = getattr(torch, name)
    made = make_tensor(3, 4, dtype=dtype, device="cpu", noncontiguous=True)
    assert (made.dtype, tuple(made.shape), made.is_contiguous()) == (dtype, (3, 4), False)


def test_bounds_and_gradients_of_made_tensors() -> None:
    made = make_tensor((50,), dtype=torch.float32, low=2, high=3, requires_grad=True)
    assert made.requires_grad
    assert 2 <= made.min().item() <= made.max().item() < 3
    assert make_tensor((50,), dtype=torch.int8, low=0, high=2, exclude_zero=True).min().item() == 1
    with pytest.raises(ValueError, match="low"):
        make_tensor(2, dtype=torch.int8, low=3, high=3)
    with pytest.raises(ValueError, match="requires_grad"):
        make_tensor(2, dtype=torch.int8, requires_grad=True)
