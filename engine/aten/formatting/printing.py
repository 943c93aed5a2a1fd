"""Tensors as text.

In: a tensor.  Out: `tensor_repr`, the text that Python's `repr` gives, and `cpp_str`, the text that a
program's `print` gives.  Both choose one format for all elements from the smallest and largest one; `OPTIONS` says how
much `tensor_repr` shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.kernels.affine import dequantize
from engine.aten.values import libraries, promotion, xp
from engine.aten.values.meta import MetaArray
from engine.aten.values.quantizer import is_quantized, quantizer_of
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang import scalars
from engine.lang.records import dataclass

LINE_WIDTH: Final = 80

Format = Callable[[Any], str]


@dataclass(slots=True)
class PrintOptions:
    """Settings of `repr`: digits, elements above which it summarizes, elements shown at each edge, line width."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = LINE_WIDTH
    sci_mode: bool | None = None


OPTIONS: Final = PrintOptions()
_PROFILES: Final = {"default": (4, 1000, 3, LINE_WIDTH), "short": (2, 1000, 2, LINE_WIDTH),
                    "full": (4, math.inf, 3, LINE_WIDTH)}  # fmt: skip


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change the given options; `profile` ("default", "short", "full") sets the first four.  Raises ValueError."""
    if profile is not None and profile.lower() not in _PROFILES:
        raise ValueError(f"there is no profile {profile!r}, only {', '.join(map(repr, _PROFILES))}")
    names = ("precision", "threshold", "edgeitems", "linewidth")
    values = zip(names, _PROFILES[profile.lower()], strict=True) if profile is not None else ()
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in {**dict(values), **{n: v for n, v in given.items() if v is not None}}.items():
        setattr(OPTIONS, name, value)
    OPTIONS.sci_mode = sci_mode


@dataclass(frozen=True, slots=True)
class _Style:
    """Format of elements: a function, and the width to which all are padded."""

    format: Format
    width: int

    def __call__(self, value: Any) -> str:
        return self.format(value).rjust(self.width)


def tensor_repr(t: Tensor) -> str:
    """`tensor([[1., 2.]])`, as PyTorch's repr."""
    if is_quantized(t.array):
        return _quantized_repr(t.array)
    if isinstance(t.array, MetaArray):
        is_default = t.array.dtype == promotion.default_dtype()
        return _completed(t, "...", [f"device='{t.device}'", f"size={tuple(t.array.shape)}"], is_default)
    suffixes: list[str] = []
    array, d = libraries.on_host(t.array), t.array.dtype
    if array.size == 0:
        body = "[]"
        if array.ndim != 1:
            suffixes.append(f"size={tuple(array.shape)}")
        default = d == promotion.default_dtype()
    else:
        body = _body(array, len("tensor("))
        if OPTIONS.edgeitems == 0:
            suffixes.append(f"size={tuple(array.shape)}")
        default = d in (promotion.default_dtype(), promotion.default_complex(), xp.INT64, xp.BOOL)
    if array is not t.array:
        suffixes.append(f"device='{t.device}'")
    return _completed(t, body, suffixes, default)


def _completed(t: Tensor, body: str, suffixes: list[str], is_default: bool) -> str:
    """The whole text, of the numbers' text and what follows; `is_default` of a dtype that goes without saying."""
    if not is_default:
        suffixes.append(f"dtype={t.dtype!r}")
    if t.grad_fn is not None:
        suffixes.append(f"grad_fn=<{t.grad_fn.name()}>")
    elif t.requires_grad:
        suffixes.append("requires_grad=True")
    text = _with_suffixes("tensor(" + body, suffixes)
    return "Parameter containing:\n" + text if getattr(t, "is_parameter", False) else text


def _quantized_repr(array: Array) -> str:
    """The numbers, and how integers stand for them."""
    how = quantizer_of(array)
    suffixes = [f"size={tuple(array.shape)}", f"dtype={how.dtype!r}"]
    suffixes.append(f"quantization_scheme={scalars.QSCHEME_BY_NUMBER[how.scheme]!r}")
    of_channels = how.axis is not None
    for name, value in (("scale", how.scale), ("zero_point", how.zero_point)):
        suffixes.append(f"{name}={tensor_repr(Tensor(value)) if of_channels else value}")
    suffixes += [f"axis={how.axis}"] if of_channels else []
    body = _body(dequantize(array), len("tensor(")) if array.size else "[]"
    return _with_suffixes("tensor(" + body, suffixes)


def _with_suffixes(text: str, suffixes: Sequence[str]) -> str:
    indent = len("tensor(")
    last = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if last + len(suffix) + 2 > OPTIONS.linewidth:
            text += ",\n" + " " * indent + suffix
            last = indent + len(suffix)
        else:
            text += ", " + suffix
            last += len(suffix) + 2
    return text + ")"


def _body(array: Array, indent: int) -> str:
    array = array.astype(promotion.wide(array.dtype), copy=False)
    summarize = array.size > OPTIONS.threshold
    shown = _edges(array) if summarize else array
    if array.dtype in xp.COMPLEX:
        style: Any = _complex_style(shown)
    else:
        style = _style(shown)
    return _nested(array, indent, summarize, style)


def _edges(array: Array) -> Array:
    """The elements that a summary shows."""
    edge = OPTIONS.edgeitems
    for axis, size in enumerate(array.shape):
        if size > 2 * edge:
            array = np.take(array, [*range(edge), *range(size - edge, size)], axis)
    return array


