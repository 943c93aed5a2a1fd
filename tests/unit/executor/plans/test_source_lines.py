"""Places of nodes in their program."""

from __future__ import annotations

import engine
from engine.executor.plans.source_lines import SourceLine, line_of


def test_lines_are_those_of_the_file_without_indent() -> None:
    graph = engine.CompilationUnit("def f(x, y):\n    z = x / y\n    return z\n").f._function.graph
    (division,) = [node for node in graph.nodes() if node.kind == "aten::div"]
    assert line_of(division.range) == SourceLine("<string>", 2, "z = x / y")
    assert line_of(None) is None
