"""Running sums, products and extremes.

In: an array as (outer, length, inner), flat; they run along `length`.  Out: written into arrays of the same shape.
`totals` holds `inner` numbers of the precision that is added up in.  Where `inner` is 1 four rows go side by side,
since each step of a row waits for the one before it.
"""

from __future__ import annotations

from engine.aten.stepwise.language import Buffer, like, loop


@loop
def sums(x: Buffer, result: Buffer, totals: Buffer, outer: int, length: int, inner: int) -> None:
    for o in range(outer):
        base = o * length * inner
        for j in range(inner):
            totals[j] = like(totals, -0.0)
        for _i in range(length):
            for j in range(inner):
                total = totals[j] + like(totals, x[base + j])
                totals[j] = total
                result[base + j] = like(result, total)
            base += inner


@loop
def products(x: Buffer, result: Buffer, totals: Buffer, outer: int, length: int, inner: int) -> None:
    for o in range(outer):
        base = o * length * inner
        for j in range(inner):
            totals[j] = like(totals, 1.0)
        for _i in range(length):
            for j in range(inner):
                total = totals[j] * like(totals, x[base + j])
                totals[j] = total
                result[base + j] = like(result, total)
            base += inner


@loop
def row_sums(x: Buffer, result: Buffer, totals: Buffer, rows: int, length: int) -> None:
    full = rows - rows % 4
    for row in range(0, full, 4):
        a, b, c, d = row * length, (row + 1) * length, (row + 2) * length, (row + 3) * length
        of_a = of_b = of_c = of_d = like(totals, -0.0)
        for i in range(length):
            of_a += like(totals, x[a + i])
            of_b += like(totals, x[b + i])
            of_c += like(totals, x[c + i])
            of_d += like(totals, x[d + i])
            result[a + i] = like(result, of_a)
            result[b + i] = like(result, of_b)
            result[c + i] = like(result, of_c)
            result[d + i] = like(result, of_d)
    for row in range(full, rows):
        total = like(totals, -0.0)
        for i in range(row * length, (row + 1) * length):
            total += like(totals, x[i])
            result[i] = like(result, total)


@loop
def row_products(x: Buffer, result: Buffer, totals: Buffer, rows: int, length: int) -> None:
    full = rows - rows % 4
    for row in range(0, full, 4):
        a, b, c, d = row * length, (row + 1) * length, (row + 2) * length, (row + 3) * length
        of_a = of_b = of_c = of_d = like(totals, 1.0)
        for i in range(length):
            of_a *= like(totals, x[a + i])
            of_b *= like(totals, x[b + i])
            of_c *= like(totals, x[c + i])
            of_d *= like(totals, x[d + i])
            result[a + i] = like(result, of_a)
            result[b + i] = like(result, of_b)
            result[c + i] = like(result, of_c)
            result[d + i] = like(result, of_d)
    for row in range(full, rows):
        total = like(totals, 1.0)
        for i in range(row * length, (row + 1) * length):
            total *= like(totals, x[i])
            result[i] = like(result, total)


# ------------------------------------------------------------------ extremes: of equal ones the last, NaN before all

STEP = 32
"""Elements of a row that are looked at together: mostly none of them is a new extreme."""


@loop
def row_maxima(x: Buffer, values: Buffer, places: Buffer, rows: int, length: int) -> None:
    for row in range(rows):
        base = row * length
        best, at = x[base], 0
        start = 0
        while start < length:
            end = min(start + STEP, length)
            news = 0
            for i in range(start, end):
                news += 0 if x[base + i] < best else 1
            if news == 0:
                for i in range(start, end):
                    values[base + i] = best
                    places[base + i] = at
            else:
                for i in range(start, end):
                    value = x[base + i]
                    if value >= best or value != value:
                        best, at = value, i
                    values[base + i] = best
                    places[base + i] = at
            start = end


@loop
def row_minima(x: Buffer, values: Buffer, places: Buffer, rows: int, length: int) -> None:
    for row in range(rows):
        base = row * length
        best, at = x[base], 0
        start = 0
        while start < length:
            end = min(start + STEP, length)
            news = 0
            for i in range(start, end):
                news += 0 if x[base + i] > best else 1
            if news == 0:
                for i in range(start, end):
                    values[base + i] = best
                    places[base + i] = at
            else:
                for i in range(start, end):
                    value = x[base + i]
                    if value <= best or value != value:
                        best, at = value, i
                    values[base + i] = best
                    places[base + i] = at
            start = end


@loop
def maxima(x: Buffer, values: Buffer, places: Buffer, outer: int, length: int, inner: int) -> None:
    for o in range(outer):
        base = o * length * inner
        for j in range(inner):
            values[base + j] = x[base + j]
            places[base + j] = 0
        for i in range(1, length):
            base += inner
            for j in range(inner):
                value, best = x[base + j], values[base - inner + j]
                is_new = (1 if value >= best else 0) | (1 if value != value else 0)
                values[base + j] = value if is_new else best
                places[base + j] = i if is_new else places[base - inner + j]


@loop
def minima(x: Buffer, values: Buffer, places: Buffer, outer: int, length: int, inner: int) -> None:
    for o in range(outer):
        base = o * length * inner
        for j in range(inner):
            values[base + j] = x[base + j]
            places[base + j] = 0
        for i in range(1, length):
            base += inner
            for j in range(inner):
                value, best = x[base + j], values[base - inner + j]
                is_new = (1 if value <= best else 0) | (1 if value != value else 0)
                values[base + j] = value if is_new else best
                places[base + j] = i if is_new else places[base - inner + j]
