"""The first calls of functions: how long they took, what ran, and what a plan took to be made."""

from __future__ import annotations

import pytest

import engine
from engine.executor.calls import call
from engine.executor.plans import tiers
from engine.executor.plans.early_calls import INTERPRETER, KERNELS, MARKS, PLAN
from engine.executor.plans.executor import GraphExecutor, executor_of
from engine.executor.plans.explanation import explain
from engine.fuser.backend import tiering

SOURCE = """
def inner(x: Tensor) -> Tensor:
    return torch.tanh(x) + 1

def outer(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = inner(x)
    return x
"""


def executor(unit: engine.CompilationUnit, name: str) -> GraphExecutor:
    return executor_of(getattr(unit, name)._function)


@pytest.mark.parametrize("mode", ["off", "background"])
def test_calls_are_told_apart_by_marks(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "making_takes", lambda nodes: 1)
    before = tiering.mode()
    engine.set_compile_mode(mode)
    try:
        unit = engine.CompilationUnit(SOURCE)
        for _ in range(130):
            unit.inner(engine.ones(3))
        found = explain(unit.inner._function).early
        assert [each.until for each in found] == list(MARKS)
        assert [each.calls for each in found] == [1, 9, 90]
        assert all(each.seconds > 0 for each in found)
        assert found[0].ran == ({INTERPRETER: 1} if mode == "background" else found[0].ran)
        assert any(each.plan_seconds > 0 for each in found)
        if mode == "off":
            assert found[2].ran == {PLAN: 90}
    finally:
        engine.set_compile_mode(before)


def test_later_calls_are_not_timed() -> None:
    unit = engine.CompilationUnit(SOURCE)
    for _ in range(MARKS[-1]):
        unit.inner(engine.ones(3))
    of = executor(unit, "inner")
    assert not of.is_early and of.boundary.run is call.run
    before = of.early.classes[-1].seconds
    unit.inner(engine.ones(3))
    assert of.early.number == MARKS[-1] and of.early.classes[-1].seconds == before


def test_calls_that_go_straight_to_kernels_are_not_told_of() -> None:
    before = tiering.mode()
    engine.set_compile_mode("eager")
    try:
        unit = engine.CompilationUnit(SOURCE)
        for _ in range(5):
            unit.inner(engine.ones(3))
        assert [(each.until, each.ran) for each in explain(unit.inner._function).early] == [(1, {KERNELS: 1})]
    finally:
        engine.set_compile_mode(before)


def test_calls_that_raise_are_calls() -> None:
    unit = engine.CompilationUnit("def f(x: Tensor) -> Tensor:\n    return x.mm(x)\n")
    for _ in range(3):
        with pytest.raises(Exception, match="self must be a matrix"):
            unit.f(engine.ones(3))
    assert executor(unit, "f").early.number == 3


def test_a_function_that_was_not_called_tells_nothing() -> None:
    assert explain(engine.CompilationUnit(SOURCE).outer._function).early == ()


def test_what_was_told_stays_as_it_is() -> None:
    unit = engine.CompilationUnit(SOURCE)
    for _ in range(3):
        unit.inner(engine.ones(3))
    told = explain(unit.inner._function).early
    before = [(each.calls, each.seconds, each.ran.copy()) for each in told]
    unit.inner(engine.ones(3))
    assert [(each.calls, each.seconds, each.ran) for each in told] == before
    assert sum(each.calls for each in explain(unit.inner._function).early) == 4
