"""Sums, means and products of complex elements along a dimension, as kernel IR.

In: an operator of `WAYS`, and a type of complex elements.  Out: its function, as those of `along`: `i64 FUNCTION(i64
*words)`, for any sizes before, along and after the dimension.

Elements that follow one another are summed in pieces, each by several sums side by side, which are put together in f64;
others row by row, as numpy does it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from engine.fuser.ir.kernel import Kernel, Let
from engine.fuser.ir.kernel_text import parse
from engine.fuser.library.functions import WORDS, calling, word
from engine.fuser.library.words import COMPLEX, PLACES_AT

_FINISHED: Final = {
    "sum": """
def finished_sum(target_: i64, at: i64, re: f64, im: f64, count: i64):
    target = view({part}[...], target_)
    target[2 * at] = {part}(re)
    target[2 * at + 1] = {part}(im)
    return 0
""",
    "mean": """
def finished_mean(target_: i64, at: i64, re: f64, im: f64, count: i64):
    target = view({part}[...], target_)
    first = f64({part}(re))
    second = f64({part}(im))
    scale = 1.0 / f64(count)
    target[2 * at] = {part}((first + second * 0.0) * scale)
    target[2 * at + 1] = {part}((second - first * 0.0) * scale)
    return 0
""",
}
"""Stores of sums, and of means by numpy's quotient."""
_SUMS: Final = """
def piece_of_sum(source_: i64, n: i64, total: InOut[f64[...]]):
    source = view({part}[...], source_)
    room = allocate({part}[32])
    a: {part}x8 = {part}x8(0.0)
    b: {part}x8 = {part}x8(0.0)
    c: {part}x8 = {part}x8(0.0)
    d: {part}x8 = {part}x8(0.0)
    whole = quotient(n, 16) * 16
    for i in range(0, whole, 16):
        a = a + source[2 * i:8]
        b = b + source[2 * i + 8:8]
        c = c + source[2 * i + 16:8]
        d = d + source[2 * i + 24:8]
    room[0:8] = a
    room[8:8] = b
    room[16:8] = c
    room[24:8] = d
    re: f64 = 0.0
    im: f64 = 0.0
    for j in range(16):
        re = re + f64(room[2 * j])
        im = im + f64(room[2 * j + 1])
    for i in range(whole, n):
        re = re + f64(source[2 * i])
        im = im + f64(source[2 * i + 1])
    total[0] = re
    total[1] = im
    return 0


def {way}_along(before: i64, along: i64, after: i64, source_: i64, target_: i64):
    source = view({part}[...], source_)
    target = view({part}[...], target_)
    if after == 1:
        pieces = quotient(along + 4095, 4096)
        if pieces == 1:
            for p in parallel(before):
                own = allocate(f64[2])
                summed: i64 = piece_of_sum(source_ + p * along * {bytes}, along, own)
                put: i64 = finished_{way}(target_, p, own[0], own[1], along)
            return 0
        parts = allocate(f64[before * pieces * 2])
        for p in parallel(before * pieces):
            row = quotient(p, pieces)
            at = (p - row * pieces) * 4096
            begin = source_ + (row * along + at) * {bytes}
            summed: i64 = piece_of_sum(begin, minimum(along - at, 4096), address(parts[2 * p]))
        for row in range(before):
            re: f64 = 0.0
            im: f64 = 0.0
            for p in range(row * pieces, row * pieces + pieces):
                re = re + parts[2 * p]
                im = im + parts[2 * p + 1]
            put: i64 = finished_{way}(target_, row, re, im, along)
        return 0
    columns = quotient(after + 255, 256)
    for p in parallel(before * columns):
        row = quotient(p, columns)
        at = (p - row * columns) * 512
        width = minimum(after * 2 - at, 512)
        begin = row * along * after * 2 + at
        end = row * after * 2 + at
        for j in vector(width):
            target[end + j] = {part}(0.0) + source[begin + j]
        for i in range(1, along):
            for j in vector(width):
                target[end + j] = target[end + j] + source[begin + i * after * 2 + j]
        for j in range(quotient(width, 2)):
            place = quotient(end, 2) + j
            put: i64 = finished_{way}(target_, place, f64(target[2 * place]), f64(target[2 * place + 1]), along)
    return 0
"""
_PRODUCTS: Final = """
def prod_along(before: i64, along: i64, after: i64, source_: i64, target_: i64):
    source = view({part}[...], source_)
    target = view({part}[...], target_)
    for row in parallel(before):
        end = row * after * 2
        for j in vector(after):
            target[end + 2 * j] = {part}(1.0)
            target[end + 2 * j + 1] = {part}(0.0)
        for i in range(along):
            begin = (row * along + i) * after * 2
            for j in vector(after):
                re = target[end + 2 * j]
                im = target[end + 2 * j + 1]
                a = source[begin + 2 * j]
                b = source[begin + 2 * j + 1]
                target[end + 2 * j] = re * a - im * b
                target[end + 2 * j + 1] = re * b + im * a
    return 0
"""
WAYS: Final[Mapping[str, str]] = {"aten::sum": "sum", "aten::mean": "mean", "aten::prod": "prod"}
"""The operators, by their names without overloads."""


@cache
def function(way: str, type: str) -> Kernel:
    """The function for elements of the type."""
    part = COMPLEX[type]
    text = _PRODUCTS if way == "prod" else _FINISHED[way] + "\n" + _SUMS
    kernel = parse(text.format(part=part, way=way, bytes=16 if part == "f64" else 8))
    places = {"before": 0, "along": 1, "after": 2, "source_": PLACES_AT, "target_": PLACES_AT + 1}
    return calling(kernel, "along", ["words_"], (WORDS, *(Let(name, word(at)) for name, at in places.items())))
