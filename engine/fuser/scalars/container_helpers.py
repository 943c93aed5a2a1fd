"""Lists and dicts in kernels: how they lie in memory, and the helpers that kernels call on them, as kernel IR.

In: names of helpers.  Out: kernels.

Note [Objects in kernels]
An object is a header of words of 64 bits, named below; its address stands for it.  The elements of lists, and the keys
and values of dicts, are words too: ints, the bits of floats, or 0 and 1.  The entries of a dict are in the order of
their insertion: a key, a value, and 1, or 0 once it is deleted.  `TABLE` has twice as many slots as there is room for
entries, each 0 or the number of an entry, counted from 1; a key's slot is the first from its hash on that is 0 or its
own.  All objects of a run are in one chain, which begins in the state.  The address 0 stands for no object: what is not
initialized has it, and helpers that lack memory give it, or those that would make more than MANY elements at once,
which the interpreter refuses if there is no room for them.

The keys of a dict are compared by their bits: floats that are NaN or -0.0 are left to the interpreter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from engine.fuser.ir.kernel import Call, Kernel, all_statements
from engine.fuser.ir.kernel_text import parse
from engine.fuser.scalars.container_conversions import CONVERSIONS

NEXT, PREVIOUS, HOLDERS, DATA, LENGTH, CAPACITY, ORIGIN, KIND, TABLE, SHIFT, USED = range(11)
"""The words of an object's header.

`ORIGIN` is the address of the Python object that it stands for, or 0; `KIND` tells the types (see `kind_of`).  Of a
dict, `LENGTH` counts what is in it, and `USED` the entries, those deleted included; hashes are shifted by `SHIFT`.
"""
WORDS: Final = 11
FIRST, THREAD = range(2)
"""The first words of the state: the first object of the chain, and Python's thread state while others run."""
KEY, VALUE = range(2)
"""The first words of a dict's entry."""
_WORDS_BY_NAME: Final = {
    "NEXT": NEXT, "PREVIOUS": PREVIOUS, "HOLDERS": HOLDERS, "DATA": DATA, "LENGTH": LENGTH, "CAPACITY": CAPACITY,
    "ORIGIN": ORIGIN, "KIND": KIND, "TABLE": TABLE, "SHIFT": SHIFT, "USED": USED, "WORDS": WORDS,
    "FIRST": FIRST, "THREAD": THREAD,
    "MANY": 2**27, "MOST": 2**63 - 1, "HASH": 0x9E3779B97F4A7C15 - 2**64,
}  # fmt: skip

# ------------------------------------------------------------------ the helpers

_MEMORY: Final = """
def new_object(state: InOut[i64[...]], kind: i64):
    made: i64 = malloc(8 * WORDS)
    if made != 0:
        memset(made, i32(0), 8 * WORDS)
        header = view(i64[...], made)
        header[HOLDERS] = 1
        header[KIND] = kind
        following = state[FIRST]
        header[NEXT] = following
        if following != 0:
            after = view(i64[...], following)
            after[PREVIOUS] = made
        state[FIRST] = made
    return made


def retain(it: i64):
    if it != 0:
        header = view(i64[...], it)
        header[HOLDERS] = header[HOLDERS] + 1
    return 0


def release(state: InOut[i64[...]], it: i64):
    if it == 0:
        return 0
    header = view(i64[...], it)
    holders = header[HOLDERS] - 1
    header[HOLDERS] = holders
    if holders == 0:
        following = header[NEXT]
        previous = header[PREVIOUS]
        if following != 0:
            after = view(i64[...], following)
            after[PREVIOUS] = previous
        if previous != 0:
            before = view(i64[...], previous)
            before[NEXT] = following
        else:
            state[FIRST] = following
        free(header[DATA])
        free(header[TABLE])
        free(it)
    return 0


def free_all(state: InOut[i64[...]]):
    it: i64 = state[FIRST]
    while it != 0:
        header = view(i64[...], it)
        following = header[NEXT]
        free(header[DATA])
        free(header[TABLE])
        free(it)
        it = following
    state[FIRST] = 0
    return 0


def copy_words(target: i64, source: i64, count: i64):
    if count > 0:
        memmove(target, source, 8 * count)
    return 0


def poll(state: InOut[i64[...]]):
    thread = state[THREAD]
    if thread != 0:
        PyEval_RestoreThread(thread)
        state[THREAD] = 0
    stopped: i32 = PyErr_CheckSignals()
    if stopped != i32(0):
        return 1
    others: i64 = PyEval_SaveThread()
    state[THREAD] = others
    return 0


def resume(state: InOut[i64[...]]):
    thread = state[THREAD]
    if thread != 0:
        PyEval_RestoreThread(thread)
        state[THREAD] = 0
    return 0
"""

