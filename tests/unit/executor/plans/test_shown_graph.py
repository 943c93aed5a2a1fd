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
    for name in ("profiling_mode", "profiling_executor", "can_fuse_on_cpu"):
        getattr(torch.jit.flags, f"set_{name}")(False)
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
    ).check("prim::TensorExprGroup").check('Constant[name="fallback_function", fallback=1]').check(
        "prim::CallFunction"
    ).check_next("prim::TupleUnpack").check("with prim::TensorExprGroup").run(text)
    assert "FusionGroup" not in text


def test_the_first_call_shows_what_is_profiled() -> None:
    torch.jit.flags.set_profiling_mode(True)
    x = torch.ones(2, 3)
    FileCheck().check("prim::profile[profiled_type=Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)]").run(
        str(called().graph_for(x, x))
    )


def test_each_kernel_has_its_check_before_the_fallback() -> None:
    torch.jit.flags.set_profiling_mode(True)
    torch.jit.flags.set_num_profiled_runs(0)
    f = called((3, 4))
    f(torch.ones(3, 4), torch.ones(4, 3).t())
    torch.jit.flags.set_num_profiled_runs(1)
    (plan,) = f.get_debug_state().execution_plans.values()
    text = str(plan.graph)
    assert [text.count(part) for part in ("= prim::TensorExprGroup_", "prim::CallFunction")] == [2, 1]
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
    assert shown.find_node("prim::CallFunction") is not None
    assert plan.graph.find_node("prim::CallFunction") is None
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


# -- the profiling executor


@pytest.fixture
def fusing_executor() -> None:
    """Plans as scripts ask for that look at fused graphs, in the mode in which others wait until compiling pays."""
    tiering.set_mode("background")
    torch._C._jit_set_profiling_executor(True)
    torch._C._jit_override_can_fuse_on_cpu(True)


def kinds(graph: Any) -> list[str]:
    return [node.kind() for node in graph.nodes() if node.kind() != "prim::Constant"]


@pytest.mark.usefixtures("fusing_executor")
def test_the_second_call_has_its_groups_behind_checks_and_knows_nothing_outside_of_them() -> None:
    f, x = called((2, 3), (2, 3)), torch.ones(2, 3)
    graph = torch.jit.last_executed_optimized_graph()
    assert kinds(graph) == ["prim::TypeCheck", "prim::If"]
    assert str(graph).startswith("graph(%x.1 : Tensor,\n      %y.1 : Tensor):")
    assert str(graph.findNode("prim::If")).startswith("%")
    assert " : Tensor = prim::If(" in str(graph.findNode("prim::If"))
    assert "prim::TensorExprGroup[Subgraph=<Graph>](" in str(graph.findNode("prim::If"))
    assert f.get_debug_state().execution_plans.popitem()[1].code.num_bailouts() == 0
    assert torch.allclose(f(x, x), torch.tanh(x * x + x) + torch.sigmoid(x))


@pytest.mark.usefixtures("fusing_executor")
@pytest.mark.parametrize(
    "change", ["    d.add_(y)\n", "    d = d + d.sum().item()\n", "    d = d.sum(dtype=k).add(d)\n"]
)
def test_what_cannot_be_told_before_stands_between_groups(change: str) -> None:
    text = f"def f(x, y, k: int):\n    d = x * y + y\n{change}    return d * y + x\n"
    f, x = torch.jit.CompilationUnit(text).f, torch.ones(2, 2)
    wanted = f(x, x, 6)
    assert torch.equal(f(x, x, 6), wanted)
    groups = [*torch.jit.last_executed_optimized_graph().findAllNodes("prim::TensorExprGroup")]
    assert groups
    bodies = "".join(str(group.g("Subgraph")) for group in groups)
    assert not any(name in bodies for name in ("add_", "aten::item", "aten::sum(%d, %k"))


@pytest.mark.usefixtures("fusing_executor")
def test_a_profiled_run_does_not_hide_the_plan_that_there_is() -> None:
    f = called((2, 3), (2, 3))
    wanted = str(torch.jit.last_executed_optimized_graph())
    f(torch.ones(2, 3, dtype=torch.float64), torch.ones(2, 3, dtype=torch.float64))
    assert str(torch.jit.last_executed_optimized_graph()) == wanted


@pytest.mark.usefixtures("fusing_executor")
def test_gradients_run_behind_the_question_whether_they_are_there() -> None:
    f = torch.jit.CompilationUnit("def f(x, y):\n    z = x * y\n    return z * y\n").f
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    for _ in range(3):
        f(x, y).sum().backward()
    graph = torch.jit.last_executed_optimized_graph()
    assert kinds(graph) == ["prim::AutogradAllNonZero", "prim::If"]
    given, missing = graph.findNode("prim::If").blocks()
    assert [len(given.findAllNodes(kind)) for kind in ("prim::If", "prim::TensorExprGroup")] == [1, 1]
    assert [node.kind() for node in missing.nodes()] == ["prim::Constant", "prim::CallFunction", "prim::TupleUnpack"]
    assert torch.equal(x.grad, torch.full((3,), 3.0))


def test_the_executor_alone_waits_until_compiling_pays_and_has_no_bailouts() -> None:
    tiering.set_mode("background")
    torch._C._jit_set_profiling_executor(True)
    called((2, 3), (2, 3), (2, 3))
    assert "TensorExprGroup" not in (text := str(torch.jit.last_executed_optimized_graph()))
    assert "BailOut" not in text


def test_a_plan_that_is_being_made_is_waited_for() -> None:
    tiering.set_mode("background")
    torch.jit.flags.set_profiling_mode(True)
    f, x = torch.jit.CompilationUnit(TEXT).f, torch.ones(2, 3)
    f(x, x)
    assert "prim::TensorExprGroup" in str(f.graph_for(x, x))
