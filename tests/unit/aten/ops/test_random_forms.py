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


@pytest.mark.parametrize(
    ("name", "arguments"), [*FORMS, ("normal", ()), ("bernoulli", (0.4,)), ("bernoulli", (torch.full((4, 3), 0.4),))]
)
def test_tensors_are_filled_as_they_lie_in_memory(name: str, arguments: tuple[Any, ...]) -> None:
    """Whatever order the program sees; so a transposed tensor gets the numbers of the one that it shows."""
    torch.manual_seed(3)
    wanted = getattr(torch.zeros(3, 4), f"{name}_")(*(a.t() if isinstance(a, torch.Tensor) else a for a in arguments))
    torch.manual_seed(3)
    made = getattr(torch.zeros(3, 4).t(), f"{name}_")(*arguments)
    assert torch.equal(made.t(), wanted)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_probabilities_of_few_bits_draw_few(dtype: torch.dtype) -> None:
    """The numbers of a float32's stream for all but float64, as PyTorch draws them, whatever dtype is filled."""
    given = torch.full((5,), 0.5, dtype=dtype)
    for fill in (lambda: torch.bernoulli(given), lambda: torch.zeros(5, dtype=torch.int32).bernoulli_(given)):
        torch.manual_seed(0)
        found = fill().tolist()
        torch.manual_seed(0)
        used = torch.float64 if dtype == torch.float64 else torch.float32
        assert found == (torch.rand(5, dtype=used) < 0.5).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_only_elements_that_leak_draw_a_slope(dtype: torch.dtype) -> None:
    x = torch.tensor([2.0, -1.0, float("nan"), -1.0, 3.0], dtype=dtype)
    torch.manual_seed(0)
    found = torch.nn.functional.rrelu(x, 0.1, 0.3, True)[[1, 3]]
    torch.manual_seed(0)
    assert torch.equal(found, torch.nn.functional.rrelu(-torch.ones(2, dtype=dtype), 0.1, 0.3, True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_types_round_what_float32_draws(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    wanted = torch.rand(5).to(dtype)
    torch.manual_seed(0)
    assert torch.equal(torch.rand(5, dtype=dtype), wanted)
