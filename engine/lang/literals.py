"""The values of literals.

In: the text of a number or string token.  Out: the Python value, decoded as TorchScript decodes it:
a leading 0 makes an integer octal, strings know few escapes; `python_value` decodes as Python does.  A
`LiteralError` has the reason why a literal has none.
"""

from __future__ import annotations

import ast
import re
import warnings
from contextlib import suppress
from typing import Final, NamedTuple

from engine.lang.deferred import pattern_of

INT_LIMIT = 2**63
_OUT_OF_RANGE = "Integral constant out of range (must fit in a signed 64 bit integer)"
_SIMPLE_ESCAPES = {
    "\\": "\\", "'": "'", '"': '"', "\n": "\n",
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "t": "\t", "v": "\v",
}  # fmt: skip
_UNSUPPORTED_ESCAPES = {"x": "hex", "u": "unicode", "U": "unicode"}
_ESCAPE = pattern_of(r"\\([0-7]{3}|.)", re.DOTALL)
_ARCHIVED_ESCAPE = pattern_of(r"\\([0-7]{3}|[.-0][)-7]{2}|.)", re.DOTALL)
"""Also PyTorch's octal digits of a signed byte, which may be below zero: `\\0)+` is the byte 0xC3."""


_BYTES = pattern_of("[\udc80-\udcff]+")
"""Bytes beyond ASCII, of escapes."""


_ROW_NUMBER = r"-?(?:[0-9]++\.[0-9]*+(?:[eE][+-]?[0-9]++)?|[0-9]++[eE][+-]?[0-9]++|0|[1-9][0-9]{0,17}+)"
_ROW_STRING = r"""'(?!'')[^'\\\n]*+(?:\\[^\n][^'\\\n]*+)*+'|"(?!"")[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+\""""
ROW_ITEM: Final = rf"(?:(?:{_ROW_NUMBER}|True|False|CONSTANTS\.c[0-9]{{1,9}}+)(?![\w.])|{_ROW_STRING})"
"""The literals that rows have: numbers of certainly less than 64 bits, strings in one line, constants of the table."""
_ITEM = pattern_of(ROW_ITEM)


class TableName(NamedTuple):
    """The name of a constant of an archive's table."""

    name: str


class LiteralError(ValueError):
    """The token is no value of the language; the message says why."""


def number_value(text: str) -> int | float | complex:
    """The value of a number token, or of one with its sign.

    Raises LiteralError when an integer needs more than 64 bits; 2**63 passes, since `-` may precede it.
    """
    if text[0] == "-" and text[-1] != "j":
        return -number_value(text[1:])
    if text[-1] == "j":
        return complex(0.0, float(text[:-1]))
    if text[:2] in ("0x", "0X"):
        return _hexadecimal(text)
    if not text.isdigit():
        return float(text)
    if text[0] == "0" and any(digit > "7" for digit in text):
        raise LiteralError(f"invalid octal number '{text}'")
    return _in_range(int(text, 8 if text[0] == "0" else 10) if len(text) < 64 else INT_LIMIT + 1)


def const_value(text: str) -> int | float | complex:
    """The value of a literal with the signs before it.

    Raises LiteralError when it does not fit in 64 bits.  Signs belong to the literal in TorchScript's grammar,
    and PyTorch reads no number after two of them: a float is 0 then, an integer an error.
    """
    if text[:2] == "--":
        value = number_value(text.lstrip("-"))
        if isinstance(value, int):
            raise LiteralError("the sign of a literal cannot be changed twice")
        return type(value)(0)
    value = number_value(text)
    if value == INT_LIMIT and isinstance(value, int):
        raise LiteralError(_OUT_OF_RANGE)
    return value


RowValue = int | float | str | TableName


def row_values(text: str, *, archived: bool) -> list[RowValue]:
    """The values of a row's literals; keys and values of a dict take turns.  Raises LiteralError for a wrong string."""
    items = _ITEM.findall(text)
    with suppress(ValueError):
        return [*map(int, items)]
    return [_row_value(item, archived) for item in items]


def _row_value(item: str, archived: bool) -> RowValue:
    first = item[0]
    if first in "\"'":
        return string_value(item, archived=archived)
    if first in "TF":
        return item == "True"
    if first == "C":
        return TableName(item.partition(".")[2])
    return int(item) if item.removeprefix("-").isdigit() else float(item)


def string_value(text: str, *, archived: bool = False) -> str:
    """The value of a string token, quotes included in `text`; `archived` adds the escapes of archives.

    Octal escapes are bytes of UTF-8; those that are none become surrogates.  Raises LiteralError for a wrong one.
    """
    quotes = 3 if len(text) >= 6 and text[:3] == text[0] * 3 else 1
    inside = text[quotes:-quotes]
    if "\\" not in inside:
        return inside
    value = _ARCHIVED_ESCAPE.sub(_unescape_archived, inside) if archived else _ESCAPE.sub(_unescape, inside)
    return _BYTES.sub(
        lambda found: found[0].encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape"), value
    )


def string_literal(text: str) -> str:
    """A string token that `string_value` and PyTorch read back; bytes of UTF-8 that are no ASCII have octal escapes.

    PyTorch itself writes `\\r`, and octal digits below zero, which it does not read.
    """
    return f'"{_ODD.sub(_escaped, text)}"'


_ODD = pattern_of(r"""[^ !#-&(-\[\]-~]""")
_WRITTEN = {value: f"\\{letter}" for letter, value in _SIMPLE_ESCAPES.items() if letter != "\n"}


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    return _WRITTEN.get(char) or "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))


def python_value(text: str) -> object:
    """The value of a token that is a Python number or string.  Raises LiteralError when it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text)
    except (SyntaxError, ValueError) as error:
        raise LiteralError(f"invalid literal: {error.args[0]}") from None
    return _in_range(value) if isinstance(value, int) else value


def _hexadecimal(text: str) -> int | float:
    if "." in text or "p" in text.lower():
        return float.fromhex(text)
    return _in_range(int(text, 16))


def _in_range(value: int) -> int:
    if value > INT_LIMIT:
        raise LiteralError(_OUT_OF_RANGE)
    return value


def _unescape(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) == 3:
        byte = _signed_byte(escape) if not escape.isdigit() else int(escape, 8)
        if -128 <= byte < 256:
            return bytes([byte % 256]).decode("ascii", "surrogateescape")
    if escape in _SIMPLE_ESCAPES:
        return _SIMPLE_ESCAPES[escape]
    if escape in _UNSUPPORTED_ESCAPES:
        raise LiteralError(f"unsupported {_UNSUPPORTED_ESCAPES[escape]} specifier '\\{escape}' in a string")
    raise LiteralError(f"ill formed octal specifier '\\{escape}' in a string")


def _unescape_archived(match: re.Match[str]) -> str:
    return "\r" if match[1] == "r" else _unescape(match)


def _signed_byte(digits: str) -> int:
    high, middle, low = (ord(digit) - ord("0") for digit in digits)
    return high * 64 + middle * 8 + low
