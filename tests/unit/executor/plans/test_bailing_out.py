"""Programs that leave their plan where a guard fails: results, writes and errors are the interpreter's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import engine
from engine.executor.interpreter.interpreter import MAX_DEPTH, InterpreterState
from engine.executor.plans.executor import executor_of
from engine.executor.plans.plan import ExecutionPlan
from engine.executor.profiling.settings import PROFILING
from engine.fuser.backend import tiering
from engine.lang.errors import ExecutionError

Run = Callable[..., Any]


@pytest.fixture(autouse=True, params=["off", "eager"])
def profiling(request: pytest.FixtureRequest) -> Iterator[None]:
    """Plans are made from profiles, with and without kernels."""
    before = tiering.mode()
    tiering.set_mode(request.param)
    PROFILING.is_enabled = True
    yield
    PROFILING.is_enabled = False
    tiering.set_mode(before)


def guarded(text: str, *args: Any) -> tuple[ExecutionPlan, Any]:
    """The plan that calls like this one get, and the function."""
    f = engine.CompilationUnit(text).f
    for _ in range(2):
        f(*copied(args))
    (plan,) = executor_of(f._function).cache.plans()
    assert plan.bailouts
    return plan, f


def copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(each.clone() if isinstance(each, engine.Tensor) else each for each in args)


def outcome(run: Run, args: tuple[Any, ...]) -> list[Any]:
    """The results and what became of the arguments, as plain values."""
    args = copied(args)
    results = run(*args)
    values = [*(results if isinstance(results, tuple) else [results]), *args]
    return [value.tolist() if isinstance(value, engine.Tensor) else value for value in values]


def by_interpreter(text: str, args: tuple[Any, ...]) -> list[Any]:
    with engine.jit.optimized_execution(False):
        return outcome(engine.CompilationUnit(text).f, args)


IN_LOOP = """
def f(x, n: int):
    total = torch.zeros(1)
    for i in range(n):
        x.add_(1.0)
        rows = torch.nonzero(x > 0)
        total = total + rows.sum() * (i + 1)
    return total, rows_of(x)

def rows_of(x):
    return torch.nonzero(x > 2).size(0)
"""
IN_NESTED_LOOP = """
def f(x, n: int):
    for i in range(n):
        x.mul_(2.0)
        j = 0
        while j < i + 2:
            x.sub_(1.0)
            rows = torch.nonzero(x > j)
            x[0] += rows.size(0)
            j += 1
        x.add_(torch.nonzero(x).size(0))
    return x * 2
"""
IN_BRANCH = """
def f(x, n: int):
    x.add_(1.0)
    y = x
    if n > 2:
        rows = torch.nonzero(x > 1)
        x.add_(1.0)
        y = torch.tanh(rows * 0.5)
    else:
        y = x * 2
    x.mul_(3.0)
    return y.sum() + n
"""
IN_CALL = """
def step(x, k: int):
    x.add_(k)
    rows = torch.nonzero(x > 2)
    if rows.size(0) > 3:
        return torch.cat([rows, rows]).sum()
    return rows.sum()

def f(x, n: int):
    total = torch.zeros(1)
    for k in range(n):
        total = total + step(x, k)
    return total, total + step(x, -1)
"""
PROGRAMS = {"a loop": IN_LOOP, "a nested loop": IN_NESTED_LOOP, "a branch": IN_BRANCH, "a call": IN_CALL}
KNOWN = (engine.tensor([0.5, 1.5, -2.0]), 4)


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=[*PROGRAMS])
def test_each_guard_may_fail_once(text: str) -> None:
    plan, f = guarded(text, *KNOWN)
    for number, site in enumerate(plan.bailouts):
        plan.request_bailout(number)
        assert outcome(f, KNOWN) == by_interpreter(text, KNOWN)
        assert [failure.requested for failure in site.failures] == [True]


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=[*PROGRAMS])
def test_guards_may_fail_in_any_round(text: str) -> None:
    for values in ([3.0, 1.5, -2.0], [-1.5, -0.5, -0.25], [9.0, 9.0, 9.0], [0.0, 9.0, -9.0], [1.0, 2.0, 3.0, 4.0]):
        _, f = guarded(text, *KNOWN)
        args = engine.tensor(values), 4
        assert outcome(f, args) == by_interpreter(text, args)


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=[*PROGRAMS])
def test_interpreted_plans_go_on_alike(text: str) -> None:
    plan, _ = guarded(text, *KNOWN)

    def run(*args: Any) -> Any:
        return InterpreterState(plan.code).run(*args)

    for site in plan.bailouts:
        site.request()
        assert outcome(run, KNOWN) == by_interpreter(text, KNOWN)
        assert site.count == 1


def test_gradients_go_through_a_bailout() -> None:
    text = """
