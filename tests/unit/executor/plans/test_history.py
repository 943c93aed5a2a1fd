"""Histories of plans: what was run is what is kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import engine
from engine.executor.plans import history
from engine.executor.plans.executor import executor_of
from engine.executor.plans.history import PassRun, PlanHistory
from engine.executor.plans.plan_events import GroupFormed, KernelCompiled
from engine.executor.plans.switches import listening
from engine.fuser.backend import tiering
from engine.ir.parser import parse_ir

GRAPH = """
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::add(%x, %x, %one)
  %b : Tensor = aten::add(%x, %x, %one)
  %c : Tensor = aten::mul(%a, %b)
  return (%c)
"""


@pytest.fixture
def eager() -> Iterator[None]:
    before = tiering.mode()
    tiering.set_mode("eager")
    yield
    tiering.set_mode(before)


def _run(names: tuple[str, ...]) -> PlanHistory:
    found, graph = PlanHistory(), parse_ir(GRAPH)
    found.begin(parse_ir(GRAPH))
    found.run(names, graph)
    return found


def test_a_pass_that_changes_nothing_has_the_same_graph_before_and_after() -> None:
    (nothing, cse, dce) = _run(("dce", "cse", "dce")).passes
    assert not nothing.changed
    assert nothing.before is nothing.after is cse.before
    assert cse.changed
    assert str(cse.before).count("aten::add") == 2
    assert str(cse.after).count("aten::add") == 1
    assert dce.before is cse.after


def test_graphs_of_many_nodes_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_KEPT", 3)
    (cse,) = _run(("cse",)).passes
    assert cse.changed
    assert cse.before is cse.after is None


@pytest.mark.usefixtures("eager")
def test_plans_of_a_function_tell_what_made_them_and_how_often_they_were_found() -> None:
    f = engine.CompilationUnit("def f(x, n: int):\n    y = x + x\n    return torch.tanh(y) * n, y.size(0)").f
    for _ in range(3):
        f(engine.ones(3), 2)
    f(engine.ones(3, 3), 2)
    f(engine.ones(3), 2)
    flat, square = sorted(f.plans(), key=lambda plan: len(plan.arguments))
    assert flat.arguments.startswith("(x: Float(*)")
    assert (flat.hits, square.hits) == (3, 0)
    assert flat.seconds > 0
    assert "refine_inputs" in [each.name for each in flat.passes if each.changed]
    assert {type(event) for event in flat.events} == {GroupFormed, KernelCompiled}
    assert "create_fusion_groups" in [each.name for each in flat.passes]


@pytest.mark.usefixtures("eager")
def test_passes_that_run_again_are_those_that_ran() -> None:
    """Also those that form groups, and each begins with the graph that the one before left."""

    def passes() -> list[PassRun]:
        f = engine.CompilationUnit("def f(x, n: int):\n    y = x * 2 + n\n    return torch.tanh(y) * n, y.size(0)").f
        f(engine.ones(3), 2)
        (plan,) = executor_of(f._function).plans
        return [*plan.history.passes]

    def texts(of: list[PassRun]) -> list[tuple[str, bool, str, str]]:
        return [(each.name, each.changed, str(each.before), str(each.after)) for each in of]

    again = texts(passes())
    with listening(lambda event: None):
        assert again == texts(passes())
    assert [before for *_, before, _ in again[1:]] == [after for *_, after in again[:-1]]
    assert "create_fusion_groups" in [name for name, changed, *_ in again if changed]


@pytest.mark.usefixtures("eager")
def test_groups_count_calls_that_no_kernel_took() -> None:
    f = engine.CompilationUnit("def f(x, n: int):\n    return torch.tanh(x + x) * x, n + 1").f
    f(engine.ones(3), 1)
    f(engine.ones(3, dtype=engine.float32), 1)
    f(engine.ones(6)[::2], 1)
    (plan,) = f.plans()
    (group,) = plan.groups
    assert group.fallbacks >= 1
    assert all("Float(" in each for each in group.failures)
