"""Types in comments: of functions that stay in Python, and what is said of comments that say too little."""

from __future__ import annotations

import pytest

import engine.torch as torch
from engine.lang.errors import CompileError, ExecutionError
from engine.torch import nn


@torch.jit.ignore
def totals(numbers, start=1):
    # type: (List[int], int) -> Tuple[int, int]
    return sum(numbers) + start, len(numbers)


@torch.jit.ignore
def last_of(x, *rest):
    return rest[-1] if rest else x


@torch.jit.ignore
def wrong_result(x):
    # type: (int) -> Tuple[int, int]
    return str(x)


def test_functions_that_stay_in_python_have_the_types_of_their_comments() -> None:
    def program(n: int):
        a, b = totals([n, 2])
        return a + b

    assert torch.jit.script(program)(3) == 8


def test_a_variable_number_of_arguments_are_tensors() -> None:
    def program(x):
        return last_of(x), last_of(x, x + 1, x + 2)

    first, second = torch.jit.script(program)(torch.zeros(1))
    assert (first.item(), second.item()) == (0.0, 2.0)


def test_results_of_another_type_are_told() -> None:
    def program(n: int):
        return wrong_result(n)

    with pytest.raises(ExecutionError, match=r"expected value of type Tuple\[int, int\] .* but instead got .* str"):
        torch.jit.script(program)(1)


def test_methods_that_stay_in_python_need_self() -> None:
    class Module(nn.Module):
        @torch.jit.ignore
        def helper():  # type: ignore[misc]
            return 1

        def forward(self, x):
            return self.helper()

    with pytest.raises(CompileError, match="'helper' does not have a self argument"):
        torch.jit.script(Module())


def test_prefixes_are_exact() -> None:
    def program(a):
        #  type: (int) -> int
        return a + 2

    with pytest.raises(CompileError, match=r"The annotation prefix in line .* is probably invalid"):
        torch.jit.script(program)


def test_comments_for_each_parameter_need_one_for_the_result() -> None:
    def without_result(
        a,  # type: int
        b,  # type: int
    ):
        return a + b

    def without_one(
        a,  # type: int
        b,
    ):
        # type: (...) -> int
        return a + b

    with pytest.raises(CompileError, match=r"Return type line '# type: .* not found on multiline type annotation"):
        torch.jit.script(without_result)
    with pytest.raises(CompileError, match=r"Number of type annotations \(1\) did not match"):
        torch.jit.script(without_one)


def test_types_that_were_inferred_are_told() -> None:
    @torch.jit.script
    def program(a):
        return a

    with pytest.raises(RuntimeError, match=r"'Tensor \(inferred\)' for argument 'a' .*\nInferred 'a' to be of type"):
        program("text")


class Renamed(nn.Module):
    """`self` has another name, and a static method has none."""

    def forward(this, x):
        # type: (List[int]) -> int
        return this.first(x) + this.more(x[0], 1)

    def first(this, x):
        # type: (List[int]) -> int
        return x[0]

    @staticmethod
    def more(a, b):
        # type: (int, int) -> int
        return a + b


def test_methods_may_name_their_module_as_they_like() -> None:
    assert torch.jit.script(Renamed())([3, 5]) == 7
