"""Tensors as text.

In: a tensor.  Out: `tensor_repr`, the text that Python's `repr` gives, and `cpp_str`, the text that a
program's `print` gives.  Both choose one format for all elements from the smallest and largest one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from engine.aten import promotion, xp
from engine.aten.tensor import Tensor
from engine.aten.xp import Array

PRECISION: Final = 4
LINE_WIDTH: Final = 80
THRESHOLD: Final = 1000
EDGE: Final = 3

Format = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class _Style:
    """How elements print: a function, and the width that all are padded to."""

    format: Format
    width: int

    def __call__(self, value: Any) -> str:
        return self.format(value).rjust(self.width)


def tensor_repr(t: Tensor) -> str:
    """`tensor([[1., 2.]])`, as PyTorch's repr."""
    suffixes: list[str] = []
    d = t.array.dtype
    if t.array.size == 0:
        body = "[]"
        if t.array.ndim != 1:
            suffixes.append(f"size={tuple(t.array.shape)}")
        default = d == promotion.default_dtype()
    else:
        body = _body(t.array, len("tensor("))
        default = d in (promotion.default_dtype(), promotion.default_complex(), xp.INT64, xp.BOOL)
    if not default:
        suffixes.append(f"dtype={t.dtype!r}")
    if t.grad_fn is not None:
        suffixes.append(f"grad_fn=<{t.grad_fn.name()}>")
    elif t.requires_grad:
        suffixes.append("requires_grad=True")
    return _with_suffixes("tensor(" + body, suffixes)


def _with_suffixes(text: str, suffixes: Sequence[str]) -> str:
    indent = len("tensor(")
    last = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if last + len(suffix) + 2 > LINE_WIDTH:
            text += ",\n" + " " * indent + suffix
            last = indent + len(suffix)
        else:
            text += ", " + suffix
            last += len(suffix) + 2
    return text + ")"


def _body(array: Array, indent: int) -> str:
    if array.dtype in xp.HALVES:
        array = array.astype(np.float32)
    summarize = array.size > THRESHOLD
    shown = _edges(array) if summarize else array
    if array.dtype.kind == "c":
        style: Any = _complex_style(shown)
    else:
        style = _style(shown)
    return _nested(array, indent, summarize, style)


def _edges(array: Array) -> Array:
    """The elements that a summary shows."""
    for axis, size in enumerate(array.shape):
        if size > 2 * EDGE:
            array = np.take(array, [*range(EDGE), *range(size - EDGE, size)], axis)
    return array


def _style(values: Array) -> _Style:
    if values.dtype.kind != "f":
        width = max((len(str(v)) for v in values.ravel().tolist()), default=1)
        return _Style(str, width)
    wide = values.astype(np.float64)
    finite = wide[np.isfinite(wide) & (wide != 0)]
    if finite.size == 0:
        return _Style(_whole, 1)
    low, high = float(np.abs(finite).min()), float(np.abs(finite).max())
    whole = bool((finite == np.ceil(finite)).all())
    spread = high / low > 1000.0 or high > 1.0e8
    if spread or (not whole and low < 1.0e-4):
        return _Style(_scientific, max(len(_scientific(v)) for v in finite.tolist()))
    if whole:
        return _Style(_whole, max(len(f"{v:.0f}") + 1 for v in finite.tolist()))
    return _Style(_fixed, max(len(_fixed(v)) for v in finite.tolist()))


def _whole(value: float) -> str:
    return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"


def _fixed(value: float) -> str:
    return f"{value:.{PRECISION}f}"


def _scientific(value: float) -> str:
    return f"{value:.{PRECISION}e}"


def _complex_style(values: Array) -> _Style:
    real, imag = _style(values.real), _style(values.imag)

    def text(value: complex) -> str:
        second = imag(value.imag).lstrip() + "j"
        sign = "" if second[0] in "+-" else "+"
        return real(value.real) + sign + second

    return _Style(text, real.width + imag.width + 1)


