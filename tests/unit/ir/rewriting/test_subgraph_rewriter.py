"""Patterns are found and replaced where nobody can tell, and nowhere else."""

from __future__ import annotations

import pytest

from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.ir.rewriting.subgraph_match import find_matches
from engine.ir.rewriting.subgraph_rewriter import SubgraphRewriter, custom_pattern_based_rewrite_graph
from engine.ir.verify import verify
from engine.lang.errors import IRError

MUL_RELU = """graph(%a, %b):
  %c = aten::mul(%a, %b)
  %d = aten::relu(%c)
  return (%d)"""
FUSED = """graph(%a, %b):
  %d = my::fused(%a, %b)
  return (%d)"""
DOUBLE = """graph(%a):
  %one : int = prim::Constant[value=1]()
  %c = aten::add(%a, %a, %one)
  return (%c)"""
TWICE = """graph(%a):
  %two : int = prim::Constant[value=2]()
  %c = aten::mul(%a, %two)
  return (%c)"""


def graph_of(body: str, result: str = "%r") -> Graph:
    return parse_ir(f"graph(%x : Tensor, %y : Tensor, %c : bool):\n{body}\n  return ({result})")


def rewritten(graph: Graph, pattern: str, replacement: str) -> list[str]:
    before = str(graph)
    changed = custom_pattern_based_rewrite_graph(pattern, replacement, graph)
    verify(graph)
    assert changed == (str(graph) != before)
    return [node.kind for node in graph.all_nodes() if node.kind != "prim::Constant"]


def test_each_match_is_replaced() -> None:
    graph = graph_of(
        "  %1 : Tensor = aten::mul(%x, %y)\n  %2 : Tensor = aten::relu(%1)\n"
        "  %3 : Tensor = aten::mul(%2, %y)\n  %r : Float(2) = aten::relu(%3)"
    )
    assert rewritten(graph, MUL_RELU, FUSED) == ["my::fused", "my::fused"]
    assert str(graph.outputs[0].type) == "Float(2)", "types stay what they were"


def test_what_is_used_elsewhere_stays() -> None:
    graph = graph_of("  %1 : Tensor = aten::mul(%x, %y)\n  %r : Tensor = aten::relu(%1)", "%r, %1")
    assert rewritten(graph, MUL_RELU, FUSED) == ["aten::mul", "aten::relu"]


def test_operands_in_another_order_stay() -> None:
    pattern = "graph(%a, %b):\n  %c = aten::neg(%b)\n  %d = aten::sub(%a, %c)\n  return (%d)"
    graph = graph_of("  %1 : Tensor = aten::neg(%y)\n  %r : Tensor = aten::sub(%1, %x)")
    assert rewritten(graph, pattern, FUSED) == ["aten::neg", "aten::sub"]


def test_the_replacement_stands_before_a_write_that_it_must_not_see() -> None:
    graph = graph_of(
        "  %1 : Tensor = aten::mul(%x, %y)\n  %2 : Tensor = aten::zero_(%x)\n  %r : Tensor = aten::relu(%1)"
    )
    assert rewritten(graph, MUL_RELU, FUSED) == ["my::fused", "aten::zero_"]


def test_the_replacement_stands_behind_its_inputs() -> None:
    pattern = "graph(%a, %b):\n  %c = aten::relu(%a)\n  %d = aten::mul(%c, %b)\n  return (%d)"
    graph = graph_of("  %1 : Tensor = aten::relu(%x)\n  %2 : Tensor = aten::neg(%y)\n  %r : Tensor = aten::mul(%1, %2)")
    assert rewritten(graph, pattern, FUSED) == ["aten::neg", "my::fused"]


def test_no_place_is_right() -> None:
    """`relu` reads before the write, and the other operand is there only behind it."""
    pattern = "graph(%a, %b):\n  %c = aten::relu(%a)\n  %d = aten::mul(%c, %b)\n  return (%d)"
    graph = graph_of(
        "  %1 : Tensor = aten::relu(%x)\n  %2 : Tensor = aten::zero_(%x)\n  %3 : Tensor = aten::neg(%y)\n"
        "  %r : Tensor = aten::mul(%1, %3)"
    )
    before = str(graph)
    rewritten(graph, pattern, FUSED)
    assert str(graph) == before


