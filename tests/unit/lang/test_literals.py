"""What literals are worth."""

import math

import pytest

from engine.lang.literals import LiteralError, const_value, number_value, python_value, string_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("42", 42), ("017", 15), ("00", 0), ("0xff", 255), ("0X1F", 31), ("0x1.8p1", 3.0), ("1.", 1.0),
        (".5", 0.5), ("1e3", 1000.0), ("1.e-3", 0.001), ("1e400", math.inf), ("2j", 2j), ("1e3j", 1000j),
        ("9223372036854775807", 2**63 - 1), ("-5", -5), ("-0x10", -16), ("-1.5", -1.5),
    ],
)  # fmt: skip
def test_numbers(text: str, value: complex) -> None:
    found = number_value(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize("text", ["9223372036854775809", "0x8000000000000001", "1" * 5000, "08", "019"])
def test_numbers_that_are_none(text: str) -> None:
    with pytest.raises(LiteralError):
        number_value(text)


def test_the_least_integer_needs_its_sign() -> None:
    assert const_value("-9223372036854775808") == -(2**63)
    with pytest.raises(LiteralError, match="out of range"):
        const_value("9223372036854775808")


def test_two_signs_make_zero_of_a_float_and_an_error_of_an_integer() -> None:
    assert const_value("--2.5") == 0.0
    assert const_value("--2j") == 0j
    with pytest.raises(LiteralError, match="sign"):
        const_value("--8")


def test_a_negative_imaginary_literal_has_a_positive_real_part() -> None:
    assert math.copysign(1, complex(const_value("-2j")).real) == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a'", "a"), ('"a\'b"', "a'b"), ("''", ""), ("''''''", ""), ("'''a'b'''", "a'b"), (r"'a\'b'", "a'b"),
        (r"'\n\t\\\a\b\f\v'", "\n\t\\\a\b\f\v"), (r"'\101\1234'", "AS4"), ("'a\\\nb'", "a\nb"), ("'é'", "é"),
        (r"'\\n'", "\\n"),
    ],
)  # fmt: skip
def test_strings(text: str, value: str) -> None:
    assert string_value(text) == value


@pytest.mark.parametrize(
    "text", [r"'\x41'", r"'\u0041'", r"'\U00000041'", r"'\0'", r"'\r'", r"'\q'", r"'\400'", r"'\é'"]
)
def test_escapes_that_are_none(text: str) -> None:
    with pytest.raises(LiteralError):
        string_value(text)


def test_python_literals() -> None:
    assert [python_value(text) for text in ("1_000", "0b11", r"'\x41'", r"r'\d'", "2J")] == [1000, 3, "A", "\\d", 2j]
    for wrong in ("017", "1__0", r"'\x4'", "'a"):
        with pytest.raises(LiteralError):
            python_value(wrong)
