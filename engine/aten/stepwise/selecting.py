"""Rows in order, their first elements, and the k-th smallest.

In: numbers as (outer, length, inner), flat, whose rows go along `length`; room for two rows of numbers and of places.
Out: written.  NaN is the largest.  `engine.aten.kernels.order_statistics` has the same steps for single rows: which of
equal values is found depends on them.
"""

from __future__ import annotations

from typing import Any, Final

from engine.aten.stepwise.language import Buffer, loop

SHORT: Final = 1024
"""Of longer rows the first of equal elements is chosen, whatever the reference chooses."""
RUN: Final = 64
"""Elements whose ranks are counted, before such runs are merged."""
FEW: Final = 16
"""So many first elements are kept in order while a row is gone through."""


@loop
def is_after(a: Any, b: Any) -> Any:
    """NaN is the largest."""
    return (1 if a > b else 0) | ((1 if a != a else 0) & (1 if b == b else 0))


@loop
def is_before(a: Any, b: Any, largest: int) -> Any:
    """1 if it comes first, where the largest or the smallest do."""
    return is_after(a, b) if largest else is_after(b, a)


@loop
def swap(items: Buffer, places: Buffer, i: int, j: int) -> None:
    items[i], items[j] = items[j], items[i]
    places[i], places[j] = places[j], places[i]


# ------------------------------------------------------------------ in order


@loop
def ordered(items: Buffer, order: Buffer, length: int, room: int) -> Any:
    """Sort items stably, with what `order` has for them; `room`: the place from which on there is room for as many.
    Where they begin then: 0 or `room`."""
    for first in range(0, length, RUN):
        end = min(first + RUN, length)
        for i in range(first, end):
            value, rank = items[i], first
            for j in range(first, i):
                rank += 1 - is_after(items[j], value)
            for j in range(i + 1, end):
                rank += is_after(value, items[j])
            items[room + rank] = value
            order[room + rank] = order[i]
    source, width = room, RUN
    while width < length:
        into, first = room - source, 0
        while first < length:
            a, k = first, into + first
            middle, end = min(first + width, length), min(first + 2 * width, length)
            b = middle
            while a < middle and b < end:
                one, other = items[source + a], items[source + b]
                later = is_after(one, other)
                items[k] = other if later else one
                order[k] = order[source + (b if later else a)]
                a, b, k = a + 1 - later, b + later, k + 1
            for i in range(source + a, source + middle):
                items[k], order[k] = items[i], order[i]
                k += 1
            for i in range(source + b, source + end):
                items[k], order[k] = items[i], order[i]
                k += 1
            first = end
        source, width = into, 2 * width
    return source


@loop
def sorted_rows(
    x: Buffer, values: Buffer, places: Buffer, items: Buffer, order: Buffer, outer: int, length: int, inner: int,
    descending: int,
) -> None:  # fmt: skip
    """Each row in a stable order, and where its elements were.  From the largest on, rows are sorted backwards."""
    for o in range(outer):
        for j in range(inner):
            base = o * length * inner + j
            for i in range(length):
                at = length - 1 - i if descending else i
                items[i] = x[base + at * inner]
                order[i] = at
            start = ordered(items, order, length, length)
            for i in range(length):
                at = length - 1 - i if descending else i
                values[base + at * inner] = items[start + i]
                places[base + at * inner] = order[start + i]


@loop
def sorted_places(
    x: Buffer, places: Buffer, items: Buffer, order: Buffer, values: Buffer, outer: int, length: int, inner: int,
    descending: int,
) -> None:  # fmt: skip
    """The same for who wants no values."""
    sorted_rows(x, values, places, items, order, outer, length, inner, descending)


# ------------------------------------------------------------------ the first


@loop
def keep_first(
    x: Buffer, items: Buffer, order: Buffer, base: int, length: int, inner: int, k: int, largest: int
) -> None:  # fmt: skip
    """The k first elements of a row, and their places, in a stable order."""
    count = 0
    for i in range(length):
        value = x[base + i * inner]
        if count < k or is_before(value, items[k - 1], largest):
            at = min(count, k - 1)
            while at > 0 and is_before(value, items[at - 1], largest):
                items[at], order[at] = items[at - 1], order[at - 1]
                at -= 1
            items[at], order[at] = value, i
            count = min(count + 1, k)


@loop
def insert_in_order(items: Buffer, order: Buffer, first: int, last: int, largest: int) -> None:
    for i in range(first + 1, last):
        value, place, at = items[i], order[i], i
        while at > first and is_before(value, items[at - 1], largest):
            items[at], order[at] = items[at - 1], order[at - 1]
            at -= 1
        items[at], order[at] = value, place


