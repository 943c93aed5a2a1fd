"""Helpers of all call stubs, as text of kernel IR: Python's objects, numbers, and a first look at the arguments.

In: nothing.  Out: `OPENING`, `OBJECTS`, `NUMBERS`, `LOOKING`, `READING`.

Numbers beside complex elements need a place in their parts whatever their kind: the definition computes with such
numbers in Python's precision, in which they meet one another before they meet elements.
"""

from __future__ import annotations

from typing import Final

OPENING: Final = """
    it = view(i64[...], descriptor)
    process = it[PROCESS]
    own = view(i64[...], process)
    open: i64 = is_open(descriptor, count)
    if open == 0:
        return 0
    given = view(i64[...], args)""".lstrip("\n")
"""The first lines of a stub's work, which give up where the operator is left to Python."""
OBJECTS: Final = """
def retain(it: i64):
    if IMMORTAL != 0:
        Py_IncRef(it)
    else:
        header = view(i64[...], it)
        header[0] = header[0] + 1
    return it


def memory_in_lines(process: i64, type: i64, rank: i64, sizes: i64):
    own = view(i64[...], process)
    if own[FREEING] == 0:
        return 0
    extents = view(i64[...], sizes)
    bytes: i64 = own[SIZES + type]
    for d in range(rank):
        bytes = bytes * extents[d]
    if bitor(bytes < ALIGNEDFROM, bytes >= ALIGNEDTO):
        return 0
    memory: i64 = aligned_alloc(LINE, quotient(bytes + LINE - 1, LINE) * LINE)
    if memory != 0:
        PyTraceMalloc_Track(NUMPYSDOMAIN, memory, bytes)
    return memory


def new_array(process: i64, type: i64, rank: i64, sizes: i64, strides: i64):
    own = view(i64[...], process)
    dtype: i64 = retain(own[DTYPES + type])
    memory: i64 = memory_in_lines(process, type, rank, sizes)
    flags = select(memory == 0, 0, OWNABLE)
    made: i64 = invoke(own[NEWARRAY], own[NDARRAY], dtype, rank, sizes, strides, memory, flags, 0)
    if made == 0:
        PyErr_Clear()
        if memory != 0:
            PyTraceMalloc_Untrack(NUMPYSDOMAIN, memory)
            free(memory)
        return 0
    if memory != 0:
        fields = view(i64[...], made)
        marks = view(i32[...], made)
        marks[FLAGS] = bitor(marks[FLAGS], OWNED)
        handler: i64 = retain(own[FREEING])
        fields[HANDLEROF] = handler
    return made


def new_tensor(process: i64, array: i64):
    own = view(i64[...], process)
    made: i64 = PyType_GenericAlloc(own[TENSOR], 0)
    if made == 0:
        Py_DecRef(array)
        PyErr_Clear()
        return 0
    slots = view(i64[...], made)
    slots[own[ARRAY]] = array
    for i in range(own[FRESH]):
        value: i64 = retain(own[FRESHVALUES + i])
        slots[own[FRESHPLACES + i]] = value
    return made


def is_recording(process: i64):
    own = view(i64[...], process)
    hooks = view(i64[...], own[HOOKS])
    paused: i64 = PySet_Size(hooks[own[PAUSED]])
    if paused == 0:
        return 1
    found: i64 = PyObject_GetAttr(own[MODE], own[ENABLED])
    if found == 0:
        PyErr_Clear()
        return 1
    Py_DecRef(found)
    return select(found != own[FALSE], 1, 0)


def array_of(process: i64, value: i64, is_bare: i64):
    own = view(i64[...], process)
    head = view(i64[...], value)
    array: i64 = value
    if is_bare == 0:
        if bitand(head[1] != own[TENSOR], head[1] != own[PARAMETER]):
            return 0
        array = head[own[ARRAY]]
        if array == 0:
            return 0
    fields = view(i64[...], array)
    if fields[1] != own[NDARRAY]:
        return 0
    return array


def whole_of(process: i64, value: i64, room: InOut[i64[...]]):
    own = view(i64[...], process)
    head = view(i64[...], value)
    if head[1] != own[INT]:
        return 0
    overflow = allocate(i32[1])
    whole: i64 = PyLong_AsLongLongAndOverflow(value, address(overflow[0]))
    room[0] = whole
    return select(overflow[0] == 0, 1, 0)


def hold(count: i64, arrays: InOut[i64[...]]):
    for k in range(count):
        if arrays[k] != 0:
            kept: i64 = retain(arrays[k])
    watching: i64 = tsrepl_watch(1)
    state: i64 = PyEval_SaveThread()
    return state


def let_go(state: i64, count: i64, arrays: InOut[i64[...]]):
    PyEval_RestoreThread(state)
    watched: i64 = tsrepl_watch(-1)
    for k in range(count):
        if arrays[k] != 0:
            Py_DecRef(arrays[k])
    return 0


def worked(function: i64, words: InOut[i64[...]], work: i64, count: i64, arrays: InOut[i64[...]]):
    if work < LONG:
        short: i64 = invoke(function, address(words[0]), 1)
        return short
    state: i64 = hold(count, arrays)
    long: i64 = invoke(function, address(words[0]), 1)
    let_go(state, count, arrays)
    return long


def wrapped(descriptor: i64, array: i64):
    it = view(i64[...], descriptor)
    if it[ISBARE] != 0:
        return array
    tensor: i64 = new_tensor(it[PROCESS], array)
    return tensor


def type_of(process: i64, dtype: i64):
    own = view(i64[...], process)
    for i in range(TYPECOUNT):
        if own[DTYPES + i] == dtype:
            return i
    return -1


def new_result(process: i64, type: i64, rank: i64, sizes: i64, strides: i64, made: InOut[i64[...]]):
    array: i64 = new_array(process, type, rank, sizes, strides)
    made[0] = array
    if array == 0:
        return 0
    fields = view(i64[...], array)
    return fields[DATA]


def let_copies_go(count: i64, copies: InOut[i64[...]]):
    for k in range(count):
        if copies[k] != 0:
            Py_DecRef(copies[k])
    return 0


def may_record(descriptor: i64, tensor: i64, is_written: i64):
    it = view(i64[...], descriptor)
    if it[ISHOOKED] == 0:
        return 0
    own = view(i64[...], it[PROCESS])
    slots = view(i64[...], tensor)
    if slots[own[GRAD]] != own[FALSE]:
        return 1
    if slots[own[BASE]] != own[NONE]:
        hooks = view(i64[...], own[HOOKS])
        if bitor(is_written != 0, hooks[own[REBASED]] != own[ZERO]):
            return 1
    return 0

"""
_NARROW: Final = {"INTS": "i32", "SHORTS": "i16", "CHARS": "i8", "BYTES": "u8"}
_PUT_NARROW: Final = """
    if type == {name}:
        if bitand(kind == SETTINGS, i64({type}(value)) != value):
            return 0
        room_of_{type} = view({type}[...], room)
        room_of_{type}[0] = {type}(value)
        return 1"""
