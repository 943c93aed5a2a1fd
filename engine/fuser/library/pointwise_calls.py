"""The call stub of pointwise operators, as text of kernel IR over the words and helpers of `calls`.

In: nothing.  Out: `SPREADING`: operands of one shape, the order of the result's dimensions, dimensions merged;
`WRITING`: tensors that are written; `WALKING`: rows, in threads where that pays; `POINTWISE`, the stub.

Note [Rows across memory]
Where the neighbours in a row are far apart for an operand, and those of another dimension are not, each element lies
in a line of memory of its own, and a whole row of lines is gone from the cache before the next row needs them.  So rows
are walked in blocks (`block`): a few elements of every row first, then the next few.

Note [Tiles]
Row functions know elements that are next to each other, so that there is one loop of each and not one for each way in
which operands may lie.  Where a row says that it does not know the distances (it gives 1), some elements of some rows
are laid out in memory that stays in the cache (`tile`), for each operand that lies otherwise, and likewise the result;
where all of them follow one another, the rows are one.
"""

from __future__ import annotations

from typing import Final

from engine.fuser.library.copying_calls import FREEING

SPREADING: Final = """
def flatten(frame: InOut[i64[...]]):
    width = frame[WIDTH]
    total: i64 = 1
    for k in range(width):
        array = frame[ARRAYS + k]
        frame[STEPS + k] = select(array == 0, 0, frame[ITEMS + k])
        if array != 0:
            marks = view(i32[...], array)
            fields = view(i64[...], array)
            sizes = view(i64[...], fields[DIMS])
            total = 1
            frame[RANK] = i64(marks[NDIM])
            for d in range(i64(marks[NDIM])):
                total = total * sizes[d]
                frame[SHAPE + d] = sizes[d]
    frame[STEPS + width] = frame[ITEMS + width]
    frame[EXTENTS] = total
    frame[DEPTH] = 1
    frame[TOTAL] = total
    return 1


def spread(frame: InOut[i64[...]]):
    width = frame[WIDTH]
    rank: i64 = 0
    for k in range(width):
        if frame[ARRAYS + k] != 0:
            marks = view(i32[...], frame[ARRAYS + k])
            rank = maximum(rank, i64(marks[NDIM]))
    if rank > DIMENSIONS:
        return 0
    total: i64 = 1
    for d in range(rank):
        size: i64 = 1
        for k in range(width):
            array = frame[ARRAYS + k]
            step: i64 = 0
            if array != 0:
                marks = view(i32[...], array)
                axis = d - (rank - i64(marks[NDIM]))
                if axis >= 0:
                    fields = view(i64[...], array)
                    sizes = view(i64[...], fields[DIMS])
                    strides = view(i64[...], fields[STRIDESOF])
                    if sizes[axis] != 1:
                        if bitand(size != 1, size != sizes[axis]):
                            return 0
                        size = sizes[axis]
                        step = strides[axis]
                        if rest(step, frame[ITEMS + k]) != 0:
                            return 0
            frame[STRIDES + d * EACH + k] = step
        frame[SHAPE + d] = size
        total = total * size
    frame[RANK] = rank
    frame[TOTAL] = total
    return 1


def is_slower(it: InOut[i64[...]], frame: InOut[i64[...]], a: i64, b: i64):
    for i in range(it[ASKS]):
        k = it[ASKED + i]
        one = frame[STRIDES + a * EACH + k]
        other = frame[STRIDES + b * EACH + k]
        if bitand(one != 0, other != 0):
            if one != other:
                return select(one < other, -1, 1)
            if frame[SHAPE + a] > frame[SHAPE + b]:
                return 1
    return 0


def arrange(it: InOut[i64[...]], frame: InOut[i64[...]]):
    rank = frame[RANK]
    for d in range(rank):
        frame[ORDER + d] = rank - 1 - d
    for i in range(1, rank):
        here: i64 = i
        before: i64 = i - 1
        while before >= 0:
            verdict: i64 = is_slower(it, frame, frame[ORDER + before], frame[ORDER + here])
            if verdict > 0:
                moved = frame[ORDER + before]
                frame[ORDER + before] = frame[ORDER + here]
                frame[ORDER + here] = moved
                here = before
            else:
                if verdict < 0:
                    break
            before = before - 1
    step: i64 = frame[ITEMS + frame[WIDTH]]
    is_turned: i64 = 0
    for j in range(rank):
        d = frame[ORDER + j]
        frame[OUTSTRIDES + d] = step
        step = step * frame[SHAPE + d]
        if d != rank - 1 - j:
            is_turned = 1
    return select(frame[TOTAL] == 0, 0, is_turned)


def merge(frame: InOut[i64[...]]):
    width = frame[WIDTH]
    depth: i64 = 0
    for j in range(frame[RANK]):
        d = frame[ORDER + j]
        size = frame[SHAPE + d]
        frame[STRIDES + d * EACH + width] = frame[OUTSTRIDES + d]
        if size != 1:
            fits: i64 = select(depth == 0, 0, 1)
            if depth != 0:
                last = depth - 1
                for k in range(width + 1):
                    reach = frame[STEPS + last * EACH + k] * frame[EXTENTS + last]
                    if frame[STRIDES + d * EACH + k] != reach:
                        fits = 0
            if fits != 0:
                frame[EXTENTS + depth - 1] = frame[EXTENTS + depth - 1] * size
            else:
                frame[EXTENTS + depth] = size
                for k in range(width + 1):
                    frame[STEPS + depth * EACH + k] = frame[STRIDES + d * EACH + k]
                depth = depth + 1
    if depth == 0:
        frame[EXTENTS] = 1
        for k in range(width):
            frame[STEPS + k] = select(frame[ARRAYS + k] == 0, 0, frame[ITEMS + k])
        frame[STEPS + width] = frame[ITEMS + width]
        depth = 1
    frame[DEPTH] = depth
    return 1
"""

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