def f(x, n: int):
    y = torch.tanh(x) * 2
    for i in range(n):
        rows = torch.nonzero(y > 0.5)
        y = y * torch.sigmoid(y) + rows.size(0)
    return y * x
"""

    def gradient(f: Any, values: list[float]) -> Any:
        x = engine.tensor(values, requires_grad=True)
        f(x, 3).sum().backward()
        return x.grad

    f = engine.CompilationUnit(text).f
    for values in ([0.1, 0.6, 1.0], [0.1, 0.6, 1.0], [1.0, 1.0, 1.0], [-9.0, 0.0, 0.5, 0.75], [0.1, 0.6, 1.0]):
        found = gradient(f, values)
        with engine.jit.optimized_execution(False):
            wanted = gradient(engine.CompilationUnit(text).f, values)
        assert engine.allclose(found, wanted, rtol=1e-5, atol=1e-6)


# -- errors

SHOWS_VIEW = """
def shaped(rows, y):
    scaled = torch.tanh(rows * 0.5)
    return scaled.view(2) + y

def f(x, y):
    x.add_(1.0)
    rows = torch.nonzero(x)[:, 0]
    for i in range(2):
        y = y + shaped(rows, y)
    return y
"""
DIVIDES = """
def f(x, y):
    rows = torch.nonzero(x)
    left = 2 - rows.size(0)
    return y * (4 // left)
"""
RAISES = """
def checked(n: int):
    if n != 2:
        raise ValueError("wrong number")
    return n

def f(x, y):
    rows = torch.nonzero(x)
    return y * checked(rows.size(0))
"""
ASSERTS = """
def f(x, y):
    rows = torch.nonzero(x)
    for i in range(3):
        rows = torch.nonzero(x > i)
        assert rows.size(0) < 3, "too many"
    return y + rows.size(0)
"""
OTHER = engine.ones(2)
FAILING = {
    "an operator in a call": (SHOWS_VIEW, [1.0, 1.0], [1.0, 1.0, 1.0]),
    "arithmetic": (DIVIDES, [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]),
    "raise in a call": (RAISES, [1.0, 1.0], [1.0, 1.0, 5.0]),
    "assert": (ASSERTS, [1.0, 3.0], [1.0, 3.0, 3.0, 3.0]),
}
"""A program, what it is profiled with, and what it fails with."""


def shown(run: Run, *args: Any) -> tuple[str, str, list[tuple[str, int]]]:
    """The error as users see it."""
    with pytest.raises(ExecutionError) as caught:
        run(*copied(args))
    frames = [(frame.function, frame.range.line) for frame in caught.value.frames]
    return str(caught.value), caught.value.message, frames


@pytest.mark.parametrize(("text", "known", "wrong"), FAILING.values(), ids=[*FAILING])
def test_errors_behind_a_bailout_show_the_lines_that_they_show_without_guards(
    text: str, known: list[float], wrong: list[float]
) -> None:
    plan, f = guarded(text, engine.tensor(known), OTHER)
    args = engine.tensor(wrong), OTHER
    with engine.jit.optimized_execution(False):
        wanted = shown(engine.CompilationUnit(text).f, *args)
    assert shown(f, *args) == wanted
    assert sum(site.count for site in plan.bailouts) == 1
    assert shown(lambda *args: InterpreterState(plan.code).run(*args), *args) == wanted


def test_a_bailout_is_no_call_of_its_own() -> None:
    """A plan that is left where calls are nested as deeply as they may be goes on."""
    text = """
def f(x, n: int):
    rows = torch.nonzero(x)
    return rows * n
"""
    plan, _ = guarded(text, engine.ones(2), 3)
    state = InterpreterState(plan.code, depth=MAX_DEPTH - 1)
    assert state.run(engine.ones(5), 3).shape == (5, 1)
    assert sum(site.count for site in plan.bailouts) == 1
