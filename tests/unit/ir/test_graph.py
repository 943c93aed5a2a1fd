"""Insertion, removal, order, names and uses."""

from random import Random

import pytest

from engine.ir.graph import Graph, InlinedFrom, Node, Use, attribute_kind
from engine.ir.verify import verify
from engine.lang.types import BOOL, INT, TENSOR


@pytest.fixture
def graph() -> Graph:
    """x, y -> mul(add(x, y), y)"""
    graph = Graph()
    x, y = graph.add_input("x", INT), graph.add_input("y", INT)
    total = graph.append("aten::add", [x, y], [INT]).output
    graph.register_output(graph.append("aten::mul", [total, y], [INT]).output)
    return graph


def nodes(graph: Graph) -> list[Node]:
    return list(graph.nodes())


def test_uses_follow_inputs(graph: Graph) -> None:
    x, y = graph.inputs
    add, mul = nodes(graph)
    assert x.uses == [Use(add, 0)]
    assert y.uses == [Use(add, 1), Use(mul, 1)]
    y.replace_all_uses_with(x)
    assert not y.has_uses
    assert x.uses == [Use(add, 0), Use(add, 1), Use(mul, 1)]
    verify(graph)


def test_inputs_are_inserted_and_removed_in_place(graph: Graph) -> None:
    x, y = graph.inputs
    mul = nodes(graph)[1]
    mul.insert_input(0, x)
    assert mul.inputs[0] is x
    assert y.uses[-1] == Use(mul, 2)
    verify(graph)
    mul.remove_input(1)
    assert mul.inputs == [x, y]
    assert x.uses[-1] == Use(mul, 0)
    verify(graph)


def test_a_changed_input_forgets_the_operator(graph: Graph) -> None:
    add = nodes(graph)[0]
    add.op = object()
    add.replace_input(0, graph.inputs[1])
    assert add.op is None


def test_replace_all_uses_after(graph: Graph) -> None:
    x, y = graph.inputs
    add, mul = nodes(graph)
    y.replace_all_uses_after(add, x)
    assert add.inputs == [x, y]
    assert mul.inputs[1] is x


def test_destroy_refuses_used_nodes(graph: Graph) -> None:
    add, mul = nodes(graph)
    with pytest.raises(AssertionError, match="still used"):
        add.destroy()
    graph.block.erase_output(0)
    mul.destroy()
    add.destroy()
    assert nodes(graph) == []
    assert not graph.inputs[0].has_uses
    verify(graph)


def test_values_of_other_graphs_are_refused(graph: Graph) -> None:
    other = Graph().add_input("z", INT)
    with pytest.raises(AssertionError, match="another graph"):
        nodes(graph)[0].add_input(other)


def test_positions_survive_crowding(graph: Graph) -> None:
    add, mul = nodes(graph)
    squeezed = [graph.create("aten::neg", [graph.inputs[0]], [INT]).insert_after(add) for _ in range(60)]
    assert nodes(graph) == [add, *reversed(squeezed), mul]
    assert all(a.is_before(b) for a, b in zip(nodes(graph), nodes(graph)[1:], strict=False))
    verify(graph)


@pytest.mark.parametrize("where", ["before the last", "after the first", "everywhere"])
def test_positions_of_thousands_of_nodes_in_one_place(graph: Graph, where: str) -> None:
    add, mul = nodes(graph)
    random, every = Random(0), [add, mul]
    for _ in range(5000):
        node = graph.create("aten::neg", [graph.inputs[0]], [INT])
        at = {"before the last": len(every) - 1, "after the first": 1}.get(where, random.randrange(1, len(every)))
        every.insert(at, node.insert_before(every[at]))
    assert nodes(graph) == every
    verify(graph)


def test_order_across_blocks(graph: Graph) -> None:
    add, mul = nodes(graph)
    branch = graph.create("prim::If", [graph.inputs[0]], 0).insert_before(mul)
    inner = [branch.add_block().append(graph.create("aten::neg", [graph.inputs[0]], [INT])) for _ in range(2)]
    assert add.is_before(inner[0])
    assert branch.is_before(inner[0])
    assert inner[0].is_before(inner[1])
    assert inner[1].is_before(mul)
    assert mul.is_after(inner[1])
    assert not mul.is_before(mul)
    assert list(graph.all_nodes()) == [add, branch, *inner, mul]


def test_moving_keeps_the_insert_point(graph: Graph) -> None:
    add, mul = nodes(graph)
    with graph.inserting_at(mul):
        mul.move_before(add)
        assert graph.append("prim::Print", [], 0).next is graph.return_node


def test_removing_while_walking(graph: Graph) -> None:
    for _ in range(3):
        graph.append("prim::Print", [], 0)
    for node in graph.nodes():
        if node.kind == "prim::Print":
            node.destroy()
    assert [node.kind for node in graph.nodes()] == ["aten::add", "aten::mul"]


def test_a_taken_name_is_given_up(graph: Graph) -> None:
    """As in PyTorch the latest value gets the name, and the one that had it a numbered one."""
    x, y = graph.inputs
    y.set_debug_name("x")
    assert (x.debug_name, y.debug_name) == ("x.1", "x")
    x.set_debug_name("x")
    assert (x.debug_name, y.debug_name) == ("x", "x.3")
    x.set_debug_name("")
    assert x.debug_name == "0"
    verify(graph)


def test_names_are_free_again_after_destroy(graph: Graph) -> None:
    value = graph.append("aten::neg", [graph.inputs[0]], [INT]).output.set_debug_name("t")
    value.node.destroy()
    assert graph.append("aten::neg", [graph.inputs[0]], [INT]).output.set_debug_name("t").debug_name == "t"


def test_outputs_keep_their_offsets(graph: Graph) -> None:
    node = graph.append("prim::TupleUnpack", [graph.inputs[0]], [INT, BOOL])
    middle = node.insert_output(1, TENSOR)
    assert [value.offset for value in node.outputs] == [0, 1, 2]
    node.erase_output(0)
    assert [value.offset for value in node.outputs] == [0, 1]
    assert node.outputs[0] is middle


def test_blocks_are_cleared_with_their_node(graph: Graph) -> None:
    x = graph.inputs[0]
    loop = graph.append("prim::Loop", [x, x], 0)
    body = loop.add_block()
    counter = body.add_input(INT)
    inner = body.append(graph.create("aten::neg", [counter], [INT]))
    body.register_output(inner.output)
    before = len(x.uses)
    loop.destroy()
    assert len(x.uses) == before - 2


@pytest.mark.parametrize(
    ("value", "kind"),
    [(1, "i"), (True, "i"), (0.5, "f"), (2j, "c"), ("a", "s"), ([1, 2], "is"), (["a"], "ss"), ([1, "a"], "ival"),
     (INT, "ty"), ([INT, BOOL], "tys"), ((), "ival"), (None, "ival")],
)  # fmt: skip
def test_attribute_kinds(value: object, kind: str) -> None:
    assert attribute_kind(value) == kind


def test_inlined_from_is_data() -> None:
    assert InlinedFrom("f", None) == ("f", None, "")
