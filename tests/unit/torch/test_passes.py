"""Passes by name."""

import pytest

import engine
from engine.lang.errors import CompileError

DEAD = "graph(%x : int):\n  %y : int = aten::neg(%x)\n  return (%x)\n"


def test_a_pass_changes_the_graph_and_gives_it_back() -> None:
    graph = engine.parse_ir(DEAD)
    assert engine.run_pass("dce", graph) is graph
    assert "aten::neg" not in str(graph)


def test_a_pipeline_is_passes_in_order() -> None:
    graph = engine.parse_ir(DEAD)
    assert engine.run_pipeline(("constant_pooling", "dce"), graph) is graph
    assert "aten::neg" not in str(graph)


def test_an_unknown_pass_is_refused_with_the_nearest() -> None:
    with pytest.raises(CompileError, match="there is no pass 'dcee'"):
        engine.run_pass("dcee", engine.parse_ir(DEAD))
