"""The forms of operators that fill a tensor: in place, new, and into `out`."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch
from engine.lang.errors import ArgumentError, OperatorError

FORMS = [("uniform", (0.0, 1.0)), ("random", (2, 7)), ("random", (5,)), ("random", ()), ("exponential", (1.5,)),
         ("geometric", (0.3,)), ("cauchy", (0.0, 1.0)), ("log_normal", (1.0, 2.0))]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), FORMS)
def test_all_forms_draw_the_same(name: str, arguments: tuple[Any, ...]) -> None:
    given = torch.zeros(3, 4)
    torch.manual_seed(3)
    wanted = getattr(torch.zeros(3, 4), f"{name}_")(*arguments)
    torch.manual_seed(3)
    made = getattr(torch.ops.aten, name)(given, *arguments)
    out = torch.zeros(0)
    torch.manual_seed(3)
    assert getattr(torch.ops.aten, name)(given, *arguments, out=out) is out
    assert torch.equal(made, wanted)
    assert torch.equal(out, wanted)
    assert not given.any()


def test_bounds_are_checked_in_every_form() -> None:
    with pytest.raises(OperatorError, match="from' to be less than 'to'"):
        torch.ops.aten.random(torch.zeros(2), 3, 3)


def test_tensors_are_no_numbers_for_programs() -> None:
    unit = torch.jit.CompilationUnit("def f(a: number):\n    return a\n")
    assert [unit.f(1), unit.f(2.5), unit.f(1j)] == [1, 2.5, 1j]
    with pytest.raises(ArgumentError, match=r"(?s)'number' for argument 'a' .* give x\.item\(\)"):
        unit.f(torch.tensor(1.0))
