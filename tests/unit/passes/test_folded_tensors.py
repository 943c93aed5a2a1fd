"""Constant propagation leaves to the run what the run refuses."""

from __future__ import annotations

from engine.ir.parser import parse_ir
from engine.passes.constant_propagation import constant_propagation

TEXT = """graph():
  %n : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %l : Tensor[] = prim::ListConstruct()
  %m : float[] = prim::ListConstruct()
  %a : Tensor = aten::tensor(%l, %n, %n, %no)
  %b : Tensor = aten::tensor(%m, %n, %n, %no)
  return (%a, %b)
"""


def test_a_tensor_of_an_empty_list_of_tensors_is_made_when_it_runs() -> None:
    graph = parse_ir(TEXT)
    assert constant_propagation(graph)
    assert [value.node.kind for value in graph.outputs] == ["aten::tensor", "prim::Constant"]
