"""Loads, stores and early exits become values: `ssa`, `exits`, `with_blocks`, `modified_loops`."""

from __future__ import annotations

from engine.frontend.lowering.exits import transform_exits
from engine.frontend.lowering.modified_loops import FOREVER, canonicalize_modified_loops
from engine.frontend.lowering.ssa import to_ssa
from engine.frontend.lowering.with_blocks import from_with_blocks, to_with_blocks
from engine.ir.constants import constant_value
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.ir.verify import verify

EARLY = {
    "prim::Load",
    "prim::Store",
    "prim::BreakStmt",
    "prim::ContinueStmt",
    "prim::ReturnStmt",
    "prim::LoopContinuation",
}


def lower(text: str) -> Graph:
    graph = parse_ir(text)
    to_ssa(graph)
    transform_exits(graph)
    canonicalize_modified_loops(graph)
    verify(graph)
    assert not EARLY & {node.kind for node in graph.all_nodes()}
    return graph


def test_a_variable_written_in_a_branch_is_an_output_of_the_if() -> None:
    graph = parse_ir("""graph(%c : bool, %a : int):
  prim::Store[name="x"](%a)
  prim::If(%c)
    block0():
      %two : int = prim::Constant[value=2]()
      prim::Store[name="x"](%two)
      -> ()
    block1():
      -> ()
  %r : int = prim::Load[name="x"]()
  return (%r)
""")
    to_ssa(graph)
    verify(graph)
    (node,) = graph.find_all_nodes("prim::If")
    assert node.outputs == graph.outputs
    assert node.blocks[1].outputs == [graph.inputs[1]]
    assert node.output.debug_name == "x"


def test_a_variable_local_to_a_branch_is_not_carried() -> None:
    graph = parse_ir("""graph(%c : bool):
  prim::If(%c)
    block0():
      %two : int = prim::Constant[value=2]()
      prim::Store[name="x"](%two)
      -> ()
    block1():
      -> ()
  return ()
""")
    to_ssa(graph)
    (node,) = graph.find_all_nodes("prim::If")
    assert node.outputs == []


def test_a_branch_that_raises_gives_no_value() -> None:
    graph = lower("""graph(%c : bool, %m : str):
  prim::If(%c)
    block0():
      prim::RaiseException(%m, %m)
      %never : int = prim::Uninitialized()
      prim::Store[name="x"](%never)
      -> ()
    block1():
      %two : int = prim::Constant[value=2]()
      prim::Store[name="x"](%two)
      -> ()
  %r : int = prim::Load[name="x"]()
  return (%r)
""")
    (node,) = graph.find_all_nodes("prim::If")
    assert node.blocks[0].outputs[0].node.kind == "prim::Uninitialized"
    assert node.outputs == graph.outputs


WHILE_CONTINUE = """graph(%i : int, %n : int):
  prim::Store[name="i"](%i)
  %max : int = prim::Constant[value=9223372036854775807]()
  %one : int = prim::Constant[value=1]()
  prim::Loop(%max)
    block0(%t : int):
      %a : int = prim::Load[name="i"]()
      %c : bool = aten::eq(%a, %one)
      prim::If(%c)
        block0():
          %d : int = aten::add(%a, %n)
          prim::Store[name="i"](%d)
          prim::EXIT()
          -> ()
        block1():
          -> ()
      %e : int = prim::Load[name="i"]()
      %f : int = aten::mul(%e, %e)
      prim::Store[name="i"](%f)
      -> ()
    block1():
      %g : int = prim::Load[name="i"]()
      %h : bool = aten::lt(%g, %n)
      -> (%h)
  %r : int = prim::Load[name="i"]()
  prim::ReturnStmt(%r)
  return ()
"""


def test_continue_evaluates_the_condition_where_it_stands() -> None:
    graph = lower(WHILE_CONTINUE.replace("EXIT", "ContinueStmt"))
    assert [node.kind for node in graph.all_nodes()].count("aten::lt") == 3  # before, at the continue, at the end
    assert len(graph.find_all_nodes("prim::If")) == 1  # the guard was merged into the branch that decides it


def test_break_hands_on_false() -> None:
    graph = lower(WHILE_CONTINUE.replace("EXIT", "BreakStmt"))
    assert [node.kind for node in graph.all_nodes()].count("aten::lt") == 2
    (branch,) = graph.find_all_nodes("prim::If")
    told = [constant_value(output) for output in branch.blocks[0].outputs]
    assert False in told  # the condition that the break hands on
    assert "aten::lt" not in [node.kind for node in branch.blocks[0].nodes()]


def test_a_return_inside_a_loop_leaves_the_loop_and_the_function() -> None:
    graph = lower("""graph(%n : int):
  %true : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  prim::Loop(%n)
    block0(%i : int):
      %c : bool = aten::eq(%i, %one)
      prim::If(%c)
        block0():
          prim::ReturnStmt(%i)
          -> ()
        block1():
          -> ()
      -> ()
    block1():
      -> (%true)
  prim::ReturnStmt(%n)
  return ()
""")
    (loop,) = graph.find_all_nodes("prim::Loop")
    assert loop.inputs[0].node.attr("value") == FOREVER  # a while now, which counts for itself
    assert [str(value.type) for value in loop.outputs] == ["bool", "int", "int"]
    assert graph.outputs[0].node.kind == "prim::If"
    assert graph.outputs[0].node.input is loop.outputs[0]


def test_nodes_after_a_certain_exit_are_deleted() -> None:
    graph = lower("""graph(%n : int):
  prim::ReturnStmt(%n)
  prim::Print(%n)
  return ()
""")
    assert graph.find_node("prim::Print") is None
    assert graph.outputs == graph.inputs


def test_a_plain_for_loop_stays_one() -> None:
    text = """graph(%n : int):
  %true : bool = prim::Constant[value=1]()
  prim::Loop(%n)
    block0(%i : int):
      prim::Print(%i)
      -> ()
    block1():
      -> (%true)
  prim::ReturnStmt(%n)
  return ()
"""
    (loop,) = lower(text).find_all_nodes("prim::Loop")
    assert [value.debug_name for value in loop.inputs] == ["n", "true"]


def test_with_blocks_come_and_go() -> None:
    text = """graph(%c : int):
  %y : int = prim::Enter(%c)
  %z : int = aten::add(%y, %y)
  %e : int = prim::Exit(%c)
  return (%c)
"""
    graph = parse_ir(text)
    before = str(graph)
    to_with_blocks(graph)
    (node,) = graph.find_all_nodes("prim::With")
    assert [inner.kind for inner in node.blocks[0].nodes()] == ["aten::add"]
    assert [inner.kind for inner in node.blocks[1].nodes()] == ["prim::Exit"]
    from_with_blocks(graph)
    assert str(graph) == before
