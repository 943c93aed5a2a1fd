"""Samples on which a native entry has to do what the operator's Python function does, before anybody gets to call it.

In: a form, a kind of element, the native entry.  Out: whether they agree, bit by bit but for what a NaN carries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.wrapping import fresh
from engine.aten.stepwise.language import COMPILER
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.fuser.entries.entry import Form, Work
from engine.fuser.expression import FLOATS, HALVES
from engine.lang.errors import EngineError

DTYPES: Final[dict[str, Any]] = {
    "f32": np.float32, "f64": np.float64, "i64": np.int64, "i32": np.int32, "i1": np.bool_, "f16": np.float16,
    "bf16": xp.BFLOAT16,
}  # fmt: skip
_KIND_OF: Final = {np.dtype(d): kind for kind, d in DTYPES.items()}
REFUSED: Final = (EngineError, ArithmeticError, TypeError, ValueError)
SHAPE: Final = (3, 201)
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
NUMBERS: Final[dict[bool, tuple[tuple[Any, ...], ...]]] = {
    True: ((1, 1, 1), (-0.75, 2, 0.3), (2.5, -1, 3)),
    False: ((1, 1, 1), (-3, 2, 5)),
}


def fresh_tensor() -> Tensor:
    """A tensor as operators make them."""
    return fresh(np.zeros(3, np.float32))


def kind_of(array: np.ndarray[Any, Any]) -> str | None:
    """The kind of an array's elements, if native code may know it."""
    return _KIND_OF.get(array.dtype)


def expected_kind(work: Work, kind: str, function: Callable[..., Any]) -> str | None:
    """The kind of element that the Python function gives; None where it refuses such arguments or gives another."""
    try:
        result = function(*next(iter(work.samples(kind))))
    except REFUSED:
        return None
    return kind_of(result.array)


def agree(form: Form, kind: str, native: Callable[..., Any]) -> bool:
    """True if both give the same results for all samples."""
    work = form.work
    with _without_loops():
        return all(
            _same(_outcome(work, native, given), _outcome(work, form.body_fallback, again))
            for given, again in zip(work.samples(kind), work.samples(kind), strict=True)
        )


@contextmanager
def _without_loops() -> Iterator[None]:
    """Disable loops, which may round otherwise: the definition of an operator is its array form."""
    loops, COMPILER.request = COMPILER.request, None
    try:
        yield
    finally:
        COMPILER.request = loops


def _outcome(work: Work, function: Any, arguments: tuple[Any, ...]) -> tuple[np.ndarray[Any, Any], ...] | None:
    """The results, and what was written; None for a refusal."""
    try:
        result = function(*arguments)
    except REFUSED:
        return None
    results = result if isinstance(result, tuple) else (result,)
    return (*(each.array for each in results), *(arguments[i].array for i in (work.written,) if i is not None))


def _same(found: tuple[Any, ...] | None, expected: tuple[Any, ...] | None) -> bool:
    return (
        found is not None
        and expected is not None
        and all(_same_array(a, b) for a, b in zip(found, expected, strict=True))
    )


def _same_array(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.dtype is not b.dtype or a.shape != b.shape or a.strides != b.strides:
        return False
    if a.dtype.kind in "iub":
        return bool(np.array_equal(a, b))
    x, y = a.astype(np.float64), b.astype(np.float64)
    return bool(np.array_equal(x, y, equal_nan=True) and np.all((np.signbit(x) == np.signbit(y)) | np.isnan(x)))


# ------------------------------------------------------------------ arguments


def written_to(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor of which writes advance a version."""
    made = Tensor(array)
    made.memory  # noqa: B018
    return made


def rows(kind: str, count: int, shape: tuple[int, ...] = SHAPE, special: bool = True) -> list[np.ndarray[Any, Any]]:
    """So many arrays of that kind, with every kind of special value unless that is not wanted."""
    generator = np.random.default_rng(0)
    size = math.prod(shape)
    with np.errstate(all="ignore"):
        return [_row(generator, kind, size, special).astype(DTYPES[kind]).reshape(shape) for _ in range(count)]


def _row(generator: np.random.Generator, kind: str, size: int, special: bool) -> np.ndarray[Any, Any]:
    if kind == "i1":
        return generator.integers(0, 2, size)
    if kind not in FLOATS + HALVES:
        whole = generator.integers(-5, 6, size)
        whole[::7] = generator.choice([2**31 - 1, -(2**31), 2**30, 77777], whole[::7].size)
        return whole
    row = generator.normal(0, 3, size)
    if special:
        row[::3] = generator.choice(_FLOATS, row[::3].size)
    return row
