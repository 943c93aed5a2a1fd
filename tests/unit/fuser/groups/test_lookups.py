"""Elements that kernels look up are those at the places, which are checked before anything is read."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch
from engine.fuser.groups.from_graph import NotFused
from tests.unit.fuser.kernels_of_groups import check, kernel_of, tensor

ROWS = torch.tensor([[2, 0, 1], [4, 4, 3]])
ROW = torch.tensor([1, 4, 0, 0, 2])

LOOKUPS = [
    ("torch.embedding(x * 2, t) + 1", ROWS), ("torch.embedding(x, t)", ROW), ("(x * 2)[t]", ROW), ("(x * 2)[t]", ROWS),
    ("(x * 2)[t - 2]", ROW), ("(x * 2)[:, t - 1]", ROW), ("(x * 2)[t, t]", ROW), ("x[t, t[:, None]] * 2", ROW),
    ("torch.index_select(x * 2, 0, t)", ROW), ("torch.index_select(x * 2, 1, t) + 1", ROW),
    ("torch.gather(x * 2, 1, t)", ROWS), ("torch.gather(x * 2, 0, t)", ROWS),
    ("torch.gather(x * 2, 1, t[:, :1])", ROWS),
]  # fmt: skip


@pytest.mark.parametrize(("text", "places"), LOOKUPS)
def test_places(text: str, places: Any) -> None:
    check(f"x, t: {text}", tensor(5, 6), places, others=[[tensor(9, 6), places], [tensor(5, 7), places]])


def test_other_dtypes() -> None:
    check("x, t: torch.embedding(x, t)", tensor(5, 6, dtype="f2"), ROWS)
    check("x, t: x[t]", torch.tensor([[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]]), ROW)
    check("x, t: torch.index_select(x, 0, t)", tensor(5, 6), ROW.to(torch.int32))


@pytest.mark.parametrize("text", ["torch.embedding(x * 2, t)", "torch.index_select(x * 2, 0, t)", "(x * 2)[t]",
                                  "torch.gather(x * 2, 0, t[:, None])"])  # fmt: skip
@pytest.mark.parametrize("wrong", [5, -6])
def test_kernels_leave_places_out_of_range_to_the_program(text: str, wrong: int) -> None:
    kernel, _ = kernel_of(f"def f(x, t: Tensor):\n    return {text}\n", [tensor(5, 6), ROW])
    with pytest.raises(AssertionError, match="no kernel"):
        kernel(tensor(5, 6), torch.tensor([1, 0, wrong]))


def test_the_program_raises_its_error() -> None:
    unit = torch.jit.CompilationUnit("def f(x, t: Tensor):\n    return torch.embedding(x * 2, t) + 1\n")
    for _ in range(3):
        unit.f(tensor(5, 6), ROW)
        with pytest.raises(RuntimeError, match="range"):
            unit.f(tensor(5, 6), ROW + 1)


def test_masks_are_left_out() -> None:
    x = tensor(5, 6)
    with pytest.raises(NotFused):
        kernel_of("def f(x):\n    return (x * 2)[x > 0]\n", [x])
