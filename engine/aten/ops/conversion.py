"""Conversions between values: numbers, text, tensors' numbers, lists and dictionaries.

In: a value.  Out: another kind of value, or OperatorError in the words of PyTorch.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from engine.aten.dispatch.table import op
from engine.aten.formatting import values
from engine.aten.values import arithmetic, xp
from engine.aten.values.tensor import Tensor, tensor
from engine.lang import scalars
from engine.lang.deferred import pattern_of
from engine.lang.errors import OperatorError, OperatorValueError

# ------------------------------------------------------------------ numbers


def int_of_scalar(value: Any) -> int:
    """Ints as they are; a float must fit 32 bits."""
    if isinstance(value, complex) or (isinstance(value, float) and not -(2**31) - 1 < value < 2**31):
        raise OperatorError("value cannot be converted to type int without overflow")
    return int(value)


def float_of_scalar(value: Any) -> float:
    return float(value.real if isinstance(value, complex) else value)


def complex_of(real: float, imaginary: float) -> complex:
    """Ints go through C's int of 32 bits."""
    x, y = (arithmetic.wrap32(v) if isinstance(v, int) else v for v in (real, imaginary))
    return complex(x, y)


_SPACE: Final = " \t\n\v\f\r"
_INT: Final = pattern_of(r"[+-]?[0-9]+")
_FLOAT: Final = pattern_of(
    r"[+-]?(?:0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
    r"|inf(?:inity)?|nan(?:\([a-z0-9_]*\))?)",
    re.IGNORECASE | re.ASCII,
)


def int_of_str(written: str) -> int:
    """Decimal digits, perhaps after white space and a sign."""
    match = _INT.match(written.lstrip(_SPACE))
    if match is None or match.end() < len(written.lstrip(_SPACE)):
        raise OperatorValueError(f"invalid literal for int() with base 10: '{written}'")
    value = int(match[0])
    if not arithmetic.LOW <= value < arithmetic.HIGH:
        raise OperatorValueError(f"the number '{written}' does not fit 64 bits")
    return value


def float_of_str(written: str) -> float:
    """The number as C's `strtod` parses it: decimal or hexadecimal, inf, nan, after optional white space."""
    stripped = written.lstrip(_SPACE)
    match = _FLOAT.match(stripped)
    if match is None or match.end() < len(stripped):
        raise OperatorValueError(f"could not convert string to float: '{written}'")
    digits = match[0].lower().partition("(")[0]
    try:
        value = float.fromhex(digits) if "x" in digits else float(digits)
    except OverflowError:
        value = float("inf")
    if "n" not in digits and _is_out_of_range(value, digits):
        raise OperatorValueError(f"the number '{written}' is outside the range of a float")
    return value


def _is_out_of_range(value: float, digits: str) -> bool:
    mantissa = re.split("p" if "x" in digits else "e", digits.replace("0x", ""))[0]
    return value - value != 0 or (abs(value) < 2.2250738585072014e-308 and mantissa.strip("+-0.") != "")


op("aten::Int.bool(bool a) -> int", python=int)
op("aten::Int.float(float a) -> int", python=arithmetic.int_of_float)
op("aten::Int.Scalar(Scalar a) -> int", python=int_of_scalar)
op("aten::Int.str(str a) -> int", python=int_of_str)
op("aten::Float.Scalar(Scalar a) -> float", python=float_of_scalar)
op("aten::Float.int(int a) -> float", python=float)
op("aten::Float.bool(bool a) -> float", python=float)
op("aten::Float.str(str a) -> float", python=float_of_str)
op("aten::Bool.int(int a) -> bool", python=bool)
op("aten::Bool.float(float a) -> bool", python=bool)
op("aten::Complex.Scalar(Scalar a) -> complex", python=complex)
for _x, _y in (
    ("int", "bool"), ("bool", "int"), ("float", "bool"), ("bool", "float"), ("float", "int"), ("int", "float"),
    ("int", "int"), ("bool", "bool"), ("float", "float"),
):  # fmt: skip
    op(f"aten::Complex.{_x}_{_y}({_x} x, {_y} y) -> complex", python=complex_of)

# ------------------------------------------------------------------ text


def ord_(string: str) -> int:
    data = values.to_bytes(string)
    if len(data) != 1:
        raise OperatorError(f"String for ord() must be 1 character, found {len(data)}")
    return data[0]


def chr_(code: int) -> str:
    """One byte, the low one of the code."""
    if not 0 <= code < 0x110000:
        raise OperatorValueError(f"chr() arg not in range(0x110000), found {code}")
    return values.from_bytes(bytes([code & 0xFF]))


def characters(string: str) -> list[str]:
    """Each byte as a string."""
    return list(string) if string.isascii() else [values.from_bytes(bytes([b])) for b in values.to_bytes(string)]


op("aten::str(t elem) -> str", python=values.to_text)
op("aten::ord(str string) -> int", python=ord_)
op("aten::chr(int i) -> str", python=chr_)
op("aten::list(str t) -> str[]", python=characters)
op("aten::format(str self, ...) -> str", python=values.format_text)
op("aten::percentFormat(str self, ...) -> str", python=values.percent_format)

# ------------------------------------------------------------------ tensors


def _scalar_tensor(dtypes: dict[type, scalars.dtype]) -> Callable[[Any], Tensor]:
    return lambda value: tensor(value, dtypes[type(value)])


_DTYPES: Final = {int: scalars.int64, float: scalars.float64, complex: scalars.complex128, bool: scalars.bool_}
_LIST_DTYPES: Final = {
    # number of the annotated element type: the dtype that fits, as any of its kind does for float and complex
    0: xp.INT64,
    1: xp.FLOAT32,
    2: xp.COMPLEX128,
    3: xp.BOOL,
}


def complex_implicit(value: Tensor) -> complex:
    """A tensor where a complex number is wanted."""
    if value.requires_grad:
        raise OperatorError("Cannot input a tensor that requires grad as a scalar argument")
    if value.ndim:
        raise OperatorError("Cannot input a tensor of dimension other than 0 as a scalar argument")
    return complex(value.item())


def tolist(value: Tensor, dimensions: int, element: int) -> Any:
    """Nested lists of the annotated depth and element type."""
    array = value.array
    if array.ndim != dimensions:
        raise OperatorError("Output annotation list dimension and runtime tensor dimension must match for tolist()")
    annotated = _LIST_DTYPES[element]
    is_float, is_complex = array.dtype in xp.FLOATING, array.dtype in xp.COMPLEX
    if array.dtype != annotated and not (
        is_float if annotated == xp.FLOAT32 else is_complex and annotated in xp.COMPLEX
    ):
        raise OperatorError(
            "Output annotation element type and runtime tensor element type must match for tolist(): "
            f"{xp.ir_name(annotated)} vs {xp.ir_name(array.dtype)}",
            hints=("annotate the type that the tensor holds, or convert it: x.to(torch.int64).tolist()",),
        )
    return value.tolist()


op("aten::ComplexImplicit(Tensor a) -> complex", python=complex_implicit)
op("prim::tolist(...) -> ...", python=tolist)
op("prim::NumToTensor.Scalar(Scalar a) -> Tensor", python=_scalar_tensor(_DTYPES))
op("prim::NumToTensor.bool(bool a) -> Tensor", python=_scalar_tensor(_DTYPES))