def _style(values: Array) -> _Style:
    if values.dtype not in xp.FLOATING:
        width = max((len(str(v)) for v in values.ravel().tolist()), default=1)
        return _Style(str, width)
    wide = values.astype(np.float64)
    finite = wide[np.isfinite(wide) & (wide != 0)]
    whole = bool((finite == np.ceil(finite)).all())
    chosen = _format_for(np.abs(finite), whole)
    return _Style(chosen, max((len(chosen(v)) for v in finite.tolist()), default=1))


def _format_for(sizes: Array, whole: bool) -> Format:
    """The format that numbers of these sizes call for, or that the options ask for."""
    if sizes.size == 0:
        return _whole
    low, high = float(sizes.min()), float(sizes.max())
    scientific = high / low > 1000.0 or high > 1.0e8 or (not whole and low < 1.0e-4)
    if scientific if OPTIONS.sci_mode is None else OPTIONS.sci_mode:
        return _scientific
    return _whole if whole else _fixed


def _whole(value: float) -> str:
    return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"


def _fixed(value: float) -> str:
    return f"{value:.{OPTIONS.precision}f}"


def _scientific(value: float) -> str:
    return f"{value:.{OPTIONS.precision}e}"


def _complex_style(values: Array) -> _Style:
    real, imag = _style(values.real), _style(values.imag)

    def text(value: complex) -> str:
        second = imag(value.imag).lstrip() + "j"
        sign = "" if second[0] in "+-" else "+"
        return real(value.real) + sign + second

    return _Style(text, real.width + imag.width + 1)


def _nested(array: Array, indent: int, summarize: bool, style: _Style) -> str:
    if array.ndim == 0:
        return style(array.item()) if array.dtype not in xp.COMPLEX else style.format(array.item())
    edge = OPTIONS.edgeitems
    cut = summarize and array.shape[0] > 2 * edge
    if array.ndim == 1:
        return _vector(array, indent, cut, style)
    rows = [*array[:edge], *array[len(array) - edge :]] if cut else list(array)
    parts = [_nested(row, indent + 1, summarize, style) for row in rows]
    if cut:
        parts.insert(edge, "...")
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _vector(array: Array, indent: int, cut: bool, style: _Style) -> str:
    edge, per_line = OPTIONS.edgeitems, max(1, (OPTIONS.linewidth - indent) // (style.width + 2))
    text = style.format if array.dtype in xp.COMPLEX else style
    if cut:
        dots = " ..." if edge else "..."
        parts = [*map(text, array[:edge].tolist()), dots, *map(text, array[len(array) - edge :].tolist())]
    else:
        parts = [text(v) for v in array.tolist()]
    lines = [", ".join(parts[i : i + per_line]) for i in range(0, len(parts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


# ------------------------------------------------------------------ as C++ prints


@dataclass(frozen=True, slots=True)
class _Columns:
    """C++'s format of elements: divided by `scale`, in columns of `width`."""

    scale: float
    width: int
    format: Format


def cpp_str(t: Tensor) -> str:
    """` 1\\n 2\\n[ CPUFloatType{2} ]`: what a program's print gives; of complex numbers it shows the real part."""
    if is_quantized(t.array):
        return _quantized_str(t)
    if isinstance(t.array, MetaArray):
        return f"[ Meta{t.dtype.ir_name}Type{{{','.join(map(str, t.array.shape))}}} ]"
    array = libraries.on_host(xp.real(t.array) if t.array.dtype in xp.COMPLEX else t.array)
    kind = f"[ {'CUDA' if t.is_cuda else 'CPU'}{t.dtype.ir_name}Type{{{','.join(map(str, array.shape))}}} ]"
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


def _quantized_str(t: Tensor) -> str:
    how = quantizer_of(t.array)
    numbers, _, kind = cpp_str(Tensor(dequantize(t.array))).rpartition("[ ")
    kind = kind.replace("CPUFloatType", f"QuantizedCPU{how.dtype.ir_name}Type").removesuffix(" ]")
    facts = f"qscheme: {scalars.QSCHEME_BY_NUMBER[how.scheme].name}"
    if how.axis is None:
        facts += f", scale: {_short(how.scale)}, zero_point: {how.zero_point}"
    else:
        scales, zeros = (cpp_str(Tensor(each)) for each in (how.scale, how.zero_point))
        facts += f", scales: {scales}, zero_points: {zeros}, axis: {how.axis}"
    return f"{numbers}[ {kind}, {facts} ]"


def _columns(array: Array) -> _Columns:
    values = np.abs(array[np.isfinite(array)])
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    least, most = _digits(low), _digits(high)
    if (values == np.ceil(values)).all():
        return _Columns(1.0, 11, _four_digits_exponent) if most > 9 else _Columns(1.0, most + 1, _short)
    if most - least > 4:
        return _Columns(1.0, 12 if max(abs(most), abs(least)) > 99 else 11, _four_digits_exponent)
    if most > 5 or most < 0:
        return _Columns(10.0 ** (most - 1), 7, _four_digits)
    return _Columns(1.0, 7 if most == 0 else most + 6, _four_digits)


def _four_digits(value: float) -> str:
    return f"{value:.4f}"


def _four_digits_exponent(value: float) -> str:
    return f"{value:.4e}"


def _digits(value: float) -> int:
    """Number of digits before the decimal point (0 or less for values below 1)."""
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
