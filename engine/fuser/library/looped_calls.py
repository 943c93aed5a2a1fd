"""The call stub of operators that loops compute (`looped`), as text of kernel IR over the words and helpers of `calls`.

In: nothing.  Out: `LOOPED`.  It puts sizes, numbers and lists of ints into words, asks the function whether they are
for it and what sizes the results have, makes these, and has the function compute them.
"""

from __future__ import annotations

from typing import Final

from engine.fuser.library.copying_calls import FREEING
from engine.fuser.library.object_calls import OPENING

LOOPED: Final = f"""
def flag_of(process: i64, value: i64, room: InOut[i64[...]]):
    own = view(i64[...], process)
    room[0] = select(value == own[TRUE], 1, 0)
    return select(bitor(value == own[TRUE], value == own[FALSE]), 1, 0)


def list_of(process: i64, value: i64, room: InOut[i64[...]]):
    own = view(i64[...], process)
    head = view(i64[...], value)
    if head[1] != own[LIST]:
        return 0
    length: i64 = PyList_Size(value)
    if length > DIMENSIONS:
        return 0
    room[0] = length
    for i in range(length):
        item: i64 = PyList_GetItem(value, i)
        is_whole: i64 = whole_of(process, item, address(room[1 + i]))
        if is_whole == 0:
            return 0
    return 1


def looped_type(process: i64, kind: i64, array: i64, type: i64):
    own = view(i64[...], process)
    fields = view(i64[...], array)
    found: i64 = type_of(process, fields[DTYPE])
    if bitor(kind == INDICES, kind == LISTS):
        return select(found == LONGS, type, -1)
    return select(bitor(type < 0, type == found), found, -1)


def are_apart(descriptor: i64, count: i64, item: i64, tensors: i64, arrays: InOut[i64[...]]):
    it = view(i64[...], descriptor)
    k: i64 = 0
    for i in range(count):
        kind = it[KINDS + i]
        if bitor(kind >= BLOCKS, bitor(kind == INDICES, kind == LISTS)):
            if bitand(kind == STATES, arrays[k] != 0):
                for other in range(tensors):
                    if bitand(other != k, arrays[other] != 0):
                        apart: i64 = lies_apart(arrays[k], item, arrays[other], item)
                        if apart == 0:
                            return 0
            k = k + 1
    return 1


def looped_with(descriptor: i64, args: i64, count: i64, copies: InOut[i64[...]]):
{OPENING}
    words = allocate(i64[LOOPEDWORDS])
    arrays = allocate(i64[OPERANDS])
    type: i64 = -1
    tensors: i64 = 0
    numbers: i64 = 0
    lists: i64 = 0
    states: i64 = 0
    may: i64 = 0
    for i in range(count):
        kind = it[KINDS + i]
        value: i64 = given[i]
        if kind == LISTS:
            only: i64 = only_item(process, value)
            if only == 0:
                return 0
            value = only
        if bitand(kind >= MAYBES, value == own[NONE]):
            words[LOOPRANKS + tensors] = -1
            arrays[tensors] = 0
            tensors = tensors + 1
        else:
            if bitor(kind >= BLOCKS, bitor(kind == INDICES, kind == LISTS)):
                array: i64 = array_of(process, value, it[ISBARE])
                if array == 0:
                    return 0
                fields = view(i64[...], array)
                marks = view(i32[...], array)
                sizes = view(i64[...], fields[DIMS])
                typed: i64 = looped_type(process, kind, array, type)
                if bitor(typed < 0, i64(marks[NDIM]) > DIMENSIONS):
                    return 0
                type = typed
                words[LOOPRANKS + tensors] = i64(marks[NDIM])
                for d in range(i64(marks[NDIM])):
                    words[LOOPSIZES + tensors * DIMENSIONS + d] = sizes[d]
                    if sizes[d] == 0:
                        return 0
                words[LOOPPLACES + tensors] = fields[DATA]
                if bitand(i64(marks[FLAGS]), PLAIN) != PLAIN:
                    if bitor(kind != BLOCKS, it[GIVEN + i] == 0):
                        return 0
                    words[LOOPPLACES + tensors] = 0
                if kind == STATES:
                    if bitand(i64(marks[FLAGS]), WRITEABLE) != WRITEABLE:
                        return 0
                    states = states + 1
                found: i64 = may_record(descriptor, value, 0)
                may = bitor(may, found)
                arrays[tensors] = array
                tensors = tensors + 1
            else:
                fits: i64 = 0
                if kind == REALS:
                    is_real: i64 = real_of(process, value, address(words[LOOPNUMBERS + numbers]))
                    fits = is_real
                    numbers = numbers + 1
                if kind == INDEX:
                    is_whole: i64 = whole_of(process, value, address(words[LOOPNUMBERS + numbers]))
                    fits = is_whole
                    numbers = numbers + 1
                if kind == KEEPS:
                    is_flag: i64 = flag_of(process, value, address(words[LOOPNUMBERS + numbers]))
                    fits = is_flag
                    numbers = numbers + 1
                if kind == MANYINTS:
                    is_list: i64 = list_of(process, value, address(words[LOOPLISTS + lists * LISTEACH]))
                    fits = is_list
                    lists = lists + 1
                if bitor(kind == SAME, bitor(kind == EQUAL, kind == UNREAD)):
                    fixed: i64 = is_fixed(descriptor, i, value)
                    fits = fixed
                if fits == 0:
                    return 0
    if type < 0:
        return 0
    function = it[ROWS + type]
    if function == 0:
        return 0
    history: i64 = history_wanted(descriptor, args, count, may, type)
    if history < 0:
        return 0
    words[LOOPALONE] = select(bitand(it[GIVESFIRST] != 0, history == 0), 1, 0)
    refused: i64 = invoke(function, address(words[0]), 0)
    if refused != 0:
        return 0
    if states != 0:
        apart: i64 = are_apart(descriptor, count, own[SIZES + type], tensors, arrays)
        if apart == 0:
            return 0
    for k in range(tensors):
        if bitand(arrays[k] != 0, words[LOOPPLACES + k] == 0):
            copy: i64 = dense_copy(process, arrays[k], type)
            if copy == 0:
                return 0
            copies[k] = copy
            copied = view(i64[...], copy)
            words[LOOPPLACES + k] = copied[DATA]
            arrays[k] = copy
        if arrays[k] == 0:
            words[LOOPPLACES + k] = words[LOOPPLACES]
    made = allocate(i64[MOSTRESULTS])
    for r in range(it[RESULTCOUNT]):
        extents: i64 = address_of(address(words[NEWSIZESAT + r * DIMENSIONS]))
        result_type = select(it[RESULTTYPES + r] < 0, type, it[RESULTTYPES + r])
        place: i64 = new_result(process, result_type, words[NEWRANKSAT + r], extents, 0, address(made[r]))
        if place == 0:
            let_copies_go(r, made)
            return 0
        words[LOOPPLACES + tensors + r] = place
    code: i64 = 0
    if words[LOOPWORK] < LONG:
        short: i64 = invoke(function, address(words[0]), 1)
        code = short
    else:
        state: i64 = hold(tensors, arrays)
        long: i64 = invoke(function, address(words[0]), 1)
        let_go(state, tensors, arrays)
        code = long
    done: i64 = finished(descriptor, history, args, count, it[RESULTCOUNT], made, code)
    return done
""" + FREEING.format(helper="looped")
