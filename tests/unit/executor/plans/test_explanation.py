"""Explanations of differentiable graphs: what was split, what is captured, and why the rest stays outside."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import engine
from engine.executor.plans.explanation import PlanExplanation, explain
from engine.fuser.backend import machine, tiering

pytestmark = pytest.mark.skipif(not machine.has_feature("sse2") and not machine.has_feature("neon"), reason="no LLVM")

TEXT = """\
def f(x, y):
    z = torch.tanh(x * y)
    if bool(z.sum() > 0):
        z = torch.dropout(z, 0.5, True)
    return z.exp()
"""


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    before = tiering.mode()
    tiering.set_mode("eager")
    yield
    tiering.set_mode(before)


def plan_of(requires_grad: bool) -> PlanExplanation:
    f = engine.CompilationUnit(TEXT).f
    x = engine.ones(2, 3).requires_grad_(requires_grad)
    for _ in range(2):
        f(x, engine.ones(2, 3))
    return explain(f._function).plans[-1]


def test_differentiable_graphs_have_both_halves_and_what_goes_between() -> None:
    plan = plan_of(True)
    (found,) = plan.differentiable
    assert [line.number for line in found.lines] == [2, 3]
    (split,) = found.splits
    assert (split.arguments, split.required) == (("x: Float(2, 3)", "y: Float(2, 3)"), ("x",))
    captured = {(each.value, each.type, each.bytes, each.is_argument) for each in split.captured}
    assert captured == {("torch.tanh(x * y)", "Float(2, 3)", 24, False), ("y", "Float(2, 3)", 24, True)}
    assert "aten::tanh" in str(split.forward)
    assert split.backwards
    assert all("aten::tanh" not in str(each) for each in split.backwards)
    assert split.forward_plans
    assert not plan.why_undifferentiated


def test_nodes_outside_of_differentiable_graphs_have_a_reason() -> None:
    why = {node.kind: node.why for node in plan_of(True).undifferentiated}
    assert why["aten::dropout"] == "it is random"
    assert why["aten::exp"].startswith("it has no neighbours")


def test_plans_that_record_nothing_say_so() -> None:
    plan = plan_of(False)
    assert plan.differentiable == ()
    assert "requires grad" in plan.why_undifferentiated
