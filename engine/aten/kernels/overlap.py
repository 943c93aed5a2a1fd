"""Writes to arrays of which several elements lie in one place.

In: an array with strides of its own, and values of its shape.  Out: the array, written in PyTorch's order, by which the
last value that goes to a place stays there.
"""

from __future__ import annotations

import numpy as np

from engine.aten.values.xp import Array


def may_overlap(array: Array) -> bool:
    """True if strides do not rule out that two elements lie in one place."""
    reach = array.itemsize
    for stride, size in sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape, strict=True)):
        if size > 1:
            if stride < reach:
                return True
            reach += stride * (size - 1)
    return False


def write_in_order(array: Array, values: Array) -> None:
    """`array[...] = values`, one element after the other."""
    order = _order(array, values)
    target, source = array.transpose(order), np.broadcast_to(values, array.shape).transpose(order)
    for place in np.ndindex(target.shape):
        target[place] = source[place]


def _order(array: Array, values: Array) -> list[int]:
    """Dimensions, the one that is gone through fastest last: of small strides, and of few elements where these are
    equal."""
    order = list(range(array.ndim))[::-1]
    for last in range(1, array.ndim):
        at = last
        for before in reversed(range(last)):
            slower = _is_slower(order[before], order[at], array, values)
            if slower > 0:
                order[before], order[at] = order[at], order[before]
                at = before
            elif slower < 0:
                break
    return order[::-1]


def _is_slower(a: int, b: int, array: Array, values: Array) -> int:
    """Positive if dimension `a` is to be outside of `b`, negative for the opposite, 0 if nothing says."""
    for each in (array, values):
        one, other = each.strides[a], each.strides[b]
        if one and other:
            if one != other:
                return 1 if one > other else -1
            if each.shape[a] > each.shape[b]:
                return 1
    return 0