_LISTS: Final = """
def grow(it: i64, wanted: i64):
    header = view(i64[...], it)
    capacity = header[CAPACITY]
    if wanted > capacity:
        room = maximum(maximum(wanted, capacity + shift_right(capacity, 1)), 8)
        if room >= 1152921504606846976:
            return 0
        data: i64 = realloc(header[DATA], 8 * room)
        if data == 0:
            return 0
        header[DATA] = data
        header[CAPACITY] = room
    return 1


def new_list(state: InOut[i64[...]], kind: i64, length: i64):
    it: i64 = new_object(state, kind)
    if it != 0:
        enough: i64 = grow(it, length)
        if enough == 0:
            return 0
        header = view(i64[...], it)
        header[LENGTH] = length
    return it


def append(it: i64, value: i64):
    header = view(i64[...], it)
    length = header[LENGTH]
    if length == header[CAPACITY]:
        enough: i64 = grow(it, length + 1)
        if enough == 0:
            return 0
    data = view(i64[...], header[DATA])
    data[length] = value
    header[LENGTH] = length + 1
    return 1


def insert(it: i64, place: i64, value: i64):
    header = view(i64[...], it)
    length = header[LENGTH]
    enough: i64 = grow(it, length + 1)
    if enough == 0:
        return 0
    counted = select(place < 0, place + length, place)
    at = minimum(maximum(counted, 0), length)
    data = header[DATA]
    done: i64 = copy_words(data + 8 * (at + 1), data + 8 * at, length - at)
    elements = view(i64[...], data)
    elements[at] = value
    header[LENGTH] = length + 1
    return 1


def remove_at(it: i64, at: i64):
    header = view(i64[...], it)
    data = header[DATA]
    length = header[LENGTH] - 1
    elements = view(i64[...], data)
    value = elements[at]
    done: i64 = copy_words(data + 8 * at, data + 8 * (at + 1), length - at)
    header[LENGTH] = length
    return value


def extend(it: i64, other: i64):
    header = view(i64[...], it)
    source = view(i64[...], other)
    length = header[LENGTH]
    more = source[LENGTH]
    enough: i64 = grow(it, length + more)
    if enough == 0:
        return 0
    done: i64 = copy_words(header[DATA] + 8 * length, source[DATA], more)
    header[LENGTH] = length + more
    return 1


def copy_list(state: InOut[i64[...]], it: i64):
    header = view(i64[...], it)
    made: i64 = new_list(state, header[KIND], header[LENGTH])
    if made != 0:
        target = view(i64[...], made)
        done: i64 = copy_words(target[DATA], header[DATA], header[LENGTH])
    return made


def joined(state: InOut[i64[...]], it: i64, other: i64):
    made: i64 = copy_list(state, it)
    if made != 0:
        enough: i64 = extend(made, other)
        if enough == 0:
            return 0
    return made


def repeated(state: InOut[i64[...]], it: i64, times: i64):
    header = view(i64[...], it)
    length = header[LENGTH]
    data = header[DATA]
    count = maximum(times, 0)
    if length > 0:
        if count > quotient(MANY, length):
            return 0
    made: i64 = new_list(state, header[KIND], length * count)
    if made != 0:
        target = view(i64[...], made)
        room = target[DATA]
        for i in range(count):
            done: i64 = copy_words(room + 8 * length * i, data, length)
    return made


def sliced(state: InOut[i64[...]], it: i64, begin: i64, end: i64, step: i64):
    header = view(i64[...], it)
    length = header[LENGTH]
    start = select(begin == MOST, 0, begin)
    first = minimum(maximum(select(start < 0, start + length, start), 0), length)
    last = minimum(maximum(select(end < 0, end + length, end), 0), length)
    span = maximum(last - first, 0)
    count = select(span > 0, quotient(span - 1, step) + 1, 0)
    made: i64 = new_list(state, header[KIND], count)
    if made != 0:
        target = view(i64[...], made)
        to = view(i64[...], target[DATA])
        source = view(i64[...], header[DATA])
        for i in range(count):
            to[i] = source[first + i * step]
    return made


def reverse(it: i64):
    header = view(i64[...], it)
    length = header[LENGTH]
    data = view(i64[...], header[DATA])
    for i in range(quotient(length, 2)):
        low = data[i]
        data[i] = data[length - 1 - i]
        data[length - 1 - i] = low
    return 0


def sum_words(it: i64):
    header = view(i64[...], it)
    data = view(i64[...], header[DATA])
    total: i64 = 0
    for i in range(header[LENGTH]):
        total = total + data[i]
    return shift_right(shift_left(total, 32), 32)


def sum_floats(it: i64):
    header = view(i64[...], it)
    data = view(f64[...], header[DATA])
    total: f64 = 0.0
    for i in range(header[LENGTH]):
        total = total + data[i]
    return bits_of_f64(total)


def first_numbers(state: InOut[i64[...]], kind: i64, count: i64):
    if count > MANY:
        return 0
    made: i64 = new_list(state, kind, count)
    if made != 0:
        header = view(i64[...], made)
        data = view(i64[...], header[DATA])
        for i in range(count):
            data[i] = i
    return made
"""

