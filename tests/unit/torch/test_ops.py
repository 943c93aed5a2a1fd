"""`torch.ops`: what its operators say of arguments that they do not take, and what is kept of what was asked for."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch
from engine.lang.errors import ArgumentError

ATEN: Any = torch.ops.aten
X = torch.ones(2)


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda: ATEN.type_as(X), "aten::type_as() is missing value for argument 'other'. Declaration: "),
        (lambda: ATEN.relu.default(X, X), "aten::relu() expected at most 1 argument(s) but received 2 argument(s). "),
        (lambda: ATEN.add.Tensor(X, X, of=1), "Unknown keyword argument 'of' for operator 'aten::add'. "),
        (lambda: torch.ops._test.cat(1), "_test::cat() Expected a value of type 'List[Tensor]' for argument 'inputs' "),
    ],
)
def test_one_overload_says_what_it_wants(call: Any, wanted: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        call()
    assert str(caught.value).startswith(wanted)


def test_each_overload_says_what_it_wants() -> None:
    with pytest.raises(ArgumentError) as caught:
        ATEN.relu()
    first, *reasons = [line for line in caught.value.message.split("\n") if line]
    assert first == "Overloaded torch operator invoked from Python failed to match any schema:"
    assert len(reasons) == len(ATEN.relu.overloads())
    assert all(each.startswith("aten::relu() is missing value for argument 'self'") for each in reasons)


def test_what_an_operator_itself_refuses_keeps_its_words() -> None:
    with pytest.raises(RuntimeError, match="shape") as caught:
        ATEN.view(X, [3])
    assert "match any schema" not in str(caught.value)


def test_what_was_asked_for_stays() -> None:
    assert torch.ops.aten is ATEN
    assert ATEN.relu is ATEN.relu
    with pytest.raises(AttributeError, match="Invalid attribute '__self__' for '_OpNamespace' 'aten'"):
        ATEN.__self__  # noqa: B018


def test_a_trace_of_an_operator_does_not_depend_on_names_around() -> None:
    given = torch.ones(3)
    traced = torch.jit.trace(ATEN.relu, [given])
    assert traced(-given).tolist() == [0, 0, 0]


def test_overloads_on_strings_and_lists_are_tried_too() -> None:
    assert torch.ops.aten.add("a", "b") == "ab"
    assert torch.ops.aten.add([1], [2]) == [1, 2]
    assert torch.ops.aten.len("abc") == 3
    with pytest.raises(RuntimeError, match="failed to match any schema"):
        torch.ops.aten.add("a", 1)
