"""Whole numbers in the form of another tensor: the numbers of `randint`, in each of its forms."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch

DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
BOUNDS: list[tuple[Any, ...]] = [(7,), (2, 9), (torch.tensor(7),)]


def bounds_of(given: tuple[Any, ...]) -> tuple[int, int]:
    low, high = given if len(given) == 2 else (0, given[0])
    return low, int(high)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("given", BOUNDS, ids=["high", "low and high", "a tensor"])
def test_the_numbers_are_those_of_randint(dtype: str, given: tuple[Any, ...]) -> None:
    x, wanted = torch.ones(3, 4).to(getattr(torch, dtype)), torch.Generator().manual_seed(5)
    low, high = bounds_of(given)
    expected = torch.randint(low, high, (3, 4), generator=wanted).to(x.dtype)
    found = torch.randint_like(x, *given, generator=torch.Generator().manual_seed(5))
    assert torch.equal(found, expected)
    assert (found.dtype, found.stride()) == (x.dtype, x.stride())
    out = torch.empty(3, 4, dtype=x.dtype)
    overload = {1: "generator_out", 2: "low_generator_dtype_out"}[len(given)]
    overload = "Tensor_generator_out" if isinstance(given[0], torch.Tensor) else overload
    written = getattr(torch.ops.aten.randint_like, overload)
    written(x, *given, generator=torch.Generator().manual_seed(5), out=out)
    assert torch.equal(out, expected)


def test_programs_draw_them_and_another_dtype_may_be_asked_for() -> None:
    unit: Any = torch.jit.CompilationUnit("def f(x):\n    return torch.randint_like(x, 2, 9, dtype=torch.long)\n")
    torch.manual_seed(3)
    wanted = torch.randint(2, 9, (2, 5))
    torch.manual_seed(3)
    found = unit.f(torch.ones(5, 2).t())
    assert (found.dtype, found.shape, sorted(found.flatten().tolist())) == (
        torch.int64, wanted.shape, sorted(wanted.flatten().tolist()))  # fmt: skip


@pytest.mark.parametrize(("given", "words"), [
    ((0,), "expects 'from' to be less than 'to'"), ((2, 2), "expects 'from' to be less than 'to'"),
    ((torch.ones(2),), "high must be a scalar tensor"),
])  # fmt: skip
def test_bounds_that_leave_no_number_are_refused(given: tuple[Any, ...], words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        torch.randint_like(torch.ones(2), *given)
