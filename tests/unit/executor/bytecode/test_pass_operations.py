"""Graphs give the same before and after the passes whose nodes only the executor knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.aten.values.tensor import Tensor, from_numpy, tensor
from engine.executor.bytecode.code import Code
from engine.executor.interpreter.interpreter import InterpreterState, run_function
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.ir.unit import Function
from engine.passes.pipeline import run_pass, verifier

RANDOM = np.random.default_rng(7)


def run(graph: Graph, *args: Any) -> Any:
    """By the interpreter, and by the plan that the executor makes, which has to give the same."""
    result = InterpreterState(Code(graph, "f")).run(*args)
    again = run_function(Function("f", _graph=copy_graph(graph)), args)
    for a, b in zip(_flat(result), _flat(again), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12)
    return result


def matrix(rows: int, columns: int) -> Tensor:
    return from_numpy(RANDOM.standard_normal((rows, columns)))


def check(text: str, passes: str, kind: str, *args: Any) -> None:
    graph = parse_ir(text)
    before = run(graph, *args)
    for name in passes.split(", "):
        run_pass(name, graph, verifier)
    assert graph.find_node(kind) is not None
    for a, b in zip(_flat(before), _flat(run(graph, *args)), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12)


def _flat(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)):
        return [part for each in result for part in _flat(each)]
    return [result.array if isinstance(result, Tensor) else result]


def parameters(count: int) -> str:
    return ", ".join(f"%w{i} : Tensor" for i in range(count))


SUM = f"""graph({parameters(8)}):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mm(%w0, %w1)
  %b : Tensor = aten::mm(%w2, %w3)
  %t : Tensor = aten::t(%b)
  %c : Tensor = aten::mm(%w4, %w5)
  %d : Tensor = aten::mm(%w6, %w7)
  %s : Tensor = aten::add(%a, %t, %one)
  %u : Tensor = aten::add(%c, %d, %one)
  %v : Tensor = aten::add(%s, %u, %one)
  return (%v)
"""


@pytest.mark.parametrize("inner", [(4, 4, 4, 4), (4, 5, 4, 1)])
def test_sums_of_products(inner: tuple[int, ...]) -> None:
    """With equal shapes, which are joined, and without."""
    a, b, c, d = inner
    shapes = [(3, a), (a, 3), (3, b), (b, 3), (3, c), (c, 3), (3, d), (d, 3)]
    check(SUM, "batch_mm", "prim::MMTreeReduce", *(matrix(*shape) for shape in shapes))


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("last", [2, 3])
def test_products_with_a_common_factor(side: int, last: int) -> None:
    factors = [f"%x, %w{i}" if side == 0 else f"%w{i}, %x" for i in range(8)]
    products = "".join(f"  %m{i} : Tensor = aten::mm({pair})\n" for i, pair in enumerate(factors))
    made = ", ".join(f"%m{i}" for i in range(8))
    last_lines = f"  %l : Tensor[] = prim::ListConstruct({made})\n  return (%l)\n"
    text = f"graph(%x : Tensor, {parameters(8)}):\n{products}{last_lines}"
    others = [matrix(4, 2) if side == 0 else matrix(2, 4) for _ in range(7)]
    others.append(matrix(4, last) if side == 0 else matrix(last, 4))
    common = matrix(5, 4) if side == 0 else matrix(4, 5)
    check(text, "batch_mm", "prim::MMBatchSide", common, *others)


@pytest.mark.parametrize(("name", "kind"), [("cat", "prim::VarConcat"), ("stack", "prim::VarStack")])
def test_lists_that_are_not_made(name: str, kind: str) -> None:
    text = f"""graph(%a : Tensor, %b : Tensor, %d : int):
  %l : Tensor[] = prim::ListConstruct(%a)
  %1 : Tensor[] = aten::append(%l, %b)
  %r : Tensor = aten::{name}(%l, %d)
  return (%r)
"""
    check(text, "remove_list_mutation_and_use_variadic", kind, matrix(2, 3), matrix(2, 3), 1)


def test_shared_concatenations() -> None:
    text = """graph(%a : Tensor, %b : Tensor, %d : int):
  %1 : Tensor = prim::VarConcat(%a, %b, %d)
  %2 : Tensor = prim::VarConcat(%b, %a, %b, %d)
  return (%1, %2)
"""
    check(text, "eliminate_concat_common_inputs", "prim::VarConcat", matrix(2, 3), matrix(2, 3), 0)


@pytest.mark.parametrize("count", [-1, 0, 1, 2, 5])
@pytest.mark.parametrize("limit", [0, 3, 100])
def test_peeled_loops(count: int, limit: int) -> None:
    text = """graph(%n : int, %limit : int):
  %zero : int = prim::Constant[value=0]()
  %c : bool = aten::lt(%zero, %limit)
  %r : int = prim::Loop(%n, %c, %zero)
    block0(%i : int, %y : int):
      %k : int = aten::mul(%i, %i)
      %z : int = aten::add(%y, %k)
      %d : bool = aten::lt(%z, %limit)
      -> (%d, %z)
  return (%r)
"""
    check(text, "peel_loops", "prim::min", count, limit)
    check(text, "peel_loops, peel_loops", "prim::min", count, limit)


def test_choices_and_groups() -> None:
    text = """graph(%x : Tensor, %c : bool):
  %y : Tensor = aten::neg(%x)
  %r : Tensor = prim::If(%c)
    block0():
      -> (%x)
    block1():
      -> (%y)
  %1 : Tensor = aten::exp(%r)
  %2 : Tensor = aten::tanh(%1)
  %3 : Tensor = aten::exp(%2)
  %4 : Tensor = aten::tanh(%3)
  %5 : Tensor = aten::exp(%4)
  %6 : Tensor = aten::tanh(%5)
  %7 : Tensor = aten::neg(%6)
  return (%7)
"""
    for condition in (True, False):
        check(text, "add_if_then_else", "prim::IfThenElse", matrix(2, 2), condition)
        check(text, "create_functional_graphs", "prim::FunctionalGraph", matrix(2, 2), condition)


GRADIENTS = """graph(%x : Tensor):
  %z : Tensor = prim::AutogradZero()
  %d : Tensor = prim::GradOf[name="mul"](%z)
    block0():
      %1 : Tensor = aten::mul(%z, %x)
      -> (%1)
  %e : Tensor = prim::GradOf[name="mul"](%x)
    block0():
      %2 : Tensor = aten::mul(%x, %x)
      -> (%2)
  %s : Tensor = prim::AutogradAdd(%d, %e)
  %t : Tensor = prim::AutogradAdd(%s, %x)
  return (%t)
"""


def test_missing_gradients() -> None:
    graph = parse_ir(GRADIENTS)
    run_pass("lower_grad_of", graph, verifier)
    assert _flat(run(graph, tensor([3.0])))[0][0].item() == 12
    run_pass("specialize_autogradzero", graph, verifier)
    assert _flat(run(graph, tensor([3.0])))[0][0].item() == 12


def test_missing_and_missing() -> None:
    graph = parse_ir("""graph(%x : Tensor):
  %z : Tensor = prim::AutogradZero()
  %s : Tensor = prim::AutogradAdd(%z, %z)
  %l : Tensor[] = prim::ListConstruct(%s)
  %b : bool = prim::AutogradAnyNonZero(%l)
  %c : bool = prim::AutogradAnyNonZero(%l, %x)
  return (%b, %c)
""")
    assert run(graph, tensor([1.0])) in ((False, True), [False, True])
