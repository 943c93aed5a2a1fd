"""Nodes and their operators."""

import pytest

from engine.ir.insert import insert_op
from engine.ir.ops import has_side_effects, is_nondeterministic, op_of, schema_of
from engine.ir.parser import parse_ir
from engine.ir.verify import verify

GRAPH = """graph(%x : Tensor, %n : int, %y : float, %l : int[], %t : Tensor[]):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::add(%x, %x, %1)
  %3 : Tensor = aten::add(%x, %n, %1)
  %4 : int = aten::add(%n, %n)
  %5 : Tensor[] = aten::add(%t, %t)
  %6 : int = aten::len(%l)
  return (%2)
"""


def test_overloads_by_types() -> None:
    found = [op_of(node) for node in parse_ir(GRAPH).nodes()]
    assert [op and op.qualified_name for op in found] == [
        None, "aten::add.Tensor", "aten::add.Scalar", "aten::add.int", "aten::add.t", "aten::len.t",
    ]  # fmt: skip


def test_the_operator_is_remembered() -> None:
    node = parse_ir(GRAPH).find_all_nodes("aten::add")[0]
    found = op_of(node)
    assert found is not None
    assert found.qualified_name == "aten::add.Tensor"
    assert node.op is found
    node.replace_input(1, node.graph.inputs[1])
    found = op_of(node)
    assert found is not None
    assert found.qualified_name == "aten::add.Scalar"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (" = prim::Print(%x)", True),
        ("%9 : Tensor = aten::neg(%x)", False),
        ("%9 : int[] = aten::append(%l, %n)", False),
        ("%9 : int[] = prim::ListConstruct(%n)", False),
        ("%9 : Tensor = custom::op(%x)", True),
    ],
)
def test_side_effects(line: str, expected: bool) -> None:
    graph = parse_ir(f"graph(%x : Tensor, %l : int[], %n : int):\n  {line}\n  return (%x)")
    assert has_side_effects(next(graph.nodes())) is expected


def test_random_operators() -> None:
    graph = parse_ir(
        "graph(%x : Tensor):\n  %1 : Tensor = aten::rand_like(%x)\n  %2 : Tensor = aten::neg(%x)\n  return (%x)"
    )
    assert [is_nondeterministic(node) for node in graph.nodes()] == [True, False]


def test_inserting_fills_in_defaults() -> None:
    graph = parse_ir("graph(%x : Tensor, %l : int[]):\n  return (%x)")
    total = insert_op(graph, "aten::add", graph.inputs[0], 2)
    assert str(total.node).endswith("aten::add(%x, %2, %5)")
    assert schema_of(total.node) is not None
    assert str(insert_op(graph, "aten::__getitem__", graph.inputs[1], 0).type) == "int"
    verify(graph)
    with pytest.raises(AssertionError, match="no overload"):
        insert_op(graph, "aten::neg", "text")
