"""Plans do what the interpreter does: a short run of `plans`, the same each time."""

from __future__ import annotations

import pytest

from engine.executor.plans import history
from engine.passes.pipeline import run_pass

from . import plans


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_plans_and_the_interpreter_agree(first: int) -> None:
    for seed in range(first, first + 10):
        assert not list(plans.problems(*plans.generated(seed)))


def test_gradients_are_compared() -> None:
    """Some of the calls have results that require grad, and give their arguments gradients."""
    outcomes = [
        plans.outcome(function, calls[0], plans.WAYS[2], optimized=True)
        for _, _, function, calls in map(plans.generated, range(20))
    ]
    results = [found.result for found in outcomes if not found.error]
    assert sum(any(required) for _, required, _ in results) > 5
    assert sum(any(gradient is not None and gradient.any() for gradient in given) for *_, given in results) > 5


def test_a_plan_that_does_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name, graph, listener=None, **options):  # type: ignore[no-untyped-def]
        for node in graph.find_all_nodes("aten::add_"):
            node.output.replace_all_uses_with(node.inputs[0])
            node.destroy()
        return run_pass(name, graph, listener, **options)

    monkeypatch.setattr(history, "run_pass", broken)
    assert any(list(plans.problems(*plans.generated(seed))) for seed in range(8))
