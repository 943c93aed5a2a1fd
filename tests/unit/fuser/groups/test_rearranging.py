"""Elements in another order, several times or among others in kernels are those that the operators give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.fuser.backend import tiering
from engine.fuser.groups.from_graph import NotFused
from tests.unit.fuser.kernels_of_groups import check, check_program, kernel_of, tensor
from tests.unit.fuser.samples_of_groups import REARRANGING


@pytest.mark.parametrize("function", REARRANGING)
def test_orders(function: str) -> None:
    others = [[tensor(6, 4, 6)], [tensor(8, 4, 6, seed=1)]]
    check(f"x: {function}", tensor(4, 4, 6), others=others)


def test_pixels() -> None:
    x = tensor(2, 8, 3, 5)
    check("x: torch.nn.functional.pixel_shuffle(x * 2, 2)", x, others=[[tensor(3, 4, 2, 2)], [tensor(1, 12, 3, 4)]])


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64, np.bool_])
def test_dtypes(dtype: Any) -> None:
    x = tensor(3, 4, dtype=dtype)
    for function in ("torch.flip(x, [1])", "torch.tril(x)", "torch.roll(x, 1, 0)", "x.repeat(2, 1)"):
        check(f"x: {function}", x)


@pytest.mark.parametrize(
    "parts", ["torch.unbind(x * 2, 1)", "torch.split(x * 2, 3, 1)", "torch.split(x * 2, [2, 2], 1)"]
)
def test_parts(parts: str) -> None:
    count = {"u": 4, "s": 2}[parts.removeprefix("torch.")[0]]
    names = ", ".join("abcd"[:count])
    text = f"def f(x):\n    {names} = {parts}\n    return a.sum(0) + b.sum() * 2\n"
    check_program(text, tensor(3, 4, 5), others=[[tensor(7, 4, 5)], [tensor(3, 4, 2)]])


@pytest.mark.parametrize("parts", ["chunk(2, 1)", "split(3, 1)", "unbind(2)"])
def test_parts_stay_in_one_group(parts: str) -> None:
    """Whatever gives the list: it is unpacked inside."""
    unit = torch.jit.CompilationUnit(f"def f(x):\n    a, b = (x * 2).{parts}\n    return torch.tanh(a) * b.exp()\n")
    before = tiering.mode()
    tiering.set_mode("eager")
    try:
        with torch.no_grad():
            unit.f(tensor(3, 6, 2))
    finally:
        tiering.set_mode(before)
    (plan,) = unit.f.plans()
    assert len(plan.groups) == 1 and len(plan.groups[0].kernels) == 1


def test_random_numbers_are_left_out() -> None:
    with pytest.raises(NotFused, match="random"):
        kernel_of("def f(x):\n    return torch.nn.functional.dropout(x * 2, 0.5, True)\n", [tensor(3, 4)])


IMPOSSIBLE = ["torch.roll(x * 2, 9, 1)", "(x * 2).repeat(2, 3)", "torch.nn.functional.pad(x * 2, [-2, -2])",
              "torch.diagonal(x * 2, 9)"]  # fmt: skip


@pytest.mark.parametrize("function", IMPOSSIBLE)
def test_what_leaves_nothing_is_left_out(function: str) -> None:
    with pytest.raises(NotFused):
        kernel_of(f"def f(x):\n    return {function}\n", [tensor(3, 4)])
