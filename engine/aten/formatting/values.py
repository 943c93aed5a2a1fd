"""Values as text: what `str`, `print`, `format` and `%` make of them, and what errors call their types.

In: a value.  Out: TorchScript's text for it, which differs from Python's: `1.` for 1.0, 17 digits, strings without
quotes in containers, tensors as C++ prints them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from engine.aten.values.arithmetic import HIGH, LOW, is_negative_nan, single
from engine.aten.values.ivalue import EnumValue, Object
from engine.aten.values.tensor import Tensor
from engine.lang.deferred import deferred
from engine.lang.errors import OperatorError
from engine.lang.scalars import device

if TYPE_CHECKING:
    from engine.aten.formatting import printing
else:
    printing = deferred("engine.aten.formatting.printing")

# ------------------------------------------------------------------ str


def to_text(value: Any) -> str:
    """The text of any value."""
    if type(value) is str:
        return value
    writer = _WRITERS.get(type(value))
    if writer is not None:
        return writer(value)
    if isinstance(value, tuple):
        return tuple_text(value)
    return str(value)


def float_text(value: float) -> str:
    """Whole numbers that fit 64 bits in full with a point, others with 17 digits."""
    if LOW <= value < HIGH and value == int(value):
        return f"{int(value)}."
    return "-nan" if is_negative_nan(value) else f"{value:.17g}"


def complex_text(value: complex) -> str:
    imaginary = float_text(value.imag)
    return f"{float_text(value.real)}{'' if imaginary.startswith('-') else '+'}{imaginary}j"


def list_text(values: list[Any]) -> str:
    return f"[{', '.join(map(to_text, values))}]"


def tuple_text(values: tuple[Any, ...]) -> str:
    return f"({', '.join(map(to_text, values))}{',' if len(values) == 1 else ''})"


def dict_text(values: dict[Any, Any]) -> str:
    return f"{{{', '.join(f'{to_text(k)}: {to_text(v)}' for k, v in values.items())}}}"


def _object_text(value: Object) -> str:
    return f"<{value.type.qualname} object at {id(value):#x}>"


_WRITERS: Final[dict[type, Callable[[Any], str]]] = {
    int: str,
    bool: str,
    float: float_text,
    complex: complex_text,
    type(None): str,
    list: list_text,
    tuple: tuple_text,
    dict: dict_text,
    device: str,
    Tensor: lambda value: printing.cpp_str(value),
    Object: _object_text,
    EnumValue: str,
}

# ------------------------------------------------------------------ bytes


def to_bytes(text: str) -> bytes:
    """The bytes that a program sees."""
    return text.encode("utf-8", "surrogateescape")


def from_bytes(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def length(text: str) -> int:
    """Number of bytes of the text."""
    return len(text) if text.isascii() else len(to_bytes(text))


def normal(text: str) -> str:
    """The text with adjacent escaped bytes that form valid UTF-8 decoded to characters."""
    return text if text.isascii() else from_bytes(to_bytes(text))


# ------------------------------------------------------------------ format, %


def format_text(pattern: str, *values: Any) -> str:
    """Each `{}` replaced by the next value; nothing else in braces means anything."""
    first, *pieces = pattern.split("{}")
    if len(pieces) > len(values):
        raise OperatorError(f"Too few arguments for format string: {pattern}")
    parts = [first]
    for value, piece in zip(values, pieces, strict=False):
        parts += value if type(value) is str else to_text(value), piece
    return normal("".join(parts))


def percent_format(pattern: str, values: Any) -> str:
    """`pattern % values`: %s, %d, %i, %f, %e, %c and %%, without widths; %f and %e have the precision of float32."""
    given = list(values) if isinstance(values, tuple) else [values]
    first, *pieces = pattern.split("%")
    out, used, literal = [first], 0, False
    for piece in pieces:
        if literal:
            out.append(piece)
            literal = False
            continue
        if not piece:
            out.append("%")
            literal = True
            continue
        if used == len(given):
            raise OperatorError("Too few arguments for format string")
        out += [_percent(piece[0], given[used]), piece[1:]]
        used += 1
    if literal:
        raise OperatorError("Incomplete format specifier", hints=("write %% for a percent sign",))
    if used < len(given):
        raise OperatorError("Too many arguments for format string")
    return normal("".join(out))


def _percent(specifier: str, value: Any) -> str:
    if specifier == "s":
        return to_text(value)
    if specifier == "c":
        return _percent_c(value)
    write = _PERCENT.get(specifier)
    if write is None:
        raise OperatorError(
            f"The specifier %{specifier} is not supported in TorchScript format strings",
            hints=("there are %s, %d, %i, %f, %e and %c, without widths",),
        )
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise OperatorError(f"%{specifier} requires a number for formatting, but got {tag_name(value)}")
    return write(value)


def _percent_c(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return from_bytes(bytes([value & 0xFF]))
    if isinstance(value, str) and len(to_bytes(value)) == 1:
        return value
    raise OperatorError(f"%c requires an int or char for formatting, but got {tag_name(value)}")


def _percent_d(value: float) -> str:
    """An int in full; a float through C's 32-bit int."""
    if isinstance(value, int):
        return str(value)
    return str(int(value)) if -(2**31) - 1 < value < 2**31 else str(-(2**31))


_PERCENT: Final[dict[str, Callable[[Any], str]]] = {
    "d": _percent_d,
    "i": _percent_d,
    "f": lambda value: f"{single(value):f}",
    "F": lambda value: f"{single(value):F}",
    "e": lambda value: f"{single(value):e}",
    "E": lambda value: f"{single(value):E}",
}

# ------------------------------------------------------------------ types of values

_TAGS: Final[dict[type, str]] = {
    type(None): "None", Tensor: "Tensor", float: "Double", complex: "ComplexDouble", int: "Int", bool: "Bool",
    str: "String", list: "GenericList", dict: "GenericDict", tuple: "Tuple", device: "Device", Object: "Object",
    EnumValue: "Enum",
}  # fmt: skip


def tag_name(value: Any) -> str:
    """The kind of value, as PyTorch's messages about single values name it."""
    return _TAGS.get(type(value), "Tuple" if isinstance(value, tuple) else type(value).__name__)


def type_name(value: Any) -> str:
    """The type of a value as an annotation; the element type of an empty container is unknown."""
    if value is None:
        return "NoneType"
    if isinstance(value, list):
        return f"List[{type_name(value[0]) if value else 'Tensor'}]"
    if isinstance(value, dict):
        key, item = next(iter(value.items()), ("", Tensor))
        return f"Dict[{type_name(key)}, {type_name(item)}]"
    if isinstance(value, tuple):
        return f"Tuple[{', '.join(map(type_name, value))}]"
    if isinstance(value, (Object, EnumValue)):
        return str(value.type)
    return "Device" if isinstance(value, device) else type(value).__name__
