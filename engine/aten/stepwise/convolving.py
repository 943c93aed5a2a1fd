"""Convolutions in which every channel has a kernel of its own, in two dimensions.

In: images (planes, tall, broad), a kernel for each of `channels` planes, flat; how many rows and columns there are
around an image, the steps of windows, the gaps between a kernel's elements; room for one image with what is around
it, (rows, columns), zeros, whose columns are a multiple of their step.  Out: written.  Steps of one and two columns are
loops of their own, which LLVM makes vectors of.
"""

from __future__ import annotations

from typing import Any

from engine.aten.stepwise.language import Buffer, like, loop, loose


@loop
def place_in(column: int, columns: int, step: int) -> Any:
    """Where a column of a row in the room lies: columns that are a step apart lie next to each other."""
    return column % step * (columns // step) + column // step


@loop
def copy_phase(x: Buffer, room: Buffer, start: int, into: int, count: int, step: int) -> None:
    for j in range(count):
        room[into + j] = x[start + j * step]


@loop
def copy_in(
    x: Buffer, room: Buffer, plane: int, tall: int, broad: int, columns: int, top: int, left: int, step: int
) -> None:  # fmt: skip
    for row in range(tall):
        for first in range(min(step, broad)):
            start, count = (plane * tall + row) * broad + first, (broad - first + step - 1) // step
            into = (row + top) * columns + place_in(first + left, columns, step)
            if step == 1:
                copy_phase(x, room, start, into, count, 1)
            elif step == 2:
                copy_phase(x, room, start, into, count, 2)
            else:
                copy_phase(x, room, start, into, count, step)


@loose
def add_line(x: Buffer, result: Buffer, start: int, into: int, count: int, factor: float) -> None:
    for j in range(count):
        result[into + j] += factor * x[start + j]


@loose
def add_three_lines(
    x: Buffer, result: Buffer, one: int, two: int, three: int, into: int, count: int, a: float, b: float, c: float
) -> None:  # fmt: skip
    for j in range(count):
        result[into + j] += a * x[one + j] + b * x[two + j] + c * x[three + j]


@loose
def each_plane(
    x: Buffer, kernels: Buffer, result: Buffer, room: Buffer, planes: int, channels: int, tall: int, broad: int,
    rows: int, columns: int, height: int, width: int, top: int, left: int, kernel_rows: int, kernel_columns: int,
    row_step: int, column_step: int, row_gap: int, column_gap: int,
) -> None:  # fmt: skip
    """result (planes, height, width): the windows of x times the kernels."""
    for plane in range(planes):
        copy_in(x, room, plane, tall, broad, columns, top, left, column_step)
        kernel = plane % channels * kernel_rows * kernel_columns
        for row in range(height):
            into = (plane * height + row) * width
            for j in range(width):
                result[into + j] = 0
            for r in range(kernel_rows):
                line = (row * row_step + r * row_gap) * columns
                factor = kernel + r * kernel_columns
                c = 0
                while c + 3 <= kernel_columns:
                    one = line + place_in(c * column_gap, columns, column_step)
                    two = line + place_in((c + 1) * column_gap, columns, column_step)
                    three = line + place_in((c + 2) * column_gap, columns, column_step)
                    add_three_lines(
                        room, result, one, two, three, into, width, kernels[factor + c], kernels[factor + c + 1],
                        kernels[factor + c + 2],
                    )  # fmt: skip
                    c += 3
                while c < kernel_columns:
                    start = line + place_in(c * column_gap, columns, column_step)
                    add_line(room, result, start, into, width, kernels[factor + c])
                    c += 1


@loose
def planes_and_bias(
    x: Buffer, kernels: Buffer, bias: Buffer, result: Buffer, room: Buffer, planes: int, channels: int, tall: int,
    broad: int, rows: int, columns: int, height: int, width: int, top: int, left: int, kernel_rows: int,
    kernel_columns: int, row_step: int, column_step: int, row_gap: int, column_gap: int, has_bias: int,
) -> None:  # fmt: skip
    """`each_plane`, with a number added to all of a channel; the room may hold anything."""
    for i in range(rows * columns):
        room[i] = 0
    each_plane(
        x, kernels, result, room, planes, channels, tall, broad, rows, columns, height, width, top, left, kernel_rows,
        kernel_columns, row_step, column_step, row_gap, column_gap,
    )  # fmt: skip
    for plane in range(planes if has_bias else 0):
        for i in range(plane * height * width, (plane + 1) * height * width):
            result[i] += bias[plane % channels]


@loose
def spread_line(grad: Buffer, result: Buffer, start: int, into: int, count: int, step: int, factor: float) -> None:
    for j in range(count):
        result[into + j * step] += factor * grad[start + j]


@loose
def spread_each_plane(
    grad: Buffer, kernels: Buffer, result: Buffer, room: Buffer, planes: int, channels: int, tall: int, broad: int,
    rows: int, columns: int, height: int, width: int, top: int, left: int, kernel_rows: int, kernel_columns: int,
    row_step: int, column_step: int, row_gap: int, column_gap: int,
) -> None:  # fmt: skip
    """result (planes, tall, broad): each number of grad (planes, height, width) times its kernel, added up."""
    for plane in range(planes):
        for i in range(rows * columns):
            room[i] = 0
        kernel = plane % channels * kernel_rows * kernel_columns
        for row in range(height):
            start = (plane * height + row) * width
            for r in range(kernel_rows):
                line = (row * row_step + r * row_gap) * columns
                for c in range(kernel_columns):
                    into, factor = line + c * column_gap, kernels[kernel + r * kernel_columns + c]
                    if column_step == 1:
                        spread_line(grad, room, start, into, width, 1, factor)
                    elif column_step == 2:
                        spread_line(grad, room, start, into, width, 2, factor)
                    else:
                        spread_line(grad, room, start, into, width, column_step, factor)
        for row in range(tall):
            start, into = (row + top) * columns + left, (plane * tall + row) * broad
            for j in range(broad):
                result[into + j] = room[start + j]


@loose
def line_product(grad: Buffer, x: Buffer, start: int, place: int, count: int) -> Any:
    total = like(x, 0.0)
    for j in range(count):
        total += grad[start + j] * x[place + j]
    return total


@loose
def kernels_of_planes(
    grad: Buffer, x: Buffer, kernels: Buffer, room: Buffer, planes: int, channels: int, tall: int, broad: int,
    rows: int, columns: int, height: int, width: int, top: int, left: int, kernel_rows: int, kernel_columns: int,
    row_step: int, column_step: int, row_gap: int, column_gap: int,
) -> None:  # fmt: skip
    """Into kernels, which are zero: the sums of grad (planes, height, width) times what each element has seen of x."""
    for plane in range(planes):
        copy_in(x, room, plane, tall, broad, columns, top, left, column_step)
        kernel = plane % channels * kernel_rows * kernel_columns
        for r in range(kernel_rows):
            for c in range(kernel_columns):
                total, shift = like(x, 0.0), place_in(c * column_gap, columns, column_step)
                for row in range(height):
                    start = (plane * height + row) * width
                    place = (row * row_step + r * row_gap) * columns + shift
                    total += line_product(grad, room, start, place, width)
                kernels[kernel + r * kernel_columns + c] += total
