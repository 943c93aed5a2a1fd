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


def option_of(value: i64, options: i64, room: InOut[i64[...]]):
    words = view(i64[...], options)
    for i in range(words[0]):
        if words[1 + i] == value:
            room[0] = i
            return 1
    return 0


def number_of(descriptor: i64, i: i64, value: i64, room: InOut[i64[...]]):
    it = view(i64[...], descriptor)
    process = it[PROCESS]
    kind = it[KINDS + i]
    fits: i64 = 0
    if kind == REALS:
        is_real: i64 = real_of(process, value, address(room[0]))
        fits = is_real
    if kind == INDEX:
        is_whole: i64 = whole_of(process, value, address(room[0]))
        fits = is_whole
    if kind == KEEPS:
        is_flag: i64 = flag_of(process, value, address(room[0]))
        fits = is_flag
    if kind == OPTIONS:
        is_option: i64 = option_of(value, it[GIVEN + i], address(room[0]))
        fits = is_option
    return fits


def looped_type(process: i64, kind: i64, array: i64, type: i64):
    own = view(i64[...], process)
    fields = view(i64[...], array)
    found: i64 = type_of(process, fields[DTYPE])
    wanted: i64 = type
    if bitor(kind == INDICES, kind == LISTS):
        wanted = LONGS
    if kind == TRUTHS:
        wanted = BOOLS
    return select(bitor(wanted < 0, wanted == found), found, -1)


def are_apart(written: i64, tensors: i64, arrays: InOut[i64[...]], items: InOut[i64[...]]):
    for other in range(tensors):
        if bitand(other != written, arrays[other] != 0):
            apart: i64 = lies_apart(arrays[written], items[written], arrays[other], items[other])
            if apart == 0:
                return 0
    return 1


def changed(process: i64, type: i64, array: i64):
    fields = view(i64[...], array)
    marks = view(i32[...], array)
    if bitand(i64(marks[FLAGS]), PLAIN) != PLAIN:
        copy: i64 = dense_copy(process, array, type)
        return copy
    made: i64 = new_array(process, type, i64(marks[NDIM]), fields[DIMS], 0)
    if made != 0:
        own = view(i64[...], process)
        sizes = view(i64[...], fields[DIMS])
        bytes: i64 = own[SIZES + type]
        for d in range(i64(marks[NDIM])):
            bytes = bytes * sizes[d]
        copied = view(i64[...], made)
        memcpy(copied[DATA], fields[DATA], bytes)
    return made


