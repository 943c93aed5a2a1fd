"""Groups of a plan's graph: what they hold, and what has to stay outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import engine
from engine.executor.codegen.fusion_groups import is_fusion_group
from engine.executor.plans.executor import executor_of
from engine.fuser.backend import tiering


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    """Groups are formed before the first call."""
    before = tiering.mode()
    tiering.set_mode("eager")
    yield
    tiering.set_mode(before)


PARTS = """
def f(x):
    y = x * 2
    a, b = {parts}
    c = torch.relu(a) + b
    {write}
    return c, a, y
"""
MAKERS = ("y.unbind(0)", "y.split(1)", "torch.split(y, [1, 1])", "y.chunk(2)", "torch.tensor_split(y, 2)")
WRITES = ("y.add_(1.0)", "y[0].mul_(3.0)")


def _outcome(text: str, *, requires_grad: bool = False, optimized: bool = True) -> list[Any]:
    """The results of a third call, once those have been written to, and the gradient."""
    f = engine.CompilationUnit(text).f
    with engine.jit.optimized_execution(optimized):
        for _ in range(3):
            x = engine.tensor([[1.0, -2.0], [3.0, 4.0]], requires_grad=requires_grad)
            results = f(x)
    if requires_grad:
        sum((each * each).sum() for each in results).backward()
    for number, each in enumerate(results, 2):
        each.detach().mul_(number)
    return [each.tolist() for each in (*results, x.grad) if each is not None]


@pytest.mark.parametrize("parts", MAKERS)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_parts_of_lists_that_are_wanted_outside_stay_views(parts: str, write: str, requires_grad: bool) -> None:
    text = PARTS.format(parts=parts, write=write)
    found = _outcome(text, requires_grad=requires_grad)
    assert found == _outcome(text, requires_grad=requires_grad, optimized=False)


@pytest.mark.parametrize("parts", MAKERS[:2])
def test_results_that_are_parts_of_an_argument_share_its_memory(parts: str) -> None:
    text = f"def f(y):\n    a, b = {parts}\n    return torch.relu(a) * b, a"
    x = engine.ones(2, 2)
    f = engine.CompilationUnit(text).f
    for _ in range(3):
        _, part = f(x)
    part.fill_(7.0)
    assert x.tolist() == [[7.0, 7.0], [1.0, 1.0]]


def test_parts_that_nobody_wants_outside_are_in_the_group() -> None:
    f = engine.CompilationUnit("def f(x):\n    a, b = (x * 2).unbind(0)\n    return torch.relu(a) + b").f
    for _ in range(3):
        f(engine.ones(2, 2))
    plan = executor_of(f._function).recent_plan
    assert plan is not None
    (group,) = filter(is_fusion_group, plan.graph.all_nodes())
    assert {node.kind for node in group.attr("Subgraph").nodes()} >= {"aten::unbind", "prim::ListUnpack", "aten::relu"}
