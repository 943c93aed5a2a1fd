"""Copies are equal and independent."""

from engine.ir.clone import copy_graph, inline_graph
from engine.ir.graph import Graph, InlinedFrom
from engine.ir.parser import parse_ir
from engine.ir.verify import verify

TEXT = """graph(%x.1 : int,
      %c : bool):
  %7 : int = prim::Constant[value=1]()
  %y : int = prim::If(%c)
    block0():
      %9 : int = aten::add(%x.1, %7)
      -> (%9)
    block1():
      -> (%7)
  return (%y)
"""


def test_a_copy_prints_the_same_and_is_independent() -> None:
    graph = parse_ir(TEXT)
    copy = copy_graph(graph)
    verify(copy)
    assert str(copy) == TEXT
    copy.find_all_nodes("aten::add")[0].kind = "aten::sub"
    copy.add_input("z")
    assert str(graph) == TEXT
    assert copy.append("prim::Print", [], 1).output.debug_name not in TEXT


def test_inlining_maps_inputs_and_remembers_the_call() -> None:
    body = parse_ir(TEXT)
    into = parse_ir("graph(%a : int, %b : bool):\n  return (%a)\n")
    call = InlinedFrom("g", None)
    (result,) = inline_graph(into, body, into.inputs, call)
    into.return_node.replace_input(0, result)
    verify(into)
    assert into.find_all_nodes("aten::add")[0].inputs[0] is into.inputs[0]
    assert all(node.inlined_from == (call,) for node in into.all_nodes())
    outer = Graph()
    inline_graph(outer, into, [outer.add_input(), outer.add_input()], InlinedFrom("f", None))
    assert [c.function for c in outer.find_all_nodes("aten::add")[0].inlined_from] == ["f", "g"]
