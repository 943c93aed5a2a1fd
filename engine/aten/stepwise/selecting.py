"""The k-th smallest of rows.

In: rows of numbers, flat; room for one row of numbers and one of places.  Out: written.
`engine.aten.kernels.order_statistics` has the same steps for single rows: which of equal values is found depends on
them.
"""

from __future__ import annotations

from typing import Any

from engine.aten.stepwise.language import Buffer, loop


@loop
def is_after(a: Any, b: Any) -> Any:
    """NaN is the largest."""
    return (1 if a > b else 0) | ((1 if a != a else 0) & (1 if b == b else 0))


@loop
def swap(items: Buffer, places: Buffer, i: int, j: int) -> None:
    items[i], items[j] = items[j], items[i]
    places[i], places[j] = places[j], places[i]


@loop
def kth_of_rows(
    x: Buffer, items: Buffer, order: Buffer, values: Buffer, places: Buffer, rows: int, length: int, k: int
) -> None:  # fmt: skip
    """The k-th smallest (from 0) of each row, and its place, by quickselect with the median of three."""
    for row in range(rows):
        for i in range(length):
            items[i] = x[row * length + i]
            order[i] = i
        low, high = 0, length - 1
        while high > low + 1:
            middle = low + (high - low) // 2
            swap(items, order, middle, low + 1)
            if is_after(items[low + 1], items[high]):
                swap(items, order, low + 1, high)
            if is_after(items[low], items[high]):
                swap(items, order, low, high)
            if is_after(items[low + 1], items[low]):
                swap(items, order, low + 1, low)
            i, j, pivot = low + 1, high, items[low]
            while True:
                i += 1
                while is_after(pivot, items[i]):
                    i += 1
                j -= 1
                while is_after(items[j], pivot):
                    j -= 1
                if j < i:
                    break
                swap(items, order, i, j)
            swap(items, order, low, j)
            if j <= k:
                low = i
            if j >= k:
                high = j - 1
        if high == low + 1 and is_after(items[low], items[high]):
            swap(items, order, low, high)
        values[row] = items[k]
        places[row] = order[k]


@loop
def stable_places(x: Buffer, values: Buffer, places: Buffer, rows: int, length: int, k: int) -> None:
    """Position of the k-th smallest of each row, given its value, in a stable order; a NaN has priority."""
    for row in range(rows):
        base = row * length
        value, rank = values[row], k
        missing = 0
        for i in range(length):
            rank -= 1 if x[base + i] < value else 0
            missing += 1 if x[base + i] != x[base + i] else 0
        found = 0
        if missing > 0:
            while x[base + found] == x[base + found]:
                found += 1
        else:
            while x[base + found] != value or rank > 0:
                rank -= 1 if x[base + found] == value else 0
                found += 1
        places[row] = found
        values[row] = x[base + found]
