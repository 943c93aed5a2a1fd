"""Call stubs: builtin functions of Python that run row functions, as kernel IR.

In: nothing.  Out: `STUBS`, the kernels, each a function `PyObject *(PyObject *held, PyObject **args, Py_ssize_t n,
PyObject *names)` for one form of call, and the words of what they read, which `descriptors` writes.

Note [How a stub calls]
A stub is shared by all operators of its form: what is an operator's own stands in its descriptor, words of 64 bits that
`held` leads to, and what is this process's own (addresses of objects and functions, offsets of slots) in a row of words
that each descriptor leads to.  So there is no address in a stub, and one more operator is one more descriptor.

It looks at the arguments, chooses the row function by the dtype, spreads the operands to one shape, makes the result,
orders and merges dimensions, and walks over all but the innermost, which is the row function's.  Where something is not
as it has to be nothing has happened yet, and the function that `held` has first is called: another stub, or Python's.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import cache
from typing import Final

from engine.fuser.backend import cpython_abi as abi
from engine.fuser.ir.kernel import Kernel
from engine.fuser.ir.kernel_text import parse
from engine.fuser.library.along_calls import ALONG
from engine.fuser.library.moving_calls import MOVING
from engine.fuser.library.recording_calls import RECORDING
from engine.fuser.library.shaped_calls import SHAPED
from engine.fuser.library.writing_calls import WRITING
from engine.fuser.stubs.binding import RELEASE_AFTER

# ------------------------------------------------------------------ words

OPERANDS: Final = 7
"""Operands that a row function has at most, besides its result."""
DIMENSIONS: Final = 8
"""Dimensions that a stub spreads operands to at most."""
ARGUMENTS: Final = 12
"""Arguments that an operator has at most."""
RECORDING_TENSORS: Final = 3
"""Tensors that may require grad, of calls that stubs record."""
KEPT: Final = 12
"""Things that a node keeps at most."""
EMPTY: Final = ("_edges", "tensor_hooks", "retained", "hooks", "prehooks")
"""Slots of a new node that hold None."""
TYPES: Final = ("f32", "f64", "i64", "bool", "i32", "u8", "f16", "bf16", "i16", "i8")
"""Types of elements in the order in which descriptors have their row functions."""


def _places(*names: str | tuple[str, int]) -> dict[str, int]:
    """The place of each name in a row of words; some take several."""
    found, place = {}, 0
    for each in names:
        name, count = each if isinstance(each, tuple) else (each, 1)
        found[name], place = place, place + count
    return found | {"ALL": place}


PROCESS: Final = _places(
    "NDARRAY", "TENSOR", "PARAMETER", "HOOKS", "MODE", "ENABLED", "NONE", "FALSE", "TRUE", "ZERO", "FLOAT", "INT",
    "LIST", "STORAGE",
    "MEMORY", "SHAPENAME", "MINUSONE", "NODE", "SAVED", "SEQUENCES",
    # offsets of slots, in words
    "ARRAY", "GRAD", "OWNSTORAGE", "BASE", "VERSION", "OWNER", "TRACE", "PYTHONONLY", "REBASED", "PAUSED",
    "GRADFN", "OUTPUTNR", "SEEN", "GRADHOOK", "RECORDEDHOOK",
    "NODEPLAN", "NODEKEPT", "NODESOURCES", "NODEOUTPUTS", "NODESEQUENCE", ("EMPTY", len(EMPTY)),
    "SAVEDHELD", "SAVEDSTORAGE", "SAVEDVERSION", "SAVEDOUTPUT",
    # functions
    "NEWARRAY", "PARALLEL", "PIECE",
    "FRESH", ("FRESHPLACES", 12), ("FRESHVALUES", 12),
    ("DTYPES", len(TYPES)), ("SIZES", len(TYPES)), ("ISFLOAT", len(TYPES)),
)  # fmt: skip
"""The words of a process.  FRESH: how many slots of a new tensor hold constants."""
DESCRIPTOR: Final = _places(
    "PROCESS", "FEWEST", "MOST", "COUNT", "ISHOOKED", "ISBARE", "TARGET", "WORK", "ASKS", ("ASKED", OPERANDS),
    ("KINDS", ARGUMENTS), ("GIVEN", ARGUMENTS), ("ROWS", len(TYPES)), ("RESULTS", len(TYPES)),
    "FIXEDAXIS", "ISREDUCED", "ISSTACKED", ("PLANES", len(TYPES)), ("SOLIDS", len(TYPES)),
    "HISTORIES",
)  # fmt: skip
"""The words of an operator.

