"""Settings of profiling, and the state of executors: plans, their graphs, and bailouts that are asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import engine.torch as torch
from engine.executor.profiling.settings import PROFILING
from engine.fuser.backend import tiering

TEXT = """
def f(x, n: int):
    y = x * 2
    for i in range(n):
        y.add_(1)
        x = torch.cat([x, y.sum(0, keepdim=True)])
        y = y + x.size(0) * x.sum()
    return y, x
"""


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    yield
    torch.jit.flags.set_profiling_mode(False)
    torch.jit.set_fusion_strategy([("STATIC", 2), ("DYNAMIC", 10)])


@pytest.mark.usefixtures("plans_at_once")
def test_plans_and_their_graphs() -> None:
    f = torch.jit.CompilationUnit(TEXT).f
    assert not f.get_debug_state().execution_plans
    f(torch.ones(2, 3), 1)
    f(torch.ones(2, 3, dtype=torch.float64), 1)
    state = f.get_debug_state()
    assert [str(spec) for spec in state.execution_plans] == ["(x: Float(*, *))", "(x: Double(*, *))"]
    assert "aten::mul" in str(state.graph) and "= mul " in str(state.fallback)
    for plan in state.execution_plans.values():
        assert plan.code.num_bailouts() == 0
        assert str(plan.graph).startswith("graph(")


def test_bailouts_that_are_asked_for_change_no_result() -> None:
    with torch.jit.optimized_execution(False):
        expected = torch.jit.CompilationUnit(TEXT).f(torch.ones(2, 3), 3)
    f = torch.jit.CompilationUnit(TEXT).f
    assert torch.jit.flags.set_profiling_mode(True) is False
    f(torch.ones(2, 3), 3), f(torch.ones(2, 3), 3)
    (plan,) = f.get_debug_state().execution_plans.values()
    count = plan.code.num_bailouts()
    assert count > 0
    for index in range(count):
        plan.code.request_bailout(index)
        for found, wanted in zip(f(torch.ones(2, 3), 3), expected, strict=True):
            assert torch.equal(found, wanted)
    with pytest.raises(RuntimeError, match="no bailout"):
        plan.code.request_bailout(count)


def test_fusers_and_strategies() -> None:
    with torch.jit.fuser("fuser1"):
        assert PROFILING.is_enabled
        with torch.jit.fuser("fuser0"):
            assert not PROFILING.is_enabled
        assert PROFILING.is_enabled
    assert not PROFILING.is_enabled
    before = tiering.mode()
    with torch.jit.fuser("none"):
        assert tiering.mode() == "off"
    assert tiering.mode() == before
    assert torch.jit.set_fusion_strategy([("STATIC", 1), ("DYNAMIC", 2)]) == [("STATIC", 2), ("DYNAMIC", 10)]
    assert PROFILING.depth == torch.jit.flags.get_bailout_depth() == 3
    assert torch.jit.flags.set_bailout_depth(4) == 3
    assert torch.jit.set_fusion_strategy([]) == [("STATIC", 4)]
    with pytest.raises(ValueError, match="strategy"):
        torch.jit.set_fusion_strategy([("ANY", 1)])


def test_execution_without_plans() -> None:
    f = torch.jit.CompilationUnit(TEXT).f
    assert torch.jit.flags.graph_executor_optimize(False) is True
    try:
        assert torch.jit.flags.graph_executor_optimize() is False
        f(torch.ones(2, 3), 1)
        assert not f.get_debug_state().execution_plans
    finally:
        torch.jit.flags.graph_executor_optimize(True)


def test_modules_have_the_state_of_forward() -> None:
    class Scale(torch.nn.Module):
        def forward(self, x):  # type: ignore[no-untyped-def]
            return x * 2

    module = torch.jit.script(Scale())
    module(torch.ones(2))
    assert len(module.get_debug_state().execution_plans) == 1
