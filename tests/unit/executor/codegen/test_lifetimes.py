"""Deaths: where values are not needed any more."""

from engine.executor.codegen.lifetimes import Deaths
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir


def after(graph: Graph, kind: str) -> list[str]:
    node = graph.find_node(kind)
    assert node is not None
    return [value.debug_name for value in Deaths(graph).after[node]]


def test_values_die_after_their_last_use_and_unused_ones_at_once() -> None:
    graph = parse_ir("""
graph(%x : Tensor, %n : int):
  %y : Tensor = aten::neg(%x)
  %z : Tensor = aten::exp(%y)
  %u : Tensor = aten::tanh(%x)
  return (%z)
""")
    assert after(graph, "aten::neg") == []
    assert after(graph, "aten::exp") == ["y"]
    assert sorted(after(graph, "aten::tanh")) == ["u", "x"]


def test_numbers_are_of_no_interest() -> None:
    graph = parse_ir("graph(%n : int):\n  %m : int = aten::neg(%n)\n  %k : int = aten::neg(%m)\n  return (%k)\n")
    assert not any(Deaths(graph).after.values())


BRANCHES = """
graph(%x : Tensor, %c : bool):
  %r : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::neg(%x)
      -> (%a)
    block1():
      %b : Tensor = aten::zeros_like(%r0)
      -> (%b)
  return (%r)
""".replace("  %r :", "  %r0 : Tensor = aten::exp(%x)\n  %r :").replace("aten::zeros_like", "aten::sin")


def test_a_value_dies_in_the_branch_that_uses_it_and_at_the_start_of_the_other() -> None:
    graph = parse_ir(BRANCHES)
    deaths = Deaths(graph)
    branch = graph.find_node("prim::If")
    assert branch is not None
    then, otherwise = branch.blocks
    assert [v.debug_name for v in deaths.at_start[then]] == ["r0"]
    assert [v.debug_name for v in deaths.at_start[otherwise]] == ["x"]
    assert (after(graph, "aten::neg"), after(graph, "aten::sin")) == (["x"], ["r0"])


def test_what_a_loop_takes_first_dies_on_entry_what_its_body_reads_behind_it() -> None:
    graph = parse_ir("""
graph(%x : Tensor, %y : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %r : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = aten::mul(%a, %y)
      -> (%t, %b)
  return (%r)
""")
    deaths, loop = Deaths(graph), graph.find_node("prim::Loop")
    assert loop is not None
    assert [v.debug_name for v in deaths.on_entry[loop]] == ["x"]
    assert [v.debug_name for v in deaths.after[loop]] == ["y"]
    assert after(graph, "aten::mul") == ["a"]
    assert [v.debug_name for v in deaths.after[loop.blocks[0].return_node]] == ["b"]
