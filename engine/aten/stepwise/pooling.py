"""Windows over images, the gradients of what is chosen or averaged in them, and what surrounds images.

In: planes of `height` rows of `width` numbers, flat; windows of `down` rows and `across` columns that are `step` apart
and begin `before` the first row or column.  Out: written.
"""

from __future__ import annotations

from typing import Any

from engine.aten.stepwise.language import Buffer, like, loop


@loop
def greatest(
    x: Buffer, result: Buffer, chosen: Buffer, planes: int, height: int, width: int, down: int, across: int,
    step_down: int, step_across: int, before_down: int, before_across: int, rows: int, columns: int,
) -> None:  # fmt: skip
    """The greatest of each window, the last NaN if there is one, and its place in the plane."""
    for plane in range(planes):
        base = plane * height * width
        for row in range(rows):
            top = row * step_down - before_down
            for column in range(columns):
                left = column * step_across - before_across
                first = base + max(top, 0) * width + max(left, 0)
                best, place = x[first], first
                for i in range(max(top, 0), min(top + down, height)):
                    for at in range(base + i * width + max(left, 0), base + i * width + min(left + across, width)):
                        value = x[at]
                        if value > best or value != value:
                            best, place = value, at
                into = (plane * rows + row) * columns + column
                result[into] = best
                chosen[into] = place - base


@loop
def members(
    top: int, left: int, height: int, width: int, down: int, across: int, before_down: int, before_across: int,
    counts_padding: int,
) -> Any:  # fmt: skip
    """The number of elements of a window, or of places, also of those in the padding."""
    above, before = before_down if counts_padding else 0, before_across if counts_padding else 0
    tall = min(top + down, height + above) - max(top, -above)
    return tall * (min(left + across, width + before) - max(left, -before))


@loop
def averages(
    x: Buffer, result: Buffer, planes: int, height: int, width: int, down: int, across: int,
    step_down: int, step_across: int, before_down: int, before_across: int, rows: int, columns: int,
    counts_padding: int,
) -> None:  # fmt: skip
    """The average of each window; `counts_padding`: also over what lies in the padding, as zeros."""
    for plane in range(planes):
        base = plane * height * width
        for row in range(rows):
            top = row * step_down - before_down
            end = min(top + down, height)
            for column in range(columns):
                left = column * step_across - before_across
                last = min(left + across, width)
                shared = members(
                    top, left, height, width, down, across, before_down, before_across, counts_padding
                )  # fmt: skip
                total = like(x, 0.0)
                for i in range(max(top, 0), end):
                    for at in range(base + i * width + max(left, 0), base + i * width + last):
                        total += x[at]
                result[(plane * rows + row) * columns + column] = total / like(x, shared)


@loop
def put_back(grad: Buffer, x: Buffer, places: Buffer, result: Buffer, planes: int, count: int, size: int) -> int:
    """result[p, places[p, i]] += grad[p, i], in planes like those of `x`; not 0 for places that there are not."""
    for i in range(planes * size):
        result[i] = 0
    for plane in range(planes):
        for i in range(plane * count, plane * count + count):
            place = places[i]
            if place < 0 or place >= size:
                return 1
            result[plane * size + place] += grad[i]
    return 0


@loop
def averages_back(
    grad: Buffer, x: Buffer, result: Buffer, planes: int, height: int, width: int, down: int, across: int,
    step_down: int, step_across: int, before_down: int, before_across: int, rows: int, columns: int,
    counts_padding: int,
) -> None:  # fmt: skip
    """Each window's gradient, shared by its elements, in planes like those of `x`; `counts_padding`: also by those that
    lie in the padding."""
    for i in range(planes * height * width):
        result[i] = 0
    for plane in range(planes):
        base = plane * height * width
        for row in range(rows):
            top = row * step_down - before_down
            end = min(top + down, height)
            for column in range(columns):
                left = column * step_across - before_across
                last = min(left + across, width)
                shared = members(
                    top, left, height, width, down, across, before_down, before_across, counts_padding
                )  # fmt: skip
                share = grad[(plane * rows + row) * columns + column] / like(x, shared)
                for i in range(max(top, 0), end):
                    for at in range(base + i * width + max(left, 0), base + i * width + last):
                        result[at] += share


@loop
def padded(
    x: Buffer, result: Buffer, planes: int, height: int, width: int, top: int, left: int, rows: int, columns: int,
    value: float,
) -> None:  # fmt: skip
    """Planes with `top` rows and `left` columns before, fewer if negative, and as many after as there is room for."""
    for plane in range(planes):
        for row in range(rows):
            into, start = (plane * rows + row) * columns, (plane * height + row - top) * width - left
            is_inside = row >= top and row - top < height
            for column in range(columns):
                result[into + column] = like(x, value)
                if is_inside and column >= left and column - left < width:
                    result[into + column] = x[start + column]