_PUT_WHOLE: Final = f"""
def put_whole(room: i64, type: i64, kind: i64, value: i64):
    if type == LONGS:
        longs = view(i64[...], room)
        longs[0] = value
        return 1{"".join(_PUT_NARROW.format(name=name, type=type) for name, type in _NARROW.items())}
    return 0

"""
_PUT_FLOAT: Final = """
def put_float(room: i64, type: i64, kind: i64, value: f64):
    size = abs(value)
    if kind == SETTINGS:
        limit = select(type == FLOATS, 3.4028234663852886e+38, select(type == HALVES, 65504.0, select(type == BRAINS,
            3.3895313892515355e+38, 1.7976931348623157e+308)))
        if size <= limit:
            pass
        else:
            return 0
    if type == FLOATS:
        singles = view(f32[...], room)
        singles[0] = f32(value)
        return 1
    if type == DOUBLES:
        doubles = view(f64[...], room)
        doubles[0] = value
        return 1
    if type == HALVES:
        halves = view(f16[...], room)
        halves[0] = f16(value)
        return 1
    if type == BRAINS:
        brains = view(bf16[...], room)
        brains[0] = bf16(value)
        return 1
    return 0
"""
_PUT: Final = """
def put_parts(process: i64, room: i64, type: i64, kind: i64, real: f64, imaginary: f64):
    own = view(i64[...], process)
    if type < SINGLEPAIRS:
        alone: i64 = put_float(room, type, kind, real)
        return alone
    part = select(type == SINGLEPAIRS, FLOATS, DOUBLES)
    first: i64 = put_float(room, part, SETTINGS, real)
    second: i64 = put_float(room + own[SIZES + part], part, SETTINGS, imaginary)
    return bitand(first, second)


def put_number(process: i64, value: i64, type: i64, kind: i64, room: i64):
    own = view(i64[...], process)
    head = view(i64[...], value)
    parts = view(f64[...], value)
    if head[1] == own[FLOAT]:
        fits: i64 = put_parts(process, room, type, kind, parts[FLOATVALUE], 0.0)
        return fits
    if head[1] == own[COMPLEX]:
        if type < SINGLEPAIRS:
            return 0
        pair: i64 = put_parts(process, room, type, kind, parts[FLOATVALUE], parts[FLOATVALUE + 1])
        return pair
    whole = allocate(i64[1])
    is_whole: i64 = whole_of(process, value, whole)
    if is_whole == 0:
        return 0
    put: i64 = put_parts(process, room, type, kind, f64(whole[0]), 0.0)
    if put != 0:
        return 1
    written: i64 = put_whole(room, type, kind, whole[0])
    return written


def is_equal(process: i64, value: i64, wanted: i64):
    own = view(i64[...], process)
    head = view(i64[...], value)
    if head[1] == own[FLOAT]:
        real = view(f64[...], value)
        return select(real[FLOATVALUE] == bits_to_f64(wanted), 1, 0)
    whole = allocate(i64[1])
    is_whole: i64 = whole_of(process, value, whole)
    return select(bitand(is_whole != 0, f64(whole[0]) == bits_to_f64(wanted)), 1, 0)
"""
NUMBERS: Final = _PUT_FLOAT + _PUT_WHOLE + _PUT
LOOKING: Final = """
def is_fixed(descriptor: i64, i: i64, value: i64):
    it = view(i64[...], descriptor)
    if it[KINDS + i] == UNREAD:
        return 1
    if it[KINDS + i] == SAME:
        return select(value == it[GIVEN + i], 1, 0)
    equal: i64 = is_equal(it[PROCESS], value, it[GIVEN + i])
    return equal


def has_same_sizes(array: i64, other: i64):
    marks = view(i32[...], array)
    others = view(i32[...], other)
    if marks[NDIM] != others[NDIM]:
        return 0
    fields = view(i64[...], array)
    sizes = view(i64[...], fields[DIMS])
    fields_ = view(i64[...], other)
    sizes_ = view(i64[...], fields_[DIMS])
    for d in range(i64(marks[NDIM])):
        if sizes[d] != sizes_[d]:
            return 0
    return 1


def is_open(descriptor: i64, count: i64):
    it = view(i64[...], descriptor)
    own = view(i64[...], it[PROCESS])
    if bitor(count < it[FEWEST], count > it[MOST]):
        return 0
    hooks = view(i64[...], own[HOOKS])
    if it[ISHOOKED] != 0:
        if bitor(hooks[own[TRACE]] != own[NONE], hooks[own[PYTHONONLY]] != own[FALSE]):
            return 0
    if it[ISBARE] != 0:
        if hooks[own[PYTHONONLY]] != own[FALSE]:
            return 0
    return 1

"""
READING: Final = f"""
def type_of_numbers(descriptor: i64, args: i64, count: i64):
    it = view(i64[...], descriptor)
    own = view(i64[...], it[PROCESS])
    given = view(i64[...], args)
    reals: i64 = 0
    wholes: i64 = 0
    for i in range(count):
        if bitor(it[KINDS + i] == NUMBERS, it[KINDS + i] == SETTINGS):
            head = view(i64[...], given[i])
            reals = reals + select(head[1] == own[FLOAT], 1, 0)
            wholes = wholes + select(head[1] == own[INT], 1, 0)
    if bitand(reals != 0, wholes == 0):
        defaults = view(i64[...], own[DEFAULTS])
        real: i64 = type_of(it[PROCESS], defaults[own[FLOATING]])
        return real
    return select(bitand(wholes != 0, reals == 0), LONGS, -1)


def read(descriptor: i64, args: i64, count: i64, frame: InOut[i64[...]], copies: InOut[i64[...]]):
{OPENING}
    dtype: i64 = 0
    flags: i64 = PLAIN
    may: i64 = 0
    is_mixed: i64 = 0
    k: i64 = 0
    first: i64 = -1
    for i in range(count):
        kind = it[KINDS + i]
        value = given[i]
        if kind <= TRUTHS:
            array: i64 = array_of(process, value, it[ISBARE])
            if array == 0:
                return 0
            fields = view(i64[...], array)
            marks = view(i32[...], array)
            if kind == TRUTHS:
                if fields[DTYPE] != own[DTYPES + BOOLS]:
                    return 0
            else:
                if dtype == 0:
                    dtype = fields[DTYPE]
                if fields[DTYPE] != dtype:
                    if bitor(it[ISMIXING] == 0, kind == POINTS):
                        return 0
                    is_mixed = 1
            flags = bitand(flags, i64(marks[FLAGS]))
            found: i64 = may_record(descriptor, value, select(i == it[TARGET], 1, 0))
            may = bitor(may, found)
            frame[ARRAYS + k] = array
            frame[PLACES + k] = fields[DATA]
            if kind == POINTS:
                if marks[NDIM] != 0:
                    return 0
            else:
                if first < 0:
                    first = k
                else:
                    alike: i64 = has_same_sizes(array, frame[ARRAYS + first])
                    if alike == 0:
                        flags = bitand(flags, ALIGNED)
            k = k + 1
        else:
            if kind <= SETTINGS:
                frame[ARRAYS + k] = 0
                k = k + 1
            else:
                if kind == TARGETS:
                    written: i64 = may_record(descriptor, value, 1)
                    may = bitor(may, written)
                else:
                    fixed: i64 = is_fixed(descriptor, i, value)
                    if fixed == 0:
                        return 0
    if bitand(flags, ALIGNED) == 0:
        return 0
    type: i64 = -1
    if dtype == 0:
        numeric: i64 = type_of_numbers(descriptor, args, count)
        type = numeric
    else:
        known: i64 = type_of(process, dtype)
        type = known
    if is_mixed != 0:
        if may != 0:
            flows: i64 = is_recording(process)
            if flows != 0:
                return 0
        common: i64 = brought_together(descriptor, count, frame, copies)
        type = common
    if type < 0:
        return 0
    row = it[ROWS + type]
    if row == 0:
        return 0
    history: i64 = history_wanted(descriptor, args, count, may, it[RESULTS + type])
    if history < 0:
        return 0
    frame[HISTORYOF] = history
    k = 0
    for i in range(count):
        kind = it[KINDS + i]
        if kind <= SETTINGS:
            frame[ITEMS + k] = select(kind == TRUTHS, 1, own[SIZES + type])
            if kind > TRUTHS:
                place: i64 = address_of(address(frame[VALUES + 2 * k]))
                fits: i64 = put_number(process, given[i], type, kind, place)
                if fits == 0:
                    return 0
                frame[PLACES + k] = place
            if kind == POINTS:
                copied: i64 = address_of(address(frame[VALUES + 2 * k]))
                memcpy(copied, frame[PLACES + k], own[SIZES + type])
                frame[PLACES + k] = copied
                frame[ARRAYS + k] = 0
            k = k + 1
    frame[ROW] = row
    frame[WIDTH] = k
    frame[TYPE] = it[RESULTS + type]
    frame[ITEMS + k] = own[SIZES + it[RESULTS + type]]
    frame[ISPLAIN] = select(flags == PLAIN, 1, 0)
    return 1

"""