COUNT: of its operands.  ISHOOKED: whether it is left to Python while hooks are set or it would be recorded.  ISBARE:
whether operands are arrays, which nothing records; they are left to Python in mode "off".  TARGET: the argument that is
written; -1 for none.  WORK: nanoseconds for 1024 elements.  ASKED: the operands that decide how the result lies.
KINDS: what each argument is (`KIND`); GIVEN: the object, or the bits of the float, that it has to be.  ROWS, RESULTS:
row functions, and dtypes of their results, by the dtype.  FIXEDAXIS: the dimension that the operator goes along; -1
where arguments say so, or it goes along all.  ISREDUCED: whether the result is without it.  ISSTACKED: whether tensors
are joined along a new dimension.  PLANES, SOLIDS: functions for two and three dimensions, of which the second is it.
HISTORIES: a row of the addresses of `HISTORY` words, by which tensors require grad (a bit for each); zeros for calls
that are left to Python.
"""
HISTORY: Final = _places(
    "PLAN", "EDGES", ("EDGE", RECORDING_TENSORS), "KEPTS",
    ("KEPTKIND", KEPT), ("KEPTPLACE", KEPT), ("KEPTOBJECT", KEPT),
)  # fmt: skip
"""The node of a call.  EDGE: the arguments that edges lead to.  KEPTPLACE: the argument that is kept, or -1;
KEPTOBJECT: what is kept where the call leaves it out."""
KEPT_KIND: Final = {
    "KEPTGIVEN": 0, "KEPTLIST": 1, "KEPTTENSOR": 2, "KEPTFORM": 3, "KEPTRESULT": 4, "KEPTRESULTFORM": 5,
}  # fmt: skip
"""An argument itself, or as a list; of a tensor and of the result all, or its form."""
KIND: Final = {
    "TENSORS": 0, "TRUTHS": 1, "NUMBERS": 2, "SETTINGS": 3, "SAME": 4, "EQUAL": 5, "TARGETS": 6, "UNREAD": 7,
    "WHOLES": 8, "VECTORS": 9, "REALS": 10, "AXIS": 11, "AXES": 12, "LASTSIZES": 13, "KEEPS": 14, "LISTS": 15,
    "TABLES": 16, "INDICES": 17, "RANKED": 18, "TURNED": 19, "ROWED": 20, "WORDS": 21,
}  # fmt: skip
"""TRUTHS: a tensor of bools.  NUMBERS: an int or float that is an operand; SETTINGS: that the dtype has to hold.
SAME: the object of GIVEN; EQUAL: a number that is equal to it.  WHOLES: a tensor that is gone through along a
dimension; VECTORS: one of that dimension's size.  REALS: a float.  AXIS: the dimension; AXES: that, or some that follow
one another.  LASTSIZES: the sizes of the last ones, which are gone along.  KEEPS: whether the result has it, with a
size of 1.  TARGETS: a tensor that is written.  UNREAD: what the result does not depend on.  LISTS: of tensors.  TABLES:
a tensor whose rows INDICES name.  RANKED: a tensor of so many dimensions; TURNED: one whose last two are exchanged in
memory; ROWED: a tensor taken for its last dimension's rows.  WORDS: the ints of GIVEN, as a list."""
_FRAME: Final = _places(
    ("ARRAYS", OPERANDS + 1), ("PLACES", OPERANDS + 1), ("VALUES", OPERANDS + 1), ("ITEMS", OPERANDS + 1),
    ("ELEMENTS", OPERANDS + 1), ("SHAPE", DIMENSIONS), ("ORDER", DIMENSIONS), ("OUTSTRIDES", DIMENSIONS),
    ("EXTENTS", DIMENSIONS), ("STRIDES", DIMENSIONS * (OPERANDS + 1)), ("STEPS", DIMENSIONS * (OPERANDS + 1)),
    "ROW", "WIDTH", "DEPTH", "RANK", "TYPE", "TOTAL", "ISPLAIN", "LONGEST", "HISTORYOF",
)  # fmt: skip
"""The words of a call: of each operand, and last of the result, its array, address of elements, number, size of
elements and distance of elements in a row; of each dimension its size, place in memory, stride; of dimensions that were
merged the size, and of each operand the step in bytes."""

# ------------------------------------------------------------------ text

