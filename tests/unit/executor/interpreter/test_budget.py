"""Code that runs while an archive is loaded, and what it may take."""

from __future__ import annotations

import pytest

from engine.aten.values.tensor import Tensor
from engine.executor.interpreter.budget import Budget, BudgetedRunner
from engine.frontend.compilation.compile import compile_source
from engine.ir.unit import Function
from engine.lang.errors import ArchiveError, BudgetExceeded, ExecutionError


def function(text: str) -> Function:
    return next(iter(compile_source(text).functions.values()))


LOOP = function("def f(n: int):\n    s = 0\n    for i in range(n):\n        s = s + i\n    return s\n")


def test_it_runs_as_always() -> None:
    assert BudgetedRunner()(LOOP, [10]) == 45


def test_steps_are_counted_over_all_runs() -> None:
    run = BudgetedRunner(Budget(steps=100))
    assert run(LOOP, [10]) == 45
    with pytest.raises(BudgetExceeded, match="'f', which runs while loading, takes more than 100 steps") as caught:
        [run(LOOP, [10]) for _ in range(10)]
    assert isinstance(caught.value, ArchiveError)
    assert "engine.Budget" in caught.value.hints[0]


def test_seconds_are_counted() -> None:
    with pytest.raises(BudgetExceeded, match="seconds"):
        BudgetedRunner(Budget(seconds=0.05, steps=10**9))(LOOP, [10**9])


def test_memory_is_limited_and_the_limit_goes_away() -> None:
    large = function("def f(n: int):\n    return torch.ones([n])\n")
    with pytest.raises(BudgetExceeded, match="bytes of memory"):
        BudgetedRunner(Budget(nbytes=64 << 20))(large, [100 << 20])
    found = BudgetedRunner()(large, [50 << 20])
    assert isinstance(found, Tensor)


def test_an_error_of_the_program_stays_one() -> None:
    with pytest.raises(ExecutionError, match="no"):
        BudgetedRunner()(function("def f():\n    raise ValueError('no')\n"), [])


def test_no_threads_are_started() -> None:
    text = "def g(x: int):\n    return x\n\ndef f(x: int):\n    return torch.jit.wait(torch.jit.fork(g, x))\n"
    forks = compile_source(text).functions["f"]
    with pytest.raises(BudgetExceeded, match="thread"):
        BudgetedRunner()(forks, [1])
