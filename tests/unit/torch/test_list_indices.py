"""Lists as indices, lists of complex numbers, and `OrderedDict` in programs."""

from __future__ import annotations

from collections import OrderedDict
from typing import Dict, List  # noqa: UP035  (programs write them)

import pytest

import engine.torch as torch
from engine.lang.errors import ArgumentError
from engine.torch import Tensor


def test_lists_of_any_numbers_are_indices() -> None:
    def by_floats(x: Tensor) -> Tensor:
        return x[[0.1, 2.9]]

    def by_nothing(x: Tensor) -> Tensor:
        places: List[int] = []  # noqa: UP006
        return x[:, places]

    x = torch.arange(6).view(3, 2)
    for f, wanted in ((by_floats, [[0, 1], [4, 5]]), (by_nothing, [[], [], []])):
        assert f(x).tolist() == torch.jit.script(f)(x).tolist() == wanted


def test_complex_tensors_of_both_sizes_become_complex_numbers() -> None:
    def f(x: Tensor) -> List[complex]:  # noqa: UP006
        numbers: List[complex] = x.tolist()  # noqa: UP006
        return numbers

    for dtype in (torch.complex64, torch.complex128):
        assert torch.jit.script(f)(torch.tensor([1 + 2j], dtype=dtype)) == [1 + 2j]


def test_an_ordered_dict_is_a_dict() -> None:
    def f(x: int) -> Dict[int, int]:  # noqa: UP006
        made = OrderedDict([(1, x), (2, 3), (1, 4)])
        made[5] = x
        return made

    assert torch.jit.script(f)(7) == {1: 4, 2: 3, 5: 7}


def test_a_list_type_needs_a_type() -> None:
    with pytest.raises(ArgumentError, match="Can not create ListType with None type"):
        torch._C.ListType(None)