_OBJECTS: Final = """
def retain(it: i64):
    if IMMORTAL != 0:
        Py_IncRef(it)
    else:
        header = view(i64[...], it)
        header[0] = header[0] + 1
    return it


def new_array(process: i64, type: i64, rank: i64, sizes: i64, strides: i64):
    own = view(i64[...], process)
    dtype: i64 = retain(own[DTYPES + type])
    made: i64 = invoke(own[NEWARRAY], own[NDARRAY], dtype, rank, sizes, strides, 0, 0, 0)
    if made == 0:
        PyErr_Clear()
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


def may_record(process: i64, tensor: i64, is_written: i64):
    own = view(i64[...], process)
    slots = view(i64[...], tensor)
    if slots[own[GRAD]] != own[FALSE]:
        return 1
    if slots[own[BASE]] != own[NONE]:
        hooks = view(i64[...], own[HOOKS])
        if bitor(is_written != 0, hooks[own[REBASED]] != own[ZERO]):
            return 1
    return 0

"""


_NUMBERS: Final = """
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


def put_whole(room: i64, type: i64, kind: i64, value: i64):
    if type == LONGS:
        longs = view(i64[...], room)
        longs[0] = value
        return 1
    if type == INTS:
        if bitand(kind == SETTINGS, i64(i32(value)) != value):
            return 0
        ints = view(i32[...], room)
        ints[0] = i32(value)
        return 1
    if type == SHORTS:
        if bitand(kind == SETTINGS, i64(i16(value)) != value):
            return 0
        shorts = view(i16[...], room)
        shorts[0] = i16(value)
        return 1
    if type == CHARS:
        if bitand(kind == SETTINGS, i64(i8(value)) != value):
            return 0
        chars = view(i8[...], room)
        chars[0] = i8(value)
        return 1
    if type == BYTES:
        if bitand(kind == SETTINGS, i64(u8(value)) != value):
            return 0
        bytes = view(u8[...], room)
        bytes[0] = u8(value)
        return 1
    return 0


def put_number(process: i64, value: i64, type: i64, kind: i64, room: i64):
    own = view(i64[...], process)
    head = view(i64[...], value)
    if head[1] == own[FLOAT]:
        real = view(f64[...], value)
        fits: i64 = put_float(room, type, kind, real[FLOATVALUE])
        return fits
    if head[1] != own[INT]:
        return 0
    overflow = allocate(i32[1])
    whole: i64 = PyLong_AsLongLongAndOverflow(value, address(overflow[0]))
    if overflow[0] != 0:
        return 0
    put: i64 = put_float(room, type, kind, f64(whole))
    if put != 0:
        return 1
    written: i64 = put_whole(room, type, kind, whole)
    return written


def is_equal(process: i64, value: i64, wanted: i64):
    own = view(i64[...], process)
    head = view(i64[...], value)
    if head[1] == own[FLOAT]:
        real = view(f64[...], value)
        return select(real[FLOATVALUE] == bits_to_f64(wanted), 1, 0)
    if head[1] != own[INT]:
        return 0
    overflow = allocate(i32[1])
    whole: i64 = PyLong_AsLongLongAndOverflow(value, address(overflow[0]))
    if overflow[0] != 0:
        return 0
    return select(f64(whole) == bits_to_f64(wanted), 1, 0)
"""