@loop
def part_around_kth(items: Buffer, order: Buffer, length: int, k: int, largest: int) -> None:
    """The k first elements in front, the k-th at its place: by partitioning around medians of three."""
    first, last = 0, length
    while last - first > 3:
        a, b, c = first + 1, first + (last - first) // 2, last - 1
        one, two, three = items[a], items[b], items[c]
        if is_before(one, two, largest):
            chosen = b if is_before(two, three, largest) else c if is_before(one, three, largest) else a
        else:
            chosen = a if is_before(one, three, largest) else c if is_before(two, three, largest) else b
        swap(items, order, first, chosen)
        pivot, i, j = items[first], first + 1, last
        while True:
            while is_before(items[i], pivot, largest):
                i += 1
            j -= 1
            while is_before(pivot, items[j], largest):
                j -= 1
            if i >= j:
                break
            swap(items, order, i, j)
            i += 1
        if i <= k - 1:
            first = i
        else:
            last = i
    insert_in_order(items, order, first, last, largest)


@loop
def first_of_rows(
    x: Buffer, values: Buffer, places: Buffer, items: Buffer, order: Buffer, outer: int, length: int, inner: int,
    k: int, largest: int,
) -> None:  # fmt: skip
    """The k first elements of each row in order, and where they were, as the reference chooses among equal ones."""
    for o in range(outer):
        for j in range(inner):
            base, into, start = o * length * inner + j, o * k * inner + j, 0
            if k <= FEW and (k * 64 <= length or length > SHORT):
                keep_first(x, items, order, base, length, inner, k, largest)
                for i in range(k):
                    values[into + i * inner] = items[i]
                    places[into + i * inner] = order[i]
                continue
            is_chosen = 1 if k * 64 > length and length <= SHORT else 0
            for i in range(length):
                at = length - 1 - i if largest and not is_chosen else i
                items[i] = x[base + at * inner]
                order[i] = at
            count = length
            if is_chosen:
                part_around_kth(items, order, length, k, largest)
                values[into + (k - 1) * inner] = items[k - 1]
                places[into + (k - 1) * inner] = order[k - 1]
                count = k - 1
                for i in range(count // 2 if largest else 0):
                    swap(items, order, i, count - 1 - i)
            start = ordered(items, order, count, length)
            for i in range(min(count, k)):
                at = start + (count - 1 - i if largest else i)
                values[into + i * inner] = items[at]
                places[into + i * inner] = order[at]


# ------------------------------------------------------------------ the k-th


@loop
def kth_of_rows(
    x: Buffer, values: Buffer, places: Buffer, items: Buffer, order: Buffer, outer: int, length: int, inner: int,
    k: int,
) -> None:  # fmt: skip
    """The k-th smallest (from 0) of each row, and its place, by quickselect with the median of three."""
    for o in range(outer):
        for column in range(inner):
            base = o * length * inner + column
            for i in range(length):
                items[i] = x[base + i * inner]
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
            values[o * inner + column] = items[k]
            places[o * inner + column] = order[k]


@loop
def kth_that_is_there(
    x: Buffer, values: Buffer, places: Buffer, items: Buffer, order: Buffer, outer: int, length: int, inner: int,
    k: int,
) -> int:  # fmt: skip
    """The same; not 0 where one of them is NaN."""
    kth_of_rows(x, values, places, items, order, outer, length, inner, k)
    missing = 0
    for i in range(outer * inner):
        missing += 1 if values[i] != values[i] else 0
    return missing


@loop
def stable_places(x: Buffer, values: Buffer, places: Buffer, outer: int, length: int, inner: int, k: int) -> None:
    """Position of the k-th smallest of each row, given its value, in a stable order; a NaN has priority."""
    for o in range(outer):
        for column in range(inner):
            base, row = o * length * inner + column, o * inner + column
            value, rank = values[row], k
            missing = 0
            for i in range(length):
                rank -= 1 if x[base + i * inner] < value else 0
                missing += 1 if x[base + i * inner] != x[base + i * inner] else 0
            found = 0
            if missing > 0:
                while x[base + found * inner] == x[base + found * inner]:
                    found += 1
            else:
                while x[base + found * inner] != value or rank > 0:
                    rank -= 1 if x[base + found * inner] == value else 0
                    found += 1
            places[row] = found
            values[row] = x[base + found * inner]


@loop
def medians(
    x: Buffer, values: Buffer, places: Buffer, items: Buffer, order: Buffer, outer: int, length: int, inner: int
) -> None:  # fmt: skip
    """The lower of the middle elements of each row, and its place."""
    kth_of_rows(x, values, places, items, order, outer, length, inner, (length - 1) // 2)
    stable_places(x, values, places, outer, length, inner, (length - 1) // 2)


@loop
def median_of_all(
    x: Buffer, values: Buffer, items: Buffer, order: Buffer, places: Buffer, outer: int, length: int, inner: int
) -> None:  # fmt: skip
    """The same for who wants no place."""
    medians(x, values, places, items, order, outer, length, inner)
