"""Calls that inlining leaves in place."""

from __future__ import annotations

import pytest

from engine.frontend.compilation.compile import compile_source
from engine.ir.clone import copy_graph
from engine.passes import inline as module
from engine.passes.pipeline import run_pass

DOUBLING = "def g0(x):\n    return x + 1\n\n" + "".join(
    f"def g{n}(x):\n    return g{n - 1}(g{n - 1}(x))\n\n" for n in range(1, 10)
)


def test_calls_stay_where_the_graph_would_fill_any_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = compile_source(DOUBLING).functions["g9"].graph
    whole, part = copy_graph(graph), copy_graph(graph)
    run_pass("inline", whole)
    assert "CallFunction" not in str(whole)
    monkeypatch.setattr(module, "MAX_NODES", 100)
    run_pass("inline", part)
    assert "CallFunction" in str(part)


def test_bodies_may_go_in_as_they_are() -> None:
    text = "def g(x: int, y: int):\n    return x + 1 * y\n\ndef f(x: int):\n    return g(x, x)\n"
    graph = compile_source(text).functions["f"].graph
    simple, raw = copy_graph(graph), copy_graph(graph)
    run_pass("inline", simple)
    run_pass("inline", raw, simplify=False)
    assert ("aten::mul" in str(simple), "aten::mul" in str(raw)) == (False, True)
    assert "CallFunction" not in str(raw)
