"""Overload choice and argument conversion for calls from Python."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.dispatch import table
from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import tensor
from engine.lang import scalars
from engine.lang.errors import ArgumentError

X = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def test_keywords_and_defaults() -> None:
    assert X.sum(dim=0).tolist() == [5.0, 7.0, 9.0]
    assert X.sum(1, keepdim=True).tolist() == [[6.0], [15.0]]
    assert X.sum().item() == 21.0
    assert X.sum(0, dtype=scalars.float64).dtype is scalars.float64


def test_a_number_stands_for_a_list_of_it() -> None:
    assert X.mean(1).tolist() == [2.0, 5.0]


def test_numbers_spell_a_list() -> None:
    assert X.view(3, 2).shape == (3, 2)
    assert X.reshape(-1).shape == (6,)
    assert X.permute(1, 0).shape == (3, 2)


def test_overloads_are_told_apart_by_type() -> None:
    values, places = X.max(1)
    assert (values.tolist(), places.tolist()) == ([3.0, 6.0], [2, 2])
    assert X.max().item() == 6.0
    assert X.max(tensor(2.5)).tolist()[0] == [2.5, 2.5, 3.0]


def test_a_method_binds_the_schema_s_self_wherever_it_stands() -> None:
    assert X.where(X > 3, 0.0).tolist() == [[0.0, 0.0, 0.0], [4.0, 5.0, 6.0]]


def test_the_choice_is_not_remembered_for_other_types() -> None:
    assert call("add", (X, 1), {}).tolist()[0] == [2.0, 3.0, 4.0]
    assert call("add", (X, X), {}).tolist()[0] == [2.0, 4.0, 6.0]
    assert call("cat", ([X, X], 1), {}).shape == (2, 6)


def test_a_refusal_lists_what_would_do() -> None:
    with pytest.raises(ArgumentError) as refusal:
        X.sum("rows")
    assert "sum() received an invalid combination of arguments: (float32[2, 3], 'rows')" in str(refusal.value)
    assert "it takes sum(*, ScalarType? dtype=None) -> Tensor" in str(refusal.value)


def test_unknown_names_are_answered_with_a_near_one() -> None:
    with pytest.raises(AttributeError, match="did you mean 'softmax'"):
        type(X).softmx  # noqa: B018
    with pytest.raises(ArgumentError, match="there is no operator 'softmx'"):
        call("softmx", (X, 0), {})


def test_python_names_the_nearest_method_where_it_shows_the_error() -> None:
    program = "import engine.torch as torch; torch.ones(2).softmx(0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "AttributeError: 'Tensor' object has no attribute 'softmx'. Did you mean: 'softmax'?"
    )


def test_methods_that_are_registered_later_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert X.exp().shape == (2, 3), "the methods are bound by now"
    monkeypatch.setattr(table, "_by_name", dict(table._by_name))
    monkeypatch.setattr(table, "_by_qualified_name", dict(table._by_qualified_name))
    table.op("aten::_test_twice(Tensor self) -> Tensor", kernel=lambda x: x * 2, variants="method")
    assert X._test_twice().tolist() == (X * 2).tolist()


def test_numpy_scalars_convert() -> None:
    assert X.select(np.int64(0), np.int64(1)).tolist() == [4.0, 5.0, 6.0]


def _is_taken(call: str) -> bool:
    try:
        eval(call, {"T": torch.tensor, "torch": torch, "x": torch.ones(2, 3)})
    except TypeError:
        return False
    return True


@pytest.mark.parametrize(
    "call",
    [
        "x.sum(T(0))", "x.sum(T([0]))", "x.sum([T([0])])",
        "x.view(T(6))", "x.view(T([3]), T([2]))", "x.roll(T(1), T(0))",
        "x.select(T(0), T(1))", "x.topk(T([1]))", "x.softmax(T(1))", "torch.cat([x, x], T(0))",
        "x.add(x, alpha=T(2.0))", "torch.dropout(x, T(0.5), False)", "torch.full((2,), T(2.0))", "torch.arange(T(3))",
    ],
)  # fmt: skip
def test_tensors_of_one_number_stand_for_it(call: str) -> None:
    assert _is_taken(call)


@pytest.mark.parametrize(
    "call",
    [
        "x.sum(0, T(True))", "x.sum([T(0.0)])", "x.select(T([0]), 1)", "x.softmax(T(1.0))", "x.unsqueeze(T(True))",
        "torch.cat([x, x], T([0]))", "x.add(x, alpha=T([2.0]))", "x.add(x, alpha=T(2.0, requires_grad=True))",
        "torch.dropout(x, T([0.5]), False)", "torch.full((2,), T([2.0]))", "torch.zeros(T(2.0))",
        "torch.arange(T([3]))", "torch.arange(T(3.0, requires_grad=True))",
    ],
)  # fmt: skip
def test_but_not_those_with_dimensions_gradients_or_another_kind_of_number(call: str) -> None:
    """A flag is no tensor, a dimension no float, and a gradient would be lost."""
    assert not _is_taken(call)
