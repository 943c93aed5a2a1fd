"""The canonical text, character for character."""

import math

import numpy as np
import pytest

from engine.aten.values.tensor import Tensor
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.ir.printer import constant_text, float_text, graph_text, quoted
from engine.lang.scalars import device
from engine.lang.source import Source, SourceRange
from engine.lang.types import INT, STR, TENSOR, DictType, ListType, OptionalType, TupleType


def test_nodes_blocks_and_missing_outputs() -> None:
    graph = Graph()
    a, c = graph.add_input("a.1"), graph.add_input("c")
    one = graph.append("prim::Constant", (), [INT]).set_attr("value", 1).output
    branch = graph.append("prim::If", [c], 0)
    for _ in range(2):
        with graph.inserting_at(branch.add_block()):
            graph.append("aten::add_", [a, a, one])
    graph.register_output(a)
    assert str(graph) == (
        "graph(%a.1 : Tensor,\n      %c : Tensor):\n  %2 : int = prim::Constant[value=1]()\n   = prim::If(%c)\n"
        "    block0():\n      %3 : Tensor = aten::add_(%a.1, %a.1, %2)\n      -> ()\n"
        "    block1():\n      %4 : Tensor = aten::add_(%a.1, %a.1, %2)\n      -> ()\n  return (%a.1)\n"
    )
    assert str(branch).startswith(" = prim::If(%c)\n  block0():\n    %3 : Tensor")


def test_source_comments() -> None:
    graph = Graph()
    source = Source("def f():\n    return 1\n", "f.py", first_line=7)
    with graph.inserting_at(graph.block, SourceRange(source, 20, 21)):
        graph.append("prim::Constant", (), [INT]).set_attr("value", 1)
    assert "prim::Constant[value=1]() # f.py:8:11\n" in graph_text(graph, source_comments=True)
    assert "#" not in graph_text(graph)


def test_subgraphs_follow() -> None:
    text = (
        "graph(%x : Tensor):\n  %1 : Future[Tensor] = prim::fork_0(%x)\n  %2 : Future[Tensor] = prim::fork_1(%x)\n"
        "  return (%1, %2)\n"
        "with prim::fork_0 = graph(%x : Tensor):\n  %1 : Future[Tensor] = prim::fork_0(%x)\n  return (%1)\n"
        "with prim::fork_0 = graph(%x : Tensor):\n  return (%x)\n"
        "with prim::fork_1 = graph(%x : Tensor):\n  return (%x)\n"
    )
    graph = parse_ir(text)
    assert str(graph) == text
    first, second = graph.nodes()
    assert first.kind == second.kind == "prim::fork"
    assert first.attr("Subgraph").find_node("prim::fork") is not None
    assert second.attr("Subgraph").find_node("prim::fork") is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1."), (-0.0, "-0."), (0.1, "0.10000000000000001"), (1e-10, "1e-10"), (1e10, "10000000000"), (1e20, "1e+20"),
     (math.nan, "nan"), (-math.inf, "-inf"), (12345678901.5, "12345678901.5"), (5e-324, "4.9406564584124654e-324"),
     (9999999999.0, "9999999999.")],
)  # fmt: skip
def test_floats(value: float, text: str) -> None:
    assert float_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [("a\"b'c\\", r'"a\"b\'c\\"'), ("\n\t\a\b\f\r\v", r'"\n\t\a\b\f\r\v"'), ("é", r'"\0)+\/.)"'),
     ("\0\x7f", r'"\000\177"')],
)  # fmt: skip
def test_strings(value: str, text: str) -> None:
    assert quoted(value) == text


def tensor(*values: float, dtype: str = "float32") -> Tensor:
    return Tensor(np.array(values, dtype))


@pytest.mark.parametrize(
    ("value", "type", "text"),
    [
        ((1, 2.0, "a", True, None), None, '(1, 2., "a", True, None)'),
        ((1,), None, "(1,)"),
        ([1, 2], ListType(INT), "[1, 2]"),
        ([], ListType(INT), "annotate(List[int], [])"),
        ([None, 1], ListType(OptionalType(INT)), "annotate(List[Optional[int]], [None, 1])"),
        ({"a": 1}, DictType(STR, INT), '{"a": 1}'),
        ({}, DictType(STR, INT), "annotate(Dict[str, int],{})"),
        (([], 1), TupleType((ListType(STR), INT)), "(annotate(List[str], []), 1)"),
        ((device("cuda:1"),), None, '(torch.device("cuda:1"),)'),
        (1.0 - 2j, None, "1.-2.j"),
        (tensor(3.0), TENSOR, "{3}"),
        (tensor(0.1), TENSOR, "{0.1}"),
        (tensor(1e20), TENSOR, "{1e+20}"),
        (tensor(1.5, 2), TENSOR, " 1.5000  2.0000 [ CPUFloatType{2} ]"),
        (tensor(1, 2, dtype="int64"), TENSOR, " 1  2 [ CPULongType{2} ]"),
        (tensor(*range(11)), TENSOR, "<Tensor>"),
        ([tensor(1)], ListType(TENSOR), "[<Tensors>]"),
    ],
)
def test_constants(value: object, type: object, text: str) -> None:
    assert constant_text(value, type) == text  # type: ignore[arg-type]
