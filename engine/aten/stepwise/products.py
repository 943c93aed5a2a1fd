"""Products that BLAS lacks, and distances.

In: matrices, flat.  Out: written.
"""

from __future__ import annotations

from engine.aten.stepwise.language import Buffer, like, loop, loose, root


@loop
def whole_products(a: Buffer, b: Buffer, result: Buffer, batch: int, rows: int, inner: int, columns: int) -> None:
    """Into result, which is zero: products of matrices of whole numbers, which wrap around."""
    for n in range(batch):
        for i in range(rows):
            into = (n * rows + i) * columns
            for k in range(inner):
                factor, start = a[(n * rows + i) * inner + k], (n * inner + k) * columns
                for j in range(columns):
                    result[into + j] += factor * b[start + j]


@loose
def rows_multiplied(x: Buffer, result: Buffer, rows: int, length: int) -> None:
    """The product of each row."""
    for row in range(rows):
        total = like(x, 1.0)
        for i in range(row * length, (row + 1) * length):
            total *= x[i]
        result[row] = total


@loose
def distances(
    a: Buffer, b: Buffer, result: Buffer, batch: int, rows: int, others: int, width: int, is_square: int
) -> None:  # fmt: skip
    """The 1-norm or 2-norm distance of each row of `a` to each row of `b`."""
    for n in range(batch):
        for i in range(rows):
            first = (n * rows + i) * width
            for j in range(others):
                second, total = (n * others + j) * width, like(a, 0.0)
                if is_square:
                    for k in range(width):
                        total += (a[first + k] - b[second + k]) * (a[first + k] - b[second + k])
                    total = root(total)
                else:
                    for k in range(width):
                        total += abs(a[first + k] - b[second + k])
                result[(n * rows + i) * others + j] = total