_OF_ELEMENTS: Final = """
def find_ELEMENT(it: i64, value: TYPE):
    header = view(i64[...], it)
    data = view(TYPE[...], header[DATA])
    for i in range(header[LENGTH]):
        if data[i] == value:
            return i
    return -1


def count_ELEMENT(it: i64, value: TYPE):
    header = view(i64[...], it)
    data = view(TYPE[...], header[DATA])
    found: i64 = 0
    for i in range(header[LENGTH]):
        found = found + i64(data[i] == value)
    return found


def equal_ELEMENTs(it: i64, other: i64):
    header = view(i64[...], it)
    header2 = view(i64[...], other)
    if header[LENGTH] != header2[LENGTH]:
        return 0
    data = view(TYPE[...], header[DATA])
    data2 = view(TYPE[...], header2[DATA])
    for i in range(header[LENGTH]):
        if data[i] != data2[i]:
            return 0
    return 1


def least_ELEMENT(it: i64):
    header = view(i64[...], it)
    data = view(TYPE[...], header[DATA])
    found: TYPE = data[0]
    for i in range(1, header[LENGTH]):
        found = select(data[i] < found, data[i], found)
    return WORD(found)


def greatest_ELEMENT(it: i64):
    header = view(i64[...], it)
    data = view(TYPE[...], header[DATA])
    found: TYPE = data[0]
    for i in range(1, header[LENGTH]):
        found = select(data[i] > found, data[i], found)
    return WORD(found)


def sort_ELEMENTs(it: i64, descends: bool):
    header = view(i64[...], it)
    length = header[LENGTH]
    if length < 2:
        return 1
    source: i64 = header[DATA]
    target: i64 = malloc(8 * header[CAPACITY])
    if target == 0:
        return 0
    spare: i64 = target
    width: i64 = 1
    while width < length:
        before = view(TYPE[...], source)
        after = view(TYPE[...], spare)
        begin: i64 = 0
        while begin < length:
            middle = minimum(begin + width, length)
            end = minimum(begin + 2 * width, length)
            i: i64 = begin
            j: i64 = middle
            for k in range(begin, end):
                is_first: bool = j >= end
                if bitand(i < middle, j < end):
                    is_first = select(descends, before[i] >= before[j], before[i] <= before[j])
                if is_first:
                    after[k] = before[i]
                    i = i + 1
                else:
                    after[k] = before[j]
                    j = j + 1
            begin = begin + 2 * width
        other = source
        source = spare
        spare = other
        width = 2 * width
    header[DATA] = source
    free(spare)
    return 1
"""
"""Helpers that there are for whole numbers and for floats.  Sorting merges, which keeps the order of what compares
equal."""
_ELEMENTS: Final = (
    {"ELEMENT": "word", "TYPE": "i64", "WORD": "i64"},
    {"ELEMENT": "float", "TYPE": "f64", "WORD": "bits_of_f64"},
)
"""An element's name, its type, and the function that makes a word of it."""

