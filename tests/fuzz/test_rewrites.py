"""Every change that a pass makes is a rewrite: counted, told, and left undone where it is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.ir.rewrites import watching
from engine.ir.verify import verify
from engine.lang.errors import CompileError
from engine.passes.pipeline import names, run_pass

from . import meaning

CASES = Path(__file__).parent.parent / "cases" / "passes"
_GRAPH = re.compile(r"^graph\(.*?^  return \([^)]*\)\n(?:^with .*?^  return \([^)]*\)\n)*", re.S | re.M)


def _graphs() -> list[Graph]:
    texts = {text for path in sorted(CASES.glob("*.case")) for text in _GRAPH.findall(path.read_text())}
    return [parse_ir(text) for text in sorted(texts)] + [meaning.generated(seed).graph for seed in range(12)]


GRAPHS = _graphs()


def _limited(name: str, graph: Graph, limit: int) -> Graph:
    """A copy after the first rewrites of the pass, so many at most."""
    copy = copy_graph(graph)
    left = iter(range(limit))
    with watching(lambda _: next(left, None) is not None):
        run_pass(name, copy)
    return copy


@pytest.mark.parametrize("name", names())
def test_a_pass_that_may_do_nothing_does_nothing(name: str) -> None:
    for graph in GRAPHS:
        copy = copy_graph(graph)
        try:
            with watching(lambda _: False):
                changed = run_pass(name, copy)
        except CompileError:
            continue  # what the pass refuses
        assert str(copy) == str(graph)
        assert not changed


@pytest.mark.parametrize("name", names())
def test_after_any_number_of_rewrites_the_graph_is_whole(name: str) -> None:
    for graph in GRAPHS:
        whole = copy_graph(graph)
        try:
            run_pass(name, whole)
        except CompileError:
            continue
        for limit in (1, 2, 3):
            verify(_limited(name, graph, limit))
