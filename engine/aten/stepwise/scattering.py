"""Gather, scatter, and what is brought together at given indices.

In: arrays as (outer, size, inner), flat; places along `size`, which may repeat.  Out: written, in memory order.  Loops
that check places return another number than 0 where one is outside; those that change what is there have not begun
then.
"""

from __future__ import annotations

from typing import Any, Final

from engine.aten.stepwise.language import Buffer, like, loop, whole


@loop
def outside(places: Buffer, count: int, least: int, size: int) -> Any:
    """1 if one of the places is not in the range, else 0."""
    low, high = least, least
    for i in range(count):
        low = min(low, places[i])
        high = max(high, places[i])
    return 1 if (low < least) | (high >= size) else 0


@loop
def put_rows(
    target: Buffer, places: Buffer, values: Buffer, outer: int, size: int, count: int, inner: int, least: int,
    step: int,
) -> Any:  # fmt: skip
    """target[o, places[i], :] = values[o, i, :], or with a step of 0 the only value.  Places from `least` on, which may
    be negative, count from the end; not 0, and nothing is written, where one is outside."""
    wrong = outside(places, count, least, size)
    if wrong == 0:
        for o in range(outer):
            for i in range(count):
                place = places[i] + size if places[i] < 0 else places[i]
                if place >= 0 and place < size:  # others may have changed it meanwhile
                    into, start = (o * size + place) * inner, (o * count + i) * inner
                    for j in range(inner):
                        target[into + j] = values[(start + j) * step]
    return wrong


@loop
def put_each(
    target: Buffer, places: Buffer, values: Buffer, outer: int, size: int, count: int, inner: int, step: int
) -> Any:  # fmt: skip
    """target[o, places[o, i, j], j] = values[o, i, j], in the same way."""
    wrong = outside(places, outer * count * inner, 0, size)
    if wrong == 0:
        for o in range(outer):
            base = o * size * inner
            for i in range(count):
                start = (o * count + i) * inner
                for j in range(inner):
                    place = places[start + j]
                    if place >= 0 and place < size:
                        target[base + place * inner + j] = values[(start + j) * step]
    return wrong


@loop
def put_chosen(target: Buffer, mask: Buffer, values: Buffer, total: int, count: int) -> int:
    """The elements that a mask chooses become the first of `count` values; not 0 where these are too few."""
    wanted = 0
    for i in range(total):
        wanted += 1 if mask[i] else 0
    at = 0
    for i in range(total if wanted <= count else 0):
        target[i] = values[min(at, count - 1)] if mask[i] else target[i]
        at += 1 if mask[i] else 0
    return 1 if wanted > count else 0


SUM: Final = 0
PRODUCT: Final = 1
GREATEST: Final = 2
LEAST: Final = 3
"""The ways to bring numbers together, by the places of their names in those that operators know."""


@loop
def together(one: Any, other: Any, how: int) -> Any:
    """The product, or the one of both that is to be found, NaN before all others."""
    is_found = one > other if how == GREATEST else one < other
    kept = one if is_found | (one != one) else other
    return one * other if how == PRODUCT else kept


@loop
def add_rows(
    target: Buffer, places: Buffer, values: Buffer, outer: int, size: int, count: int, inner: int, least: int
) -> Any:  # fmt: skip
    """`put_rows`, but that values are added."""
    wrong = outside(places, count, least, size)
    if wrong == 0:
        for o in range(outer):
            for i in range(count):
                place = places[i] + size if places[i] < 0 else places[i]
                if place >= 0 and place < size:
                    into, start = (o * size + place) * inner, (o * count + i) * inner
                    for j in range(inner):
                        target[into + j] += values[start + j]
    return wrong


@loop
def add_each(
    target: Buffer, places: Buffer, values: Buffer, outer: int, size: int, count: int, inner: int
) -> Any:  # fmt: skip
    """target[o, places[o, i, j], j] += values[o, i, j], in the same way."""
    wrong = outside(places, outer * count * inner, 0, size)
    if wrong == 0:
        for o in range(outer):
            base = o * size * inner
            for i in range(count):
                start = (o * count + i) * inner
                for j in range(inner):
                    place = places[start + j]
                    if place >= 0 and place < size:
                        target[base + place * inner + j] += values[start + j]
    return wrong


@loop
def reduce_each(
    target: Buffer, places: Buffer, values: Buffer, outer: int, size: int, count: int, inner: int, how: int,
    includes: int,
) -> Any:  # fmt: skip
    """`put_each`, but that values are brought together with what is there, or where that does not count, alone."""
    wrong = outside(places, outer * count * inner, 0, size)
    if wrong == 0:
        for o in range(outer if includes == 0 else 0):
            base = o * size * inner
            for i in range(count):
                start = (o * count + i) * inner
                for j in range(inner):
                    place = places[start + j]
                    if place >= 0 and place < size:
                        first = like(target, how)  # what a sum or a product begins with
                        target[base + place * inner + j] = values[start + j] if how >= GREATEST else first
        if how == SUM:
            wrong = add_each(target, places, values, outer, size, count, inner)
        for o in range(outer if how != SUM else 0):
            base = o * size * inner
            for i in range(count):
                start = (o * count + i) * inner
                for j in range(inner):
                    place = places[start + j]
                    if place >= 0 and place < size:
                        into = base + place * inner + j
                        target[into] = together(target[into], values[start + j], how)
    return wrong


@loop
def average_each(
    target: Buffer, places: Buffer, values: Buffer, counts: Buffer, outer: int, size: int, count: int, inner: int,
    includes: int,
) -> Any:  # fmt: skip
    """The same for averages; room for a count of each element."""
    wrong = reduce_each(target, places, values, outer, size, count, inner, SUM, includes)
    if wrong == 0:
        for i in range(outer * size * inner):
            counts[i] = includes
        for o in range(outer):
            for i in range(count):
                start = (o * count + i) * inner
                for j in range(inner):
                    place = places[start + j]
                    if place >= 0 and place < size:
                        counts[(o * size + place) * inner + j] += 1
        for i in range(outer * size * inner):
            target[i] = target[i] / like(target, max(counts[i], 1))
    return wrong


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
                    return 1
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