def looped_with(descriptor: i64, args: i64, count: i64, copies: InOut[i64[...]]):
{OPENING}
    words = allocate(i64[LOOPEDWORDS])
    arrays = allocate(i64[OPERANDS])
    items = allocate(i64[OPERANDS])
    types = allocate(i64[OPERANDS])
    is_state = allocate(i64[OPERANDS])
    type: i64 = -1
    tensors: i64 = 0
    numbers: i64 = 0
    lists: i64 = 0
    may: i64 = 0
    starts: i64 = 0
    for i in range(it[GIVENCOUNT]):
        kind = it[KINDS + i]
        value: i64 = own[NONE]
        if i < count:
            only: i64 = only_item(process, kind, given[i])
            if only == 0:
                return 0
            value = only
        if bitor(bitand(kind >= BLOCKS, kind <= CHANGED), bitor(kind == TRUTHS, bitor(kind == INDICES, kind == LISTS))):
            arrays[tensors] = 0
            is_state[tensors] = 0
            words[LOOPRANKS + tensors] = -1
            words[LOOPPLACES + tensors] = 0
            if bitor(kind < MAYBES, bitor(kind > STATES, value != own[NONE])):
                array: i64 = array_of(process, value, it[ISBARE])
                if array == 0:
                    return 0
                fields = view(i64[...], array)
                marks = view(i32[...], array)
                sizes = view(i64[...], fields[DIMS])
                typed: i64 = looped_type(process, kind, array, type)
                if bitor(typed < 0, i64(marks[NDIM]) > DIMENSIONS):
                    return 0
                if kind >= BLOCKS:
                    type = typed
                types[tensors] = typed
                items[tensors] = own[SIZES + typed]
                words[LOOPRANKS + tensors] = i64(marks[NDIM])
                for d in range(i64(marks[NDIM])):
                    words[LOOPSIZES + tensors * DIMENSIONS + d] = sizes[d]
                    if sizes[d] == 0:
                        return 0
                words[LOOPPLACES + tensors] = fields[DATA]
                in_place = bitand(kind == CHANGED, it[TARGET] == 0)
                if bitand(i64(marks[FLAGS]), PLAIN) != PLAIN:
                    if bitor(in_place, bitor(bitand(kind != BLOCKS, kind != CHANGED), it[GIVEN + i] == 0)):
                        return 0
                    words[LOOPPLACES + tensors] = 0
                if bitor(kind == STATES, in_place):
                    if bitand(i64(marks[FLAGS]), WRITEABLE) != WRITEABLE:
                        return 0
                    is_state[tensors] = 1
                if kind == CHANGED:
                    starts = 1
                found: i64 = may_record(descriptor, value, select(in_place, 1, 0))
                may = bitor(may, found)
                arrays[tensors] = array
            tensors = tensors + 1
        else:
            fits: i64 = 1
            if bitor(kind == REALS, bitor(kind == INDEX, bitor(kind == KEEPS, kind == OPTIONS))):
                words[LOOPNUMBERS + numbers] = it[GIVEN + i]
                if i < count:
                    number: i64 = number_of(descriptor, i, value, address(words[LOOPNUMBERS + numbers]))
                    fits = number
                numbers = numbers + 1
            if kind == SETTINGS:
                place: i64 = address_of(address(words[LOOPVALUES + tensors]))
                put: i64 = put_number(process, value, type, kind, place)
                fits = put
                arrays[tensors] = 0
                is_state[tensors] = 0
                words[LOOPRANKS + tensors] = -1
                words[LOOPPLACES + tensors] = place
                tensors = tensors + 1
            if kind == MANYINTS:
                is_list: i64 = list_of(process, value, address(words[LOOPLISTS + lists * LISTEACH]))
                fits = is_list
                lists = lists + 1
            if bitand(i < count, bitor(kind == SAME, bitor(kind == EQUAL, kind == UNREAD))):
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
    for k in range(tensors):
        if is_state[k] != 0:
            apart: i64 = are_apart(k, tensors, arrays, items)
            if apart == 0:
                return 0
    made = allocate(i64[MOSTRESULTS])
    first: i64 = 0
    if bitand(starts != 0, it[TARGET] != 0):
        begun: i64 = changed(process, type, arrays[0])
        if begun == 0:
            return 0
        made[0] = begun
        first = 1
        result = view(i64[...], begun)
        words[LOOPPLACES] = result[DATA]
    for k in range(tensors):
        if bitand(arrays[k] != 0, words[LOOPPLACES + k] == 0):
            copy: i64 = dense_copy(process, arrays[k], types[k])
            if copy == 0:
                let_copies_go(first, made)
                return 0
            copies[k] = copy
            copied = view(i64[...], copy)
            words[LOOPPLACES + k] = copied[DATA]
            arrays[k] = copy
        if words[LOOPPLACES + k] == 0:
            words[LOOPPLACES + k] = words[LOOPPLACES]
    number_of_results: i64 = it[RESULTCOUNT]
    if starts == 0:
        for r in range(number_of_results):
            extents: i64 = address_of(address(words[NEWSIZESAT + r * DIMENSIONS]))
            result_type = select(it[RESULTTYPES + r] < 0, type, it[RESULTTYPES + r])
            place: i64 = new_result(process, result_type, words[NEWRANKSAT + r], extents, 0, address(made[r]))
            if place == 0:
                let_copies_go(r, made)
                return 0
            words[LOOPPLACES + tensors + r] = place
    code: i64 = worked(function, words, words[LOOPWORK], tensors, arrays)
    if bitand(starts != 0, it[TARGET] == 0):
        stopped: i64 = PyErr_Occurred()
        if bitor(code == 0, stopped != 0):
            advanced: i64 = advance(process, given[0])
        if code != 0:
            return 0
        again: i64 = retain(given[0])
        return again
    done: i64 = finished(descriptor, history, args, count, number_of_results, made, code)
    return done
""" + FREEING.format(helper="looped")
