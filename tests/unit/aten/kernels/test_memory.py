"""Sizes that cannot be had."""

from __future__ import annotations

import pytest

from engine.aten.dispatch import calls
from engine.aten.kernels.memory import MEMORY, check_memory
from engine.aten.values import xp
from engine.aten.values.tensor import tensor
from engine.lang.errors import OperatorError


def test_what_fits_is_not_refused() -> None:
    check_memory((2, 3), xp.FLOAT64)
    check_memory((), xp.FLOAT64)
    check_memory((2**62, 0), xp.FLOAT64)


def test_sizes_beyond_all_addresses_overflow() -> None:
    with pytest.raises(OperatorError, match=r"overflowed with sizes=\[4611686018427387904, 8\]"):
        check_memory((2**62, 8), xp.FLOAT32)


def test_sizes_beyond_the_memory_are_named_in_bytes() -> None:
    with pytest.raises(OperatorError, match=f"you tried to allocate {4 * MEMORY} bytes"):
        check_memory((MEMORY,), xp.FLOAT32)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("zeros", ([2**62, 4],), "Storage size calculation overflowed"),
        ("arange", (2**62,), "Storage size calculation overflowed"),
        ("arange", (1e300,), "invalid size, possible overflow"),
        ("eye", (2**40,), "overflowed|can't allocate memory"),
        ("repeat", (tensor([1.0]), [2**62, 8]), "Storage size calculation overflowed"),
        ("repeat", (tensor([1.0]), [-1]), r"negative dimension -1: \[-1\]"),
        ("repeat_interleave", (tensor([1, 2]), tensor([2**60, 1])), "overflowed|can't allocate memory"),
        ("bincount", (tensor([2**60]),), "overflowed|can't allocate memory"),
        ("combinations", (tensor(list(range(100))), 30), "overflowed"),
        ("cartesian_prod", ([tensor(list(range(1000)))] * 9,), "overflowed"),
        ("histc", (tensor([1.0]), 2**50), "can't allocate memory"),
        ("as_strided", (tensor([1.0, 2.0]), [2], [5]), "out of bounds for storage of size 8"),
        ("as_strided", (tensor([1.0, 2.0]), [2], [-1]), "Negative strides are not supported"),
        ("as_strided", (tensor([1.0, 2.0]), [-2], [1]), "Storage size calculation overflowed"),
        ("as_strided", (tensor([1.0, 2.0]), [1], [1], -1), "invalid storage offset -1"),
        ("empty_strided", ([2, 3], [2**62, 1]), "Storage size calculation overflowed"),
        ("tensor_split", (tensor([1.0, 2.0]), 2**60), "overflowed|can't allocate memory"),
    ],
)
def test_operators_refuse_them(name: str, arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(OperatorError, match=words):
        calls.call(name, arguments, {})


def test_strings_and_lists_too() -> None:
    with pytest.raises(OperatorError, match=r"overflowed|can't allocate memory"):
        calls.call("center", ("a", 2**62), {})
    with pytest.raises(OperatorError, match=r"overflowed|can't allocate memory"):
        calls.call("mul", ([1, 2], 2**62), {})
