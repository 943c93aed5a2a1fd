"""`assert_close`: equality of two values up to rounding.

In: tensors, numbers, or sequences and mappings of them.  Out: nothing, or an AssertionError with the position
and size of the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any, Final

import numpy as np

from engine.aten.values import xp
from engine.aten.values.promotion import promote_types
from engine.aten.values.tensor import Tensor, tensor
from engine.aten.values.xp import Array
from engine.lang import scalars
from engine.lang.records import dataclass

TOLERANCES: Final[dict[scalars.dtype, tuple[float, float]]] = {
    scalars.float16: (1e-3, 1e-5), scalars.bfloat16: (1.6e-2, 1e-5), scalars.float32: (1.3e-6, 1e-5),
    scalars.float64: (1e-7, 1e-7), scalars.complex64: (1.3e-6, 1e-5), scalars.complex128: (1e-7, 1e-7),
}  # fmt: skip
"""dtype -> the relative and the absolute tolerance; values of other dtypes must be equal."""


@dataclass(frozen=True, slots=True)
class _Options:
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_dtype: bool
    check_stride: bool
    message: str | Callable[[str], str] | None


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless `|actual - expected| <= atol + rtol * |expected|` for every element.

    `rtol` and `atol` come together or not at all (ValueError); without them the dtypes decide.  Raises TypeError for
    values that cannot be compared.
    """
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must both be specified or both be unspecified")
    if not allow_subclasses and type(actual) is not type(expected):
        raise TypeError(f"{type(actual).__name__} is compared with {type(expected).__name__}")
    _compare(actual, expected, _Options(rtol, atol, equal_nan, check_dtype, check_stride, msg), "")


def _compare(actual: Any, expected: Any, options: _Options, where: str) -> None:
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            missing, extra = (
                sorted(map(repr, set(expected) - set(actual))),
                sorted(map(repr, set(actual) - set(expected))),
            )
            _fail(options, f"The keys of the mappings do not match: missing {missing}, additional {extra}", where)
        for key in expected:
            _compare(actual[key], expected[key], options, f"{where}[{key!r}]")
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            _fail(options, f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", where)
        for index, pair in enumerate(zip(actual, expected, strict=True)):
            _compare(*pair, options, f"{where}[{index}]")
    else:
        _compare_one(actual, expected, options, where)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _compare_one(actual: Any, expected: Any, options: _Options, where: str) -> None:
    if actual is None or expected is None:
        if actual is not expected:
            _fail(options, f"None mismatch: {actual!r} is not {expected!r}", where)
        return
    arrays = (Tensor, np.ndarray)
    numbers = (Number, np.generic)
    tensors = isinstance(actual, arrays) and isinstance(expected, arrays)
    if not tensors and not (isinstance(actual, numbers) and isinstance(expected, numbers)):
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")
    if not tensors:
        _compare_values(*_numbers(actual, expected), options, where)
        return
    mine, theirs = (each if isinstance(each, Tensor) else tensor(each) for each in (actual, expected))
    _compare_forms(mine, theirs, options, where)
    if mine.is_meta:
        return
    _compare_values(mine.array, theirs.array, options, where)


def _numbers(actual: Any, expected: Any) -> tuple[Array, Array]:
    kinds = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}
    made = [np.asarray(each, kinds.get(type(each))) for each in (actual, expected)]
    return made[0], made[1]


def _compare_forms(actual: Tensor, expected: Tensor, options: _Options, where: str) -> None:
    pairs = {
        "shape": (actual.shape, expected.shape),
        "dtype": (actual.dtype, expected.dtype) if options.check_dtype else (),
        "device": (actual.device, expected.device) if actual.is_meta or expected.is_meta else (),
        "stride": (actual.stride(), expected.stride()) if options.check_stride else (),
    }
    for what, pair in pairs.items():
        if pair and pair[0] != pair[1]:
            _fail(options, f"The values for attribute '{what}' do not match: {pair[0]} != {pair[1]}.", where)


def _compare_values(actual: Array, expected: Array, options: _Options, where: str) -> None:
    rtol, atol = _tolerances(actual, expected, options)
    d = promote_types(actual.dtype, expected.dtype)
    d = d if d not in xp.REAL else np.dtype(np.float64) if d in xp.FLOATING else d
    mine, theirs = actual.astype(d), expected.astype(d)
    with np.errstate(all="ignore"):
        apart = np.abs(_number_like(mine) - _number_like(theirs))
        close = (mine == theirs) | (np.isfinite(theirs) & (apart <= atol + rtol * np.abs(theirs)))
        if options.equal_nan:
            close |= np.isnan(mine) & np.isnan(theirs)
        if not close.all():
            relative = apart / np.abs(theirs)
            _fail(options, _difference(close, apart, relative, (atol, rtol), (actual, expected)), where)


def _number_like(array: Array) -> Array:
    return array.astype(np.int64) if array.dtype == xp.BOOL else array


def _tolerances(actual: Array, expected: Array, options: _Options) -> tuple[float, float]:
    if options.rtol is not None and options.atol is not None:
        return options.rtol, options.atol
    found = [TOLERANCES.get(xp.FROM_NUMPY[each.dtype], (0.0, 0.0)) for each in (actual, expected)]
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def _difference(
    close: Array, apart: Array, relative: Array, allowed: tuple[float, float], both: tuple[Array, Array]
) -> str:
    count, size = int(close.size - close.sum()), close.size
    equal = "close" if any(allowed) else "equal"
    if close.ndim:
        first = f"Tensor-likes are not {equal}!\n\nMismatched elements: {count} / {size} ({count / size:.1%})"
    else:
        first = f"Scalars are not {equal}!\n\nExpected {both[1].item()} but got {both[0].item()}."
    lines = [first]
    for kind, each, limit in zip(("absolute", "relative"), (apart, relative), allowed, strict=True):
        named = f"Greatest {kind}" if close.ndim else kind.capitalize()
        place = f" at index {_place(each, close)}" if close.ndim else ""
        most = f" (up to {limit} allowed)" if any(allowed) else ""
        lines.append(f"{named} difference: {_greatest(each, close)}{place}{most}")
    return "\n".join(lines)


def _worst(apart: Array, close: Array) -> int:
    return int(np.argmax(np.where(close, -1, np.nan_to_num(apart, nan=np.inf))))


def _place(apart: Array, close: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(_worst(apart, close), close.shape))


def _greatest(apart: Array, close: Array) -> Any:
    return apart.ravel()[_worst(apart, close)].item()


def _fail(options: _Options, message: str, where: str) -> None:
    found = f"{message}\n\nThe failure occurred for item {where}" if where else message
    shown = options.message(found) if callable(options.message) else options.message or found
    raise AssertionError(shown)