_NUMBERS: Final = """
def gcd(a: i64, b: i64):
    x: i64 = a
    y: i64 = b
    while y != 0:
        divisor = y
        y = select(divisor == -1, 0, rest(x, select(divisor == -1, 1, divisor)))
        x = divisor
    return select(x < 0, -x, x)


def has_nan(it: i64):
    header = view(i64[...], it)
    data = view(f64[...], header[DATA])
    found: bool = False
    for i in range(header[LENGTH]):
        found = bitor(found, data[i] != data[i])
    return i64(found)
"""

_DICTS: Final = """
def slot_of(it: i64, key: i64):
    header = view(i64[...], it)
    shift = header[SHIFT]
    mask = shift_right_logical(-1, shift)
    table = view(i64[...], header[TABLE])
    entries = view(i64[...], header[DATA])
    slot: i64 = shift_right_logical(key * HASH, shift)
    while table[slot] != 0:
        if entries[3 * table[slot] - 3] == key:
            if entries[3 * table[slot] - 1] != 0:
                return slot
        slot = bitand(slot + 1, mask)
    return slot


def find_key(it: i64, key: i64):
    header = view(i64[...], it)
    if header[LENGTH] == 0:
        return -1
    slot: i64 = slot_of(it, key)
    table = view(i64[...], header[TABLE])
    return table[slot] - 1


def reserve(it: i64):
    header = view(i64[...], it)
    length = header[LENGTH]
    room: i64 = 8
    while room < 2 * length:
        room = 2 * room
    data: i64 = malloc(24 * room)
    table: i64 = malloc(16 * room)
    if bitor(data == 0, table == 0):
        free(data)
        free(table)
        return 0
    memset(table, i32(0), 16 * room)
    entries = view(i64[...], data)
    before = view(i64[...], header[DATA])
    used: i64 = 0
    for i in range(header[USED]):
        if before[3 * i + 2] != 0:
            entries[3 * used] = before[3 * i]
            entries[3 * used + 1] = before[3 * i + 1]
            entries[3 * used + 2] = 1
            used = used + 1
    free(header[DATA])
    free(header[TABLE])
    header[DATA] = data
    header[TABLE] = table
    header[CAPACITY] = room
    header[USED] = used
    bits: i64 = 0
    slots: i64 = 2 * room
    while slots > 1:
        slots = shift_right(slots, 1)
        bits = bits + 1
    header[SHIFT] = 64 - bits
    places = view(i64[...], table)
    for i in range(used):
        slot: i64 = slot_of(it, entries[3 * i])
        places[slot] = i + 1
    return 1


def set_key(it: i64, key: i64, value: i64):
    header = view(i64[...], it)
    known: i64 = find_key(it, key)
    if known >= 0:
        entries = view(i64[...], header[DATA])
        entries[3 * known + 1] = value
        return 1
    if header[USED] == header[CAPACITY]:
        enough: i64 = reserve(it)
        if enough == 0:
            return 0
    slot: i64 = slot_of(it, key)
    used = header[USED]
    table = view(i64[...], header[TABLE])
    table[slot] = used + 1
    entries = view(i64[...], header[DATA])
    entries[3 * used] = key
    entries[3 * used + 1] = value
    entries[3 * used + 2] = 1
    header[USED] = used + 1
    header[LENGTH] = header[LENGTH] + 1
    return 1


def value_at(it: i64, place: i64):
    header = view(i64[...], it)
    entries = view(i64[...], header[DATA])
    return entries[3 * place + 1]


def value_or(it: i64, key: i64, otherwise: i64):
    place: i64 = find_key(it, key)
    if place < 0:
        return otherwise
    found: i64 = value_at(it, place)
    return found


def remove_entry(it: i64, place: i64):
    header = view(i64[...], it)
    entries = view(i64[...], header[DATA])
    entries[3 * place + 2] = 0
    header[LENGTH] = header[LENGTH] - 1
    return entries[3 * place + 1]


def clear_dict(it: i64):
    header = view(i64[...], it)
    header[LENGTH] = 0
    header[USED] = 0
    header[CAPACITY] = 0
    return 0


def parts_of_entries(state: InOut[i64[...]], it: i64, kind: i64, part: i64):
    header = view(i64[...], it)
    made: i64 = new_list(state, kind, header[LENGTH])
    if made != 0:
        target = view(i64[...], made)
        to = view(i64[...], target[DATA])
        entries = view(i64[...], header[DATA])
        count: i64 = 0
        for i in range(header[USED]):
            if entries[3 * i + 2] != 0:
                to[count] = entries[3 * i + part]
                count = count + 1
    return made


def update_dict(it: i64, other: i64):
    source = view(i64[...], other)
    used = source[USED]
    for i in range(used):
        entries = view(i64[...], source[DATA])
        if entries[3 * i + 2] != 0:
            enough: i64 = set_key(it, entries[3 * i], entries[3 * i + 1])
            if enough == 0:
                return 0
    return 1


def copy_dict(state: InOut[i64[...]], it: i64):
    header = view(i64[...], it)
    made: i64 = new_object(state, header[KIND])
    if made != 0:
        enough: i64 = update_dict(made, it)
        if enough == 0:
            return 0
    return made
"""


