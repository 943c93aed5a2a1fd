"""The law of compiled gradients: a program's use of any operator with a gradient lands in a differentiable graph, and
its results, gradients and gradients of gradients are those that the eager tape gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import BFLOAT16, FLOAT32, FLOAT64, FLOATING, NumpyDtype
from engine.executor.autodiff.formulas import differentiable_arguments, formula_graph
from engine.executor.interpreter.interpreter import run_function
from engine.executor.plans import differentiation, lowered
from engine.frontend.compilation.compile import compile_source
from engine.fuser.backend import tiering
from tests.table import test_gradients
from tests.table.gradient_programs import check, splitting_everything
from tests.table.kernel_samples import OPERATORS, special_arguments
from tests.table.test_gradients import by_name

ENTRIES = test_gradients.ENTRIES

POINTWISE = [op for op in ENTRIES if op in OPERATORS]


def dtypes(*first: NumpyDtype) -> list[Any]:
    """These and, among slow tests, all other floating dtypes."""
    others = sorted(FLOATING.difference(first), key=str)
    return [*first, *(pytest.param(dtype, marks=pytest.mark.slow) for dtype in others)]


@pytest.fixture(autouse=True)
def _splitting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every operator is a group of its own, whose halves run without kernels."""
    monkeypatch.setitem(lowered.SETTINGS.compilers, "cpu", None)
    with splitting_everything():
        yield


@pytest.mark.parametrize("dtype", dtypes(FLOAT64, BFLOAT16), ids=str)
@pytest.mark.parametrize("op", ENTRIES, ids=by_name)
def test_gradients_of_programs_are_those_of_the_tape(op: Op, dtype: NumpyDtype) -> None:
    check(op, dtype=dtype)


@pytest.mark.parametrize("dtype", dtypes(FLOAT32), ids=str)
@pytest.mark.parametrize("op", POINTWISE, ids=by_name)
def test_gradients_at_special_values_are_those_of_the_tape(op: Op, dtype: NumpyDtype) -> None:
    check(op, dtype=dtype, arguments=special_arguments(op))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["eager", "background"])
@pytest.mark.parametrize("op", ENTRIES, ids=by_name)
def test_gradients_of_kernels_are_those_of_the_tape(op: Op, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # so that there are kernels
    monkeypatch.setattr(
        differentiation.SETTINGS, "keeps_all", True
    )  # so that groups do not wait until they are worth it
    tiering.set_mode(mode)
    check(op, dtype=BFLOAT16)
    if op in POINTWISE:
        check(op, dtype=FLOAT32, arguments=special_arguments(op))


@pytest.mark.parametrize("op", ENTRIES, ids=by_name)
def test_formulas_are_programs(op: Op) -> None:
    assert all(formula_graph(op, place) is not None for place in differentiable_arguments(op))


def test_gradients_of_complex_numbers_are_left_to_the_tape() -> None:
    z = Tensor(np.array([3 + 4j, 1j])).requires_grad_()
    unit = compile_source("def f(z):\n    return z.abs() * 2.0\n")
    run_function(unit.functions["f"], (z,)).sum().backward()
    assert z.grad is not None
    np.testing.assert_allclose(z.grad.array, [1.2 + 1.6j, 2j])
