"""The laws of operators that are written in TorchScript: what a text says is what the body beside it does, and what
kernels, shapes and programs make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from engine.aten.autograd import gradcheck
from engine.aten.dispatch.compile import composite_function
from engine.aten.dispatch.dtype_support import guard_of
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import entries
from engine.aten.values.tensor import Tensor
from engine.executor.interpreter.interpreter import run_function
from engine.fuser.backend import tiering
from engine.fuser.groups.from_graph import NotFused, has_kernel, lower
from engine.fuser.stubs import stub
from engine.ir.composites import composite_graph
from engine.ir.verify import verify
from engine.lang.errors import EngineError
from tests.table.gradient_programs import check, program, splitting_everything
from tests.table.gradient_samples import in_float64
from tests.table.optional_arguments import every_call
from tests.table.samples import mapped, tensors_in

COMPOSED = [op for op in entries() if op.functional is None and op.composite is not None]
BESIDE = [op for op in COMPOSED if not op.is_composed]
"""Those that have another body as well."""
DTYPES = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int64, np.bool_)


@pytest.fixture(autouse=True)
def _without_kernels() -> Iterator[None]:
    before = tiering.mode()
    tiering.set_mode("off")
    yield
    tiering.set_mode(before)


def name_of(op: Op) -> str:
    return op.qualified_name


def text(op: Op) -> Callable[..., Any]:
    """The operator by its text, with what its row refuses."""
    return guard_of(op)(lambda *args: run_function(composite_function(op), args))


def calls(op: Op, dtype: Any) -> Iterator[list[Any]]:
    """Calls with the dtype for floats, in order, turned round and among others, with NaN, and without elements."""
    for call in every_call(op):
        call = [mapped(each, lambda a: _as(a, dtype) if a.dtype.kind in "fV" else a) for each in call]
        yield call
        yield [mapped(each, lambda a: np.asfortranarray(a)) for each in call]
        yield [mapped(each, lambda a: np.repeat(a, 2, -1)[..., ::2] if a.ndim else a) for each in call]
        yield [mapped(each, _with_special) for each in call]
    yield [mapped(each, lambda a: a[:0] if a.ndim else a) for each in call]
    yield [mapped(each, lambda a: a.reshape(-1)[0] if a.size else a) for each in call]


def _as(array: Any, dtype: Any) -> Any:
    return (array * 8).astype(dtype) if dtype is np.int64 else array.astype(dtype)


def _with_special(array: Any) -> Any:
    changed = array.copy()
    if changed.dtype.kind in "fV" and changed.size > 3:
        changed.reshape(-1)[[0, 2]] = np.nan, -np.inf
    return changed


def outcome(run: Callable[..., Any], call: list[Any]) -> Any:
    """The results, or None where there is an error."""
    try:
        with np.errstate(all="ignore"):
            return [*tensors_in(run(*call))]
    except (EngineError, ArithmeticError):
        return None


def agree(found: list[Tensor], wanted: list[Tensor]) -> None:
    assert [(each.dtype, each.shape) for each in found] == [(each.dtype, each.shape) for each in wanted]
    for a, b in zip(found, wanted, strict=True):
        units = 1 if b.array.dtype.itemsize == 2 else 16  # half types are computed in float32, and rounded once
        eps = units * float(ml_dtypes.finfo(b.array.dtype).eps) if b.array.dtype.kind in "fV" else 0.0
        a, b = a.array.astype(np.float64), b.array.astype(np.float64)
        size = np.abs(b[np.isfinite(b)]).max(initial=1.0)  # terms of sums may cancel
        np.testing.assert_allclose(a, b, eps, eps * size)


@pytest.mark.parametrize("op", COMPOSED, ids=name_of)
def test_the_text_compiles_to_a_valid_graph(op: Op) -> None:
    graph = composite_graph(op)
    assert graph is not None
    verify(graph)
    assert all(node.kind not in ("prim::CallFunction", "prim::CallMethod") for node in graph.all_nodes())


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("op", BESIDE, ids=name_of)
def test_the_text_says_what_the_body_beside_it_does(op: Op, dtype: Any) -> None:
    done = 0
    for call in calls(op, dtype):
        wanted, found = outcome(op.compiled.run, call), outcome(text(op), call)
        assert (found is None) == (wanted is None), (call, wanted, found)
        if wanted is not None and found is not None:
            agree(found, wanted)
            done += 1
    assert done or dtype in (np.int64, np.bool_)


@pytest.mark.parametrize("op", [op for op in COMPOSED if has_kernel(op)], ids=name_of)
def test_kernels_give_what_the_operator_gives(op: Op) -> None:
    made = 0
    for call in every_call(op):
        function, tensors = program(op, call)
        wanted = outcome(op.compiled.run, call)
        try:
            run = stub.bind(op.name, [lower(function.graph, tensors, wanted)], lambda *_: None)
        except (NotFused, EngineError):
            continue
        assert wanted is not None, f"a kernel of what is refused: {call}"
        for other in (call, [mapped(each, _with_special) for each in call]):
            found, wanted = run(*tensors_in(other)), outcome(op.compiled.run, other)
            assert found is None or wanted is not None, f"a result of what is refused: {other}"
            if found is not None and wanted is not None:
                agree([*tensors_in(found)], wanted)
                made += 1
    assert made


FLAT = "aten::_angle_backward"
"""What does not depend on its first argument, where that is real."""
WITHOUT_FORMULAS = [op for op in COMPOSED if not (op.gradient or op.recorded_as) and op.qualified_name != FLAT]


@pytest.mark.parametrize("op", WITHOUT_FORMULAS, ids=name_of)
def test_gradients_come_from_the_text(op: Op) -> None:
    """By the first tensor of floats: the tape's equal finite differences, and those of programs are the tape's."""
    call = next(each for each in every_call(op) if outcome(op.compiled.run, each) is not None)
    place = next(i for i, each in enumerate(call) if is_differentiable(each))
    given = [in_float64(each, i == place) for i, each in enumerate(call)]

    def function(*parts: Tensor) -> tuple[Tensor, ...]:
        first = [*parts] if isinstance(call[place], list) else parts[0]
        found = tensors_in(op.run(*given[:place], first, *given[place + 1 :]))
        return tuple([each for each in found if each.requires_grad])

    assert gradcheck(function, [*tensors_in(given[place])])
    graph = composite_graph(op)
    assert graph is not None
    if any(node.kind == "aten::Bool" for node in graph.all_nodes()):  # where elements decide, the tape records
        return
    with splitting_everything():
        check(op, arguments=call, by=[op.schema.arguments[place].name])


def is_differentiable(value: Any) -> bool:
    return any(each.array.dtype.kind in "fV" for each in tensors_in(value))
