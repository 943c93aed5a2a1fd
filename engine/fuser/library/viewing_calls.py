"""The call stub of operators whose result shows the memory of an argument, as text of kernel IR over `calls`' words.

In: nothing.  Out: `VIEWING`: the stub, and a function for each kind of view.  The stub puts sizes, steps and numbers
into words (`words.VIEW`); the function says what sizes and steps the result has, and from which byte on it lies, or
refuses: 0 is done, 1 is the argument itself, 2 is a copy of these sizes, all else is Python's.
"""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = """
def read_sizes(process: i64, value: i64, words: i64):
    own = view(i64[...], process)
    it = view(i64[...], words)
    head = view(i64[...], value)
    is_tuple: i64 = select(bitor(head[1] == own[TUPLE], head[1] == own[SIZE]), 1, 0)
    length: i64 = 0
    if is_tuple != 0:
        size: i64 = PyTuple_Size(value)
        length = size
    else:
        if head[1] != own[LIST]:
            return 0
        size: i64 = PyList_Size(value)
        length = size
    if length > DIMENSIONS:
        return 0
    it[MANYCOUNT] = length
    for i in range(length):
        item: i64 = 0
        if is_tuple != 0:
            one: i64 = PyTuple_GetItem(value, i)
            item = one
        else:
            one: i64 = PyList_GetItem(value, i)
            item = one
        is_whole: i64 = whole_of(process, item, address(it[MANY + i]))
        if is_whole == 0:
            return 0
    return 1


def read_form(array: i64, words: i64):
    it = view(i64[...], words)
    fields = view(i64[...], array)
    marks = view(i32[...], array)
    rank = i64(marks[NDIM])
    if bitor(rank > DIMENSIONS, bitand(i64(marks[FLAGS]), ALIGNED) != ALIGNED):
        return 0
    sizes = view(i64[...], fields[DIMS])
    strides = view(i64[...], fields[STRIDESOF])
    total: i64 = 1
    for d in range(rank):
        it[OLDSIZES + d] = sizes[d]
        it[OLDSTEPS + d] = strides[d]
        total = total * sizes[d]
    it[OLDRANK] = rank
    it[OFFSET] = 0
    it[ELEMENTCOUNT] = total
    it[ISDENSE] = select(bitand(i64(marks[FLAGS]), PLAIN) == PLAIN, 1, 0)
    return 1


def same_form(words: i64):
    it = view(i64[...], words)
    it[NEWRANK] = it[OLDRANK]
    for d in range(it[OLDRANK]):
        it[NEWSIZES + d] = it[OLDSIZES + d]
        it[NEWSTEPS + d] = it[OLDSTEPS + d]
    return 0


def wrapped_axis(axis: i64, rank: i64):
    found = axis + select(axis < 0, rank, 0)
    return select(bitand(found >= 0, found < rank), found, -1)


def without(words: i64, axis: i64):
    it = view(i64[...], words)
    for d in range(axis + 1, it[NEWRANK]):
        it[NEWSIZES + d - 1] = it[NEWSIZES + d]
        it[NEWSTEPS + d - 1] = it[NEWSTEPS + d]
    it[NEWRANK] = it[NEWRANK] - 1
    return 0
"""
_ORDERS: Final = """
def view_itself(words: i64):
    it = view(i64[...], words)
    return select(it[ISDENSE] != 0, 1, -1)


def view_t(words: i64):
    it = view(i64[...], words)
    same: i64 = same_form(words)
    if it[OLDRANK] == 2:
        for d in range(2):
            it[NEWSIZES + d] = it[OLDSIZES + 1 - d]
            it[NEWSTEPS + d] = it[OLDSTEPS + 1 - d]
    return select(it[OLDRANK] > 2, -1, 0)


def view_transposed(words: i64):
    it = view(i64[...], words)
    a: i64 = wrapped_axis(it[NUMBERSOF], it[OLDRANK])
    b: i64 = wrapped_axis(it[NUMBERSOF + 1], it[OLDRANK])
    if bitor(a < 0, b < 0):
        return -1
    same: i64 = same_form(words)
    it[NEWSIZES + a] = it[OLDSIZES + b]
    it[NEWSTEPS + a] = it[OLDSTEPS + b]
    it[NEWSIZES + b] = it[OLDSIZES + a]
    it[NEWSTEPS + b] = it[OLDSTEPS + a]
    return 0


def view_permuted(words: i64):
    it = view(i64[...], words)
    rank = it[OLDRANK]
    if it[MANYCOUNT] != rank:
        return -1
    taken = allocate(i64[DIMENSIONS])
    for d in range(rank):
        taken[d] = 0
    for d in range(rank):
        axis: i64 = wrapped_axis(it[MANY + d], rank)
        if axis < 0:
            return -1
        if taken[axis] != 0:
            return -1
        taken[axis] = 1
        it[NEWSIZES + d] = it[OLDSIZES + axis]
        it[NEWSTEPS + d] = it[OLDSTEPS + axis]
    it[NEWRANK] = rank
    return 0


def view_unsqueezed(words: i64):
    it = view(i64[...], words)
    rank = it[OLDRANK]
    axis: i64 = wrapped_axis(it[NUMBERSOF], rank + 1)
    if bitor(axis < 0, rank == DIMENSIONS):
        return -1
    step: i64 = it[ITEMSIZE]
    if axis < rank:
        step = it[OLDSIZES + axis] * it[OLDSTEPS + axis]
    for d in range(rank + 1):
        if d == axis:
            it[NEWSIZES + d] = 1
            it[NEWSTEPS + d] = step
        else:
            from_ = d - select(d > axis, 1, 0)
            it[NEWSIZES + d] = it[OLDSIZES + from_]
            it[NEWSTEPS + d] = it[OLDSTEPS + from_]
    it[NEWRANK] = rank + 1
    return 0


def view_squeezed(words: i64):
    it = view(i64[...], words)
    rank: i64 = 0
    for d in range(it[OLDRANK]):
        if it[OLDSIZES + d] != 1:
            it[NEWSIZES + rank] = it[OLDSIZES + d]
            it[NEWSTEPS + rank] = it[OLDSTEPS + d]
            rank = rank + 1
    it[NEWRANK] = rank
    return 0


def view_squeezed_at(words: i64):
    it = view(i64[...], words)
    axis: i64 = wrapped_axis(it[NUMBERSOF], it[OLDRANK])
    if axis < 0:
        return -1
    same: i64 = same_form(words)
    if it[OLDSIZES + axis] == 1:
        less: i64 = without(words, axis)
    return 0
"""
_SHAPES: Final = """
def infer(words: i64):
    it = view(i64[...], words)
    total = it[ELEMENTCOUNT]
    open: i64 = -1
    product: i64 = 1
    for i in range(it[MANYCOUNT]):
        size = it[MANY + i]
        it[NEWSIZES + i] = size
        if size == -1:
            if open >= 0:
                return 0
            open = i
        else:
            if bitor(size < 1, size > quotient(total, product)):
                return 0
            product = product * size
    it[NEWRANK] = it[MANYCOUNT]
    if open >= 0:
        it[NEWSIZES + open] = quotient(total, product)
        product = product * it[NEWSIZES + open]
    return select(product == total, 1, 0)


def is_same(words: i64):
    it = view(i64[...], words)
    if it[NEWRANK] != it[OLDRANK]:
        return 0
    for d in range(it[OLDRANK]):
        if it[NEWSIZES + d] != it[OLDSIZES + d]:
            return 0
    return 1


def dense_steps(words: i64):
    it = view(i64[...], words)
    step: i64 = it[ITEMSIZE]
    for i in range(it[NEWRANK]):
        d = it[NEWRANK] - 1 - i
        it[NEWSTEPS + d] = step
        step = step * it[NEWSIZES + d]
    return 0


def fit_steps(words: i64):
    it = view(i64[...], words)
    left: i64 = it[NEWRANK]
    step: i64 = it[ITEMSIZE]
    chunk: i64 = 1
    for i in range(it[OLDRANK]):
        d = it[OLDRANK] - 1 - i
        if chunk == 1:
            step = it[OLDSTEPS + d]
        chunk = chunk * it[OLDSIZES + d]
        goes_on: i64 = 0
        if d > 0:
            is_one = it[OLDSIZES + d - 1] == 1
            goes_on = select(bitor(is_one, it[OLDSTEPS + d - 1] == chunk * step), 1, 0)
        if goes_on == 0:
            placed: i64 = 1
            while left > 0:
                if bitand(placed >= chunk, it[NEWSIZES + left - 1] != 1):
                    break
                left = left - 1
                it[NEWSTEPS + left] = placed * step
                placed = placed * it[NEWSIZES + left]
            if placed != chunk:
                return 0
            chunk = 1
    while left > 0:
        left = left - 1
        it[NEWSTEPS + left] = step
    return 1


def reshape_to(words: i64, keeps: i64):
    it = view(i64[...], words)
    fits: i64 = infer(words)
    if fits == 0:
        return -1
    same: i64 = is_same(words)
    if bitand(same != 0, bitor(keeps != 0, it[ISDENSE] != 0)):
        kept: i64 = same_form(words)
        return 0
    if it[ISDENSE] != 0:
        dense: i64 = dense_steps(words)
        return 0
    shown: i64 = fit_steps(words)
    return select(shown != 0, 0, select(keeps != 0, 2, -1))


def view_viewed(words: i64):
    code: i64 = reshape_to(words, 0)
    return code


def view_reshaped(words: i64):
    code: i64 = reshape_to(words, 1)
    return code


def view_flattened(words: i64):
    it = view(i64[...], words)
    rank = it[OLDRANK]
    start: i64 = wrapped_axis(it[NUMBERSOF], maximum(rank, 1))
    end: i64 = wrapped_axis(it[NUMBERSOF + 1], maximum(rank, 1))
    if bitor(start < 0, bitor(end < 0, start > end)):
        return -1
    if bitand(rank > 0, start == end):
        return 1
    count: i64 = 0
    for d in range(maximum(rank, 1)):
        size: i64 = 1
        if d < rank:
            size = it[OLDSIZES + d]
        if bitand(d > start, d <= end):
            it[MANY + count - 1] = it[MANY + count - 1] * size
        else:
            it[MANY + count] = size
            count = count + 1
    it[MANYCOUNT] = count
    code: i64 = reshape_to(words, 1)
    return code


def view_expanded(words: i64):
    it = view(i64[...], words)
    extra = it[MANYCOUNT] - it[OLDRANK]
    if extra < 0:
        return -1
    for d in range(it[MANYCOUNT]):
        size: i64 = 1
        step: i64 = 0
        if d >= extra:
            size = it[OLDSIZES + d - extra]
            step = it[OLDSTEPS + d - extra]
        wanted: i64 = it[MANY + d]
        if bitand(wanted == -1, d >= extra):
            wanted = size
        if bitor(wanted < 1, bitand(size != 1, size != wanted)):
            return -1
        it[NEWSIZES + d] = wanted
        it[NEWSTEPS + d] = select(wanted == size, step, 0)
    it[NEWRANK] = it[MANYCOUNT]
    return 0
"""
_PARTS: Final = """
def view_selected(words: i64):
    it = view(i64[...], words)
    axis: i64 = wrapped_axis(it[NUMBERSOF], it[OLDRANK])
    if axis < 0:
        return -1
    place: i64 = wrapped_axis(it[NUMBERSOF + 1], it[OLDSIZES + axis])
    if place < 0:
        return -1
    same: i64 = same_form(words)
    it[OFFSET] = place * it[OLDSTEPS + axis]
    less: i64 = without(words, axis)
    return 0


def cut(words: i64, axis: i64, start: i64, end: i64, step: i64):
    it = view(i64[...], words)
    same: i64 = same_form(words)
    size = it[OLDSIZES + axis]
    first = minimum(maximum(start + select(start < 0, size, 0), 0), size)
    last = minimum(maximum(end + select(end < 0, size, 0), 0), size)
    it[NEWSIZES + axis] = select(first < last, quotient(last - first - 1, step) + 1, 0)
    it[NEWSTEPS + axis] = it[OLDSTEPS + axis] * step
    it[OFFSET] = first * it[OLDSTEPS + axis]
    return 0


def view_sliced(words: i64):
    it = view(i64[...], words)
    axis: i64 = wrapped_axis(it[NUMBERSOF], it[OLDRANK])
    step = it[NUMBERSOF + 3]
    if bitor(axis < 0, bitor(step < 1, step > LONGESTSTEP)):
        return -1
    done: i64 = cut(words, axis, it[NUMBERSOF + 1], it[NUMBERSOF + 2], step)
    return 0


def view_narrowed(words: i64):
    it = view(i64[...], words)
    axis: i64 = wrapped_axis(it[NUMBERSOF], it[OLDRANK])
    if axis < 0:
        return -1
    size = it[OLDSIZES + axis]
    start = it[NUMBERSOF + 1] + select(it[NUMBERSOF + 1] < 0, size, 0)
    length = it[NUMBERSOF + 2]
    if bitor(bitor(start < 0, start > size), bitor(length < 0, length > size - start)):
        return -1
    done: i64 = cut(words, axis, start, start + length, 1)
    return 0
"""
_SEVERAL: Final = """
def view_split(words: i64):
    it = view(i64[...], words)
    axis: i64 = wrapped_axis(it[NUMBERSOF + 1], it[OLDRANK])
    if bitor(axis < 0, it[NUMBERSOF] < 1):
        return -1
    same: i64 = same_form(words)
    it[PARTAXIS] = axis
    it[PARTSIZE] = minimum(it[NUMBERSOF], it[OLDSIZES + axis])
    it[PARTCOUNT] = quotient(it[OLDSIZES + axis] - 1, it[PARTSIZE]) + 1
    return 0


def view_chunked(words: i64):
    it = view(i64[...], words)
    axis: i64 = wrapped_axis(it[NUMBERSOF + 1], it[OLDRANK])
    if bitor(axis < 0, it[NUMBERSOF] < 1):
        return -1
    it[NUMBERSOF] = quotient(it[OLDSIZES + axis] - 1, it[NUMBERSOF]) + 1
    code: i64 = view_split(words)
    return code


def view_split_with(words: i64):
    it = view(i64[...], words)
    axis: i64 = wrapped_axis(it[NUMBERSOF], it[OLDRANK])
    if axis < 0:
        return -1
    same: i64 = same_form(words)
    total: i64 = 0
    for i in range(it[MANYCOUNT]):
        if bitor(it[MANY + i] < 0, it[MANY + i] > it[OLDSIZES + axis]):
            return -1
        total = total + it[MANY + i]
    it[PARTAXIS] = axis
    it[PARTCOUNT] = it[MANYCOUNT]
    it[ISLISTED] = 1
    return select(total == it[OLDSIZES + axis], 0, -1)


def view_unbound(words: i64):
    it = view(i64[...], words)
    axis: i64 = wrapped_axis(it[NUMBERSOF], it[OLDRANK])
    if axis < 0:
        return -1
    same: i64 = same_form(words)
    it[PARTCOUNT] = it[OLDSIZES + axis]
    it[PARTSTEP] = it[OLDSTEPS + axis]
    less: i64 = without(words, axis)
    return 0
"""
_STUB: Final = """
def memory_of(process: i64, tensor: i64):
    own = view(i64[...], process)
    slots = view(i64[...], tensor)
    if slots[own[OWNSTORAGE]] != own[NONE]:
        return slots[own[OWNSTORAGE]]
    fields = view(i64[...], slots[own[ARRAY]])
    if fields[BASEOF] != 0:
        found: i64 = PyObject_GetAttr(tensor, own[MEMORY])
        if found == 0:
            return 0
        Py_DecRef(found)
        return found
    made: i64 = PyType_GenericAlloc(own[STORAGE], 0)
    if made == 0:
        PyErr_Clear()
        return 0
    storage = view(i64[...], made)
    owner: i64 = retain(slots[own[ARRAY]])
    version: i64 = retain(own[ZERO])
    storage[own[OWNER]] = owner
    storage[own[VERSION]] = version
    Py_DecRef(own[NONE])
    slots[own[OWNSTORAGE]] = made
    return made


def view_of(process: i64, source: i64, words: i64):
    own = view(i64[...], process)
    it = view(i64[...], words)
    slots = view(i64[...], source)
    array = slots[own[ARRAY]]
    memory: i64 = memory_of(process, source)
    if memory == 0:
        return 0
    fields = view(i64[...], array)
    marks = view(i32[...], array)
    dtype: i64 = retain(fields[DTYPE])
    flags = bitand(i64(marks[FLAGS]), WRITEABLE + ALIGNED)
    made: i64 = invoke(own[NEWARRAY], own[NDARRAY], dtype, it[NEWRANK], address(it[NEWSIZES]), address(it[NEWSTEPS]),
        fields[DATA] + it[OFFSET], flags, 0)
    if made == 0:
        PyErr_Clear()
        return 0
    under: i64 = retain(array)
    based: i64 = invoke(own[SETBASE], made, under)
    tensor: i64 = new_tensor(process, made)
    if tensor == 0:
        return 0
    storage = view(i64[...], memory)
    shows = view(i64[...], tensor)
    kept: i64 = retain(memory)
    base: i64 = retain(select(slots[own[BASE]] == own[NONE], source, slots[own[BASE]]))
    seen: i64 = retain(storage[own[VERSION]])
    Py_DecRef(own[NONE])
    Py_DecRef(own[NONE])
    shows[own[OWNSTORAGE]] = kept
    shows[own[BASE]] = base
    shows[own[SEEN]] = seen
    return tensor


def copy_of(process: i64, source: i64, words: i64):
    own = view(i64[...], process)
    it = view(i64[...], words)
    slots = view(i64[...], source)
    fields = view(i64[...], slots[own[ARRAY]])
    type: i64 = type_of(process, fields[DTYPE])
    sizes: i64 = address_of(address(it[NEWSIZES]))
    made: i64 = dense_copy_as(process, slots[own[ARRAY]], type, it[NEWRANK], sizes)
    if made == 0:
        return 0
    tensor: i64 = new_tensor(process, made)
    return tensor


def set_kind(process: i64, tensor: i64):
    own = view(i64[...], process)
    failed: i32 = PyObject_SetAttr(tensor, own[VIEWKIND], own[MANYVIEWS])
    if failed != 0:
        PyErr_Clear()
    return select(failed == 0, 1, 0)


def read_view(descriptor: i64, args: i64, count: i64, words: i64):
    it = view(i64[...], descriptor)
    process = it[PROCESS]
    own = view(i64[...], process)
    given = view(i64[...], args)
    form = view(i64[...], words)
    numbers: i64 = 0
    may: i64 = 0
    for i in range(it[GIVENCOUNT]):
        kind = it[KINDS + i]
        if bitor(kind == INDEX, kind == BOUND):
            form[NUMBERSOF + numbers] = it[GIVEN + i]
            if i < count:
                if bitor(kind == INDEX, given[i] != own[NONE]):
                    is_whole: i64 = whole_of(process, given[i], address(form[NUMBERSOF + numbers]))
                    if is_whole == 0:
                        return -1
            numbers = numbers + 1
        else:
            if i < count:
                if bitor(kind == SHOWN, kind == LIKE):
                    array: i64 = array_of(process, given[i], 0)
                    if array == 0:
                        return -1
                    found: i64 = may_record(descriptor, given[i], 0)
                    may = bitor(may, found)
                    fields = view(i64[...], array)
                    if kind == SHOWN:
                        type: i64 = type_of(process, fields[DTYPE])
                        readable: i64 = read_form(array, words)
                        if bitor(type < 0, readable == 0):
                            return -1
                        form[ITEMSIZE] = own[SIZES + type]
                        form[ISREAL] = own[ISFLOAT + type]
                    else:
                        marks = view(i32[...], array)
                        sizes = view(i64[...], fields[DIMS])
                        if i64(marks[NDIM]) > DIMENSIONS:
                            return -1
                        form[MANYCOUNT] = i64(marks[NDIM])
                        for d in range(i64(marks[NDIM])):
                            form[MANY + d] = sizes[d]
                else:
                    if kind == MANYINTS:
                        listed: i64 = read_sizes(process, given[i], words)
                        if listed == 0:
                            return -1
                    else:
                        fixed: i64 = is_fixed(descriptor, i, given[i])
                        if fixed == 0:
                            return -1
    return may


def shown_with(descriptor: i64, args: i64, count: i64):
    it = view(i64[...], descriptor)
    process = it[PROCESS]
    given = view(i64[...], args)
    form = allocate(i64[VIEWWORDS])
    words: i64 = address_of(address(form[0]))
    may: i64 = read_view(descriptor, args, count, words)
    if may < 0:
        return 0
    history: i64 = 0
    if may != 0:
        recording: i64 = is_recording(process)
        if recording == 0:
            return 0
        known: i64 = history_of(descriptor, args, count)
        if bitor(known == 0, form[ISREAL] == 0):
            return 0
        history = known
    code: i64 = invoke(it[FUNCTION], words)
    if code == 1:
        again: i64 = retain(given[0])
        return again
    if bitor(bitor(code < 0, code > 2), form[ELEMENTCOUNT] == 0):
        return 0
    tensor: i64 = 0
    if code == 0:
        seen: i64 = view_of(process, given[0], words)
        tensor = seen
    else:
        copied: i64 = copy_of(process, given[0], words)
        tensor = copied
    if tensor == 0:
        return 0
    made = allocate(i64[1])
    made[0] = tensor
    done: i64 = recorded(process, history, args, count, 1, made)
    return select(done == 0, 0, tensor)


def shown(descriptor: i64, args: i64, count: i64):
    it = view(i64[...], descriptor)
    own = view(i64[...], it[PROCESS])
    given = view(i64[...], args)
    open: i64 = is_open(descriptor, count)
    if open == 0:
        return 0
    if bitor(it[ISSPREAD] == 0, count < 2):
        as_given: i64 = shown_with(descriptor, args, count)
        return as_given
    head = view(i64[...], given[1])
    if head[1] != own[INT]:
        if count != 2:
            return 0
        as_list: i64 = shown_with(descriptor, args, 2)
        return as_list
    listed: i64 = PyList_New(count - 1)
    if listed == 0:
        PyErr_Clear()
        return 0
    for i in range(1, count):
        item: i64 = retain(given[i])
        PyList_SetItem(listed, i - 1, item)
    two = allocate(i64[2])
    two[0] = given[0]
    two[1] = listed
    place: i64 = address_of(address(two[0]))
    found: i64 = shown_with(descriptor, place, 2)
    Py_DecRef(listed)
    return found
"""
_PARTED: Final = """
def part_of(process: i64, source: i64, words: i64, i: i64):
    own = view(i64[...], process)
    it = view(i64[...], words)
    step: i64 = it[PARTSTEP]
    if it[PARTAXIS] >= 0:
        axis = it[PARTAXIS]
        size: i64 = minimum(it[PARTSIZE], it[OLDSIZES + axis] - i * it[PARTSIZE])
        if it[ISLISTED] != 0:
            size = it[MANY + i]
        it[NEWSIZES + axis] = size
        step = size * it[OLDSTEPS + axis]
    made: i64 = view_of(process, source, words)
    if made == 0:
        return 0
    it[OFFSET] = it[OFFSET] + step
    marked: i64 = set_kind(process, made)
    if marked == 0:
        Py_DecRef(made)
        return 0
    return made


def parted(descriptor: i64, args: i64, count: i64):
    it = view(i64[...], descriptor)
    process = it[PROCESS]
    given = view(i64[...], args)
    form = allocate(i64[VIEWWORDS])
    words: i64 = address_of(address(form[0]))
    open: i64 = is_open(descriptor, count)
    if open == 0:
        return 0
    may: i64 = read_view(descriptor, args, count, words)
    if bitor(may != 0, form[ELEMENTCOUNT] == 0):
        return 0
    form[PARTSTEP] = 0
    form[PARTAXIS] = -1
    form[PARTSIZE] = 0
    form[ISLISTED] = 0
    code: i64 = invoke(it[FUNCTION], words)
    if code != 0:
        return 0
    found: i64 = PyList_New(form[PARTCOUNT])
    if found == 0:
        PyErr_Clear()
        return 0
    for i in range(form[PARTCOUNT]):
        part: i64 = part_of(process, given[0], words, i)
        if part == 0:
            Py_DecRef(found)
            return 0
        PyList_SetItem(found, i, part)
    return found
"""
VIEWING: Final = _WORDS + _ORDERS + _SHAPES + _PARTS + _SEVERAL + _STUB + _PARTED
VIEWS: Final = tuple(re.findall(r"def (view_\w+)\(words: i64\)", VIEWING))
"""The functions of views."""
