"""Functions that copy elements whatever they are, as text of kernel IR over the words and helpers of `calls`.

In: the processor.  Out: `copying`: row functions (`rows`) for each size of elements, of results that are the first
operand, the second, or zeros; and copies without gaps of arrays that functions of whole operators cannot go through as
they lie.
"""

from __future__ import annotations

import re
from typing import Final

from engine.fuser.backend.target import current
from engine.fuser.groups.gemm import turn_helper
from engine.fuser.ir.kernel_text import show

WHOLES: Final = {1: "u8", 2: "i16", 4: "i32", 8: "i64", 16: "f64"}
"""The types that stand for all others of so many bytes; of 16 there are two in each element."""
_LOOPS: Final = {1: "vector", 2: "vector", 4: "vector", 8: "vector", 16: "range"}
"""Loops over elements; those of 16 bytes are vectors themselves."""
_FLOATS: Final = {4: "f32", 8: "f64"}
"""Those that vectors are made of."""
_ROWS: Final = """
def move_{bytes}(n: i64, source_: i64, step: i64, target_: i64, at: i64):
    if bitand(step == 1, at == 1):
        memmove(target_, source_, n * {bytes})
        return 0
    source = view({type}[...], source_)
    target = view({type}[...], target_)
    if step == 0:
        value = source[[0]]
        if at == 1:
            for i in {loop}(n):
                target[[i]] = value
            return 0
        for i in range(n):
            target[[i * at]] = value
        return 0
    if bitand(step == 2, at == 1):
        for i in {loop}(n):
            target[[i]] = source[[i * 2]]
        return 0
    if at == 1:
        for i in range(n):
            target[[i]] = source[[i * step]]
        return 0
    for i in range(n):
        target[[i * at]] = source[[i * step]]
    return 0


def turned_{bytes}(columns: i64, deep: i64, source_: i64, column: i64, target_: i64, row: i64):
    source = view({type}[...], source_)
    target = view({type}[...], target_)
    left: i64 = 0{vectors}
    for c in range(left, columns):
        for r in range(deep):
            target[[c + r * row]] = source[[c * column + r]]
    return 0


def grid_{bytes}(n: i64, rows: i64, source_: i64, step: i64, across: i64, target_: i64, at: i64, over: i64):
    if bitor(step == 0, bitand(across != 1, over != 1)):
        for r in range(rows):
            done: i64 = move_{bytes}(n, source_ + r * across * {bytes}, step, target_ + r * over * {bytes}, at)
        return 0
    if bitand(step == 1, over == 1):
        turned: i64 = turned_{bytes}(rows, n, source_, across, target_, at)
        return 0
    if bitand(across == 1, at == 1):
        turned: i64 = turned_{bytes}(n, rows, source_, step, target_, over)
        return 0
    source = view({type}[...], source_)
    target = view({type}[...], target_)
    for c in range(n):
        for r in range(rows):
            target[[c * at + r * over]] = source[[c * step + r * across]]
    return 0


def first_{bytes}(n: i64, steps_: i64, places_: i64):
    steps = view(i64[...], steps_)
    places = view(i64[...], places_)
    done: i64 = move_{bytes}(n, places[0], steps[0], places[1], steps[1])
    return 0


def second_{bytes}(n: i64, steps_: i64, places_: i64):
    steps = view(i64[...], steps_)
    places = view(i64[...], places_)
    done: i64 = move_{bytes}(n, places[1], steps[1], places[2], steps[2])
    return 0


def zero_{bytes}(n: i64, steps_: i64, places_: i64):
    steps = view(i64[...], steps_)
    places = view(i64[...], places_)
    nothing = allocate(i64[2])
    nothing[0] = 0
    nothing[1] = 0
    place: i64 = address_of(address(nothing[0]))
    done: i64 = move_{bytes}(n, place, 0, places[1], steps[1])
    return 0

"""
_VECTORS: Final = """
    floats = view({float}[...], source_)
    turned = view({float}[...], target_)
    left = quotient(columns, {lanes}) * {lanes}
    for c in range(0, left, {lanes}):
        turn_{float}x{lanes}(deep, {lanes} - 1, column, row, address(floats[c * column]), address(turned[c]))"""
