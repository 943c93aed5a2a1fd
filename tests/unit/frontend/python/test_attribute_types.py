"""Types of Python values."""

from __future__ import annotations

import enum
from typing import Any

import pytest

import engine
from engine.frontend.python.attribute_types import NoType, type_of_value
from engine.frontend.python.resolver import PythonUnit


class Color(enum.Enum):
    RED = 1


class Point:
    def __init__(self, x: int) -> None:
        self.x = x


class Unreadable:
    def __init__(self, *parts: int) -> None:
        self.parts = parts


@pytest.mark.parametrize(("value", "expected"), [
    (1, "int"), (True, "bool"), (1.5, "float"), (1j, "complex"), ("a", "str"), (None, "NoneType"),
    (engine.ones(1), "Tensor"), (engine.device("cpu"), "Device"), (engine.float32, "int"), ((1, "a"), "(int, str)"),
    ([1, 2], "int[]"), ([[1.0]], "float[][]"), ([None, 1], "int?[]"), ({"a": [1]}, "Dict(str, int[])"),
    (Color.RED, f"Enum<__torch__.{__name__}.Color>"), (Point(1), f"__torch__.{__name__}.Point"),
])  # fmt: skip
def test_values_have_types(value: Any, expected: str) -> None:
    assert str(type_of_value(value, PythonUnit().type_of)) == expected


@pytest.mark.parametrize(("value", "reason"), [
    ([], "List trace inputs must have elements"), ({}, "Dictionary inputs must have entries"),
    ([1, "a"], "consistent element type. Found int and str"), ({1}, "instead got value of type set"),
    (Unreadable(1), "instead got value of type Unreadable"), (ValueError("x"), "instead got value of type ValueError"),
])  # fmt: skip
def test_values_that_have_none_tell_why(value: Any, reason: str) -> None:
    with pytest.raises(NoType, match=reason):
        type_of_value(value, PythonUnit().type_of)
