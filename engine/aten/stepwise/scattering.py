"""Gather and scatter-add at given indices.

In: arrays as (outer, size, inner), flat; places along `size`, which may repeat.  Out: written.  Values are added in
memory order.  Loops that check places return 1 + the number of the first one outside, else 0.
"""

from __future__ import annotations

from typing import Any

from engine.aten.stepwise.language import Buffer, loop, whole


@loop
def add_rows(target: Buffer, places: Buffer, values: Buffer, outer: int, size: int, count: int, inner: int) -> None:
    """target[o, places[i], :] += values[o, i, :]"""
    for o in range(outer):
        for i in range(count):
            into = (o * size + places[i]) * inner
            start = (o * count + i) * inner
            for j in range(inner):
                target[into + j] += values[start + j]


@loop
def add_each(target: Buffer, places: Buffer, values: Buffer, outer: int, size: int, count: int, inner: int) -> int:
    """target[o, places[o, i, j], j] += values[o, i, j]"""
    for o in range(outer):
        base = o * size * inner
        for i in range(count):
            start = (o * count + i) * inner
            for j in range(inner):
                place = places[start + j]
                if place < 0 or place >= size:
                    return start + j + 1
                target[base + place * inner + j] += values[start + j]
    return 0


@loop
def added_each(
    x: Buffer, places: Buffer, values: Buffer, result: Buffer, outer: int, size: int, count: int, inner: int
) -> Any:  # fmt: skip
    """`add_each` to a copy of `x`."""
    for i in range(outer * size * inner):
        result[i] = x[i]
    return add_each(result, places, values, outer, size, count, inner)


@loop
def added_rows(
    x: Buffer, places: Buffer, values: Buffer, result: Buffer, outer: int, size: int, count: int, inner: int,
    least: int,
) -> int:  # fmt: skip
    """`add_rows` to a copy of `x`; places from `least` on, which may be negative, count from the end."""
    for i in range(count):
        if places[i] < least or places[i] >= size:
            return 1
    for i in range(outer * size * inner):
        result[i] = x[i]
    for o in range(outer):
        for i in range(count):
            place = places[i] + size if places[i] < 0 else places[i]
            into, start = (o * size + place) * inner, (o * count + i) * inner
            for j in range(inner):
                result[into + j] += values[start + j]
    return 0


@loop
def summed_rows(
    values: Buffer, places: Buffer, result: Buffer, size: int, count: int, inner: int, skipped: int
) -> int:  # fmt: skip
    """result[p, :] is the sum of the values[i, :] whose place is p, nothing for the place that is skipped."""
    for i in range(count):
        if places[i] < 0 or places[i] >= size:
            return 1
    for i in range(size * inner):
        result[i] = 0
    for i in range(count):
        if places[i] != skipped:
            into, start = places[i] * inner, i * inner
            for j in range(inner):
                result[into + j] += values[start + j]
    return 0


@loop
def take_each(x: Buffer, places: Buffer, result: Buffer, outer: int, size: int, count: int, inner: int) -> int:
    """result[o, i, j] = x[o, places[o, i, j], j]"""
    for o in range(outer):
        base = o * size * inner
        for i in range(count):
            start = (o * count + i) * inner
            for j in range(inner):
                place = places[start + j]
                if place < 0 or place >= size:
                    return start + j + 1
                result[start + j] = x[base + place * inner + j]
    return 0


@loop
def sum_bags(table: Buffer, places: Buffer, ends: Buffer, result: Buffer, bags: int, width: int) -> None:
    """result[b, :] is the sum of the rows of `table` that the places from `ends[b]` to `ends[b + 1]` name."""
    for b in range(bags):
        into = b * width
        for j in range(width):
            result[into + j] = 0
        first, end = ends[b], ends[b + 1]
        fours = end - (end - first) % 4
        for i in range(first, fours, 4):  # four rows at once, so that sums are read and written once for them
            p, q, r, s = places[i] * width, places[i + 1] * width, places[i + 2] * width, places[i + 3] * width
            for j in range(width):
                result[into + j] = (((result[into + j] + table[p + j]) + table[q + j]) + table[r + j]) + table[s + j]
        for i in range(fours, end):
            row = places[i] * width
            for j in range(width):
                result[into + j] += table[row + j]


@loop
def sum_weighted_bags(
    table: Buffer, places: Buffer, ends: Buffer, shares: Buffer, result: Buffer, bags: int, width: int
) -> None:  # fmt: skip
    """The same for rows, each times a factor."""
    for b in range(bags):
        into = b * width
        for j in range(width):
            result[into + j] = 0
        for i in range(ends[b], ends[b + 1]):
            row, share = places[i] * width, shares[i]
            for j in range(width):
                result[into + j] += table[row + j] * share


@loop
def swap_each(order: Buffer, words: Buffer, count: int) -> None:
    """Each element changes places with one behind it, or stays: with which says a word of 32 random bits."""
    for i in range(count - 1):
        rest = count - i
        word = words[i]
        step = word - whole(word * (1.0 / rest)) * rest  # quicker than a division, and wrong by one step at most
        step += rest if step < 0 else 0
        step -= rest if step >= rest else 0
        order[i], order[i + step] = order[i + step], order[i]
