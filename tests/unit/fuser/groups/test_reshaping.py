"""Other shapes and parts of tensors in kernels equal the operators', for the example and for other sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.unit.fuser.kernels_of_groups import check, kernel_of, tensor
from tests.unit.fuser.samples_of_groups import PARTS, RESHAPING


@pytest.mark.parametrize("text", [*RESHAPING, *PARTS])
def test_shapes(text: str) -> None:
    check(text, tensor(4, 6), others=[[tensor(8, 6)]])


@pytest.mark.parametrize("text", PARTS)
def test_parts_of_what_is_strided(text: str) -> None:
    names, _, expression = text.partition(":")
    check(f"{names}: ({expression}).contiguous()", tensor(6, 5).t(), others=[[tensor(7, 9).t()]])


def test_sizes_that_are_numbers() -> None:
    text = "def f(x, n: int, m: int):\n    return x.view(n, -1) * 2 + x.view(n, m)[:, :1]\n"
    kernel, function = kernel_of(text, [tensor(4, 6), 8, 3])
    for args in ([tensor(4, 6), 8, 3], [tensor(4, 6), 2, 12], [tensor(5, 5), 5, 5]):
        np.testing.assert_allclose(kernel(*args).numpy(), function(*args).numpy(), rtol=1e-6)


def test_an_index_that_is_a_number() -> None:
    kernel, function = kernel_of("def f(x, i: int):\n    return x[i] * 2 + x[:, i].sum()\n", [tensor(4, 6), 0])
    for args in ([tensor(4, 6), 0], [tensor(4, 6), 3], [tensor(2, 5), 1]):
        np.testing.assert_allclose(kernel(*args).numpy(), function(*args).numpy(), rtol=1e-6)
    for i in (-1, 4):
        with pytest.raises(AssertionError, match="no kernel"):
            kernel(tensor(4, 6), i)


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("x: x.view(-1, 3) + 1", [tensor(2, 4)]),
        ("x: x[:3] + 1", [tensor(2, 6)]),
        ("x: x.view(4, 6) + 1", [tensor(3, 6)]),
    ],
)
def test_guards(text: str, args: Sequence[Any]) -> None:
    """Arguments for which the loops would not be right are left to others."""
    kernel, _ = kernel_of(f"def f(x):\n    return {text.partition(':')[2]}\n", [tensor(4, 6)])
    with pytest.raises(AssertionError, match="no kernel"):
        kernel(*args)
