"""The law of effects: what the body of an operator writes to is what its row says, by alias marks or `also_writes`.

And programs keep such writes, wherever nobody uses the result: in each mode, as in a trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine.torch.jit as nn_jit
import engine.torch.nn as nn
from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor, tensor
from engine.executor.autodiff.specialising import unwritten
from engine.executor.interpreter.interpreter import run_function
from engine.fuser.backend import tiering
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph
from engine.ir.unit import Function
from engine.lang.types import TENSOR, ListType, TensorType
from engine.passes.pipeline import PASSES, run_pass
from tests.table.gradient_programs import splitting_everything
from tests.table.gradient_samples import gradient_arguments_for
from tests.table.optional_arguments import TRUSTING, calls
from tests.table.samples import copied, floats

_NORM = (floats(2, 3, 4), floats(3, seed=1), floats(3, seed=2), floats(3, seed=3), floats(3, seed=4))
_ROWS = (floats(4, 3) * 9, tensor([[0, 1], [3, 0]]), 1.0, 2.0)
_SEEN = (tensor(np.array([1])),) * 2
HIDDEN: dict[str, tuple[Any, ...]] = {
    "aten::batch_norm": (*_NORM, True, 0.5, 1e-5, False),
    "aten::native_batch_norm": (*_NORM, True, 0.5, 1e-5),
    "aten::instance_norm": (*_NORM, True, 0.5, 1e-5, False),
    "aten::_no_grad_embedding_renorm_": _ROWS,
}
"""Calls of operators that write to what their schemas do not mark."""
QUIET: dict[str, tuple[Any, ...]] = {
    "aten::batch_norm": (*_NORM, False, 0.5, 1e-5, False),
    "aten::native_batch_norm": (*_NORM, False, 0.5, 1e-5),
    "aten::instance_norm": (*_NORM, False, 0.5, 1e-5, False),
}
"""Calls of these that write to nothing."""
MORE: dict[str, tuple[Any, ...]] = {
    "aten::embedding_renorm_": _ROWS,
    "aten::fused_moving_avg_obs_fake_quant": (
        floats(2, 3), *_SEEN, floats(1), floats(1), floats(1), tensor(np.array([0], np.int32)), 0.5, 0, 255, 0, False,
        False,
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _off(without_machine_code: None) -> None:
    """Bodies run as they stand."""


def tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    for each in value if isinstance(value, (list, tuple)) else ():
        yield from tensors_in(each)


def written_by(op: Op, args: list[Any]) -> set[str] | None:
    """The arguments whose elements, sizes or dtype are others afterwards; None for a call that is refused."""
    before = [[(t.array.copy(), t.array.shape) for t in tensors_in(value)] for value in args]
    try:
        op.compiled.run(*args)
    except Exception:
        return None
    return {
        argument.name
        for argument, value, then in zip(op.schema.arguments, args, before, strict=True)
        for t, (array, shape) in zip(tensors_in(value), then, strict=True)
        if t.array.shape != shape or t.array.tobytes() != array.tobytes()
    }


def declared(op: Op) -> set[str]:
    """The arguments that the row says are written to; in-place views change sizes alone."""
    marks = [(argument.name, argument.alias) for argument in op.schema.arguments if argument.alias is not None]
    return {name for name, mark in marks if mark.is_write or any(each.is_write for each in mark.elements)} | {
        *op.also_writes
    }


def every_call(op: Op, pairs: int) -> Iterator[list[Any]]:
    for listed in (HIDDEN, QUIET, MORE):
        if op.qualified_name in listed:
            yield [copied(value) for value in listed[op.qualified_name]]
    for source in (op, op.functional):
        try:
            given = [] if source is None else [copied(value) for value in gradient_arguments_for(source)]
        except (KeyError, TypeError):
            continue
        room = [tensor(np.zeros((2, 3), np.float32)) for a in op.schema.arguments[len(given) :] if a.is_write]
        if given and len(given) + len(room) == len(op.schema.arguments):
            yield [*given, *room]
    try:
        yield from calls(op, pairs)
    except (KeyError, TypeError):
        return


ENTRIES = table.entries()
TENTHS = range(10)


def check(ops: list[Op], pairs: int) -> int:
    """The number of operators that were tried; raises AssertionError for one that writes to what it does not say."""
    tried = 0
    for op in ops:
        found = [written for call in every_call(op, pairs) if (written := written_by(op, call)) is not None]
        assert {*()}.union(*found) <= declared(op), op.qualified_name
        tried += bool(found)
    return tried


@pytest.mark.filterwarnings("ignore")
def test_bodies_write_to_what_their_rows_say() -> None:
    assert check(ENTRIES, 0) > 1200


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", TENTHS)
def test_bodies_write_to_what_their_rows_say_for_any_two_arguments(part: int) -> None:
    assert check(ENTRIES[part::10], 40) > 100


def test_all_hidden_writes_are_tried_here() -> None:
    hidden = {op.qualified_name for op in ENTRIES if op.also_writes}
    assert hidden - {"aten::native_batch_norm.out"} == HIDDEN.keys()
    assert all(op.writes_if == "" or op.schema.index_of(op.writes_if) is not None for op in ENTRIES)


@pytest.mark.parametrize("name", HIDDEN)
def test_rows_write_to_all_that_they_say(name: str) -> None:
    op = table.find(name)
    assert op is not None
    assert written_by(op, [copied(value) for value in HIDDEN[name]]) == {*op.also_writes}


@pytest.mark.parametrize("name", HIDDEN)
def test_nothing_of_a_program_is_written_to_while_derivatives_are_made(name: str) -> None:
    op = table.find(name)
    assert op is not None
    given = [copied(value) for value in HIDDEN[name]]
    op.run(*unwritten(op, [*given]))
    for mine, before in zip(given, HIDDEN[name], strict=True):
        assert not isinstance(before, Tensor) or np.array_equal(mine.array, before.array)


@pytest.mark.parametrize("name", QUIET)
def test_rows_write_to_nothing_without_their_flag(name: str) -> None:
    op = table.find(name)
    assert op is not None
    assert written_by(op, [copied(value) for value in QUIET[name]]) == set()


def program(op: Op, call: tuple[Any, ...]) -> tuple[Function, list[Tensor]]:
    """A program that reads what is written, calls the operator, reads again, calls it again with the same arguments,
    reads once more, and gives what it read."""
    graph, tensors, inputs = Graph(), [], []
    for argument, value in zip(op.schema.arguments, call, strict=True):
        if isinstance(value, Tensor):
            tensors.append(copied(value))
            inputs.append(graph.add_input(argument.name, TensorType()))
        else:
            inputs.append(insert_constant(graph, value))
    written = [inputs[op.schema.index_of(name) or 0] for name in op.also_writes]
    read = []
    for again in range(3):
        if again:
            graph.append(op.name, inputs, [each.type for each in op.schema.returns]).op = op
        read += [graph.append("aten::neg", [value], [TENSOR]).output for value in written]
    graph.register_output(graph.append("prim::ListConstruct", read, [ListType(TENSOR)]).output)
    return Function("f", _graph=graph), tensors


def outcome(function: Function, tensors: list[Tensor]) -> list[np.ndarray[Any, Any]]:
    """What the program gives, and its arguments afterwards."""
    given = [copied(value) for value in tensors]
    return [each.array for each in (*run_function(function, given), *given)]


def expected(op: Op, call: tuple[Any, ...]) -> list[np.ndarray[Any, Any]]:
    args, read = [copied(value) for value in call], []
    written = [args[op.schema.index_of(name) or 0] for name in op.also_writes]
    for again in range(3):
        if again:
            op.compiled.run(*args)
        read += [-each.array for each in written]
    return [*read, *(each.array for each in args if isinstance(each, Tensor))]


@pytest.mark.parametrize("mode", ["off", "eager"])
@pytest.mark.parametrize("requires_grad", [False, True], ids=["plain", "recorded"])
@pytest.mark.parametrize("name", HIDDEN)
def test_programs_keep_hidden_writes(name: str, requires_grad: bool, mode: str) -> None:
    op = table.find(name)
    assert op is not None
    function, tensors = program(op, HIDDEN[name])
    tiering.set_mode(mode)
    for _ in range(3):
        given = [copied(value) for value in tensors]
        given[0].requires_grad_(requires_grad and op.writes_if != "")
        found = [each.array for each in (*run_function(function, given), *given)]
        for mine, wanted in zip(found, expected(op, HIDDEN[name]), strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=1e-5)


def followed(op: Op, call: tuple[Any, ...]) -> Function:
    """A program that calls the operator and gives a function of its first result, so that they may be one group."""
    function, _ = program(op, call)
    graph = function.graph
    (node,) = [each for each in graph.nodes() if each.op is op][:1]
    made = graph.append("aten::tanh", [node.outputs[0]], [TENSOR]).output
    graph.register_output(graph.append("aten::mul", [made, made], [TENSOR]).output)
    return function


@pytest.mark.parametrize("mode", ["off", "eager", "background"])
@pytest.mark.parametrize("name", [name for name in HIDDEN if "embedding" not in name])
def test_calls_write_once_whoever_runs_them(name: str, mode: str) -> None:
    """Among them the calls that kernels and derivatives are made for, and those behind them."""
    op = table.find(name)
    assert op is not None
    function = followed(op, HIDDEN[name])
    with splitting_everything(mode):
        for rows in (2, 2, 3, 2, 3, 1, 2):
            call = (floats(rows, 3, 4, seed=rows), *HIDDEN[name][1:])
            given = [copied(value) for value in call if isinstance(value, Tensor)]
            given[0].requires_grad_()
            results, last = run_function(function, given)
            last.sum().backward()
            tiering.wait()
            found = [each.array for each in (*results, *given)]
            for mine, wanted in zip(found, expected(op, call), strict=True):
                np.testing.assert_allclose(mine, wanted, rtol=1e-5)


@pytest.mark.parametrize("name", HIDDEN)
def test_passes_keep_hidden_writes(name: str) -> None:
    op = table.find(name)
    assert op is not None
    for each in PASSES.keys() - TRUSTING:
        function, tensors = program(op, HIDDEN[name])
        run_pass(each, function.graph)
        for mine, wanted in zip(outcome(function, tensors), expected(op, HIDDEN[name]), strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=1e-5, err_msg=each)


class Norm(nn.Module):
    """A layer whose row writes in training alone, and one whose row writes always."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.rows = nn.Embedding(4, 3, max_norm=0.5)

    def forward(self, x: Tensor, i: Tensor) -> Tensor:
        return self.norm(x) + self.rows(i)


def test_frozen_modules_keep_what_is_written_to_and_nothing_else() -> None:
    module = Norm().eval()
    x, places = floats(2, 3), tensor([1, 2])
    frozen = nn_jit.freeze(nn_jit.script(module))
    kept = {name for name, _ in frozen.named_parameters()} | {name for name, _ in frozen.named_buffers()}
    assert kept == {"rows.weight"}
    for _ in range(2):
        np.testing.assert_allclose(frozen(x, places).array, module(x, places).array, rtol=1e-5)
