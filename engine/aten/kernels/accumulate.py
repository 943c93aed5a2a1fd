"""Add (or multiply, or compare) numbers into places of an array that may repeat.

In: the array that is written to, numpy's key of the places, a value for each of them.  Out: nothing.  `ufunc.at` means
this, and takes many times as long for several dimensions as for one; so places are numbered in memory order where that
can be done, and wide rows are taken one by one.  Values are added in the same order in all cases.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from engine.aten.stepwise.language import worth
from engine.aten.stepwise.scattering import add_rows
from engine.aten.values.xp import HALVES, SIGNED_INTEGERS, Array

_WIDE: Final = 128
"""Elements of a row from which on it is added by itself."""


def accumulate(function: np.ufunc, target: Array, key: Any, values: Array, checked: bool = False) -> None:
    """`target[key] = function(target[key], values)`, element by element; raises IndexError for indices out of bounds.

    `checked` promises that all parts of the key are arrays of valid, non-negative indices.
    """
    parts = key if isinstance(key, tuple) else (key,)
    if checked and target.flags.c_contiguous:
        _into_flat(function, target, _numbered(target.shape, parts, checked), values)
        return
    axis = next((i for i, part in enumerate(parts) if not _is_all(part)), 0)
    if not _are_places(target, parts[axis:], axis):
        function.at(target, key, values)
    elif len(parts) == target.ndim and axis == 0:
        _into_flat(function, target, _numbered(target.shape, parts), values)
    elif len(parts) == axis + 1:
        _into_rows(function, target, axis, parts[axis], values)
    else:
        function.at(target, key, values)


def _is_all(part: Any) -> bool:
    return isinstance(part, slice) and part == slice(None)


def _are_places(target: Array, parts: tuple[Any, ...], axis: int) -> bool:
    """True if each part is a non-empty array of integers within the bounds of its dimension."""
    if not target.flags.c_contiguous or target.ndim < axis + len(parts) or not parts:
        return False
    return all(
        type(part) is np.ndarray and part.dtype in SIGNED_INTEGERS and part.ndim and part.size
        and -size <= int(part.min()) and int(part.max()) < size
        for part, size in zip(parts, target.shape[axis:], strict=False)
    )  # fmt: skip


def _numbered(shape: tuple[int, ...], parts: tuple[Array, ...], checked: bool = False) -> Array:
    """The places as numbers of a flat array."""
    total = np.zeros((), np.intp)
    for size, part in zip(shape, parts, strict=True):
        total = total * size + (part if checked or int(part.min()) >= 0 else np.where(part < 0, part + size, part))
    return total


def _into_flat(function: np.ufunc, target: Array, places: Array, values: Array) -> None:
    given = np.broadcast_to(values, places.shape).astype(target.dtype, copy=False)
    function.at(target.reshape(-1), places.reshape(-1).astype(np.intp, copy=False), np.ascontiguousarray(given).ravel())


def _into_rows(function: np.ufunc, target: Array, axis: int, places: Array, values: Array) -> None:
    """Accumulation along one dimension: each index of it selects a row of all other dimensions."""
    row = target.shape[:axis] + target.shape[axis + 1 :]
    shape = target.shape[:axis] + places.shape + target.shape[axis + 1 :]
    given = np.broadcast_to(values, shape).reshape(*target.shape[:axis], places.size, *target.shape[axis + 1 :])
    width = math.prod(row)
    if function is np.add and _add_rows(target, axis, places, given):
        return
    if width < _WIDE and axis == 0:
        first = np.where(places < 0, places + len(target), places).reshape(-1, 1) * width
        _into_flat(function, target, first + np.arange(width), given.reshape(-1, width))
        return
    if width < _WIDE:
        key: Any = (*[slice(None)] * axis, places.reshape(-1))
        function.at(target, key, given)
        return
    _row_by_row(function, np.moveaxis(target, axis, 0), places.reshape(-1), np.moveaxis(given, axis, 0))


def _add_rows(target: Array, axis: int, places: Array, given: Array) -> bool:
    """The same in machine code; False if it is not compiled."""
    if not worth(given):
        return False
    size = target.shape[axis]
    outer, inner = math.prod(target.shape[:axis]), math.prod(target.shape[axis + 1 :])
    values = np.ascontiguousarray(given, target.dtype)
    work = values.size
    done = add_rows.run(work, target, np.ascontiguousarray(places), values, outer, size, places.size, inner, -size)
    return done == 0


def _row_by_row(function: np.ufunc, target: Array, places: Array, values: Array) -> None:
    """In rounds: in each no row is written twice, and of one row the values keep their order."""
    order = np.argsort(np.where(places < 0, places + len(target), places), kind="stable")
    starts = np.flatnonzero(np.diff(places[order] % len(target), prepend=-1))
    lengths = np.diff(starts, append=len(places))
    count = int(lengths.max())
    if count * _ROUND > len(places):
        for place, value in zip(places.tolist(), values, strict=True):
            written = target[place, ...]
            function(written, value, out=written)
        return
    for i in range(count):
        some = order[starts[lengths > i] + i]
        rows = places[some]
        target[rows] = function(target[rows], values[some])


_ROUND: Final = 8
"""Rows that one round has to write to be worth it."""


def add_at(target: Array, key: Any, values: Array, checked: bool = False) -> None:
    """`target[key] += values` where places may repeat."""
    if target.dtype in HALVES:
        sums = target.astype(np.float32)
        accumulate(np.add, sums, key, values.astype(np.float32), checked)
        target[...] = sums
    else:
        accumulate(np.add, target, key, values, checked)
