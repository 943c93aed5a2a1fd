"""Laws that hold for every entry of the operator table."""

from __future__ import annotations

import ast
import itertools
from typing import Any

import numpy as np
import pytest

import engine.torch  # noqa: F401  (registers what compiles operators that are written in TorchScript)
from engine.aten.autograd.formula import NO_FORMULA
from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.lang.types import ListType, TensorType
from tests.table.samples import arguments_for, copied, tensors_in

ENTRIES = table.entries()


def by_name(op: Op) -> str:
    return op.qualified_name


def is_tensor_view(op: Op) -> bool:
    """Does the operator return a tensor, or tensors, that may show an argument's memory?"""
    returns = op.schema.returns
    if len(returns) != 1 or returns[0].alias is None or op.schema.is_mutable:
        return False
    type = returns[0].type
    return isinstance(type, TensorType) or (isinstance(type, ListType) and isinstance(type.element, TensorType))


VIEWS = [e for e in ENTRIES if is_tensor_view(e) and isinstance(e.schema.arguments[0].type, TensorType)]
UNTRIED = {"aten::cuda", "prim::grad"}
"""They need a device, or show no memory of their argument."""

INPLACE = [e for e in ENTRIES if e.functional is not None and e.name.endswith("_") and e.schema.arguments[0].is_write]
SAMPLED = {e.functional for e in INPLACE}
OUT = [e for e in ENTRIES if e.functional in SAMPLED and e.schema.arguments[-1].name == "out"]


@pytest.mark.parametrize("op", ENTRIES, ids=by_name)
def test_the_schema_prints_back(op: Op) -> None:
    assert str(op.schema) == op.text


@pytest.mark.parametrize("op", ENTRIES, ids=by_name)
def test_the_entry_compiles(op: Op) -> None:
    assert callable(op.run)


def test_no_two_entries_share_a_name() -> None:
    names = [e.qualified_name for e in ENTRIES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("op", [e for e in ENTRIES if e.gradient], ids=by_name)
def test_gradient_formulas_speak_of_arguments_that_there_are(op: Op) -> None:
    arguments = {a.name for a in op.schema.arguments}
    results = {r.name for r in op.schema.returns if r.name}
    assert set(op.gradient) <= arguments
    for formula in {*op.gradient.values()} - NO_FORMULA:
        assert _free_names(formula) <= arguments | results | {"grad", "grads", "result", *_result_names(op)}


def _free_names(formula: str) -> set[str]:
    """The names that a formula reads: not the functions it calls, nor what its comprehensions bind."""
    nodes = list(ast.walk(ast.parse(formula)))
    called = {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return {n.id for n in nodes if isinstance(n, ast.Name)} - called - bound


def _result_names(op: Op) -> set[str]:
    return {f"result{i}" for i in range(len(op.schema.returns))}


@pytest.mark.parametrize("op", [e for e in VIEWS if e.qualified_name not in UNTRIED], ids=by_name)
def test_what_is_marked_as_alias_shares_memory(op: Op) -> None:
    arguments = arguments_for(op)
    result = op.run(*arguments)
    for part in result if isinstance(result, list) else [result]:
        assert np.shares_memory(part.array, arguments[0].array)
        assert part.memory == arguments[0].memory


@pytest.mark.parametrize("op", [e.functional for e in INPLACE], ids=by_name)
def test_what_is_not_marked_as_alias_has_memory_of_its_own(op: Op) -> None:
    arguments = arguments_for(op)
    result = op.run(*arguments)
    for argument in arguments:
        if isinstance(argument, Tensor):
            assert not np.shares_memory(result.array, argument.array)


def shared_by(op: Op) -> bool | None:
    """True if a result shares memory with an argument; None if the operator takes no arguments that are made for it."""
    try:
        arguments = arguments_for(op)
        result = op.run(*arguments)
    except Exception:
        return None
    pairs = itertools.product(tensors_in(arguments), tensors_in(result))
    return any(np.shares_memory(given.array, made.array) for given, made in pairs)


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_operators_that_hand_on_what_they_take_say_so() -> None:
    """Plans rely on it: what runs in a kernel, or is computed once for two, gives new memory."""
    pure = [e for e in ENTRIES if not e.schema.is_mutable and not e.side_effects]
    tried = [e for e in pure if e.name.startswith(("aten::", "quantized::"))]
    shares = {op: found for op in tried if (found := shared_by(op)) is not None}
    assert [op for op, found in shares.items() if found and op.gives_new] == []
    assert [op for op, found in shares.items() if not found and op.hands_on] == []
    assert len(shares) > 900


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize("op", INPLACE, ids=by_name)
def test_in_place_equals_functional(op: Op) -> None:
    assert op.functional is not None
    arguments = arguments_for(op.functional)
    expected = op.functional.run(*map(copied, arguments))
    version = arguments[0]._version
    result = op.run(*arguments)
    assert result is arguments[0]
    np.testing.assert_array_equal(result.array, expected.array.astype(result.array.dtype))
    assert result._version == version + 1


@pytest.mark.usefixtures("without_machine_code")
@pytest.mark.parametrize("op", OUT, ids=by_name)
def test_out_equals_functional(op: Op) -> None:
    assert op.functional is not None
    arguments = arguments_for(op.functional)
    expected = op.functional.run(*map(copied, arguments))
    target = Tensor(np.zeros_like(expected.array))
    result = op.run(*arguments, target)
    assert result is target
    np.testing.assert_array_equal(result.array, expected.array)


@pytest.mark.parametrize("op", [e for e in ENTRIES if e.scalar is not None], ids=by_name)
def test_half_types_are_computed_in_float32_and_rounded_once(op: Op) -> None:
    arguments = [_as_half(a) for a in arguments_for(op)]
    wide = [_widened(a) for a in arguments]
    halves = op.run(*arguments)
    exact = op.run(*wide)
    if halves.array.dtype == np.float16:
        np.testing.assert_array_equal(halves.array, exact.array.astype(np.float16))
    else:
        np.testing.assert_array_equal(halves.array, exact.array)


def _as_half(value: Any) -> Any:
    return Tensor(value.array.astype(np.float16)) if isinstance(value, Tensor) else value


def _widened(value: Any) -> Any:
    return Tensor(value.array.astype(np.float32)) if isinstance(value, Tensor) else value