_GRID: Final = """
def move_grid(item: i64, n: i64, rows: i64, source: i64, step: i64, across: i64, target: i64, at: i64, over: i64):"""
_GRIDS: Final = """
    if item == {bytes}:
        done_{bytes}: i64 = grid_{bytes}(n, rows, source, step, across, target, at, over)"""
_DENSE: Final = """
    return 0


def move_row(item: i64, n: i64, source: i64, step: i64, target: i64):
    moved: i64 = move_grid(item, n, 1, source, step, 0, target, 1, 0)
    return 0


def dense_copy_as(process: i64, array: i64, type: i64, new_rank: i64, new_sizes: i64):
    own = view(i64[...], process)
    fields = view(i64[...], array)
    marks = view(i32[...], array)
    rank = i64(marks[NDIM])
    item = own[SIZES + type]
    if bitor(bitor(rank == 0, rank > DIMENSIONS), bitand(i64(marks[FLAGS]), ALIGNED) != ALIGNED):
        return 0
    sizes = view(i64[...], fields[DIMS])
    strides = view(i64[...], fields[STRIDESOF])
    total: i64 = 1
    for d in range(rank):
        total = total * sizes[d]
        if rest(strides[d], item) != 0:
            return 0
    if bitor(total == 0, total * item > MOSTCOPIED):
        return 0
    made: i64 = new_array(process, type, new_rank, new_sizes, 0)
    if made == 0:
        return 0
    news = view(i64[...], made)
    at = allocate(i64[DIMENSIONS])
    for d in range(rank):
        at[d] = 0
    length = sizes[rank - 1]
    source: i64 = fields[DATA]
    for r in range(quotient(total, length)):
        moved: i64 = move_row(item, length, source, quotient(strides[rank - 1], item), news[DATA] + r * length * item)
        d: i64 = rank - 2
        while d >= 0:
            at[d] = at[d] + 1
            source = source + strides[d]
            if at[d] < sizes[d]:
                break
            source = source - strides[d] * sizes[d]
            at[d] = 0
            d = d - 1
    return made


def dense_copy(process: i64, array: i64, type: i64):
    fields = view(i64[...], array)
    marks = view(i32[...], array)
    made: i64 = dense_copy_as(process, array, type, i64(marks[NDIM]), fields[DIMS])
    return made

"""


def copying() -> str:
    """The functions, for the processor that code is made for: elements as large as floats are turned in its vectors."""
    vector = current().vector
    helpers, texts = list[str](), list[str]()
    for bytes, type in WHOLES.items():
        vectors = ""
        if bytes in _FLOATS:
            float, lanes = _FLOATS[bytes], vector // bytes
            helpers.append(f"{show(turn_helper(f'{float}x{lanes}'))}\n\n")
            vectors = _VECTORS.format(float=float, lanes=lanes)
        texts.append(of_size(_ROWS, bytes).format(bytes=bytes, type=type, loop=_LOOPS[bytes], vectors=vectors))
    return "".join((*helpers, *texts, _GRID, *(_GRIDS.format(bytes=bytes) for bytes in WHOLES), _DENSE))


def of_size(text: str, bytes: int) -> str:
    """The text in which `x[[i]]` is the i-th element: one number, or two."""
    return re.sub(r"\[\[(.+?)\]\]", r"[2 * (\1):2]" if bytes == 16 else r"[\1]", text)


ROWS: Final = tuple(f"{name}_{bytes}" for name in ("first", "second", "zero") for bytes in WHOLES)
"""The row functions."""
FREEING: Final = """

def {helper}(descriptor: i64, args: i64, count: i64):
    copies = allocate(i64[OPERANDS])
    for k in range(OPERANDS):
        copies[k] = 0
    found: i64 = {helper}_with(descriptor, args, count, copies)
    done: i64 = let_copies_go(OPERANDS, copies)
    return found
"""
"""The text of what calls a helper that may copy operands, and frees the copies."""
