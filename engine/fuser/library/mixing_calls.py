"""Operands of several dtypes, brought to their common one, as text of kernel IR over the words and helpers of `calls`.

In: nothing.  Out: `MIXING`: the common dtype of a call's tensors, by the tables of this process, and copies in it of
those that have another.  Left to Python are tensors with gaps, long ones, dtypes for which the operator has no function
by themselves, as it may refuse them, and half types, which round what is not one element.
"""

from __future__ import annotations

from typing import Final

MIXING: Final = """
def converted(process: i64, array: i64, type: i64, to: i64):
    own = view(i64[...], process)
    fields = view(i64[...], array)
    marks = view(i32[...], array)
    sizes = view(i64[...], fields[DIMS])
    total: i64 = 1
    for d in range(i64(marks[NDIM])):
        total = total * sizes[d]
    row = own[CONVERSIONS + type * TYPECOUNT + to]
    if bitor(row == 0, bitor(bitand(i64(marks[FLAGS]), PLAIN) != PLAIN, total * own[SIZES + to] > MOSTCOPIED)):
        return 0
    made: i64 = new_array(process, to, i64(marks[NDIM]), fields[DIMS], 0)
    if made == 0:
        return 0
    news = view(i64[...], made)
    steps = allocate(i64[2])
    places = allocate(i64[2])
    steps[0] = 1
    steps[1] = 1
    places[0] = fields[DATA]
    places[1] = news[DATA]
    failed: i64 = invoke(row, total, address(steps[0]), address(places[0]))
    if failed != 0:
        Py_DecRef(made)
        return 0
    return made


def common_of(descriptor: i64, count: i64, frame: InOut[i64[...]]):
    it = view(i64[...], descriptor)
    own = view(i64[...], it[PROCESS])
    high: i64 = -1
    low: i64 = -1
    k: i64 = 0
    for i in range(count):
        if it[KINDS + i] == TENSORS:
            fields = view(i64[...], frame[ARRAYS + k])
            marks = view(i32[...], frame[ARRAYS + k])
            type: i64 = type_of(it[PROCESS], fields[DTYPE])
            if type < 0:
                return -1
            if it[ROWS + type] == 0:
                return -1
            if marks[NDIM] == 0:
                if low >= 0:
                    low = own[PROMOTED + low * TYPECOUNT + type]
                else:
                    low = type
            else:
                if high >= 0:
                    high = own[PROMOTED + high * TYPECOUNT + type]
                else:
                    high = type
        if it[KINDS + i] <= SETTINGS:
            k = k + 1
    if high < 0:
        return low
    if low < 0:
        return high
    return own[RAISED + high * TYPECOUNT + low]


def brought_together(descriptor: i64, count: i64, frame: InOut[i64[...]], copies: InOut[i64[...]]):
    it = view(i64[...], descriptor)
    own = view(i64[...], it[PROCESS])
    common: i64 = common_of(descriptor, count, frame)
    if bitor(common < 0, bitor(common == HALVES, common == BRAINS)):
        return -1
    if it[ROWS + common] == 0:
        return -1
    k: i64 = 0
    for i in range(count):
        if it[KINDS + i] == TENSORS:
            fields = view(i64[...], frame[ARRAYS + k])
            type: i64 = type_of(it[PROCESS], fields[DTYPE])
            if type != common:
                made: i64 = converted(it[PROCESS], frame[ARRAYS + k], type, common)
                if made == 0:
                    return -1
                copies[k] = made
                news = view(i64[...], made)
                frame[ARRAYS + k] = made
                frame[PLACES + k] = news[DATA]
        if it[KINDS + i] <= SETTINGS:
            k = k + 1
    return common

"""
