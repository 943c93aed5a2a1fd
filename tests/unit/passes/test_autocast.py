"""The casts of mixed precision, written into graphs."""

from __future__ import annotations

import pytest

from engine.frontend.compilation.compile import compile_source
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph, Node
from engine.ir.verify import verify
from engine.lang.errors import CompileError
from engine.passes.autocast import autocast

SOURCE = """
def f(x, y):
    a = torch.exp(x)
    with torch.autocast("cpu", dtype=torch.float16):
        b = torch.mm(x, x)
        c = torch.mul(x, y)
        b.mul_(2)
        l = torch.cat([b, x])
        if bool(x.sum() > 0):
            c = torch.tanh(c)
    return a, b, c, l, torch.mm(x, y)
"""


def graph_of(source: str) -> Graph:
    return copy_graph(compile_source(source).functions["f"].graph)


def casts_of(node: Node) -> list[str]:
    return [
        value.node.kind.removeprefix("aten::_autocast_to_") for value in node.inputs if "autocast" in value.node.kind
    ]


def test_casts_stand_before_what_wants_them() -> None:
    graph = graph_of(SOURCE)
    assert autocast(graph)
    verify(graph)
    cast = [(node.kind.removeprefix("aten::"), casts_of(node)) for node in graph.all_nodes() if casts_of(node)]
    reduced, full = "reduced_precision", "full_precision"
    assert cast == [("mm", [reduced, reduced]), ("mul", [full, full]), ("sum", [full])]
    assert [node.inputs[4].node.attr("value") for node in graph.all_nodes() if node.kind.endswith(reduced)] == [5]


def test_other_graphs_stay() -> None:
    source = "def f(x):\n    with torch.no_grad():\n        return torch.mm(x, x)\n"
    graph = graph_of(source)
    before = str(graph)
    assert not autocast(graph)
    assert str(graph) == before


def test_a_block_that_only_the_run_knows() -> None:
    source = 'def f(x, on: bool):\n    with torch.autocast("cpu", enabled=on):\n        y = x @ x\n    return y\n'
    with pytest.raises(CompileError, match="_enabled argument must be a constant") as caught:
        autocast(graph_of(source))
    assert caught.value.range is not None
    assert caught.value.range.text == 'torch.autocast("cpu", enabled=on)'
