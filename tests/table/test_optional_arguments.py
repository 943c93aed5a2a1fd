"""The law of optional arguments: whatever an argument is set to, whoever runs the operator gives what its body gives.

A kernel, a plan, a differentiable graph and a pass each match operators by name; one that forgets an argument is
right for the usual calls alone.  `make test` has every tenth operator, `make test-all` has them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.executor.autodiff.formulas import differentiable_arguments
from engine.executor.interpreter.interpreter import run_function
from engine.fuser.backend import tiering
from engine.fuser.groups.from_graph import NotFused, has_kernel, lower
from engine.fuser.stubs import stub
from engine.ir.clone import copy_graph
from engine.ir.unit import Function
from engine.lang.errors import EngineError, OperatorError
from engine.lang.types import ListType, TensorType
from engine.passes.pipeline import PASSES, run_pass
from tests.table.gradient_programs import derivatives, listed, program, splitting_everything
from tests.table.gradient_samples import in_float64
from tests.table.optional_arguments import TRUSTING, calls
from tests.table.samples import copied

PAIRS = 6
FEW = 10
"""One in so many operators is tried by default."""


def some(ops: Sequence[Op]) -> list[Any]:
    return [
        pytest.param(op, id=op.qualified_name, marks=() if place % FEW == 0 else pytest.mark.slow)
        for place, op in enumerate(ops)
    ]


def has_options(op: Op) -> bool:
    is_plain = op.functional is None and not (op.nondeterministic or op.schema.is_mutable or op.side_effects)
    types = [r.type.element if isinstance(r.type, ListType) else r.type for r in op.schema.returns]
    gives = bool(types) and all(isinstance(type, TensorType) for type in types)
    return is_plain and gives and op.name.startswith("aten::") and any(a.has_default for a in op.schema.arguments)


PURE = [op for op in table.entries() if has_options(op)]
KERNELS = [
    op for op in table.entries()
    if op.functional is None and has_kernel(op) and len(op.schema.arguments) > 1
    and isinstance(op.schema.returns[0].type, TensorType)  # numbers are asked for in graphs alone
]  # fmt: skip


@pytest.fixture(autouse=True)
def _off(without_machine_code: None) -> None:
    """The definition is what operators give without machine code."""


def flat(value: Any) -> Iterator[Any]:
    for each in value if isinstance(value, (list, tuple)) else ():
        yield from flat(each)
    if not isinstance(value, (list, tuple)):
        yield value


TOLERANCE = {xp.BFLOAT16: 3e-2, xp.FLOAT16: 2e-2, xp.FLOAT32: 1e-4}


def assert_same(found: Any, wanted: Any) -> None:
    """Equal kinds of values; tensors of one dtype, shape and order in memory, with equal elements up to rounding."""
    for mine, theirs in zip(flat(found), flat(wanted), strict=True):
        assert isinstance(mine, Tensor) == isinstance(theirs, Tensor)
        if not isinstance(mine, Tensor):
            assert (type(mine), mine) == (type(theirs), theirs) or mine != mine
            continue
        a, b = mine.array, theirs.array
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.size < 2 or a.strides == b.strides
        near = TOLERANCE.get(a.dtype, 1e-6)
        np.testing.assert_allclose(a, b, rtol=near, atol=near)


def missed(*args: Any) -> Any:
    raise AssertionError("no kernel takes these arguments")


@pytest.mark.parametrize("op", some(KERNELS))
def test_kernels_look_at_every_argument(op: Op) -> None:
    """A kernel is for calls that it understands."""
    for call in calls(op, PAIRS):
        wanted = op.compiled.run(*map(copied, call))
        if op.gives_new:
            function, tensors = program(op, call)
            kernel = _made(lambda f=function, t=tensors, w=wanted: lower(f.graph, t, [*flat(w)]))
            if kernel is not None:
                assert_same(stub.bind(op.name, [kernel], missed)(*tensors), wanted)


def _made(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (NotFused, EngineError):
        return None


@pytest.mark.parametrize("op", some(PURE))
def test_plans_look_at_every_argument(op: Op) -> None:
    for call in calls(op, PAIRS):
        wanted = op.compiled.run(*map(copied, call))
        if wanted == []:
            continue
        function, tensors = program(op, call)
        tiering.set_mode("eager")
        try:
            assert_same(run_function(function, tensors), wanted)
        finally:
            tiering.set_mode("off")


@pytest.mark.parametrize("op", some(PURE))
def test_differentiable_graphs_look_at_every_argument(op: Op) -> None:
    """Also where the operator itself has no gradient, and something that requires one comes along."""
    known = {op.schema.arguments[i].name for i in differentiable_arguments(op)}
    for call in calls(op, 0):
        names = [argument.name for argument in op.schema.arguments]
        args = [in_float64(v, n in known or n in ("self", "input")) for v, n in zip(call, names, strict=True)]
        wanted = [*flat(_result(op, args))]
        if not wanted:
            continue
        function, tensors = program(op, args)
        with splitting_everything():
            found = [*flat(run_function(function, tensors))]
        tiering.set_mode("off")
        assert_same(found, wanted)
        if known and any(isinstance(each, Tensor) and each.requires_grad for each in wanted):
            mine, theirs = (_first_derivatives(results, tensors) for results in (found, wanted))
            assert [each is None for each in mine] == [each is None for each in theirs]
            near = max((TOLERANCE.get(each.array.dtype, 1e-6) for each in _tensors([*wanted, *args])), default=1e-6)
            for a, b in zip(_tensors(mine), _tensors(theirs), strict=True):
                np.testing.assert_allclose(a.array, b.array, rtol=near, atol=near * 1e-3)


def _tensors(values: Sequence[Any]) -> list[Tensor]:
    return [each for each in values if isinstance(each, Tensor)]


def _first_derivatives(results: Sequence[Any], tensors: Sequence[Tensor]) -> list[Any]:
    """The gradients by the tensors; none where these results have no derivative."""
    try:
        return derivatives(listed(results), tensors)[0]
    except OperatorError:
        return []


def _result(op: Op, args: list[Any]) -> Any:
    try:
        return op.run(*args)
    except EngineError:  # not in doubles
        return []


@pytest.mark.parametrize("op", some(PURE))
def test_passes_look_at_every_argument(op: Op) -> None:
    for call in calls(op, 0):
        wanted = op.compiled.run(*map(copied, call))
        if wanted == []:
            continue
        function, tensors = program(op, call)
        for name in PASSES.keys() - TRUSTING:
            graph = copy_graph(function.graph)
            if run_pass(name, graph):
                assert_same(run_function(Function("f", _graph=graph), tensors), wanted)
