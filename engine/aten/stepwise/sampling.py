"""Weighted sums of image elements at given indices, and their gradients.

In: images (planes, size), flat; for each of `corners` and each image of the batch `count` places in it (-1: nowhere,
which counts as zero) and weights.  Out: written.  See `engine.aten.ops.grid_sample_sums`.
"""

from __future__ import annotations

from engine.aten.stepwise.language import Buffer, floor, like, loop, whole


@loop
def in_pixels(
    grid: Buffer, rows: Buffer, columns: Buffer, count: int, height: int, width: int, are_aligned: int
) -> None:  # fmt: skip
    """Places (count, 2) from -1 to 1 as rows and columns from 0 on."""
    for i in range(count):
        x, y = grid[2 * i] + 1, grid[2 * i + 1] + 1
        columns[i] = x * like(grid, (width - 1) / 2) if are_aligned else (x * like(grid, width) - 1) / 2
        rows[i] = y * like(grid, (height - 1) / 2) if are_aligned else (y * like(grid, height) - 1) / 2


@loop
def around(rows: Buffer, columns: Buffer, places: Buffer, weights: Buffer, count: int, height: int, width: int) -> None:
    """The four places around each place between the elements of an image, and how near each one is."""
    for i in range(count):
        top, left = floor(rows[i]), floor(columns[i])
        down, right = rows[i] - top, columns[i] - left
        up, back = 1 - down, 1 - right
        row, column = whole(top), whole(left)
        has_row = (1 if row >= 0 else 0) & (1 if row < height else 0)
        has_next_row = (1 if row >= -1 else 0) & (1 if row < height - 1 else 0)
        has_column = (1 if column >= 0 else 0) & (1 if column < width else 0)
        has_next_column = (1 if column >= -1 else 0) & (1 if column < width - 1 else 0)
        place = row * width + column
        places[i] = place if has_row & has_column else -1
        places[count + i] = place + 1 if has_row & has_next_column else -1
        places[2 * count + i] = place + width if has_next_row & has_column else -1
        places[3 * count + i] = place + width + 1 if has_next_row & has_next_column else -1
        weights[i] = up * back
        weights[count + i] = up * right
        weights[2 * count + i] = down * back
        weights[3 * count + i] = down * right


@loop
def corner_sums(
    images: Buffer, places: Buffer, weights: Buffer, result: Buffer, batch: int, channels: int, size: int, corners: int,
    count: int,
) -> None:  # fmt: skip
    """result[b, c, i] is the sum over k of images[b, c, places[k, b, i]] * weights[k, b, i]."""
    for b in range(batch):
        for c in range(channels):
            plane, into = (b * channels + c) * size, (b * channels + c) * count
            for i in range(count):
                result[into + i] = 0
            for k in range(corners):
                start = (k * batch + b) * count
                for i in range(count):
                    place = places[start + i]
                    taken = images[plane + max(place, 0)]
                    result[into + i] += (taken if place >= 0 else like(images, 0)) * weights[start + i]


@loop
def corners_back(
    grad: Buffer, places: Buffer, weights: Buffer, result: Buffer, batch: int, channels: int, size: int, corners: int,
    count: int,
) -> None:  # fmt: skip
    """Into result (batch, channels, size), which is zero: each number of grad goes where it came from."""
    for b in range(batch):
        for c in range(channels):
            plane, given = (b * channels + c) * size, (b * channels + c) * count
            for k in range(corners):
                start = (k * batch + b) * count
                for i in range(count):
                    place = places[start + i]
                    if place >= 0:
                        result[plane + place] += grad[given + i] * weights[start + i]


@loop
def corner_products(
    grad: Buffer, images: Buffer, places: Buffer, result: Buffer, batch: int, channels: int, size: int, corners: int,
    count: int,
) -> None:  # fmt: skip
    """Into result (corners, batch, count), which is zero: the sums over channels of grad times what was taken."""
    for b in range(batch):
        for c in range(channels):
            plane, given = (b * channels + c) * size, (b * channels + c) * count
            for k in range(corners):
                start = (k * batch + b) * count
                for i in range(count):
                    place = places[start + i]
                    taken = images[plane + max(place, 0)]
                    result[start + i] += grad[given + i] * (taken if place >= 0 else like(images, 0))


@loop
def blended(
    x: Buffer, low: Buffer, high: Buffer, of_low: Buffer, of_high: Buffer, result: Buffer, outer: int, size: int,
    count: int, inner: int,
) -> None:  # fmt: skip
    """From x (outer, size, inner) to result (outer, count, inner): sums of two elements along `size`, with weights."""
    for o in range(outer):
        start, into = o * size * inner, o * count * inner
        if inner == 1:
            for i in range(count):
                result[into + i] = x[start + low[i]] * of_low[i] + x[start + high[i]] * of_high[i]
        else:
            for i in range(count):
                a, b, p, q = start + low[i] * inner, start + high[i] * inner, of_low[i], of_high[i]
                for j in range(inner):
                    result[into + i * inner + j] = x[a + j] * p + x[b + j] * q
