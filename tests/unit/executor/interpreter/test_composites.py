"""Operators written in TorchScript."""

from engine.aten.dispatch.compile import compile_op
from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import tensor
from engine.executor.interpreter.composites import compile_composite


def test_a_composite_runs_its_expression() -> None:
    op = Op("aten::twice_plus(Tensor self, Scalar other, *, int times=2) -> Tensor", composite="self * times + other")
    assert compile_composite(op)(tensor([1.0, 2.0]), 0.5, 2).tolist() == [2.5, 4.5]


def test_the_table_finds_the_compiler() -> None:
    op = Op("aten::thrice(int a) -> int", composite="a * 3", compiler=compile_op)
    assert op.run(2) == 6


def test_several_results_come_as_a_tuple() -> None:
    op = Op("aten::both(int a, int b) -> (int, int)", composite="(b, a)")
    assert compile_composite(op)(1, 2) == (2, 1)
