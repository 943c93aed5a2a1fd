"""Values as text."""

from typing import Any

import numpy as np
import pytest

from engine.aten.values.tensor import from_numpy
from engine.lang.types import INT, STR, TupleType
from tsrepl.session.values import SUMMARY, described, summary, tensor_facts, value_text

LOOP: list[Any] = [1]
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "3"), (1.5, "1.5"), ("a\n", "'a\\n'"), (None, "None"), ([1, "a"], "[1, 'a']"), ((1,), "(1,)"), ((), "()"),
     ({"k": [1]}, "{'k': [1]}")],
)  # fmt: skip
def test_plain_values_are_as_in_python(value: object, text: str) -> None:
    assert value_text(value) == text
    assert summary(value) == text


def test_a_list_that_holds_itself_ends() -> None:
    assert "…" in value_text(LOOP)
    assert "…" in summary(LOOP)


def test_long_lists_are_counted() -> None:
    assert value_text(list(range(5000))).endswith("999, … 4000 more]")
    assert summary(list(range(9))) == "[0, 1, 2, 3, … 5 more]"


def test_a_summary_is_short() -> None:
    assert len(summary("x" * 1000)) == SUMMARY


def test_tensors_tell_dtype_shape_and_gradient() -> None:
    tensor = from_numpy(np.ones((2, 3), dtype=np.float32))
    assert tensor_facts(tensor) == "float32 (2, 3)"
    assert summary(tensor) == "float32 (2, 3)  1, 1, 1 …"
    assert summary([tensor]) == "[float32 (2, 3)]"
    tensor.requires_grad = True
    assert tensor_facts(tensor) == "float32 (2, 3), requires grad"


def test_named_tuples_show_their_fields() -> None:
    assert value_text((1, "z"), TupleType((INT, STR), "__torch__.Pair", ("a", "b"))) == "Pair(a=1, b='z')"


def test_large_tensors_are_described_by_what_their_elements_are_like() -> None:
    numbers = np.array([1.0, 2.0, 2.0, 4.0, np.nan, np.inf], np.float32)
    assert described(from_numpy(numbers)) == "float32 (6,)  ▅▁█▁▁▁▁▅ 1 … 2.25 … 4, 1 NaN, 1 inf"
    assert described(from_numpy(np.array([1.0, 2.0]))) == "float64 (2,)  1, 2"
    assert described(from_numpy(np.array([True, False, True, True]))) == "bool (4,)  3 of 4 true"
    assert described(from_numpy(np.array([5, 5, 5, 5]))) == "int64 (4,)  5 … 5 … 5"
    assert described(3) == "3"
