"""Samples on which a native entry has to do what the operator's Python function does, before anybody gets to call it.

In: a form, a kind of element, the native entry.  Out: whether they agree, bit by bit but for what a NaN carries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from engine.aten.outcome import fresh
from engine.aten.tensor import Tensor
from engine.fuser.entry import Form
from engine.fuser.expression import FLOATS
from engine.lang.errors import EngineError

DTYPES: Final = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "i32": np.int32, "i1": np.bool_}
_KIND_OF: Final = {np.dtype(d): kind for kind, d in DTYPES.items()}
REFUSED: Final = (EngineError, ArithmeticError, TypeError, ValueError)
_SHAPE: Final = (3, 201)
"""More than one block, and no multiple of a vector."""
_FLOATS: Final = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    3.0,
    -2.5,
    np.inf,
    -np.inf,
    np.nan,
    1e-40,
    -1e-310,
    1e30,
    -1e300,
    88.8,
    1e-8,
)
_NUMBERS: Final[dict[bool, tuple[tuple[Any, ...], ...]]] = {
    True: ((1, 1, 1), (-0.75, 2, 0.3), (2.5, -1, 3)),
    False: ((1, 1, 1), (-3, 2, 5)),
}


def fresh_tensor() -> Tensor:
    """A tensor as operators make them."""
    return fresh(np.zeros(3, np.float32))


def kind_of(array: np.ndarray[Any, Any]) -> str | None:
    """The kind of an array's elements, if native code may know it."""
    return _KIND_OF.get(array.dtype)


def expected_kind(form: Form, kind: str) -> str | None:
    """The kind of element that the Python function gives; None where it refuses such arguments or gives another."""
    try:
        result = form.body_fallback(*next(_arguments(form, kind)))  # type: ignore[operator]
    except REFUSED:
        return None
    return kind_of(result.array)


def agree(form: Form, kind: str, native: Callable[..., Any]) -> bool:
    """Do both give the same for all samples?"""
    return all(
        _same(_outcome(form, native, given), _outcome(form, form.body_fallback, again))
        for given, again in zip(_arguments(form, kind), _arguments(form, kind), strict=True)
    )


def _outcome(form: Form, function: Any, arguments: tuple[Any, ...]) -> tuple[np.ndarray[Any, Any], ...] | None:
    """The result, and what was written; None for a refusal."""
    try:
        result = function(*arguments)
    except REFUSED:
        return None
    return (result.array, *(arguments[i].array for i in form.tensors[:1] if form.in_place))


def _same(found: tuple[Any, ...] | None, expected: tuple[Any, ...] | None) -> bool:
    return (
        found is not None
        and expected is not None
        and all(_same_array(a, b) for a, b in zip(found, expected, strict=True))
    )


def _same_array(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.dtype is not b.dtype or a.shape != b.shape or a.strides != b.strides:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    return bool(np.array_equal(a, b, equal_nan=True) and np.all((np.signbit(a) == np.signbit(b)) | np.isnan(a)))


def _arguments(form: Form, kind: str) -> Iterator[tuple[Any, ...]]:
    """Arguments of the form, for some choices of numbers."""
    rows = _rows(kind, len(form.tensors))
    for numbers in _NUMBERS[kind in FLOATS]:
        given: list[Any] = [False] * len(form.parameters)
        for place, i in enumerate(form.tensors):
            given[i] = Tensor(rows[place].copy())
            given[i].memory  # noqa: B018  (a write advances its version)
        for place, i in enumerate(form.numbers):
            given[i] = numbers[place % 3]
        yield tuple(given)


def _rows(kind: str, count: int) -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(0)
    size = _SHAPE[0] * _SHAPE[1]
    with np.errstate(all="ignore"):
        return [_row(generator, kind, size).astype(DTYPES[kind]).reshape(_SHAPE) for _ in range(count)]


def _row(generator: np.random.Generator, kind: str, size: int) -> np.ndarray[Any, Any]:
    if kind == "i1":
        return generator.integers(0, 2, size)
    if kind not in FLOATS:
        whole = generator.integers(-5, 6, size)
        whole[::7] = generator.choice([2**31 - 1, -(2**31), 2**30, 77777], whole[::7].size)
        return whole
    row = generator.normal(0, 3, size)
    row[::3] = generator.choice(_FLOATS, row[::3].size)
    return row
