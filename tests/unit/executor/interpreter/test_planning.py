"""Plans of calls that are not made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import engine.torch as torch
from engine.executor.interpreter.planning import plan_call
from engine.executor.plans.executor import executor_of
from engine.executor.profiling.settings import PROFILING
from engine.fuser.backend import tiering
from engine.lang.errors import ExecutionError

PROGRAM = """def noted(x, log: List[int], n: int):
    log.append(n)
    return torch.tanh(x) + n

def once(x, log: List[int]):
    return noted(x, log, 1)

def twice(x, log: List[int]):
    return noted(noted(x, log, 1), log, 2)

def often(x, log: List[int]):
    for i in range(len(log)):
        x = noted(x, log, i)
    return x

def late(x, log: List[int]):
    assert log[0] == 0, "log"
    return noted(x, log, 1)
"""


@pytest.fixture(autouse=True)
def _eager() -> Iterator[None]:
    before = tiering.mode()
    tiering.set_mode("eager")
    yield
    tiering.set_mode(before)


def planned(name: str, log: list[int], inlines: bool = False) -> Any:
    """The functions of the program after the call of one was planned."""
    functions = torch.jit.CompilationUnit(PROGRAM)._unit.functions
    functions[name].inlines = inlines
    plan_call(functions[name], (torch.ones(3), log))
    return functions


@pytest.mark.parametrize(("name", "given", "left"), [("once", [], []), ("twice", [], [1]), ("often", [5], [5, 0])])
def test_all_is_called_but_the_last(name: str, given: list[int], left: list[int]) -> None:
    functions = planned(name, given)
    assert given == left
    assert [str(plan.spec) for plan in executor_of(functions["noted"]).plans] == ["(x: Float(*))"]


def test_what_calls_nothing_does_not_run() -> None:
    log: list[int] = []
    functions = planned("once", log, inlines=True)
    (plan,) = executor_of(functions["once"]).plans
    assert log == [] and not executor_of(functions["noted"]).plans
    assert [each.kernels for each in plan.fusion.groups] == [[]]


def test_what_fails_before_the_last_call_is_told() -> None:
    with pytest.raises(ExecutionError, match="log"):
        planned("late", [7])


def test_plans_from_profiles_need_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PROFILING, "is_enabled", True)
    log: list[int] = []
    planned("once", log)
    assert log == [1]
