"""Each kind of damage is found."""

from collections.abc import Callable

import pytest

from engine.ir.graph import Graph, Use
from engine.ir.parser import parse_ir
from engine.ir.verify import verify
from engine.lang.types import FLOAT, STR

TEXT = """graph(%x : int, %c : bool, %n : int):
  %1 : int = aten::neg(%x)
  %2 : int = prim::If(%c)
    block0():
      %3 : int = aten::neg(%1)
      -> (%3)
    block1():
      -> (%x)
  %4 : int = prim::Loop(%n, %c, %2)
    block0(%i : int, %5 : int):
      %6 : int = aten::add(%5, %i)
      -> (%c, %6)
  return (%4)
"""


def damage_scope(graph: Graph) -> None:
    inner = graph.find_all_nodes("aten::neg")[1].output
    graph.return_node.replace_input(0, inner)


def damage_order(graph: Graph) -> None:
    first, branch = graph.find_all_nodes("aten::neg")[0], graph.find_all_nodes("prim::If")[0]
    first.move_after(branch)


def damage_uses(graph: Graph) -> None:
    graph.inputs[0]._uses[Use(graph.return_node, 7)] = None


def damage_inputs(graph: Graph) -> None:
    graph.find_all_nodes("aten::neg")[0].inputs[0] = graph.inputs[2]


def damage_offset(graph: Graph) -> None:
    graph.inputs[1].offset = 0


def damage_position(graph: Graph) -> None:
    graph.find_all_nodes("prim::If")[0]._position = 0


def damage_if_arity(graph: Graph) -> None:
    graph.find_all_nodes("prim::If")[0].blocks[0].erase_output(0)


def damage_if_type(graph: Graph) -> None:
    graph.find_all_nodes("prim::If")[0].output.set_type(STR)


def damage_loop_arity(graph: Graph) -> None:
    graph.find_all_nodes("prim::Loop")[0].remove_input(2)


def damage_loop_type(graph: Graph) -> None:
    graph.find_all_nodes("prim::Loop")[0].blocks[0].inputs[1].set_type(FLOAT)


def damage_owner(graph: Graph) -> None:
    graph.find_all_nodes("prim::If")[0].blocks[0].owner = graph.find_all_nodes("prim::Loop")[0]


def damage_name(graph: Graph) -> None:
    graph.inputs[0].name = "other"


def damage_insert_point(graph: Graph) -> None:
    graph.insert_point = graph.create("aten::neg", [graph.inputs[0]])


DAMAGES = [value for name, value in sorted(globals().items()) if name.startswith("damage_")]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_found(damage: Callable[[Graph], None]) -> None:
    graph = parse_ir(TEXT)
    verify(graph)
    damage(graph)
    with pytest.raises(AssertionError):
        verify(graph)


def test_the_node_is_shown() -> None:
    graph = parse_ir(TEXT)
    damage_scope(graph)
    with pytest.raises(AssertionError, match=r"%3 is not in scope in\n.*prim::Return"):
        verify(graph)


def test_numbers_may_have_become_tensors() -> None:
    verify(parse_ir("graph(%c : Bool(device=cpu), %x : Long(device=cpu), %y : int):\n  %1 : int = prim::If(%c)\n"
                    "    block0():\n      -> (%x)\n    block1():\n      -> (%y)\n  return (%1)"))  # fmt: skip
