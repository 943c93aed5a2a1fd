"""Helpers of kernels that make lists and dicts of Python's, and Python's of them, as kernel IR.

In: nothing.  Out: `CONVERSIONS`, text for `container_helpers`, which names the words of objects.  The interpreter lock
is held meanwhile; a helper that gives 0 left no error set where Python's object was not as the types say.
"""

from __future__ import annotations

from typing import Final

CONVERSIONS: Final = """
def word_of(source: i64, kind: i64):
    if kind == 1:
        real: f64 = PyFloat_AsDouble(source)
        return bits_of_f64(real)
    if kind == 2:
        truth: i32 = PyObject_IsTrue(source)
        return i64(truth)
    whole: i64 = PyLong_AsLongLong(source)
    return whole


def object_of(word: i64, kind: i64):
    if kind == 1:
        real: i64 = PyFloat_FromDouble(bits_to_f64(word))
        return real
    if kind == 2:
        truth: i64 = PyBool_FromLong(word)
        return truth
    whole: i64 = PyLong_FromLongLong(word)
    return whole


def is_exact_key(key: i64, kind: i64):
    if kind == 1:
        real = bits_to_f64(key)
        return i64(bitand(real == real, key != -9223372036854775808))
    return 1


def known_object(state: InOut[i64[...]], source: i64, kind: i64):
    it: i64 = state[FIRST]
    while it != 0:
        header = view(i64[...], it)
        if bitand(header[ORIGIN] == source, header[KIND] == kind):
            return it
        it = header[NEXT]
    return 0


def list_from(state: InOut[i64[...]], source: i64, kind: i64):
    known: i64 = known_object(state, source, kind)
    if known != 0:
        return known
    count: i64 = PyList_Size(source)
    it: i64 = new_list(state, kind, maximum(count, 0))
    if it != 0:
        header = view(i64[...], it)
        header[ORIGIN] = source
        data = view(i64[...], header[DATA])
        for i in range(count):
            item: i64 = PyList_GetItem(source, i)
            word: i64 = word_of(item, kind)
            data[i] = word
        error: i64 = PyErr_Occurred()
        if error != 0:
            PyErr_Clear()
            return 0
    return it


def dict_from(state: InOut[i64[...]], source: i64, kind: i64):
    known: i64 = known_object(state, source, kind)
    if known != 0:
        return known
    it: i64 = new_object(state, kind)
    if it == 0:
        return 0
    header = view(i64[...], it)
    header[ORIGIN] = source
    place = allocate(i64[1])
    key = allocate(i64[1])
    value = allocate(i64[1])
    place[0] = 0
    more: i32 = i32(1)
    while more != i32(0):
        found: i32 = PyDict_Next(source, address(place[0]), address(key[0]), address(value[0]))
        if found != i32(0):
            word: i64 = word_of(key[0], bitand(kind, 3))
            exact: i64 = is_exact_key(word, bitand(kind, 3))
            if exact == 0:
                return 0
            content: i64 = word_of(value[0], bitand(shift_right(kind, 2), 3))
            enough: i64 = set_key(it, word, content)
            if enough == 0:
                return 0
        more = found
    error: i64 = PyErr_Occurred()
    if error != 0:
        PyErr_Clear()
        return 0
    return it


def list_to(it: i64, kind: i64):
    header = view(i64[...], it)
    if header[ORIGIN] != 0:
        Py_IncRef(header[ORIGIN])
        return header[ORIGIN]
    made: i64 = elements_to(it, kind)
    header[ORIGIN] = made
    return made


def elements_to(it: i64, kind: i64):
    header = view(i64[...], it)
    count = header[LENGTH]
    made: i64 = PyList_New(count)
    if made != 0:
        data = view(i64[...], header[DATA])
        for i in range(count):
            item: i64 = object_of(data[i], kind)
            if item == 0:
                Py_DecRef(made)
                return 0
            status: i32 = PyList_SetItem(made, i, item)
    return made


def fill_dict(it: i64, made: i64, kind: i64):
    header = view(i64[...], it)
    entries = view(i64[...], header[DATA])
    for i in range(header[USED]):
        if entries[3 * i + 2] != 0:
            key: i64 = object_of(entries[3 * i], bitand(kind, 3))
            if key == 0:
                return 0
            value: i64 = object_of(entries[3 * i + 1], bitand(shift_right(kind, 2), 3))
            if value == 0:
                Py_DecRef(key)
                return 0
            status: i32 = PyDict_SetItem(made, key, value)
            Py_DecRef(key)
            Py_DecRef(value)
            if status != i32(0):
                return 0
    return 1


def dict_to(it: i64, kind: i64):
    header = view(i64[...], it)
    if header[ORIGIN] != 0:
        Py_IncRef(header[ORIGIN])
        return header[ORIGIN]
    made: i64 = PyDict_New()
    if made != 0:
        enough: i64 = fill_dict(it, made, kind)
        if enough == 0:
            Py_DecRef(made)
            return 0
        header[ORIGIN] = made
    return made


def copy_to(it: i64):
    header = view(i64[...], it)
    if header[KIND] < 16:
        elements: i64 = elements_to(it, header[KIND])
        return elements
    made: i64 = PyDict_New()
    if made != 0:
        enough: i64 = fill_dict(it, made, header[KIND])
        if enough == 0:
            Py_DecRef(made)
            return 0
    return made


def tell_failure(state: InOut[i64[...]], failure: Out[i64[5]]):
    for i in range(4):
        failure[i + 1] = state[i + 3]
    failure[0] = 0
    if state[2] != 0:
        made: i64 = copy_to(state[2])
        failure[0] = made
        if made == 0:
            PyErr_Clear()
    return 0


def write_back(state: InOut[i64[...]]):
    it: i64 = state[FIRST]
    while it != 0:
        header = view(i64[...], it)
        origin = header[ORIGIN]
        if origin != 0:
            if header[KIND] >= 16:
                PyDict_Clear(origin)
                enough: i64 = fill_dict(it, origin, header[KIND])
                if enough == 0:
                    return 0
            else:
                elements: i64 = elements_to(it, header[KIND])
                if elements == 0:
                    return 0
                status: i32 = PyList_SetSlice(origin, 0, 9223372036854775807, elements)
                Py_DecRef(elements)
                if status != i32(0):
                    return 0
        it = header[NEXT]
    return 1
"""
