"""The values of attributes, as graphs print them, read back.

In: a cursor at `1.`, `"a"`, `(1, True)`, `{3}` or the like, and for constants the type.  Out: the value.
Whole floats of 1e10 and more print without a point and single-element tensors without a dtype, so that
only the type tells them from ints.  Raises IRError where the text does not hold the value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.ir.cursor import Cursor
from engine.lang import scalars
from engine.lang.deferred import pattern_of
from engine.lang.types import BOOL, COMPLEX, DEVICE, FLOAT, TENSOR, DictType, TensorType, Type

_T = TypeVar("_T")
_REAL = r"[+-]?(?:inf|nan|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
_NUMBER: Final = pattern_of(_REAL)
_COMPLEX: Final = pattern_of(rf"({_REAL})?\+?({_REAL})j")
_STRING: Final = pattern_of(r'"(?:\\.|[^"\\])*"', re.DOTALL)
_ESCAPE: Final = pattern_of(rb"\\(?:([abfnrtv\\\"'])|x([0-9a-fA-F]{2})|([)-7]{3}))", re.DOTALL)
_ESCAPED: Final = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_SHOWN_TENSOR: Final = pattern_of(r"([^\[\]%]*)\[ CPU(\w+)Type\{([\d,]*)\} \]")
_SLICE_HEAD: Final = pattern_of(r"\([\d,]+,\.,\.\) =")
_PAIR: Final = pattern_of(rf"\(({_REAL}),({_REAL})\)")
_WORDS: Final = {"True": True, "False": False, "None": None, "inf": math.inf, "nan": math.nan}
_WORD: Final = pattern_of(r"(True|False|None)\b")
_ANNOTATE: Final = pattern_of(r"annotate\(")

FIRST: Final = pattern_of(rf'"|{_REAL}|True\b|False\b|None\b|\{{|\(')
"""Pattern for the beginning of a value that is neither a list nor a type."""
FIRST_OF_LIST: Final = pattern_of(rf'\[\s*(?:\]|"|{_REAL}\s*[,\]]|{_REAL}j)')
"""Pattern for the beginning of a list of numbers or strings."""


def literal(cursor: Cursor) -> Any:
    """A value whose type nothing tells but its text."""
    return constant(cursor, None)


def constant(cursor: Cursor, type: Type | None) -> Any:
    """The value of a constant of that type."""
    if isinstance(type, TensorType):
        return _tensor(cursor, type)
    if cursor.take(_ANNOTATE):
        cursor.balanced_until(",")
        cursor.expect(",")
        return _closed(cursor, ")", constant(cursor, type))
    if cursor.accept("torch.device("):
        return _closed(cursor, ")", scalars.device(_string(cursor)))
    if cursor.peek_text("{") and type is not None and not isinstance(type, DictType):
        return _tensor(cursor, TENSOR)
    for opening, read in _CONTAINERS.items():
        if cursor.accept(opening):
            return read(cursor, type)
    return _scalar(cursor, type)


def unquoted(text: str) -> str:
    """The string that a literal stands for; see Note [Octal escapes] in the printer."""
    return _ESCAPE.sub(_unescaped, text[1:-1].encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def _unescaped(match: re.Match[bytes]) -> bytes:
    simple, hexadecimal, octal = match.groups()
    if simple:
        return _ESCAPED.get(simple, simple)
    if hexadecimal:
        return bytes([int(hexadecimal, 16)])
    high, middle, low = (digit - ord("0") for digit in octal)
    return bytes([(high * 64 + middle * 8 + low) % 256])


def _scalar(cursor: Cursor, type: Type | None) -> Any:
    if cursor.peek(_STRING):
        text = _string(cursor)
        return scalars.device(text) if type == DEVICE else text
    word = cursor.take(_WORD)
    if word is not None:
        return _WORDS[word]
    if cursor.peek(_COMPLEX):
        return _complex(cursor)
    return _number(cursor.require(_NUMBER, "a value"), type)


def _number(text: str, type: Type | None) -> Any:
    if type == BOOL:
        return text != "0"
    if type == COMPLEX:
        return complex(text)
    is_float = type == FLOAT or any(char in text for char in ".einf")
    return float(text) if is_float else int(text)


def _complex(cursor: Cursor) -> complex:
    match = _COMPLEX.match(cursor.text, cursor.at)
    assert match is not None
    cursor.take(_COMPLEX)
    return complex(float(match[1] or 0), float(match[2]))


def _string(cursor: Cursor) -> str:
    return unquoted(cursor.require(_STRING, "a string"))


def _closed(cursor: Cursor, closing: str, value: _T) -> _T:
    cursor.expect(closing)
    return value


def _items(cursor: Cursor, closing: str, types: Sequence[Type | None]) -> list[Any]:
    """Values up to `closing`; the last type goes on for all that follow."""
    values: list[Any] = []
    while not cursor.accept(closing):
        type = types[min(len(values), len(types) - 1)] if types else None
        values.append(constant(cursor, type))
        if not cursor.accept(","):
            cursor.expect(closing)
            break
    return values


def _list(cursor: Cursor, type: Type | None) -> list[Any]:
    if cursor.peek_text("<Tensors>"):
        raise cursor.error("the text does not tell the values of these tensors")
    return _items(cursor, "]", type.contained() if type else ())


def _tuple(cursor: Cursor, type: Type | None) -> tuple[Any, ...]:
    return tuple(_items(cursor, ")", type.contained() if type else ()))


def _dict(cursor: Cursor, type: Type | None) -> dict[Any, Any]:
    key, value = (type.key, type.value) if isinstance(type, DictType) else (None, None)
    found: dict[Any, Any] = {}
    while not cursor.accept("}"):
        name = constant(cursor, key)
        cursor.expect(":")
        found[name] = constant(cursor, value)
        if not cursor.accept(","):
            cursor.expect("}")
            break
    return found


_CONTAINERS: Final[dict[str, Callable[[Cursor, Type | None], Any]]] = {"[": _list, "(": _tuple, "{": _dict}


def _tensor(cursor: Cursor, type: TensorType) -> Tensor:
    """`{3}` for a single element, C++'s ` 1  2 [ CPUFloatType{2} ]` for a few."""
    if cursor.accept("{"):
        return _closed(cursor, "}", _single(cursor, type))
    match = _SHOWN_TENSOR.match(cursor.text, cursor.at)
    if match is None or match[2] not in scalars.DTYPE_BY_IR_NAME:
        raise cursor.error("the text does not tell the values of this tensor")
    cursor.take(_SHOWN_TENSOR)
    shape = [int(size) for size in match[3].split(",") if size]
    values = [float(number) for number in _SLICE_HEAD.sub("", match[1]).split()]
    if math.prod(shape) != len(values):
        raise cursor.error(f"expected {math.prod(shape)} values in this tensor")
    array = np.array(values, xp.TO_NUMPY[scalars.DTYPE_BY_IR_NAME[match[2]]])
    return Tensor(array.reshape(shape))


def unshown_tensor(cursor: Cursor, type: Type) -> Tensor | None:
    """Zeros of the type's sizes and dtype for `<Tensor>`; None for another text, or where the type tells less."""
    sizes = type.sizes if isinstance(type, TensorType) and type.dtype is not None else None
    if not isinstance(type, TensorType) or sizes is None or None in sizes or not cursor.accept("<Tensor>"):
        return None
    return Tensor(np.zeros([size or 0 for size in sizes], xp.TO_NUMPY[type.dtype or scalars.float32]))


def _single(cursor: Cursor, type: TensorType) -> Tensor:
    pair = cursor.take(_PAIR) if cursor.peek_text("(") else None
    if pair is not None:
        real, imaginary = cursor.last_range().text.strip("()").split(",")
        value: Any = complex(float(real), float(imaginary))
    else:
        value = _number(cursor.require(_NUMBER, "a number"), None)
    known = scalars.complex64 if isinstance(value, complex) else None
    guessed = known or (scalars.float32 if isinstance(value, float) else scalars.int64)
    shape = [1] * len(type.sizes or ())
    return Tensor(np.array(value, xp.TO_NUMPY[type.dtype or guessed]).reshape(shape))