def _nested(array: Array, indent: int, summarize: bool, style: _Style) -> str:
    if array.ndim == 0:
        return style(array.item()) if array.dtype.kind != "c" else style.format(array.item())
    cut = summarize and array.shape[0] > 2 * EDGE
    if array.ndim == 1:
        return _vector(array, indent, cut, style)
    rows = [*array[:EDGE], *array[-EDGE:]] if cut else list(array)
    parts = [_nested(row, indent + 1, summarize, style) for row in rows]
    if cut:
        parts.insert(EDGE, "...")
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _vector(array: Array, indent: int, cut: bool, style: _Style) -> str:
    per_line = max(1, (LINE_WIDTH - indent) // (style.width + 2))
    text = style.format if array.dtype.kind == "c" else style
    if cut:
        parts = [*map(text, array[:EDGE].tolist()), " ...", *map(text, array[-EDGE:].tolist())]
    else:
        parts = [text(v) for v in array.tolist()]
    lines = [", ".join(parts[i : i + per_line]) for i in range(0, len(parts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


# ------------------------------------------------------------------ as C++ prints


@dataclass(frozen=True, slots=True)
class _Columns:
    """How C++ prints elements: divided by `scale`, in columns of `width`."""

    scale: float
    width: int
    format: Format


def cpp_str(t: Tensor) -> str:
    """` 1\\n 2\\n[ CPUFloatType{2} ]`: what a program's print gives; of complex numbers it shows the real part."""
    array = t.array.real if t.array.dtype.kind == "c" else t.array
    kind = f"[ CPU{t.dtype.ir_name}Type{{{','.join(map(str, array.shape))}}} ]"
    if array.size == 0:
        return kind
    array = array.astype(np.float64)
    if array.ndim == 0:
        return f"{_plain(array.item())}\n{kind}"
    columns = _columns(array)
    if array.ndim == 1:
        return _scaled(columns) + "".join(f"{_cell(columns, v)}\n" for v in array.tolist()) + kind
    if array.ndim == 2:
        return _matrix(array, 0) + kind
    return _slices(array) + kind


def _columns(array: Array) -> _Columns:
    values = np.abs(array[np.isfinite(array)])
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    least, most = _digits(low), _digits(high)
    if (values == np.ceil(values)).all():
        return _Columns(1.0, 11, _scientific) if most > 9 else _Columns(1.0, most + 1, _short)
    if most - least > 4:
        return _Columns(1.0, 12 if max(abs(most), abs(least)) > 99 else 11, _scientific)
    if most > 5 or most < 0:
        return _Columns(10.0 ** (most - 1), 7, _fixed)
    return _Columns(1.0, 7 if most == 0 else most + 6, _fixed)


def _digits(value: float) -> int:
    """How many digits stand before the point (0 and less: below 1)."""
    return math.floor(math.log10(value)) + 1 if value != 0 else 1


def _plain(value: Any) -> str:
    """The shortest text that reads back as the number, without a trailing point."""
    return repr(value).removesuffix(".0")


def _short(value: float) -> str:
    """A number in six significant digits."""
    return f"{value:g}"


def _cell(columns: _Columns, value: Any) -> str:
    return columns.format(value / columns.scale if columns.scale != 1 else value).rjust(columns.width)


def _scaled(columns: _Columns) -> str:
    return f"{_plain(columns.scale)} *\n" if columns.scale != 1 else ""


def _matrix(array: Array, indent: int) -> str:
    """Rows of columns.  The first row is not indented unless a scale stands above it, those after a scale once more."""
    columns = _columns(array)
    per_line = max(1, (LINE_WIDTH - indent) // (columns.width + 1))
    count, margin = array.shape[1], " " * indent
    between = "\n" + margin + (" " if columns.scale != 1 else "")
    text = ""
    for first in range(0, count, per_line):
        last = min(first + per_line, count)
        if per_line < count:
            text += "\n" * (first > 0) + f"Columns {first + 1} to {last}" + margin
        text += _scaled(columns) + margin * (columns.scale != 1)
        rows = [" ".join(_cell(columns, v) for v in row) for row in array[:, first:last].tolist()]
        text += between.join(rows) + "\n"
    return text


def _slices(array: Array) -> str:
    text = ""
    for place in np.ndindex(array.shape[:-2]):
        text += "\n" if text else ""
        text += f"({','.join(str(i + 1) for i in place)},.,.) = \n" + _matrix(array[place], 1)
    return text
