"""The registry, the runner and its listeners."""

import ast
from pathlib import Path

import pytest

from engine import passes
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.lang.errors import CompileError
from engine.passes import pipeline
from engine.passes.pipeline import (
    ALIASES,
    PIPELINES,
    PassEvent,
    find_pass,
    listed,
    names,
    run_pass,
    run_pipeline,
    verifier,
)

TEXT = """graph(%x : int):
  %1 : int = aten::neg(%x)
  %2 : int = aten::neg(%x)
  %3 : int = aten::mul(%1, %2)
  return (%3)
"""


def test_every_pass_is_found_by_its_name() -> None:
    assert {"dce", "cse", "inline", "peephole"} <= set(names())
    assert "pipeline" not in names()
    for name in names():
        assert find_pass(name).__name__ == name
    for alias, name in ALIASES.items():
        assert find_pass(alias) is find_pass(name)


@pytest.mark.parametrize("name", names())
def test_a_pass_says_whether_it_changed_anything(name: str) -> None:
    """A graph that a pass reports as unchanged prints as before."""
    for text in (TEXT, "graph(%x : Tensor):\n  return (%x)\n"):
        graph = parse_ir(text)
        changed = run_pass(name, graph, verifier)
        assert changed is (str(graph) != text)


@pytest.mark.parametrize("path", sorted(Path(passes.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_no_pass_imports_another(path: Path) -> None:
    imported = [node.module for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    others = [module for module in imported if module and module.startswith("engine.passes")]
    assert set(others) <= {"engine.passes.pipeline"}


def test_pipelines_name_passes() -> None:
    for pass_names in PIPELINES.values():
        for name in pass_names:
            assert find_pass(name)


def test_events_tell_before_and_after() -> None:
    events: list[PassEvent] = []
    graph = parse_ir(TEXT)
    assert run_pipeline(("dce", "cse"), graph, events.append)
    first, second = events
    assert (first.name, first.changed, second.name, second.changed) == ("dce", False, "cse", True)
    assert second.before_text == first.after_text == TEXT
    assert "%2" not in second.after_text
    assert second.graph is graph
    assert second.seconds > 0
    run_pass("inline", graph)
    assert second.after_text == str(graph)


@pytest.mark.parametrize("typed", ["cse,dce", "cse dce", " cse , dce ", "simplify,dce"])
def test_a_pipeline_may_be_typed(typed: str) -> None:
    graph = parse_ir(TEXT)
    assert run_pipeline(typed, graph, verifier)
    assert "%2" not in str(graph)
    assert listed("simplify,dce") == (*PIPELINES["simplify"], "dce")
    with pytest.raises(CompileError, match="there is no pass 'dcee'"):
        run_pipeline("cse,dcee", graph)


def test_unknown_names_are_refused_with_a_hint() -> None:
    with pytest.raises(CompileError, match="did you mean 'peephole'"):
        run_pass("peephol", parse_ir(TEXT))


def test_the_verifier_names_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(graph: Graph) -> bool:
        next(graph.nodes()).move_before(graph.return_node)
        return True

    monkeypatch.setattr(pipeline, "find_pass", lambda name: broken)
    with pytest.raises(AssertionError, match="broken_pass broke the graph: %1 is not in scope"):
        run_pass("broken_pass", parse_ir(TEXT), verifier)
