"""Groups of plans from profiles are shown with the checks of their kernels and their fallbacks; others are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import engine.torch as torch
from engine.executor.plans.executor import executor_of
from engine.fuser.backend import tiering
from engine.ir.parser import parse_ir
from engine.ir.verify import verify
from engine.torch.testing import FileCheck

TEXT = "def f(x, y):\n    return torch.tanh(x * y + y) + torch.sigmoid(x)\n"


@pytest.fixture(autouse=True)
def eagerly() -> Iterator[None]:
    before = tiering.mode()
    tiering.set_mode("eager")
    yield
    torch.jit.flags.set_profiling_mode(False)
    tiering.set_mode(before)


def called(*shapes: tuple[int, ...], text: str = TEXT) -> Any:
    """The function after calls, with tensors of these shapes."""
    f = torch.jit.CompilationUnit(text).f
    for shape in shapes:
        f(torch.ones(*shape), torch.ones(*shape))
    return f


def test_groups_are_named_by_the_way_their_plan_was_made() -> None:
    x = torch.ones(2, 3)
    FileCheck().check("prim::FusionGroup").check_not("TypeCheck").run(str(called((2, 3)).graph_for(x, x)))
    with torch.jit.fuser("fuser1"):
        text = str(called((2, 3), (2, 3)).graph_for(x, x))
        assert text == str(torch.jit.last_executed_optimized_graph())
    FileCheck().check("prim::TypeCheck[types=[Float(*, *, device=cpu), Float(*, *, device=cpu)]").check(
        "prim::If"
    ).check("prim::TensorExprGroup").check("prim::FallbackGraph").check("with prim::TensorExprGroup").run(text)
    assert "FusionGroup" not in text


def test_the_first_call_shows_what_is_profiled() -> None:
    torch.jit.flags.set_profiling_mode(True)
    x = torch.ones(2, 3)
    FileCheck().check("prim::profile[profiled_type=Float(2, 3)]").run(str(called().graph_for(x, x)))


def test_each_kernel_has_its_check_before_the_fallback() -> None:
    torch.jit.flags.set_profiling_mode(True)
    torch.jit.flags.set_num_profiled_runs(0)
    f = called((3, 4))
    f(torch.ones(3, 4), torch.ones(4, 3).t())
    torch.jit.flags.set_num_profiled_runs(1)
    (plan,) = f.get_debug_state().execution_plans.values()
    text = str(plan.graph)
    assert [text.count(f"= prim::{kind}_") for kind in ("TensorExprGroup", "FallbackGraph")] == [2, 1]
    assert (f.plans()[0].misses, f.plans()[0].failures) == (2, 0)
    first, second = plan.graph.findAllNodes("prim::TypeCheck")
    assert [each.partition(": ")[2].split()[0] for each in first.ss("arguments")] == ["contiguous"] * 2
    assert [each.partition(": ")[2].split()[0] for each in second.ss("arguments")] == ["contiguous", "strided"]
    assert any("_size_" in guard for guard in first.ss("guards"))


def test_what_is_shown_is_a_graph_that_reads_back_and_the_plan_keeps_its_own() -> None:
    torch.jit.flags.set_profiling_mode(True)
    torch.jit.flags.set_num_profiled_runs(0)  # there are no guards
    branches = "def f(x, y):\n    if bool(x.sum() > 100):\n        x = x - y\n    return x * y + y\n"
    f = called((2, 3), (2, 3), text=branches)
    torch.jit.flags.set_num_profiled_runs(1)
    (plan,) = executor_of(f._function).cache.plans()
    (state,) = f.get_debug_state().execution_plans.values()
    shown = state.graph._ir
    verify(shown)
    assert str(parse_ir(str(shown))) == str(shown)
    assert shown.find_node("prim::FallbackGraph") is not None
    assert plan.graph.find_node("prim::FallbackGraph") is None
    assert str(f.plans()[0].graph) == str(shown)


def test_groups_without_kernels_check_nothing() -> None:
    tiering.set_mode("off")
    torch.jit.flags.set_profiling_mode(True)
    x = torch.ones(2, 3)
    assert "prim::TypeCheck" not in str(called((2, 3), (2, 3)).graph_for(x, x))
    f = called((2, 3))
    tiering.set_mode("eager")
    executor = executor_of(f._function)
    plan = executor.plan_for((x, x))
    assert plan.fusion is not None
    plan.fusion.form()
    text = str(executor.recent_graph)
    assert "prim::TensorExprGroup" in text
    assert "prim::TypeCheck" not in text


def test_gradients_of_profiled_plans_run_in_groups_of_that_name() -> None:
    torch.jit.flags.set_profiling_mode(True)
    f = torch.jit.CompilationUnit(TEXT).f
    x = torch.ones(2, 3, requires_grad=True)
    for _ in range(3):
        f(x, x).sum().backward()
    (plan,) = f.plans()
    assert plan.parts
    for part in plan.parts:
        FileCheck().check("prim::TypeCheck").check("prim::TensorExprGroup").run(str(part.graph))
