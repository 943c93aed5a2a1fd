"""The call stubs of operators that move elements, as text of kernel IR over the words and helpers of `calls`.

In: nothing.  Out: `MOVING`: tensors joined along a dimension or a new one, and parts of a tensor that indices name or
a mask chooses, read or written.  What is written goes there in the order of the indices, of which the last one of a
place holds: in one thread, some at a time.  Others may change the indices meanwhile, so that each is looked at again.
"""

from __future__ import annotations

from typing import Final

from engine.fuser.library.object_calls import OPENING

MOVING: Final = f"""
def plain_array(descriptor: i64, value: i64):
    it = view(i64[...], descriptor)
    array: i64 = array_of(it[PROCESS], value, it[ISBARE])
    if array == 0:
        return 0
    marks = view(i32[...], array)
    if bitor(bitand(i64(marks[FLAGS]), PLAIN) != PLAIN, i64(marks[NDIM]) > DIMENSIONS - 1):
        return 0
    return array


def fits_beside(array: i64, first: i64, axis: i64):
    fields = view(i64[...], array)
    others = view(i64[...], first)
    marks = view(i32[...], array)
    counts = view(i32[...], first)
    if bitor(fields[DTYPE] != others[DTYPE], marks[NDIM] != counts[NDIM]):
        return 0
    sizes = view(i64[...], fields[DIMS])
    lengths = view(i64[...], others[DIMS])
    for d in range(i64(marks[NDIM])):
        if bitand(d != axis, sizes[d] != lengths[d]):
            return 0
    return 1


def join_piece(context: i64, begin: i64, end: i64):
    it = view(i64[...], context)
    target = it[0]
    source = it[1]
    pitch = it[2]
    chunk = it[3]
    row: i64 = quotient(begin, it[4])
    at: i64 = (begin - row * it[4]) * COPIED
    for b in range(begin, end):
        memcpy(target + row * pitch + at, source + row * chunk + at, minimum(COPIED, chunk - at))
        at = at + COPIED
        if at >= chunk:
            at = 0
            row = row + 1
    return 0


def joined(descriptor: i64, args: i64, count: i64):
{OPENING}
    head = view(i64[...], given[0])
    if head[1] != own[LIST]:
        return 0
    length: i64 = PyList_Size(given[0])
    if bitor(length == 0, length > TOGETHER):
        return 0
    arrays = allocate(i64[TOGETHER])
    may: i64 = 0
    for i in range(length):
        item: i64 = PyList_GetItem(given[0], i)
        array: i64 = plain_array(descriptor, item)
        if array == 0:
            return 0
        found: i64 = may_record(descriptor, item, 0)
        may = bitor(may, found)
        arrays[i] = array
    marks = view(i32[...], arrays[0])
    fields = view(i64[...], arrays[0])
    sizes = view(i64[...], fields[DIMS])
    rank = i64(marks[NDIM])
    axis: i64 = 0
    if count > 1:
        placed: i64 = axis_of(process, given[1], rank + it[ISSTACKED])
        axis = placed
    if bitor(axis < 0, rank + it[ISSTACKED] == 0):
        return 0
    along: i64 = 0
    for i in range(length):
        fits: i64 = fits_beside(arrays[i], arrays[0], select(it[ISSTACKED] != 0, -1, axis))
        if fits == 0:
            return 0
        theirs = view(i64[...], arrays[i])
        own_sizes = view(i64[...], theirs[DIMS])
        if it[ISSTACKED] != 0:
            along = along + 1
        else:
            along = along + own_sizes[axis]
    type: i64 = type_of(process, fields[DTYPE])
    if type < 0:
        return 0
    history: i64 = history_wanted(descriptor, args, count, may, type)
    if history < 0:
        return 0
    shape = allocate(i64[DIMENSIONS])
    outer: i64 = 1
    inner: i64 = own[SIZES + type]
    total: i64 = own[SIZES + type]
    for d in range(rank + it[ISSTACKED]):
        size: i64 = along
        if d != axis:
            size = sizes[d - select(bitand(it[ISSTACKED] != 0, d > axis), 1, 0)]
            if d < axis:
                outer = outer * size
            else:
                inner = inner * size
        shape[d] = size
        total = total * size
    if total == 0:
        return 0
    places: i64 = address_of(address(shape[0]))
    made = allocate(i64[1])
    start: i64 = new_result(process, type, rank + it[ISSTACKED], places, 0, made)
    if start == 0:
        return 0
    at: i64 = start
    state: i64 = 0
    if total >= LONGBYTES:
        held: i64 = hold(length, arrays)
        state = held
    work = allocate(i64[5])
    place: i64 = address_of(address(work[0]))
    code: i64 = 0
    for i in range(length):
        source = view(i64[...], arrays[i])
        source_sizes = view(i64[...], source[DIMS])
        chunk: i64 = inner
        if it[ISSTACKED] == 0:
            chunk = inner * source_sizes[axis]
        work[0] = at
        work[1] = source[DATA]
        work[2] = along * inner
        work[3] = chunk
        work[4] = maximum(quotient(chunk + COPIED - 1, COPIED), 1)
        if state == 0:
            short: i64 = join_piece(place, 0, outer * work[4])
        else:
            grain = quotient(PARTBYTES, minimum(chunk, COPIED) + 1) + 1
            long: i64 = invoke(own[PARALLEL], own[JOINPIECE], place, outer * work[4], grain)
            code = long
            if code != 0:
                break
        at = at + chunk
    if state != 0:
        let_go(state, length, arrays)
    done: i64 = finished(descriptor, history, args, count, 1, made, code)
    return done


def only_item(process: i64, kind: i64, value: i64):
    if kind != LISTS:
        return value
    own = view(i64[...], process)
    head = view(i64[...], value)
    if head[1] != own[LIST]:
        return 0
    length: i64 = PyList_Size(value)
    if length != 1:
        return 0
    item: i64 = PyList_GetItem(value, 0)
    return item


def are_within(numbers: InOut[i64[...]], many: i64, size: i64, least: i64):
    low: i64 = 0
    high: i64 = -1
    for i in range(many):
        low = minimum(low, numbers[i])
        high = maximum(high, numbers[i])
    return select(bitor(low < least, high >= size), 0, 1)


def look_piece(context: i64, begin: i64, end: i64):
    it = view(i64[...], context)
    target = it[0]
    source = it[1]
    row = it[2]
    extent = it[3]
    many = it[4]
    numbers = view(i64[...], it[5])
    block: i64 = quotient(begin, many)
    at: i64 = begin - block * many
    for b in range(begin, end):
        number = numbers[at] + select(numbers[at] < 0, extent, 0)
        memcpy(target + b * row, source + (block * extent + number) * row, row)
        at = at + 1
        if at == many:
            at = 0
            block = block + 1
    return 0


def looked_up(descriptor: i64, args: i64, count: i64):
{OPENING}
    table: i64 = 0
    indices: i64 = 0
    may: i64 = 0
    along: i64 = 0
    least: i64 = 0
    for i in range(count):
        kind = it[KINDS + i]
        value: i64 = only_item(process, kind, given[i])
        if value == 0:
            return 0
        if bitor(bitor(kind == TABLES, kind == INDICES), kind == LISTS):
            array: i64 = plain_array(descriptor, value)
            if array == 0:
                return 0
            if kind == TABLES:
                table = array
                found: i64 = may_record(descriptor, value, 0)
                may = found
            else:
                indices = array
                least = select(kind == LISTS, 1, 0)
        else:
            if kind == AXIS:
                along = value
            else:
                fixed: i64 = is_fixed(descriptor, i, value)
                if fixed == 0:
                    return 0
    fields = view(i64[...], table)
    marks = view(i32[...], table)
    sizes = view(i64[...], fields[DIMS])
    places = view(i64[...], indices)
    counts = view(i32[...], indices)
    lengths = view(i64[...], places[DIMS])
    type: i64 = type_of(process, fields[DTYPE])
    if bitor(bitor(type < 0, places[DTYPE] != own[DTYPES + LONGS]), i64(marks[NDIM]) == 0):
        return 0
    if bitand(it[FIXEDRANK] != 0, i64(marks[NDIM]) != it[FIXEDRANK]):
        return 0
    history: i64 = history_wanted(descriptor, args, count, may, type)
    if history < 0:
        return 0
    rank = i64(counts[NDIM]) + i64(marks[NDIM]) - 1
    if rank > DIMENSIONS:
        return 0
    axis: i64 = 0
    if along != 0:
        placed: i64 = axis_of(process, along, i64(marks[NDIM]))
        if bitor(placed < 0, i64(counts[NDIM]) != 1):
            return 0
        axis = placed
    shape = allocate(i64[DIMENSIONS])
    outer: i64 = 1
    many: i64 = 1
    row: i64 = own[SIZES + type]
    for d in range(axis):
        shape[d] = sizes[d]
        outer = outer * sizes[d]
    for d in range(i64(counts[NDIM])):
        shape[axis + d] = lengths[d]
        many = many * lengths[d]
    for d in range(axis + 1, i64(marks[NDIM])):
        shape[i64(counts[NDIM]) + d - 1] = sizes[d]
        row = row * sizes[d]
    if outer * many * row == 0:
        return 0
    numbers = view(i64[...], places[DATA])
    extent = sizes[axis]
    within: i64 = are_within(numbers, many, extent, select(least != 0, 0 - extent, 0))
    if within == 0:
        return 0
    at: i64 = address_of(address(shape[0]))
    made = allocate(i64[1])
    target: i64 = new_result(process, type, rank, at, 0, made)
    if target == 0:
        return 0
    arrays = allocate(i64[2])
    arrays[0] = table
    arrays[1] = indices
    work = allocate(i64[6])
    work[0] = target
    work[1] = fields[DATA]
    work[2] = row
    work[3] = extent
    work[4] = many
    work[5] = places[DATA]
    place: i64 = address_of(address(work[0]))
    code: i64 = 0
    if outer * many * row < LONGBYTES:
        short: i64 = look_piece(place, 0, outer * many)
    else:
        state: i64 = hold(2, arrays)
        long: i64 = invoke(own[PARALLEL], own[LOOKPIECE], place, outer * many, quotient(PARTBYTES, row) + 1)
        let_go(state, 2, arrays)
        code = long
    done: i64 = finished(descriptor, history, args, count, 1, made, code)
    return done


def lies_apart(array: i64, item: i64, other: i64, other_item: i64):
    bounds = allocate(i64[2])
    others = allocate(i64[2])
    reach(array, item, bounds)
    reach(other, other_item, others)
    return select(bitand(bounds[0] < others[1], others[0] < bounds[1]), 0, 1)


def fits_places(target: i64, indices: i64, values: i64, leading: i64, many: i64, axes: i64):
    marks = view(i32[...], target)
    fields = view(i64[...], target)
    sizes = view(i64[...], fields[DIMS])
    numbers = view(i64[...], indices)
    lengths = view(i64[...], numbers[DIMS])
    counts = view(i32[...], values)
    theirs = view(i64[...], values)
    given = view(i64[...], theirs[DIMS])
    rank = i64(marks[NDIM]) - leading + axes
    total: i64 = 1
    for d in range(i64(counts[NDIM])):
        total = total * given[d]
    if total == 1:
        return select(i64(counts[NDIM]) <= rank, 1, 0)
    if i64(counts[NDIM]) != rank:
        return 0
    for d in range(rank):
        wanted: i64 = many
        if d >= axes:
            wanted = sizes[leading + d - axes]
        else:
            if many < 0:
                wanted = lengths[d]
        if given[d] != wanted:
            return 0
    return 2


def put_piece(context: i64, begin: i64, end: i64):
    it = view(i64[...], context)
    target = it[0]
    source: i64 = it[1]
    left: i64 = it[2]
    size = it[3]
    row = it[4]
    step = it[5]
    extent = it[6]
    chosen = view(i64[...], it[7])
    flags = view(u8[...], it[7])
    is_mask = it[8]
    for i in range(begin, end):
        place: i64 = i
        is_chosen: i64 = 1
        if is_mask != 0:
            is_chosen = i64(flags[i])
        else:
            number = chosen[i]
            place = number + select(number < 0, extent, 0)
        if bitand(bitand(is_chosen != 0, left > 0), bitand(place >= 0, place < extent)):
            moved: i64 = move_row(size, row, source, select(step != 0, 1, 0), target + place * row * size)
            source = source + step
            left = left - 1
    it[1] = source
    it[2] = left
    return 0


def put_in_order(context: i64, total: i64, most: i64):
    at: i64 = 0
    while at < total:
        end = minimum(at + most, total)
        put_piece(context, at, end)
        at = end
        if at < total:
            stopped: i64 = tsrepl_poll()
            if stopped != 0:
                return stopped
    return 0


def placed(descriptor: i64, args: i64, count: i64):
{OPENING}
    item: i64 = only_item(process, LISTS, given[1])
    if item == 0:
        return 0
    target: i64 = plain_array(descriptor, given[0])
    indices: i64 = plain_array(descriptor, item)
    values: i64 = plain_array(descriptor, given[2])
    if bitor(target == 0, bitor(indices == 0, values == 0)):
        return 0
    if count > 3:
        fixed: i64 = is_fixed(descriptor, 3, given[3])
        if fixed == 0:
            return 0
    may: i64 = may_record(descriptor, given[0], 1)
    also: i64 = may_record(descriptor, given[2], 0)
    if bitor(may, also) != 0:
        recording: i64 = is_recording(process)
        if recording != 0:
            return 0
    fields = view(i64[...], target)
    marks = view(i32[...], target)
    sizes = view(i64[...], fields[DIMS])
    numbers = view(i64[...], indices)
    counts = view(i32[...], indices)
    lengths = view(i64[...], numbers[DIMS])
    theirs = view(i64[...], values)
    type: i64 = type_of(process, fields[DTYPE])
    if bitor(type < 0, bitor(theirs[DTYPE] != fields[DTYPE], bitand(i64(marks[FLAGS]), WRITEABLE) != WRITEABLE)):
        return 0
    total: i64 = 1
    for d in range(i64(counts[NDIM])):
        total = total * lengths[d]
    leading: i64 = 1
    axes: i64 = i64(counts[NDIM])
    many: i64 = -1
    if numbers[DTYPE] == own[DTYPES + BOOLS]:
        leading = axes
        axes = 1
        if bitor(leading == 0, leading > i64(marks[NDIM])):
            return 0
        for d in range(leading):
            if lengths[d] != sizes[d]:
                return 0
        truths = view(u8[...], numbers[DATA])
        many = 0
        for i in range(total):
            many = many + i64(truths[i])
    else:
        if bitor(numbers[DTYPE] != own[DTYPES + LONGS], marks[NDIM] == 0):
            return 0
        places = view(i64[...], numbers[DATA])
        within: i64 = are_within(places, total, sizes[0], 0 - sizes[0])
        if within == 0:
            return 0
    fits: i64 = fits_places(target, indices, values, leading, many, axes)
    if fits == 0:
        return 0
    size = own[SIZES + type]
    apart: i64 = lies_apart(target, size, values, size)
    aside: i64 = lies_apart(target, size, indices, select(many >= 0, 1, 8))
    if bitor(apart == 0, aside == 0):
        return 0
    row: i64 = 1
    for d in range(leading, i64(marks[NDIM])):
        row = row * sizes[d]
    advanced: i64 = advance(process, given[0])
    if advanced == 0:
        return 0
    work = allocate(i64[9])
    work[0] = fields[DATA]
    work[1] = theirs[DATA]
    work[2] = select(many >= 0, many, total)
    work[3] = size
    work[4] = row
    work[5] = select(fits == 2, row * size, 0)
    work[6] = select(many >= 0, total, sizes[0])
    work[7] = numbers[DATA]
    work[8] = select(many >= 0, 1, 0)
    place: i64 = address_of(address(work[0]))
    each = row * size + 64
    if total * each < LONGBYTES:
        short: i64 = put_piece(place, 0, total)
    else:
        arrays = allocate(i64[3])
        arrays[0] = target
        arrays[1] = indices
        arrays[2] = values
        state: i64 = hold(3, arrays)
        code: i64 = put_in_order(place, total, quotient(COPIED, each) + 1)
        let_go(state, 3, arrays)
        if code != 0:
            return 0
    again: i64 = retain(given[0])
    return again


def paired(descriptor: i64, args: i64, count: i64):
    it = view(i64[...], descriptor)
    first: i64 = gone_along(it[FIRST], args, count)
    if first == 0:
        return 0
    second: i64 = gone_along(it[SECOND], args, count)
    if second == 0:
        Py_DecRef(first)
        return 0
    pair: i64 = PyTuple_New(2)
    if pair == 0:
        PyErr_Clear()
        Py_DecRef(first)
        Py_DecRef(second)
        return 0
    PyTuple_SetItem(pair, 0, first)
    PyTuple_SetItem(pair, 1, second)
    return pair
"""
