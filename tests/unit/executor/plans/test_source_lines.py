"""Places and names of values, as people read them."""

from __future__ import annotations

import engine
from engine.executor.plans.source_lines import MAX_TEXT, SourceLine, line_of, value_name
from engine.ir.graph import Node

TEXT = """\
def f(x, y):
    z = torch.tanh(x * y + (x - y) * (x / y) * 222.75)
    return z
"""


def nodes() -> dict[str, Node]:
    graph = engine.CompilationUnit(TEXT).f._function.graph
    return {node.kind: node for node in graph.all_nodes()}


def test_values_without_a_name_are_called_by_the_text_that_makes_them() -> None:
    found = {kind: value_name(node.output.debug_name, node.range) for kind, node in nodes().items() if node.outputs}
    assert found["aten::tanh"] == "z"
    assert found["aten::div"] == "x / y"
    assert found["aten::add"].endswith("…")
    assert len(found["aten::add"]) == MAX_TEXT


def test_values_of_arguments_are_called_by_their_names() -> None:
    assert value_name("x.1", None) == "x"
    assert value_name("7", None) == "%7"


def test_lines_are_those_of_the_file() -> None:
    assert line_of(nodes()["aten::div"].range) == SourceLine(
        "<string>", 2, "z = torch.tanh(x * y + (x - y) * (x / y) * 222.75)"
    )
    assert line_of(None) is None