def test_constants_match_by_value() -> None:
    graph = graph_of("  %k : int = prim::Constant[value=1]()\n  %r : Tensor = aten::add(%x, %x, %k)")
    assert rewritten(graph, DOUBLE, TWICE) == ["aten::mul"]
    graph = graph_of("  %k : int = prim::Constant[value=2]()\n  %r : Tensor = aten::add(%x, %x, %k)")
    assert rewritten(graph, DOUBLE, TWICE) == ["aten::add"]


def test_one_value_stands_for_one_value() -> None:
    graph = graph_of("  %k : int = prim::Constant[value=1]()\n  %r : Tensor = aten::add(%x, %y, %k)")
    assert rewritten(graph, DOUBLE, TWICE) == ["aten::add"]


def test_a_match_lies_in_one_block() -> None:
    graph = graph_of(
        "  %1 : Tensor = aten::mul(%x, %y)\n  %r : Tensor = prim::If(%c)\n    block0():\n"
        "      %2 : Tensor = aten::relu(%1)\n      -> (%2)\n    block1():\n      -> (%x)"
    )
    assert rewritten(graph, MUL_RELU, FUSED) == ["aten::mul", "prim::If", "aten::relu"]


def test_several_results() -> None:
    pattern = "graph(%a):\n  %c = aten::relu(%a)\n  %d = aten::neg(%c)\n  return (%c, %d)"
    new = "graph(%a):\n  %c, %d = my::both(%a)\n  return (%d, %c)"
    graph = graph_of("  %1 : Tensor = aten::relu(%x)\n  %r : Tensor = aten::neg(%1)", "%r, %1")
    assert rewritten(graph, pattern, new) == ["my::both"]


def test_a_replacement_may_be_an_input() -> None:
    graph = graph_of("  %1 : Tensor = aten::relu(%x)\n  %r : Tensor = aten::relu(%1)")
    same = "graph(%a):\n  return (%a)"
    assert rewritten(graph, "graph(%a):\n  %c = aten::relu(%a)\n  return (%c)", same) == []
    assert graph.outputs == [graph.inputs[0]]


def test_filters_decide() -> None:
    graph = graph_of("  %1 : Tensor = aten::mul(%x, %y)\n  %r : Tensor = aten::relu(%1)")
    rewriter = SubgraphRewriter()
    rewriter.register_rewrite_pattern(MUL_RELU, FUSED)
    assert not rewriter.run_on_graph(graph, [lambda match, values: values["a"].debug_name == "y"])
    assert rewriter.run_on_graph(graph, [lambda match, values: values["a"].debug_name == "x"])


def test_matches_are_data() -> None:
    graph = graph_of("  %1 : Tensor = aten::mul(%x, %y)\n  %r : Tensor = aten::relu(%1)")
    pattern = parse_ir(MUL_RELU)
    (match,) = find_matches(pattern, graph)
    assert match.anchor.kind == "aten::relu"
    assert [match.values[value].debug_name for value in pattern.inputs] == ["x", "y"]


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        (MUL_RELU, "graph(%a):\n  return (%a)", "as many values"),
        ("graph(%a, %b):\n  return (%a)", FUSED, "needs a node"),
        ("graph(%a, %b):\n  %c = aten::relu(%a)\n  %d = aten::neg(%b)\n  return (%d)", FUSED, "leads to its last node"),
    ],
)
def test_refusals(pattern: str, replacement: str, message: str) -> None:
    with pytest.raises(IRError, match=message):
        SubgraphRewriter().register_rewrite_pattern(pattern, replacement)


def test_what_is_new_stands_where_what_it_replaces_stood() -> None:
    graph = graph_of("  %1 : Tensor = aten::mul(%x, %y)\n  %r : Tensor = aten::relu(%1)")
    product, activation = graph.nodes()
    ranges = product.range, activation.range
    assert custom_pattern_based_rewrite_graph(MUL_RELU, FUSED, graph, [("d", "c")])
    (fused,) = graph.nodes()
    assert fused.range == ranges[0] != ranges[1]
    with pytest.raises(IRError, match="the replacement makes no value %c"):
        custom_pattern_based_rewrite_graph(MUL_RELU, FUSED, graph, [("c", "c")])
    with pytest.raises(IRError, match="the pattern makes no value %e"):
        custom_pattern_based_rewrite_graph(MUL_RELU, FUSED, graph, [("d", "e")])