_READING: Final = """
def is_fixed(descriptor: i64, i: i64, value: i64):
    it = view(i64[...], descriptor)
    if it[KINDS + i] == UNREAD:
        return 1
    if it[KINDS + i] == SAME:
        return select(value == it[GIVEN + i], 1, 0)
    equal: i64 = is_equal(it[PROCESS], value, it[GIVEN + i])
    return equal


def type_of(process: i64, dtype: i64):
    own = view(i64[...], process)
    for i in range(TYPECOUNT):
        if own[DTYPES + i] == dtype:
            return i
    return -1


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


def read(descriptor: i64, args: i64, count: i64, frame: InOut[i64[...]]):
    it = view(i64[...], descriptor)
    process = it[PROCESS]
    own = view(i64[...], process)
    open: i64 = is_open(descriptor, count)
    if open == 0:
        return 0
    given = view(i64[...], args)
    dtype: i64 = 0
    flags: i64 = PLAIN
    may: i64 = 0
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
                    return 0
            flags = bitand(flags, i64(marks[FLAGS]))
            if it[ISHOOKED] != 0:
                found: i64 = may_record(process, value, select(i == it[TARGET], 1, 0))
                may = bitor(may, found)
            frame[ARRAYS + k] = array
            frame[PLACES + k] = fields[DATA]
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
                    if it[ISHOOKED] != 0:
                        written: i64 = may_record(process, value, 1)
                        may = bitor(may, written)
                else:
                    fixed: i64 = is_fixed(descriptor, i, value)
                    if fixed == 0:
                        return 0
    if bitand(flags, ALIGNED) == 0:
        return 0
    type: i64 = type_of(process, dtype)
    if type < 0:
        return 0
    row = it[ROWS + type]
    if row == 0:
        return 0
    frame[HISTORYOF] = 0
    if may != 0:
        recording: i64 = is_recording(process)
        if recording != 0:
            history: i64 = history_of(descriptor, args, count)
            if bitor(history == 0, own[ISFLOAT + it[RESULTS + type]] == 0):
                return 0
            frame[HISTORYOF] = history
    k = 0
    for i in range(count):
        kind = it[KINDS + i]
        if kind <= SETTINGS:
            frame[ITEMS + k] = select(kind == TRUTHS, 1, own[SIZES + type])
            if kind > TRUTHS:
                place: i64 = address_of(address(frame[VALUES + k]))
                fits: i64 = put_number(process, given[i], type, kind, place)
                if fits == 0:
                    return 0
                frame[PLACES + k] = place
            k = k + 1
    frame[ROW] = row
    frame[WIDTH] = k
    frame[TYPE] = it[RESULTS + type]
    frame[ITEMS + k] = own[SIZES + it[RESULTS + type]]
    frame[ISPLAIN] = select(flags == PLAIN, 1, 0)
    return 1

"""

_SPREADING: Final = """
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
        for k in range(width + 1):
            frame[STEPS + k] = frame[ITEMS + k]
        depth = 1
    frame[DEPTH] = depth
    return 1
"""

_WALKING: Final = """
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


def piece(context: i64, begin: i64, end: i64):
    frame = view(i64[...], context)
    depth = frame[DEPTH]
    width = frame[WIDTH] + 1
    axis = frame[LONGEST]
    places = allocate(i64[EACH])
    extents = allocate(i64[DIMENSIONS])
    for j in range(depth):
        extents[j] = frame[EXTENTS + j]
    extents[axis] = end - begin
    for k in range(width):
        places[k] = frame[PLACES + k] + begin * frame[STEPS + axis * EACH + k]
    steps = view(i64[...], context + 8 * STEPS)
    elements = view(i64[...], context + 8 * ELEMENTS)
    walk(frame[ROW], width, depth, extents, steps, places, elements)
    return 0


def run(it: InOut[i64[...]], frame: InOut[i64[...]]):
    if frame[TOTAL] == 0:
        return 0
    own = view(i64[...], it[PROCESS])
    for k in range(frame[WIDTH] + 1):
        frame[ELEMENTS + k] = quotient(frame[STEPS + k], frame[ITEMS + k])
    work = quotient(frame[TOTAL] * it[WORK], 1024)
    if work < LONG:
        walk(frame[ROW], frame[WIDTH] + 1, frame[DEPTH], address(frame[EXTENTS]), address(frame[STEPS]),
             address(frame[PLACES]), address(frame[ELEMENTS]))
        return 0
    for k in range(frame[WIDTH] + 1):
        if frame[ARRAYS + k] != 0:
            kept: i64 = retain(frame[ARRAYS + k])
    state: i64 = PyEval_SaveThread()
    axis: i64 = 0
    for j in range(1, frame[DEPTH]):
        if frame[EXTENTS + j] > frame[EXTENTS + axis]:
            axis = j
    frame[LONGEST] = axis
    context: i64 = address_of(address(frame[0]))
    extent = frame[EXTENTS + axis]
    if bitor(own[PARALLEL] == 0, work < SHARED):
        call: i64 = piece(context, 0, extent)
    else:
        grain = quotient(extent * PART, work) + 1
        invoke(own[PARALLEL], own[PIECE], context, extent, grain)
    PyEval_RestoreThread(state)
    for k in range(frame[WIDTH] + 1):
        if frame[ARRAYS + k] != 0:
            Py_DecRef(frame[ARRAYS + k])
    return 0
"""

