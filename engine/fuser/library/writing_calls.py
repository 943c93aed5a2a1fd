"""The writes of call stubs, as text of kernel IR over the words and helpers of `calls`.

In: nothing.  Out: `WRITING`: whether a tensor may be written to, with memory that no other operand shares, and the
version of its memory advanced.
"""

from __future__ import annotations

from typing import Final

WRITING: Final = """
def reach(array: i64, item: i64, bounds: InOut[i64[...]]):
    fields = view(i64[...], array)
    marks = view(i32[...], array)
    sizes = view(i64[...], fields[DIMS])
    strides = view(i64[...], fields[STRIDESOF])
    begin: i64 = fields[DATA]
    end: i64 = begin + item
    for d in range(i64(marks[NDIM])):
        if sizes[d] == 0:
            end = begin
        else:
            span = strides[d] * (sizes[d] - 1)
            begin = begin + minimum(span, 0)
            end = end + maximum(span, 0)
    bounds[0] = begin
    bounds[1] = end
    return 0


def has_own_elements(array: i64):
    fields = view(i64[...], array)
    marks = view(i32[...], array)
    sizes = view(i64[...], fields[DIMS])
    strides = view(i64[...], fields[STRIDESOF])
    for a in range(i64(marks[NDIM])):
        if sizes[a] > 1:
            if strides[a] == 0:
                return 0
            for b in range(a):
                if sizes[b] > 1:
                    one = abs(strides[a])
                    other = abs(strides[b])
                    if bitand(one < other * sizes[b], other < one * sizes[a]):
                        return 0
    return 1


def aim(it: InOut[i64[...]], frame: InOut[i64[...]], target: i64):
    own = view(i64[...], it[PROCESS])
    array: i64 = array_of(it[PROCESS], target, it[ISBARE])
    if array == 0:
        return 0
    fields = view(i64[...], array)
    marks = view(i32[...], array)
    if fields[DTYPE] != own[DTYPES + frame[TYPE]]:
        return 0
    if bitand(i64(marks[FLAGS]), WRITEABLE) != WRITEABLE:
        return 0
    if i64(marks[NDIM]) != frame[RANK]:
        return 0
    sizes = view(i64[...], fields[DIMS])
    strides = view(i64[...], fields[STRIDESOF])
    for d in range(frame[RANK]):
        if sizes[d] != frame[SHAPE + d]:
            return 0
        frame[OUTSTRIDES + d] = strides[d]
    alone: i64 = has_own_elements(array)
    if alone == 0:
        return 0
    width = frame[WIDTH]
    bounds = allocate(i64[2])
    others = allocate(i64[2])
    reach(array, frame[ITEMS + width], bounds)
    for k in range(width):
        other = frame[ARRAYS + k]
        if bitand(other != 0, other != array):
            reach(other, frame[ITEMS + k], others)
            if bitand(bounds[0] < others[1], others[0] < bounds[1]):
                return 0
    frame[ARRAYS + width] = array
    frame[PLACES + width] = fields[DATA]
    return 1


def advance(process: i64, tensor: i64):
    own = view(i64[...], process)
    slots = view(i64[...], tensor)
    storage: i64 = slots[own[OWNSTORAGE]]
    if storage == own[NONE]:
        made: i64 = PyObject_GetAttr(tensor, own[MEMORY])
        if made == 0:
            PyErr_Clear()
            return 0
        Py_DecRef(made)
        storage = made
    head = view(i64[...], storage)
    if head[1] != own[STORAGE]:
        return 0
    before = head[own[VERSION]]
    if before == 0:
        return 0
    overflow = allocate(i32[1])
    number: i64 = PyLong_AsLongLongAndOverflow(before, address(overflow[0]))
    after: i64 = PyLong_FromLongLong(number + 1)
    if after == 0:
        PyErr_Clear()
        return 0
    head[own[VERSION]] = after
    Py_DecRef(before)
    return 1
"""
