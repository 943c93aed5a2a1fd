"""The call stub of operators that go along a dimension, as text of kernel IR over the words and helpers of `calls`.

In: nothing.  Out: `ALONG`.  It looks at the arguments, finds the dimensions that are gone along, which have to follow
one another, makes of all sizes one before, along and after them, and calls the function for so many dimensions.  Rows
that take long are each left to the function for one dimension, which lets interrupts in.
"""

from __future__ import annotations

from typing import Final

from engine.fuser.library.copying_calls import FREEING
from engine.fuser.library.object_calls import OPENING

ALONG: Final = f"""
def real_of(process: i64, value: i64, room: InOut[i64[...]]):
    own = view(i64[...], process)
    head = view(i64[...], value)
    if head[1] == own[FLOAT]:
        room[0] = head[FLOATVALUE]
        return 1
    whole = allocate(i64[1])
    is_whole: i64 = whole_of(process, value, whole)
    room[0] = bits_of_f64(f64(whole[0]))
    return is_whole


def axis_of(process: i64, value: i64, rank: i64):
    whole = allocate(i64[1])
    is_whole: i64 = whole_of(process, value, whole)
    if is_whole == 0:
        return -1
    axis = whole[0] + select(whole[0] < 0, rank, 0)
    return select(bitand(axis >= 0, axis < rank), axis, -1)


def axes_of(process: i64, value: i64, several: i64, rank: i64, range_: InOut[i64[...]]):
    own = view(i64[...], process)
    head = view(i64[...], value)
    if bitor(head[1] != own[LIST], several == 0):
        alone: i64 = axis_of(process, value, rank)
        range_[0] = alone
        range_[1] = alone + 1
        return select(alone < 0, 0, 1)
    length: i64 = PyList_Size(value)
    if length == 0:
        return 0
    for i in range(length):
        item: i64 = PyList_GetItem(value, i)
        axis: i64 = axis_of(process, item, rank)
        if axis < 0:
            return 0
        if i == 0:
            range_[0] = axis
        if axis != range_[0] + i:
            return 0
        range_[1] = axis + 1
    return 1


def last_of(process: i64, value: i64, array: i64, range_: InOut[i64[...]]):
    own = view(i64[...], process)
    head = view(i64[...], value)
    if head[1] != own[LIST]:
        return 0
    fields = view(i64[...], array)
    marks = view(i32[...], array)
    sizes = view(i64[...], fields[DIMS])
    rank = i64(marks[NDIM])
    length: i64 = PyList_Size(value)
    if bitor(length == 0, length > rank):
        return 0
    size = allocate(i64[1])
    for i in range(length):
        item: i64 = PyList_GetItem(value, i)
        is_whole: i64 = whole_of(process, item, size)
        if bitor(is_whole == 0, size[0] != sizes[rank - length + i]):
            return 0
    range_[0] = rank - length
    range_[1] = rank
    return 1


def fold(array: i64, vector: i64, range_: InOut[i64[...]], folded: InOut[i64[...]]):
    fields = view(i64[...], array)
    marks = view(i32[...], array)
    sizes = view(i64[...], fields[DIMS])
    rank = i64(marks[NDIM])
    for j in range(3):
        folded[j] = 1
    for d in range(rank):
        j = select(d < range_[0], 0, select(d < range_[1], 1, 2))
        folded[j] = folded[j] * sizes[d]
    if vector != 0:
        others = view(i64[...], vector)
        counts = view(i32[...], vector)
        lengths = view(i64[...], others[DIMS])
        if i64(counts[NDIM]) != range_[1] - range_[0]:
            return 0
        for e in range(range_[1] - range_[0]):
            if lengths[e] != sizes[range_[0] + e]:
                return 0
    return 1


def gone_along_with(descriptor: i64, args: i64, count: i64, copies: InOut[i64[...]]):
{OPENING}
    words = allocate(i64[ALONGWORDS])
    arrays = allocate(i64[OPERANDS])
    dtype: i64 = 0
    whole: i64 = 0
    vector: i64 = 0
    axes: i64 = 0
    several: i64 = 0
    last: i64 = 0
    keeps: i64 = 0
    tensors: i64 = 0
    numbers: i64 = 0
    may: i64 = 0
    for i in range(count):
        kind = it[KINDS + i]
        value = given[i]
        if bitor(kind == WHOLES, kind == VECTORS):
            given_array: i64 = array_of(process, value, it[ISBARE])
            if given_array == 0:
                return 0
            given_fields = view(i64[...], given_array)
            marks = view(i32[...], given_array)
            if dtype == 0:
                dtype = given_fields[DTYPE]
            if given_fields[DTYPE] != dtype:
                return 0
            array: i64 = given_array
            if bitand(i64(marks[FLAGS]), PLAIN) != PLAIN:
                typed: i64 = type_of(process, dtype)
                if bitor(it[MAYCOPY] == 0, typed < 0):
                    return 0
                copy: i64 = dense_copy(process, given_array, typed)
                if copy == 0:
                    return 0
                copies[tensors] = copy
                array = copy
            fields = view(i64[...], array)
            found: i64 = may_record(descriptor, value, 0)
            may = bitor(may, found)
            first: i64 = select(kind == WHOLES, whole, vector)
            if first != 0:
                alike: i64 = has_same_sizes(array, first)
                if alike == 0:
                    return 0
            if kind == WHOLES:
                whole = array
            else:
                vector = array
            arrays[tensors] = array
            words[PLACESAT + tensors] = fields[DATA]
            tensors = tensors + 1
        else:
            if kind == REALS:
                real: i64 = real_of(process, value, address(words[NUMBERSAT + numbers]))
                if real == 0:
                    return 0
                numbers = numbers + 1
            else:
                if bitor(kind == AXIS, kind == AXES):
                    axes = value
                    several = select(kind == AXES, 1, 0)
                else:
                    if kind == LASTSIZES:
                        last = value
                    else:
                        if kind == KEEPS:
                            if value == own[TRUE]:
                                keeps = 1
                            else:
                                if value != own[FALSE]:
                                    return 0
                        else:
                            fixed: i64 = is_fixed(descriptor, i, value)
                            if fixed == 0:
                                return 0
    if whole == 0:
        return 0
    marks_ = view(i32[...], whole)
    rank = i64(marks_[NDIM])
    if rank > DIMENSIONS:
        return 0
    range_ = allocate(i64[2])
    range_[0] = 0
    range_[1] = rank
    if axes != 0:
        placed: i64 = axes_of(process, axes, several, rank, range_)
        if placed == 0:
            return 0
    if last != 0:
        fitted: i64 = last_of(process, last, whole, range_)
        if fitted == 0:
            return 0
    if it[FIXEDAXIS] >= 0:
        if it[FIXEDAXIS] >= rank:
            return 0
        range_[0] = it[FIXEDAXIS]
        range_[1] = it[FIXEDAXIS] + 1
    fits: i64 = fold(whole, vector, range_, words)
    total = words[0] * words[1] * words[2]
    if bitor(fits == 0, total == 0):
        return 0
    type: i64 = type_of(process, dtype)
    if type < 0:
        return 0
    history: i64 = history_wanted(descriptor, args, count, may, it[RESULTS + type])
    if history < 0:
        return 0
    function: i64 = it[SOLIDS + type]
    if words[2] == 1:
        function = it[PLANES + type]
        if bitand(words[0] == 1, it[ROWS + type] != 0):
            function = it[ROWS + type]
    if function == 0:
        return 0
    results = allocate(i64[MOSTRESULTS])
    shape = allocate(i64[DIMENSIONS])
    fields_ = view(i64[...], whole)
    sizes = view(i64[...], fields_[DIMS])
    bit: i64 = 1
    for r in range(it[RESULTCOUNT]):
        kept: i64 = 0
        for d in range(rank):
            is_along = bitand(bitand(d >= range_[0], d < range_[1]), bitand(it[ISREDUCED], bit) != 0)
            if bitor(bitor(keeps != 0, last != 0), select(is_along, 0, 1) != 0):
                shape[kept] = select(is_along, 1, sizes[d])
                kept = kept + 1
        places: i64 = address_of(address(shape[0]))
        place: i64 = new_result(process, it[RESULTS + type], kept, places, 0, address(results[r]))
        if place == 0:
            let_copies_go(r, results)
            return 0
        words[PLACESAT + tensors + r] = place
        bit = bit * 2
    code: i64 = 0
    if quotient(total * it[WORK], 1024) < LONG:
        short: i64 = invoke(function, address(words[0]))
        code = short
    else:
        state: i64 = hold(tensors, arrays)
        long: i64 = invoke(function, address(words[0]))
        code = long
        let_go(state, tensors, arrays)
    done: i64 = finished(descriptor, history, args, count, it[RESULTCOUNT], results, code)
    return done
""" + FREEING.format(helper="gone_along")
