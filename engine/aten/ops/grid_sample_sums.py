"""Grid-sample sums: weighted sums of the pixels around positions between them.

In: images (batch, channels, size); for each of a few corners the whole places (corners, batch, count) in memory
order, -1 for outside, and the weights of their pixels.  Out: (batch, channels, count).  The three operators are
linear in each of their tensors, and are each other's gradients.
"""

from __future__ import annotations

import numpy as np

from engine.aten.dispatch.table import op
from engine.aten.kernels.accumulate import accumulate
from engine.aten.kernels.memory import check_memory
from engine.aten.stepwise import sampling
from engine.aten.stepwise.language import Loop, worth
from engine.aten.values.xp import FLOATS, INTEGERS, Array


def corner_sums(images: Array, places: Array, weights: Array) -> Array:
    result = np.empty((*images.shape[:2], places.shape[2]), images.dtype)
    if _run(sampling.corner_sums, (images, places, weights), result, images.shape[2]):
        return result
    result[...] = 0
    for spots, factors in zip(places, weights, strict=True):
        result += _taken(images, spots) * factors[:, None]
    return result


def corners_back(given: Array, places: Array, weights: Array, size: int) -> Array:
    """The gradient of the images, (batch, channels, size)."""
    check_memory((*given.shape[:2], size), given.dtype)
    result = np.zeros((*given.shape[:2], size), given.dtype)
    if _run(sampling.corners_back, (given, places, weights), result, size):
        return result
    batch, channels = given.shape[:2]
    planes = (np.arange(batch * channels) * size).reshape(batch, channels, 1)
    for spots, factors in zip(places, weights, strict=True):
        values = np.where(spots[:, None] < 0, np.zeros((), given.dtype), given * factors[:, None])
        accumulate(np.add, result.reshape(-1), planes + np.maximum(spots, 0)[:, None], values)
    return result


def corner_products(given: Array, images: Array, places: Array) -> Array:
    """The gradient of the weights, (corners, batch, count)."""
    result = np.zeros(places.shape, given.dtype)
    if _run(sampling.corner_products, (given, images, places), result, images.shape[2]):
        return result
    for spots, out in zip(places, result, strict=True):
        np.einsum("bci,bci->bi", given, _taken(images, spots), out=out)
    return result


def _taken(images: Array, spots: Array) -> Array:
    """(batch, channels, count): the elements at indices (batch, count), zero for those outside."""
    found = np.take_along_axis(images, np.maximum(spots, 0)[:, None], 2)
    return np.where(spots[:, None] < 0, np.zeros((), images.dtype), found)


def _run(loop: Loop, given: tuple[Array, Array, Array], result: Array, size: int) -> bool:
    """Run the loop in machine code; False if it is not compiled."""
    places = next((each for each in given if each.dtype in INTEGERS), given[0])
    if places.dtype not in INTEGERS or places.ndim != 3 or given[0].ndim != 3:
        return False
    corners, batch, count = places.shape
    if not all(each.dtype in FLOATS or each is places for each in given) or not size or not worth(places):
        return False
    channels = given[0].shape[1]
    known = (places.shape, (batch, channels, size), (batch, channels, count))
    if any(each.shape not in known for each in (*given, result)) or int(places.max()) >= size:
        return False  # numpy raises the error
    work = channels * places.size
    arrays = map(np.ascontiguousarray, given)
    return loop.run(work, *arrays, result, batch, channels, size, corners, count) is not None


def around_grid(grid: Array, height: int, width: int, are_aligned: bool) -> tuple[Array, Array] | None:
    """The same for places (*shape, 2) from -1 to 1."""
    if grid.dtype not in FLOATS or not worth(grid):
        return None
    rows, columns = np.empty((2, *grid.shape[:-1]), grid.dtype)
    given = np.ascontiguousarray(grid), rows, columns
    if sampling.in_pixels.run(8 * rows.size, *given, rows.size, height, width, int(are_aligned)) is None:
        return None
    return around(rows, columns, height, width)


def around(rows: Array, columns: Array, height: int, width: int) -> tuple[Array, Array] | None:
    """The four places (4, *shape) around each place, and their weights, in machine code; None if it is not compiled."""
    if rows.dtype not in FLOATS or columns.dtype is not rows.dtype or not worth(rows):
        return None
    shape = (4, *rows.shape)
    places, weights = np.empty(shape, np.int64), np.empty(shape, rows.dtype)
    given = np.ascontiguousarray(rows), np.ascontiguousarray(columns)
    done = sampling.around.run(8 * rows.size, *given, places, weights, rows.size, height, width)
    return None if done is None else (places, weights)


op("aten::_corner_sums(Tensor images, Tensor places, Tensor weights) -> Tensor", kernel=corner_sums,
   gradient={"images": "_corners_back(grad, places, weights, images.size(2))",
             "weights": "_corner_products(grad, images, places)"})  # fmt: skip
op("aten::_corners_back(Tensor given, Tensor places, Tensor weights, int size) -> Tensor", kernel=corners_back,
   gradient={"given": "_corner_sums(grad, places, weights)",
             "weights": "_corner_products(given, grad, places)"})  # fmt: skip
op("aten::_corner_products(Tensor given, Tensor images, Tensor places) -> Tensor", kernel=corner_products,
   gradient={"given": "_corner_sums(images, places, grad)",
             "images": "_corners_back(given, places, grad, images.size(2))"})  # fmt: skip