WALKING: Final = """
def walk(row: i64, width: i64, depth: i64, extents: InOut[i64[...]], steps: InOut[i64[...]], places: InOut[i64[...]],
         elements: InOut[i64[...]]):
    at = allocate(i64[DIMENSIONS])
    for j in range(depth):
        at[j] = 0
    while 1 == 1:
        invoke(row, extents[0], address(elements[0]), address(places[0]))
        j: i64 = 1
        while j < depth:
            at[j] = at[j] + 1
            for k in range(width):
                places[k] = places[k] + steps[j * EACH + k]
            if at[j] < extents[j]:
                break
            at[j] = 0
            for k in range(width):
                places[k] = places[k] - steps[j * EACH + k] * extents[j]
            j = j + 1
        if j >= depth:
            return 0
    return 0


def tile(frame: InOut[i64[...]], n: i64, rows: i64, origin: InOut[i64[...]], room: InOut[i64[...]]):
    width = frame[WIDTH]
    natural = allocate(i64[EACH])
    places = allocate(i64[EACH])
    advances = allocate(i64[EACH])
    is_one: i64 = 1
    for k in range(width + 1):
        item = frame[ITEMS + k]
        step = frame[ELEMENTS + k]
        across = frame[STEPS + EACH + k]
        places[k] = origin[k]
        advances[k] = across
        natural[k] = select(bitand(k != width, frame[ARRAYS + k] == 0), 0, 1)
        if step != natural[k]:
            place: i64 = address_of(address(room[k * TILED]))
            places[k] = place
            advances[k] = n * item
            if k != width:
                laid: i64 = move_grid(item, n, rows, origin[k], step, quotient(across, item), place, 1, n)
        if advances[k] != natural[k] * n * item:
            is_one = 0
    if is_one != 0:
        invoke(frame[ROW], n * rows, address(natural[0]), address(places[0]))
    else:
        for r in range(rows):
            invoke(frame[ROW], n, address(natural[0]), address(places[0]))
            for k in range(width + 1):
                places[k] = places[k] + advances[k]
    if frame[ELEMENTS + width] != 1:
        item = frame[ITEMS + width]
        start: i64 = address_of(address(room[width * TILED]))
        over = quotient(frame[STEPS + EACH + width], item)
        put: i64 = move_grid(item, n, rows, start, 1, n, origin[width], frame[ELEMENTS + width], over)
    return 0


def walk_tiles(frame: InOut[i64[...]], depth: i64, extents: InOut[i64[...]], places: InOut[i64[...]]):
    width = frame[WIDTH] + 1
    room = allocate(i64[EACH * TILED])
    origin = allocate(i64[EACH])
    at = allocate(i64[DIMENSIONS])
    for j in range(depth):
        at[j] = 0
    item: i64 = 8
    for k in range(width):
        item = maximum(item, frame[ITEMS + k])
    most = quotient(8 * TILED, item)
    columns = minimum(extents[0], select(frame[BLOCK] == SHORTROW, TILEWIDTH, most))
    height = quotient(most, columns)
    while 1 == 1:
        b: i64 = 0
        while b < extents[1]:
            rows = minimum(height, extents[1] - b)
            a: i64 = 0
            while a < extents[0]:
                for k in range(width):
                    origin[k] = places[k] + a * frame[STEPS + k] + b * frame[STEPS + EACH + k]
                done: i64 = tile(frame, minimum(columns, extents[0] - a), rows, origin, room)
                a = a + columns
            b = b + height
        j: i64 = 2
        while j < depth:
            at[j] = at[j] + 1
            for k in range(width):
                places[k] = places[k] + frame[STEPS + j * EACH + k]
            if at[j] < extents[j]:
                break
            at[j] = 0
            for k in range(width):
                places[k] = places[k] - frame[STEPS + j * EACH + k] * extents[j]
            j = j + 1
        if j >= depth:
            return 0
    return 0


def piece(context: i64, begin: i64, end: i64):
    frame = view(i64[...], context)
    depth = frame[DEPTH]
    width = frame[WIDTH] + 1
    axis = frame[LONGEST]
    places = allocate(i64[EACH])
    extents = allocate(i64[DIMENSIONS])
    extents[1] = 1
    for j in range(depth):
        extents[j] = frame[EXTENTS + j]
    extents[axis] = end - begin
    for k in range(width):
        places[k] = frame[PLACES + k] + begin * frame[STEPS + axis * EACH + k]
    if frame[ISTILED] != 0:
        tiled: i64 = walk_tiles(frame, depth, extents, places)
        return 0
    steps = view(i64[...], context + 8 * STEPS)
    elements = view(i64[...], context + 8 * ELEMENTS)
    rest: i64 = extents[0]
    while rest > 0:
        extents[0] = minimum(frame[BLOCK], rest)
        walk(frame[ROW], width, depth, extents, steps, places, elements)
        for k in range(width):
            places[k] = places[k] + extents[0] * steps[k]
        rest = rest - extents[0]
    return 0


def exchange(frame: InOut[i64[...]], a: i64, b: i64):
    extent = frame[EXTENTS + a]
    frame[EXTENTS + a] = frame[EXTENTS + b]
    frame[EXTENTS + b] = extent
    for k in range(frame[WIDTH] + 1):
        step = frame[STEPS + a * EACH + k]
        frame[STEPS + a * EACH + k] = frame[STEPS + b * EACH + k]
        frame[STEPS + b * EACH + k] = step
    return 0


def block(frame: InOut[i64[...]]):
    frame[BLOCK] = frame[EXTENTS]
    for k in range(frame[WIDTH] + 1):
        if bitand(frame[STEPS + k] != 0, frame[STEPS + k] != frame[ITEMS + k]):
            for j in range(1, frame[DEPTH]):
                if frame[STEPS + j * EACH + k] == frame[ITEMS + k]:
                    exchange(frame, 1, j)
                    frame[BLOCK] = SHORTROW
                    return 0
    return 0


def run(it: InOut[i64[...]], frame: InOut[i64[...]]):
    if frame[TOTAL] == 0:
        return 0
    own = view(i64[...], it[PROCESS])
    for k in range(frame[WIDTH] + 1):
        frame[ELEMENTS + k] = quotient(frame[STEPS + k], frame[ITEMS + k])
    work = quotient(frame[TOTAL] * it[WORK], 1024)
    if bitand(work < LONG, frame[DEPTH] == 1):
        unknown: i64 = invoke(frame[ROW], frame[EXTENTS], address(frame[ELEMENTS]), address(frame[PLACES]))
        if unknown == 0:
            return 0
    tried: i64 = invoke(frame[ROW], 0, address(frame[ELEMENTS]), address(frame[PLACES]))
    frame[ISTILED] = tried
    block(frame)
    axis: i64 = 0
    for j in range(1, frame[DEPTH]):
        if frame[EXTENTS + j] >= frame[EXTENTS + axis]:
            axis = j
    frame[LONGEST] = axis
    context: i64 = address_of(address(frame[0]))
    extent = frame[EXTENTS + axis]
    if work < LONG:
        short: i64 = piece(context, 0, extent)
        return 0
    state: i64 = hold(frame[WIDTH] + 1, address(frame[ARRAYS]))
    grain = quotient(extent * PART, work) + 1
    code: i64 = invoke(own[PARALLEL], own[PIECE], context, extent, grain)
    let_go(state, frame[WIDTH] + 1, address(frame[ARRAYS]))
    return code
"""
POINTWISE: Final = """
def computed_with(descriptor: i64, args: i64, count: i64, copies: InOut[i64[...]]):
    frame = allocate(i64[FRAME])
    it = view(i64[...], descriptor)
    readable: i64 = read(descriptor, args, count, frame, copies)
    if readable == 0:
        return 0
    given = view(i64[...], args)
    width = frame[WIDTH]
    target: i64 = 0
    is_turned: i64 = 0
    if it[TARGET] >= 0:
        target = given[it[TARGET]]
    if bitand(frame[ISPLAIN] != 0, it[TARGET] < 0):
        flatten(frame)
    else:
        fits: i64 = spread(frame)
        if fits == 0:
            return 0
        turned: i64 = arrange(it, frame)
        is_turned = turned
        if target != 0:
            aimed: i64 = aim(it, frame, target)
            if aimed == 0:
                return 0
        merge(frame)
    if target != 0:
        if it[ISBARE] == 0:
            advanced: i64 = advance(it[PROCESS], target)
            if advanced == 0:
                return 0
        written: i64 = run(it, frame)
        if written != 0:
            return 0
        again: i64 = retain(target)
        return again
    sizes: i64 = address_of(address(frame[SHAPE]))
    strides: i64 = address_of(address(frame[OUTSTRIDES]))
    made = allocate(i64[1])
    place: i64 = new_result(it[PROCESS], frame[TYPE], frame[RANK], sizes, select(is_turned != 0, strides, 0), made)
    if place == 0:
        return 0
    frame[ARRAYS + width] = made[0]
    frame[PLACES + width] = place
    code: i64 = run(it, frame)
    done: i64 = finished(descriptor, frame[HISTORYOF], args, count, 1, made, code)
    return done
""" + FREEING.format(helper="computed")
