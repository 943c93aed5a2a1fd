"""Profiles and guards as people read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import engine
from engine.executor.plans.explanation import explain
from engine.executor.profiling.settings import PROFILING
from engine.fuser.backend import tiering

TEXT = "def f(x, y):\n    z = x * y + 1\n    return torch.tanh(z) * z.size(0)\n"


@pytest.fixture(autouse=True)
def profiling() -> Iterator[None]:
    PROFILING.is_enabled = True
    yield
    PROFILING.is_enabled = False


def called(*rows: int) -> Any:
    """The function after calls with tensors of as many rows."""
    f = engine.CompilationUnit(TEXT).f
    for each in rows:
        f(engine.ones(each, 3), engine.ones(each, 3))
        tiering.wait()
    return f._function


def test_uses_have_the_text_of_their_line_and_types_with_symbols() -> None:
    (profile,) = explain(called(2, 2, 5, 5, 5)).profiles
    assert profile.arguments == "(x: Float(*, *), y: Float(*, *))"
    assert profile.symbols == (("s0", (2, 5)),)
    assert (profile.runs, profile.rounds, profile.refusal) == (2, 1, "")
    x = next(use for use in profile.uses if use.value == "x")
    assert (x.type, x.count, x.user) == ("Float(s0, 3)", 2, "aten::mul")
    assert x.line is not None
    assert (x.line.number, x.line.text) == (2, "z = x * y + 1")
    assert [(merge.run, merge.seen, merge.after) for merge in x.merges] == [
        (1, "Float(2, 3)", "Float(2, 3)"), (2, "Float(5, 3)", "Float(*, 3)"),
    ]  # fmt: skip
    assert "x * y" in [use.value for use in profile.uses]


def test_failures_are_kept_when_their_plan_is_dropped() -> None:
    found = explain(called(2, 2, 5, 4))
    assert found.plans == ()
    (profile,) = found.profiles
    assert [(each.value, each.expected, each.actual) for each in profile.failures] == [
        ("x", "Float(2, 3)", "Float(5, 3)"), ("x", "Float(2, 3)", "Float(4, 3)"),
    ]  # fmt: skip
    assert 0 < profile.failures[0].seconds < profile.failures[1].seconds


def test_guards_tell_their_fate_and_count_failures() -> None:
    (plan,) = explain(called(2, 2, 5)).plans
    fates = {guard.value: (guard.fate, guard.type, guard.failures) for guard in plan.guards if guard.fate != "merged"}
    assert fates["x"] == ("moved", "Float(2, 3)", 1)
    assert fates["y"] == ("moved", "Float(2, 3)", 0)
    assert fates["x * y"] == ("eliminated", "Float(2, 3)", 0)
