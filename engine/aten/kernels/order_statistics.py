"""Positions that selections return among equal values.

In: one row of numbers.  Out: indices.  Where values are equal, no rule defines which of their indices is returned;
these functions go through a row in the reference's order, so that they return the same.  They are plain loops for
short rows; callers check first that there is a tie.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.aten.stepwise import selecting
from engine.aten.stepwise.language import worth
from engine.aten.values.xp import Array

Before = Callable[[Any, Any], bool]
Item = tuple[Any, int]


def kth_place(row: Sequence[Any], k: int) -> int:
    """The place of the k-th smallest (from 0; NaN is the largest), by quickselect with the median of three."""
    items: list[Item] = [(value, place) for place, value in enumerate(row)]
    low, high = 0, len(items) - 1

    def order(i: int, j: int) -> None:
        if _after(items[i], items[j]):
            items[i], items[j] = items[j], items[i]

    while high > low + 1:
        middle = low + (high - low) // 2
        items[middle], items[low + 1] = items[low + 1], items[middle]
        order(low + 1, high)
        order(low, high)
        order(low + 1, low)
        i, j = _split_around(items, low, high)
        if j <= k:
            low = i
        if j >= k:
            high = j - 1
    if high == low + 1:
        order(low, high)
    return items[k][1]


def kth_in_machine_code(x: Array, axis: int, k: int, is_stable: bool = False) -> tuple[Array, Array] | None:
    """The k-th smallest along a dimension, which is kept, and its index; None without machine code.

    `is_stable`: of equal elements, the index is that of a stable sort; NaN counts as the extreme.
    """
    if not worth(x):
        return None
    length, shape = x.shape[axis], (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis:])
    values, places = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    items, order = np.empty(length, x.dtype), np.empty(length, np.int64)
    given, found, sizes = np.ascontiguousarray(x), (values, places), (outer, length, inner)
    if is_stable:
        done = selecting.medians.run(8 * x.size, given, *found, items, order, *sizes)
    else:
        done = selecting.kth_of_rows.run(8 * x.size, given, *found, items, order, *sizes, k)
    return None if done is None else found


def _split_around(items: list[Item], low: int, high: int) -> tuple[int, int]:
    """Partition the range around the pivot at `low`."""
    i, j, pivot = low + 1, high, items[low]
    while True:
        i += 1
        while _after(pivot, items[i]):
            i += 1
        j -= 1
        while _after(items[j], pivot):
            j -= 1
        if j < i:
            break
        items[i], items[j] = items[j], items[i]
    items[low], items[j] = items[j], items[low]
    return i, j


def _after(a: Item, b: Item) -> bool:
    x, y = a[0], b[0]
    return bool(x > y or (x != x and y == y))


def top_places(row: Sequence[Any], k: int, largest: bool) -> list[int]:
    """The places of the k first values in order, by partitioning until the k-th is found and sorting what is before."""
    items: list[Item] = [(value, place) for place, value in enumerate(row)]
    before = (lambda a, b: _after(a, b)) if largest else (lambda a, b: _after(b, a))
    first, last = 0, len(items)
    while last - first > 3:
        cut = _partition(items, first, last, before)
        if cut <= k - 1:
            first = cut
        else:
            last = cut
    _insertion_sort(items, first, last, before)
    _insertion_sort(items, 0, k - 1, before)
    return [place for _, place in items[:k]]


def _partition(items: list[Item], first: int, last: int, before: Before) -> int:
    """Part a range around the median of three of its values; the start of the second part."""
    _median_to_front(items, first, before, first + 1, first + (last - first) // 2, last - 1)
    pivot, i, j = items[first], first + 1, last
    while True:
        while before(items[i], pivot):
            i += 1
        j -= 1
        while before(pivot, items[j]):
            j -= 1
        if i >= j:
            return i
        items[i], items[j] = items[j], items[i]
        i += 1


def _median_to_front(items: list[Item], front: int, before: Before, a: int, b: int, c: int) -> None:
    x, y, z = items[a], items[b], items[c]
    if before(x, y):
        chosen = b if before(y, z) else c if before(x, z) else a
    else:
        chosen = a if before(x, z) else c if before(y, z) else b
    items[front], items[chosen] = items[chosen], items[front]


def _insertion_sort(items: list[Item], first: int, last: int, before: Before) -> None:
    for i in range(first + 1, last):
        item, j = items[i], i
        while j > first and before(item, items[j - 1]):
            items[j] = items[j - 1]
            j -= 1
        items[j] = item
