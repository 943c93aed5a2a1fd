"""The law of layouts: rows lay out their results as PyTorch does, whoever runs them.

Calls are compared with `strides.txt`, which `peer/layouts.py` writes; programs with calls, in each mode, before kernels
are there and afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import entries, find
from engine.aten.values.tensor import Tensor
from engine.executor.interpreter.interpreter import run_function
from engine.fuser.backend import tiering
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph, Node
from engine.ir.unit import Function
from engine.lang.errors import EngineError
from engine.lang.schema import Argument
from engine.lang.types import TENSOR, ListType, TensorType
from tests.table import layout_calls
from tests.table.gradient_samples import gradient_arguments_for

SIZES = (2, 3, 4)
WRITTEN = {line.split()[0]: line.split()[1:] for line in layout_calls.RECORDED.read_text(encoding="utf-8").splitlines()}
DIFFERENT = {"aten::log_sigmoid": "contiguous in PyTorch, whatever its operand"}
"""Rows whose results lie otherwise than in PyTorch."""


def results(made: Any) -> Iterator[Tensor]:
    if isinstance(made, (list, tuple)):
        for each in made:
            yield from results(each)
    elif isinstance(made, Tensor):
        yield made


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize("name", WRITTEN)
def test_calls_lay_out_results_as_pytorch_does(name: str) -> None:
    op = find(name)
    assert op is not None
    found = []
    for call, wanted in zip(layout_calls.calls(op), WRITTEN[name], strict=True):
        made = [] if wanted == "-" else [each.array for each in results(op.compiled.run(*call))]
        texts = [layout_calls.layout(a.shape, [step // a.itemsize for step in a.strides]) for a in made]
        found.append(";".join(texts) or "-")
    assert (found == WRITTEN[name]) == (name not in DIFFERENT), found


def _is_tried(op: Op) -> bool:
    follows = op.scalar is not None or op.layout == "operands"
    if op.functional is not None or not follows or op.nondeterministic:
        return False
    try:
        op.compiled.run(*gradient_arguments_for(op))
    except (KeyError, TypeError, EngineError):
        return False
    return [each.type for each in op.schema.returns] == [TENSOR] and any(map(_is_tensor, op.schema.arguments))


def _is_tensor(argument: Argument) -> bool:
    return isinstance(argument.type, TensorType)


ROWS = {op.qualified_name: op for op in entries() if _is_tried(op)}


def layouts(array: Any) -> list[Any]:
    """The numbers, spread over the sizes: in order, turned, channels innermost, with gaps, repeated, of fewer sizes."""
    plain = np.resize(array, SIZES)
    wide = np.resize(array, (4, 6, 4))
    return [
        plain, np.ascontiguousarray(plain.T).T, np.ascontiguousarray(plain.transpose(0, 2, 1)).transpose(0, 2, 1),
        np.ascontiguousarray(wide.transpose(2, 0, 1)).transpose(1, 2, 0)[::2, ::2], np.broadcast_to(plain[:1], SIZES),
        np.broadcast_to(np.ascontiguousarray(plain[0].T).T, SIZES), plain[0], np.ascontiguousarray(plain[:, :1].T).T,
    ]  # fmt: skip


def calls(op: Op) -> Iterator[list[Any]]:
    """Calls of the operator on operands in each pair of layouts; a third operand lies as the first."""
    given = gradient_arguments_for(op)
    places = [i for i, value in enumerate(given) if isinstance(value, Tensor)]
    for ways in product(range(8), repeat=min(len(places), 2)):
        call = [*given]
        for n, place in enumerate(places):
            call[place] = Tensor(layouts(given[place].array)[ways[n % len(ways)]])
        yield call


def called(graph: Graph, op: Op, call: list[Any]) -> Node:
    """A node for the call, whose tensors are inputs of the graph."""
    inputs = [
        graph.add_input(argument.name, TensorType()) if isinstance(value, Tensor) else insert_constant(graph, value)
        for argument, value in zip(op.schema.arguments, call, strict=True)
    ]
    node = graph.append(op.name, inputs, [each.type for each in op.schema.returns])
    node.op = op
    return node


def program(op: Op, call: list[Any]) -> tuple[Function, list[Tensor]]:
    """A program that calls the operator, gives its result, and what pointwise operators make of that and an operand."""
    graph, tensors = Graph(), [value for value in call if isinstance(value, Tensor)]
    node = called(graph, op, call)
    first = graph.inputs[-1]
    joined = graph.append("aten::mul", [first, node.output], [TENSOR]).output
    more = graph.append("aten::eq", [graph.append("aten::neg", [joined], [TENSOR]).output, first], [TENSOR]).output
    graph.register_output(graph.append("prim::ListConstruct", [node.output, joined, more], [ListType(TENSOR)]).output)
    return Function("f", _graph=graph), tensors


def steps(tensor: Tensor) -> tuple[int, ...]:
    """The strides, but for those of dimensions of one element, which say nothing."""
    return tuple(0 if n == 1 else step for n, step in zip(tensor.array.shape, tensor.array.strides, strict=True))


def in_program(op: Op, call: list[Any]) -> list[tuple[int, ...]]:
    function, tensors = program(op, call)
    return [steps(each) for each in run_function(function, tensors)]


def by_calls(op: Op, call: list[Any]) -> list[tuple[int, ...]]:
    """The strides of what the program gives, where each of its operators is called by itself."""
    result = op.compiled.run(*call)
    last = [value for value in call if isinstance(value, Tensor)][-1]
    joined = last * result
    return [*map(steps, (result, joined, (-joined if joined.array.dtype != np.bool_ else joined) == last))]


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize("name", ROWS)
def test_programs_lay_out_results_as_calls_do(name: str) -> None:
    op, tried = ROWS[name], 0
    for call in calls(op):
        try:
            wanted = by_calls(op, call)
        except EngineError:
            continue
        assert in_program(op, call) == wanted, [each.array.strides for each in call if isinstance(each, Tensor)]
        tried += 1
    assert tried


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_kernels_lay_out_results_as_calls_do(name: str, mode: str) -> None:
    """The calls that kernels are made for, and those behind them."""
    op = ROWS[name]
    for call in [*calls(op)][::5]:
        try:
            wanted = by_calls(op, call)
        except EngineError:
            continue
        function, tensors = program(op, call)
        for _ in range(3):
            assert [steps(each) for each in run_function(function, tensors)] == wanted
            tiering.wait()


IMAGES = [name for name, op in ((name, find(name)) for name in WRITTEN) if op and op.layout.startswith("channels last")]


@pytest.mark.parametrize("name", IMAGES)
def test_programs_keep_channels_last(name: str, mode: str) -> None:
    op = find(name)
    assert op is not None
    for call, wanted in zip(layout_calls.calls(op), WRITTEN[name], strict=True):
        if wanted == "-" or any(isinstance(value, list) and isinstance(value[0], Tensor) for value in call):
            continue
        graph, tensors = Graph(), [value for value in call if isinstance(value, Tensor)]
        node = called(graph, op, call)
        graph.register_output(graph.append("aten::relu", [node.outputs[0]], [TENSOR]).output)
        function = Function("f", _graph=graph)
        for _ in range(3):
            found = run_function(function, tensors).array
            shown = layout_calls.layout(found.shape, [step // found.itemsize for step in found.strides])
            assert shown == wanted.split(";")[0]
            tiering.wait()
