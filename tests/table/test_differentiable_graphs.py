"""The law of compiled gradients: a program's use of any operator with a gradient lands in a differentiable graph, and
its results, gradients and gradients of gradients are those that the eager tape gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from engine.aten.autograd import grad
from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.executor.autodiff.formulas import differentiable_arguments, formula_graph
from engine.executor.interpreter.interpreter import run_function
from engine.executor.plans import differentiation, fusion
from engine.executor.plans.executor import executor_of
from engine.frontend.compilation.compile import compile_source
from engine.fuser.backend import tiering
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph
from engine.ir.unit import Function
from engine.lang.errors import OperatorError
from engine.lang.types import ListType, TensorType
from tests.table import test_gradients
from tests.table.gradient_samples import gradient_arguments_for, in_float64
from tests.table.test_gradients import by_name

ENTRIES = [op for op in test_gradients.ENTRIES if op.qualified_name != "aten::to.device"]  # its sample has no device


def is_left_to_the_tape(op: Op) -> bool:
    """True for operators in no group: elements decide about sizes, memory is shared or written, lists come apart."""
    returns = op.schema.returns
    is_view, gives_list = any(r.alias is not None for r in returns), isinstance(returns[0].type, ListType)
    return op.data_dependent or op.side_effects or is_view or gives_list


@pytest.fixture(autouse=True)
def _splitting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every operator is a group of its own, whose halves run without kernels."""
    before = tiering.mode()
    tiering.set_mode("eager")
    monkeypatch.setattr(differentiation.SETTINGS, "threshold", 1)
    monkeypatch.setattr(fusion.SETTINGS, "compiler", None)
    yield
    tiering.set_mode(before)


def program(op: Op, arguments: Sequence[Any]) -> tuple[Function, list[Tensor]]:
    """A program that calls the operator with these arguments, and those of them that are tensors."""
    graph, given, inputs = Graph(), [], []

    def tensor(value: Tensor) -> Any:
        given.append(value)
        return graph.add_input("", TensorType())

    for argument, value in zip(op.schema.arguments, arguments, strict=True):
        if isinstance(value, Tensor):
            inputs.append(tensor(value))
        elif isinstance(value, list) and any(isinstance(each, Tensor) for each in value):
            parts = [tensor(each) if isinstance(each, Tensor) else insert_constant(graph, each) for each in value]
            inputs.append(graph.append("prim::ListConstruct", parts, [argument.type]).output)
        else:
            inputs.append(insert_constant(graph, value, argument.type if value is not None else None))
    node = graph.append(op.name, inputs, [result.type for result in op.schema.returns])
    node.op = op
    outputs = [value for value in node.outputs if isinstance(value.type, TensorType)]
    if len(node.outputs) == 1 and isinstance(node.output.type, ListType):
        results = op.run(*arguments)
        outputs = graph.append("prim::ListUnpack", [node.output], [TensorType()] * len(results)).outputs
    for value in outputs:
        graph.register_output(value)
    return Function("f", _graph=graph), given


def derivatives(results: Sequence[Any], tensors: Sequence[Tensor]) -> list[list[Any]]:
    """Gradients by all tensors that require grad, and the gradients of these."""
    wanted = [t for t in tensors if t.requires_grad]
    outputs = [r for r in results if isinstance(r, Tensor) and r.requires_grad]
    first = grad(outputs, wanted, [weights(r) for r in outputs], create_graph=True, allow_unused=True)
    again = [g for g in first if g is not None and g.requires_grad]
    second: Sequence[Any] = [None] * len(wanted)
    if again:
        try:
            second = grad(again, wanted, [weights(g) for g in again], allow_unused=True)
        except OperatorError:  # there is no formula for the gradient of the gradient
            second = []
    return [[*first], [*second]]


def weights(like: Tensor) -> Tensor:
    """A gradient to begin with, whose elements differ."""
    return Tensor(np.cos(np.arange(like.array.size, dtype=like.array.dtype)).reshape(like.array.shape))


def listed(results: Any) -> list[Any]:
    return [*results] if isinstance(results, (list, tuple)) else [results]


@pytest.mark.parametrize("op", ENTRIES, ids=by_name)
def test_gradients_of_programs_are_those_of_the_tape(op: Op) -> None:
    known = {op.schema.arguments[i].name for i in differentiable_arguments(op)}
    names = [a.name for a in op.schema.arguments]
    args = [in_float64(v, name in known) for v, name in zip(gradient_arguments_for(op), names, strict=True)]
    function, tensors = program(op, args)
    expected = [r for r in listed(op.run(*args)) if isinstance(r, Tensor)]
    found = [r for r in listed(run_function(function, tensors)) if isinstance(r, Tensor)]
    _assert_same(found, expected)
    is_split = any(t.grad_fn is not None and t.grad_fn.name() == "DifferentiableGraphBackward" for t in found)
    is_complex = any(t.array.dtype.kind == "c" for t in (*tensors, *found))
    if not (is_complex or is_left_to_the_tape(op)):
        assert is_split, differentiation_of(function)
    for mine, tapes in zip(derivatives(found, tensors), derivatives(expected, tensors), strict=True):
        _assert_same(mine, tapes)


def differentiation_of(function: Function) -> Any:
    """The reasons why nodes are in no differentiable graph."""
    (plan,) = executor_of(function).cache.plans()
    return plan.reason, plan.differentiation and [*plan.differentiation.refused.values()], tiering.failures()[-1:]


def _assert_same(found: Sequence[Any], expected: Sequence[Any]) -> None:
    for mine, tapes in zip(found, expected, strict=True):
        if isinstance(tapes, Tensor) or isinstance(mine, Tensor):
            zero = np.zeros(())
            a, b = (each.array if each is not None else zero for each in (mine, tapes))
            np.testing.assert_allclose(*np.broadcast_arrays(a, b), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("op", ENTRIES, ids=by_name)
def test_formulas_are_programs(op: Op) -> None:
    assert all(formula_graph(op, place) is not None for place in differentiable_arguments(op))


def test_gradients_of_complex_numbers_are_left_to_the_tape() -> None:
    z = Tensor(np.array([3 + 4j, 1j])).requires_grad_()
    unit = compile_source("def f(z):\n    return z.abs() * 2.0\n")
    run_function(unit.functions["f"], (z,)).sum().backward()
    assert z.grad is not None
    np.testing.assert_allclose(z.grad.array, [1.2 + 1.6j, 2j])
