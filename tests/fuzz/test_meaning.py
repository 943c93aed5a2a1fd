"""Optimization passes keep what programs mean: a short run of `meaning`, the same each time."""

from __future__ import annotations

from random import Random

import pytest

from engine.ir.graph import Graph
from engine.passes import pipeline

from . import meaning
from .typed_programs import program

COUNT = 4
"""Programs of each test."""


@pytest.mark.parametrize("first", range(0, 24, COUNT))
def test_each_pass_and_random_orders_keep_the_meaning(first: int) -> None:
    random = Random(first)
    for seed in range(first, first + COUNT):
        orders = meaning.alone() + meaning.random_orders(random, 6)
        assert not list(meaning.problems(meaning.generated(seed), orders))


def test_programs_do_many_things() -> None:
    """The generator writes programs that end well, that fail, that write to arguments and that print."""
    outcomes = [
        tried.outcome(meaning.Code(tried.graph, "f"), tried.calls[0]) for tried in map(meaning.generated, range(30))
    ]
    assert 3 < sum(bool(outcome.error) for outcome in outcomes) < 25
    assert sum(bool(outcome.printed) for outcome in outcomes) > 3
    assert program(Random(1)) == program(Random(1)) != program(Random(2))


def _drops_writes(graph: Graph) -> bool:
    for node in graph.all_nodes():
        if node.kind == "aten::add_":
            node.output.replace_all_uses_with(node.inputs[0])
            node.destroy()
            return True
    return False


def _says_nothing(graph: Graph) -> bool:
    pipeline.run_pass("dead_write_elimination", graph)
    return False


@pytest.mark.parametrize(
    ("broken", "text"), [(_drops_writes, "and gives"), (_says_nothing, "it says that it changed nothing")]
)
def test_a_pass_that_changes_the_meaning_is_found(monkeypatch: pytest.MonkeyPatch, broken, text) -> None:  # type: ignore[no-untyped-def]
    find = pipeline.find_pass
    monkeypatch.setattr(pipeline, "find_pass", lambda name: broken if name == "broken" else find(name))
    found = [problem for seed in range(30) for problem in meaning.problems(meaning.generated(seed), [["broken"]])]
    assert any(text in problem for problem in found)