_POINTWISE: Final = """
def computed(descriptor: i64, args: i64, count: i64):
    frame = allocate(i64[FRAME])
    it = view(i64[...], descriptor)
    readable: i64 = read(descriptor, args, count, frame)
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
        run(it, frame)
        again: i64 = retain(target)
        return again
    sizes: i64 = address_of(address(frame[SHAPE]))
    strides: i64 = address_of(address(frame[OUTSTRIDES]))
    array: i64 = new_array(it[PROCESS], frame[TYPE], frame[RANK], sizes, select(is_turned != 0, strides, 0))
    if array == 0:
        return 0
    fields = view(i64[...], array)
    frame[ARRAYS + width] = array
    frame[PLACES + width] = fields[DATA]
    run(it, frame)
    if it[ISBARE] != 0:
        return array
    tensor: i64 = new_tensor(it[PROCESS], array)
    done: i64 = recorded(it[PROCESS], frame[HISTORYOF], args, count, tensor)
    return done


def serve_pointwise(held: i64, args: i64, count: i64, names: i64):
    holds = view(i64[...], held)
    if names == 0:
        holder = view(i64[...], holds[ITEM + 1])
        found: i64 = computed(holder[DATA], args, count)
        if found != 0:
            return found
    following: i64 = PyObject_Vectorcall(holds[ITEM], args, count, names)
    return following
"""
SHAPED_WORDS: Final = _places(
    ("EXTENTS", 5 * OPERANDS), ("PLACES", OPERANDS + 1), "RANK", ("SIZES", DIMENSIONS), "WORK"
)
"""The words of functions of whole operators: five sizes for each tensor, addresses, last that of the result, and what
the function says of the result: its dimensions, their sizes, and the nanoseconds that it takes, roughly."""
NUMBERS_AT: Final = 3
PLACES_AT: Final = 12
"""Where functions along a dimension find numbers and addresses, after the three sizes."""
_NAMES: Final[Mapping[str, int]] = {
    **PROCESS, **DESCRIPTOR, **HISTORY, **KIND, **KEPT_KIND, **_FRAME,
    "FRAME": _FRAME["ALL"], "EACH": OPERANDS + 1, "DIMENSIONS": DIMENSIONS,
    "TYPECOUNT": len(TYPES), "EMPTIES": len(EMPTY), "HISTORIESEACH": 2**RECORDING_TENSORS,
    "IMMORTAL": int(sys.version_info >= (3, 12)),
    "FLOATS": 0, "DOUBLES": 1, "LONGS": 2, "BOOLS": 3, "INTS": 4, "BYTES": 5, "HALVES": 6, "BRAINS": 7, "SHORTS": 8,
    "CHARS": 9,
    # the fields of objects, in words of 64 and of 32 bits
    "ITEM": 3, "FLOATVALUE": 2, "DATA": abi.DATA // 8, "DIMS": abi.DIMENSIONS // 8, "STRIDESOF": abi.STRIDES // 8,
    "DTYPE": abi.DTYPE // 8, "NDIM": abi.NDIM // 4, "FLAGS": abi.ARRAY_FLAGS // 4,
    "PLAIN": abi.PLAIN, "ALIGNED": abi.ALIGNED, "WRITEABLE": abi.WRITEABLE,
    "ALONGWORDS": PLACES_AT + OPERANDS + 1, "NUMBERSAT": NUMBERS_AT, "PLACESAT": PLACES_AT, "OPERANDS": OPERANDS,
    "SHAPEDWORDS": SHAPED_WORDS["ALL"], "EXTENTSEACH": 5, "PLACESIN": SHAPED_WORDS["PLACES"],
    "RANKIN": SHAPED_WORDS["RANK"], "SIZESIN": SHAPED_WORDS["SIZES"], "WORKIN": SHAPED_WORDS["WORK"],
    "TOGETHER": 64, "LONGBYTES": 10 * RELEASE_AFTER,
    "LONG": RELEASE_AFTER, "SHARED": 2 * RELEASE_AFTER, "PART": RELEASE_AFTER // 2,
}  # fmt: skip


@cache
def stubs() -> Kernel:
    """All stubs, as a kernel that has the others for helpers."""
    texts = (
        _OBJECTS, _NUMBERS, RECORDING, _READING, _SPREADING, WRITING, _WALKING, _POINTWISE, ALONG, MOVING, SHAPED,
    )  # fmt: skip
    return parse(re.sub("[A-Z]+", lambda found: str(_NAMES.get(found[0], found[0])), "".join(texts)))


EXPORTED: Final = ("piece", "serve_pointwise", "serve_along", "serve_joined", "serve_looked_up", "serve_shaped")
"""The stubs, and helpers whose addresses this process's words have."""
