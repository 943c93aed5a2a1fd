"""Other shapes and parts of tensors in kernels equal the operators', for the example and for other sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.unit.fuser.kernels_of_groups import check, kernel_of, tensor

RESHAPING = [
    "x: x.view(-1) * 2", "x: x.view(x.size(0), 2, 3) + 1", "x: x.reshape(3, -1) + 1", "x: x.view(-1, 3).sum(1)",
    "x: x.flatten() - 1",
    "x: (x.view(x.size(0), -1, 2).transpose(1, 2) * 3).contiguous()",
    "x: x.unflatten(1, [2, 3]).amax(2)",
    "x: x.t().reshape(-1) + 1", "x: (x + 1).view(2, -1, 3).mean(0)", "x: x.view(-1, 1, 6).expand(-1, 2, -1) + 1",
    "x: x.unsqueeze(1).squeeze(1) * 2", "x: x.sum(1, keepdim=True).squeeze() + 1", "x: x.view_as(x) + 1",
    "x: x[0].expand_as(x) + x", "x: torch.stack([x, x + 1], 1) * 2", "x: torch.stack([x, x]).view(-1, 6) + 1",
]  # fmt: skip
PARTS = [
    "x: x[1:] + 1", "x: x[:-1] * x[1:]", "x: x[:, 1:4] + 1", "x: x[:, ::2] + 1", "x: x[1:, -2:] * 2",
    "x: x[:, 1:-1:2].sum(1)", "x: x[:100] + 1", "x: torch.cat([x[:, 3:], x[:, :3]], 1) * 2",
]  # fmt: skip


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
