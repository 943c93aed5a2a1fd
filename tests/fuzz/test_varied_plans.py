"""Plans do what the interpreter does, whatever calls come with: a short run of `varied_plans`, the same each time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import engine.torch as torch
from engine.executor.codegen.fusion_groups import DIFFERENTIABLE_GRAPH, is_fusion_group
from engine.executor.plans import history
from engine.executor.plans.executor import executor_of
from engine.executor.plans.plan_events import GuardFailed
from engine.executor.plans.switches import listening
from engine.frontend.compilation.compile import compile_source
from engine.fuser.backend import tiering
from engine.passes.pipeline import run_pass
from tests.table.device_double import double

from . import varied_plans
from .varied_programs import batches

WAYS = [("off", False), ("off", True), ("eager", False), ("eager", True)]


@pytest.mark.parametrize(("mode", "profiled"), WAYS)
@pytest.mark.parametrize("first", range(0, 6, 2))
def test_plans_and_the_interpreter_agree(mode: str, profiled: bool, first: int) -> None:
    for seed in range(first, first + 2):
        assert not list(varied_plans.problems(*varied_plans.generated(seed), mode, profiled=profiled))


@pytest.mark.parametrize(("mode", "profiled"), WAYS)
def test_batches_of_all_sizes_agree(mode: str, profiled: bool) -> None:
    for seed in range(100, 103):
        assert not list(varied_plans.problems(*varied_plans.generated(seed, batches), mode, profiled=profiled))


def test_calls_use_what_plans_are_made_of() -> None:
    """Among the programs are enough that run kernels and differentiable graphs, whose guards fail, and that do not."""
    counts, failures = Counter[str](), list[Any]()
    with listening(failures.append), varied_plans.running("eager", profiled=True):
        for seed in range(12):
            _, text, calls = varied_plans.generated(seed)
            function = compile_source(text).functions["f"]
            for form in calls:
                counts["errors"] += bool(varied_plans.outcome(function, form, optimized=True).error)
                counts["calls"] += 1
                plan = executor_of(function).recent_plan
                for node in plan.graph.all_nodes() if plan is not None else ():
                    counts["kernels"] += is_fusion_group(node)
                    counts["differentiable"] += node.kind == DIFFERENTIABLE_GRAPH
    assert sum(isinstance(event, GuardFailed) for event in failures) > 5
    assert counts["kernels"] > 5
    assert counts["differentiable"] > 5
    assert counts["errors"] < counts["calls"] * 2 / 3


def test_forms_differ_in_all_that_plans_are_made_for() -> None:
    found = [form for seed in range(60) for form in varied_plans.generated(seed)[2]]
    for name in (
        "shape",
        "other",
        "dtype",
        "has_z",
        "shared",
        "layout",
        "n",
        "gradients",
        "gives_leaves",
        "is_recorded",
    ):
        assert len({getattr(form, name) for form in found}) > 1, name
    assert len({len(form.shape) for form in found}) > 2


ON_ANY_DEVICE = """
def f(x, y, n: int):
    z = torch.relu(x) * y
    parts = z.unbind(0)
    for i in range(n):
        z = torch.tanh(z) + parts[0]
        if bool(z.sum() > 1.0):
            z = z * 0.5
    x.add_(1.0)
    return z, parts[0], x
"""


@pytest.mark.parametrize(("mode", "profiled"), WAYS)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_calls_go_from_one_device_to_another_and_back(mode: str, profiled: bool, requires_grad: bool) -> None:
    """Plans for the CPU stand between those for the other device, where the interpreter's results are the same."""

    def call(f: Any, device: str, rows: int) -> list[Any]:
        leaf = (torch.arange(3 * rows).reshape(rows, 3) / 4 - 0.6).requires_grad_(requires_grad)
        results = f((leaf * 1).to(device), torch.ones(1, 3).to(device), rows)
        assert {each.device.type for each in results} == {device}
        if requires_grad:
            sum(each.sum().cpu() for each in results).backward()
        return [each.detach().cpu() for each in results] + ([leaf.grad] if requires_grad else [])

    calls = [(device, rows) for rows in (2, 2, 4, 1, 2) for device in ("cpu", "cuda", "cpu")]
    with double(), varied_plans.running(mode, profiled=profiled):
        f, reference = (torch.jit.CompilationUnit(ON_ANY_DEVICE).f for _ in range(2))
        for device, rows in calls:
            found = call(f, device, rows)
            with torch.jit.optimized_execution(False):
                wanted = call(reference, device, rows)
            for mine, theirs in zip(found, wanted, strict=True):
                assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_a_plan_that_does_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name, graph, listener=None, **options):  # type: ignore[no-untyped-def]
        for node in graph.find_all_nodes("aten::tanh"):
            node.output.replace_all_uses_with(node.inputs[0])
        return run_pass(name, graph, listener, **options)

    monkeypatch.setattr(history, "run_pass", broken)
    found = (varied_plans.problems(*varied_plans.generated(seed), "eager", profiled=False) for seed in (15, 25, 42))
    assert any(list(each) for each in found)
    tiering.forget_failures()
