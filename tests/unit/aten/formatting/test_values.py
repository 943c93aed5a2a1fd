"""Values as text, and what they hash to."""

from __future__ import annotations

from typing import Any

import pytest

from engine.aten.formatting import hashing
from engine.aten.formatting import values as text
from engine.aten.values.arithmetic import FLOAT_FUNCTIONS, div
from engine.lang.errors import OperatorError
from engine.lang.scalars import device


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1.0, "1."), (-0.0, "0."), (1e16, "10000000000000000."), (1e19, "1e+19"), (0.1, "0.10000000000000001"),
        (-(2.0**63), "-9223372036854775808."), (2.0**63, "9.2233720368547758e+18"), (float("nan"), "nan"),
        (-float("nan"), "-nan"), (div(0.0, 0.0), "-nan"), (FLOAT_FUNCTIONS["log"](-1.0), "nan"),
        (5e-324, "4.9406564584124654e-324"), (True, "True"), (None, "None"), (1 + 2j, "1.+2.j"),
        (1.5 - 2.5j, "1.5-2.5j"), (complex(0, -1e20), "0.-1e+20j"), (["a"], "[a]"), ((1,), "(1,)"), ((), "()"),
        ({"a": [1.0]}, "{a: [1.]}"), (device("cuda", 1), "cuda:1"), ([(1, 2.5), (3, 4.0)], "[(1, 2.5), (3, 4.)]"),
    ],
)  # fmt: skip
def test_text_of_values(value: Any, written: str) -> None:
    assert text.to_text(value) == written


@pytest.mark.parametrize(
    ("pattern", "values", "written"),
    [
        ("{} {}", (1, 2), "1 2"), ("{}", (1, 2), "1"), ("{{}}", (1,), "{1}"), ("{0}", (1,), "{0}"), ("{}{", (1,), "1{"),
        ("", (1,), ""),
    ],
)  # fmt: skip
def test_format(pattern: str, values: tuple[Any, ...], written: str) -> None:
    assert text.format_text(pattern, *values) == written


def test_format_wants_enough_values() -> None:
    with pytest.raises(OperatorError, match=r"Too few arguments for format string: {} {}"):
        text.format_text("{} {}", 1)


@pytest.mark.parametrize(
    ("pattern", "values", "written"),
    [
        ("%d", 1.9, "1"), ("%d", -7.9, "-7"), ("%d", 1e30, "-2147483648"), ("%s", 1.5, "1.5"), ("%f", 1, "1.000000"),
        ("%f", 1e20, "100000002004087734272.000000"), ("%e", 1.5, "1.500000e+00"), ("%E", 12345.678, "1.234568E+04"),
        ("%c", 65, "A"), ("%c", "a", "a"), ("%%", (), "%"), ("%d%%", 5, "5%"), ("%f %s", (1.5, 2.5), "1.500000 2.5"),
        ("%s%d", ("é", 1), "é1"), ("%s", [1, 2], "[1, 2]"),
    ],
)  # fmt: skip
def test_percent(pattern: str, values: Any, written: str) -> None:
    assert text.percent_format(pattern, values) == written


@pytest.mark.parametrize(
    ("pattern", "values", "message"),
    [
        ("%x", 255, "The specifier %x is not supported in TorchScript format strings"),
        ("%d", "x", "%d requires a number for formatting, but got String"),
        ("%d", [1], "%d requires a number for formatting, but got GenericList"),
        ("%c", "ab", "%c requires an int or char for formatting, but got String"),
        ("%s %s", 1, "Too few arguments for format string"),
        ("%s", (1, 2), "Too many arguments for format string"),
        ("abc%", 1, "Incomplete format specifier"),
    ],
)
def test_percent_refuses(pattern: str, values: Any, message: str) -> None:
    with pytest.raises(OperatorError) as caught:
        text.percent_format(pattern, values)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1), (None, 0), (2.5, -9080642332174582316), ("abc", 3663726644998027833), ("", 6142509188972423790),
        ("abcdefgh", 8664279048047335611), ("abcdefghijk", 3672398144843267301), ("é", -2654802552671189131),
        ((1, 2), 175247769363), (("a", 1.5), -1387880365148350899), (0.0, 0), (device("cpu"), 255),
        (device("cuda", 1), 65537), (device("meta", 0), 917504), (device("privateuseone", 1), 1310721),
    ],
)  # fmt: skip
def test_hash(value: Any, number: int) -> None:
    assert hashing.hash_value(value) == number


def test_lists_have_no_hash() -> None:
    with pytest.raises(OperatorError, match=r"unhashable type: 'List\[int\]'"):
        hashing.hash_value([1])