@cache
def _texts() -> dict[str, str]:
    """The helpers' text by name."""
    of_elements = (_spelled(_OF_ELEMENTS, names) for names in _ELEMENTS)
    text = _spelled("".join((_MEMORY, _LISTS, *of_elements, _NUMBERS, _DICTS, CONVERSIONS)), _WORDS_BY_NAME)
    return {each[: each.index("(")].strip(): "def" + each for each in text.split("\ndef")[1:]}


def _spelled(text: str, names: Mapping[str, object]) -> str:
    """The text with what names in capitals stand for."""
    return re.sub("[A-Z]+", lambda found: str(names.get(found[0], found[0])), text)


_RARE: Final = frozenset(
    "new_object free_all poll resume grow new_list insert extend copy_list joined repeated sliced reverse count_word "
    "count_float sort_words sort_floats reserve clear_dict parts_of_entries update_dict copy_dict list_from dict_from "
    "list_to dict_to elements_to fill_dict copy_to tell_failure write_back".split()
)
"""Helpers that stay functions, which takes LLVM half the time."""


@cache
def helper(name: str) -> Kernel:
    """One of the helpers; raises KeyError."""
    return replace(parse(_texts()[name]), is_rare=name in _RARE)


def with_those_called(names: Iterable[str]) -> tuple[Kernel, ...]:
    """These helpers and those that they call, the called ones first."""
    needed: dict[str, Kernel] = {}

    def need(name: str) -> None:
        for each in all_statements(helper(name).body):
            if isinstance(each, Call) and each.function in _texts() and each.function not in needed:
                need(each.function)
        needed[name] = helper(name)

    for name in names:
        need(name)
    return tuple(needed.values())
