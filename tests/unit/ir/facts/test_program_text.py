"""Values and nodes in the text of their program."""

from __future__ import annotations

import engine
import engine.torch as torch
from engine.ir.facts.program_text import MAX_TEXT, own_range, text_of, value_name
from engine.ir.graph import Graph, InlinedFrom, Node
from engine.lang.source import Source, SourceRange

TEXT = """\
def f(x, y):
    z = torch.tanh(x * y + (x - y) * (x / y) * 222.75)
    return z
"""


def names(graph: Graph) -> dict[str, str]:
    return {node.kind: value_name(node.output) for node in graph.all_nodes() if node.outputs}


def test_values_without_a_name_are_called_by_the_text_that_makes_them() -> None:
    found = names(engine.CompilationUnit(TEXT).f._function.graph)
    assert found["aten::tanh"] == "z"
    assert found["aten::div"] == "x / y"
    assert found["aten::add"].endswith("…")
    assert len(found["aten::add"]) == MAX_TEXT


def test_arguments_have_their_names_without_numbers() -> None:
    graph = engine.CompilationUnit(TEXT).f._function.graph
    assert [value_name(value) for value in graph.inputs] == ["x", "y"]


def test_attributes_are_called_by_their_path() -> None:
    class Inner(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x):  # type: ignore[no-untyped-def]
            return x * self.inner.weight

    graph = torch.jit.script(Outer()).graph._ir
    assert "inner.weight" in [value_name(node.output) for node in graph.all_nodes() if node.kind == "prim::GetAttr"]


def test_a_call_whose_range_is_the_callee_is_shown_as_a_call() -> None:
    source = Source("y = F.linear(x, w)")
    assert text_of(SourceRange(source, 4, 12)) == "F.linear(…)"
    assert text_of(None) == ""


def test_nodes_of_libraries_are_placed_where_they_were_called() -> None:
    own, library = Source("y = self.fc(x)\n", "model.py"), Source("return linear(x)\n", "linear.py")
    node = Node(Graph(), "aten::linear", SourceRange(library, 7, 16))
    node.inlined_from = (InlinedFrom("forward", SourceRange(own, 4, 14)),)
    found = own_range(node)
    assert found is not None
    assert (found.filename, found.text) == ("model.py", "self.fc(x)")
    node.range = SourceRange(own, 0, 1)
    found = own_range(node)
    assert found is not None
    assert found.text == "y"
