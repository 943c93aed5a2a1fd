"""The call stub of functions of whole operators, as text of kernel IR over the words and helpers of `calls`.

In: nothing.  Out: `SHAPED`.  It puts the sizes of all tensors into words, asks the function whether they are for it and
what sizes the result has, makes that, and has the function compute it.
"""

from __future__ import annotations

from typing import Final

from engine.fuser.library.copying_calls import FREEING
from engine.fuser.library.object_calls import OPENING

SHAPED: Final = f"""
def same_words(process: i64, value: i64, wanted: i64):
    own = view(i64[...], process)
    head = view(i64[...], value)
    if head[1] != own[LIST]:
        return 0
    words = view(i64[...], wanted)
    length: i64 = PyList_Size(value)
    if length != words[0]:
        return 0
    number = allocate(i64[1])
    for i in range(length):
        item: i64 = PyList_GetItem(value, i)
        is_whole: i64 = whole_of(process, item, number)
        if bitor(is_whole == 0, number[0] != words[1 + i]):
            return 0
    return 1


def put_strides(array: i64, item: i64, contiguous: i64, words: InOut[i64[...]], place: i64):
    fields = view(i64[...], array)
    marks = view(i32[...], array)
    sizes = view(i64[...], fields[DIMS])
    strides = view(i64[...], fields[STRIDESOF])
    rank = i64(marks[NDIM])
    for d in range(rank):
        words[place + d] = quotient(strides[d], item)
        if rest(strides[d], item) != 0:
            return 0
    one = rank - contiguous
    if bitor(bitand(i64(marks[FLAGS]), ALIGNED) == 0, bitand(sizes[one] != 1, strides[one] != item)):
        return 0
    words[place + one] = 1
    return 1


def put_dense_strides(sizes: i64[...], rank: i64, words: InOut[i64[...]], place: i64):
    step: i64 = 1
    for j in range(rank):
        words[place + rank - 1 - j] = step
        step = step * sizes[rank - 1 - j]
    return 0


def shaped_with(descriptor: i64, args: i64, count: i64, copies: InOut[i64[...]]):
{OPENING}
    words = allocate(i64[SHAPEDWORDS])
    arrays = allocate(i64[OPERANDS])
    dtype: i64 = 0
    rowed: i64 = 0
    tensors: i64 = 0
    may: i64 = 0
    type: i64 = -1
    for i in range(count):
        kind = it[KINDS + i]
        value = given[i]
        if bitand(kind >= RANKED, kind <= ROWED):
            array: i64 = array_of(process, value, it[ISBARE])
            if array == 0:
                return 0
            fields = view(i64[...], array)
            marks = view(i32[...], array)
            sizes = view(i64[...], fields[DIMS])
            rank = i64(marks[NDIM])
            if dtype == 0:
                dtype = fields[DTYPE]
                typed: i64 = type_of(process, dtype)
                type = typed
            if bitor(fields[DTYPE] != dtype, type < 0):
                return 0
            lies: i64 = select(bitand(i64(marks[FLAGS]), PLAIN) == PLAIN, 1, 0)
            if bitor(kind == STEPPED, kind == TURNED):
                if rank != it[GIVEN + i]:
                    return 0
                place = STRIDESIN + tensors * EXTENTSEACH
                fits: i64 = put_strides(array, own[SIZES + type], select(kind == TURNED, 2, 1), words, place)
                lies = fits
                if lies == 0:
                    done: i64 = put_dense_strides(sizes, rank, words, place)
            words[PLACESIN + tensors] = fields[DATA]
            if lies == 0:
                if bitor(it[MAYCOPY] == 0, kind == TURNED):
                    return 0
                words[PLACESIN + tensors] = 0
            if kind == ROWED:
                if bitor(rank < 2, rank > DIMENSIONS):
                    return 0
                rowed = array
                rows: i64 = 1
                for d in range(rank - 1):
                    rows = rows * sizes[d]
                words[tensors * EXTENTSEACH] = rows
                words[tensors * EXTENTSEACH + 1] = sizes[rank - 1]
            else:
                if rank != it[GIVEN + i]:
                    return 0
                for d in range(rank):
                    words[tensors * EXTENTSEACH + d] = sizes[d]
            for d in range(rank):
                if sizes[d] == 0:
                    return 0
            found: i64 = may_record(descriptor, value, 0)
            may = bitor(may, found)
            arrays[tensors] = array
            tensors = tensors + 1
        else:
            if kind == WORDS:
                same: i64 = same_words(process, value, it[GIVEN + i])
                if same == 0:
                    return 0
            else:
                fixed: i64 = is_fixed(descriptor, i, value)
                if fixed == 0:
                    return 0
    history: i64 = history_wanted(descriptor, args, count, may, it[RESULTS + type])
    if history < 0:
        return 0
    function = it[ROWS + type]
    if function == 0:
        return 0
    refused: i64 = invoke(function, address(words[0]), 0)
    if refused != 0:
        return 0
    for k in range(tensors):
        if words[PLACESIN + k] == 0:
            copy: i64 = dense_copy(process, arrays[k], type)
            if copy == 0:
                return 0
            copies[k] = copy
            copied = view(i64[...], copy)
            words[PLACESIN + k] = copied[DATA]
            arrays[k] = copy
    shape = allocate(i64[DIMENSIONS])
    rank_: i64 = words[RANKIN]
    if rowed == 0:
        for d in range(rank_):
            shape[d] = words[SIZESIN + d]
    else:
        head = view(i64[...], rowed)
        counts = view(i32[...], rowed)
        lengths = view(i64[...], head[DIMS])
        rank_ = i64(counts[NDIM])
        for d in range(rank_ - 1):
            shape[d] = lengths[d]
        shape[rank_ - 1] = words[SIZESIN + 1]
    total: i64 = 1
    for d in range(rank_):
        total = total * shape[d]
    if total == 0:
        return 0
    places: i64 = address_of(address(shape[0]))
    made = allocate(i64[1])
    target: i64 = new_result(process, it[RESULTS + type], rank_, places, 0, made)
    if target == 0:
        return 0
    words[PLACESIN + tensors] = target
    code: i64 = worked(function, words, words[WORKIN], tensors, arrays)
    ended: i64 = finished(descriptor, history, args, count, 1, made, code)
    return ended
""" + FREEING.format(helper="shaped")
