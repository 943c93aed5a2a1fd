"""Operands of several dtypes, brought to their common one, as text of kernel IR over the words and helpers of `calls`.

In: nothing.  Out: `MIXING`: the common dtype of a call's tensors, by the tables of this process, and copies in it of
those that have another.  Left to Python are tensors with gaps, long ones, dtypes for which the operator has no function
by themselves, as it may refuse them, and half types, which round what is not one element.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_WHOLE: Final = ("i64", "i32", "u8", "i16", "i8")
CONVERTED: Final[Mapping[str, tuple[str, ...]]] = {
    "f32": ("f64", *_WHOLE, "f16", "bf16"), "f64": ("f32", *_WHOLE, "f16", "bf16"), **dict.fromkeys(_WHOLE, _WHOLE),
}  # fmt: skip
"""The types that others are brought to: bools are bytes, and what has no dimensions comes to a narrower type, too."""
_NAMES: Final = {
    "f32": "FLOATS", "f64": "DOUBLES", "i64": "LONGS", "i32": "INTS", "u8": "BYTES", "f16": "HALVES", "bf16": "BRAINS",
    "i16": "SHORTS", "i8": "CHARS",
}  # fmt: skip
_TARGET: Final = """
def bring_{to}(n: i64, source_: i64, type: i64, target_: i64):
    target = view({to}[...], target_)"""
_SOURCE: Final = """
    if type == {name}:
        from_{type} = view({type}[...], source_)
        for i in range(n):
            target[i] = {to}(from_{type}[i])
        return 1"""
_CASE: Final = """
    if to == {name}:
        as_{to}: i64 = bring_{to}(n, source, found, target)
        return as_{to}"""


def _conversion(to: str, types: tuple[str, ...]) -> str:
    sources = (_SOURCE.format(name=_NAMES[type], type=type, to=to) for type in types if type != to or to == "u8")
    return _TARGET.format(to=to) + "".join(sources) + "\n    return 0\n\n"


MIXING: Final = (
    "".join(_conversion(to, types) for to, types in CONVERTED.items())
    + """
def bring(n: i64, source: i64, type: i64, target: i64, to: i64):
    found = select(type == BOOLS, BYTES, type)"""
    + "".join(_CASE.format(name=_NAMES[to], to=to) for to in CONVERTED)
    + """
    return 0


def converted(process: i64, array: i64, type: i64, to: i64):
    own = view(i64[...], process)
    fields = view(i64[...], array)
    marks = view(i32[...], array)
    sizes = view(i64[...], fields[DIMS])
    total: i64 = 1
    for d in range(i64(marks[NDIM])):
        total = total * sizes[d]
    if bitor(bitand(i64(marks[FLAGS]), PLAIN) != PLAIN, total * own[SIZES + to] > MOSTCOPIED):
        return 0
    made: i64 = new_array(process, to, i64(marks[NDIM]), fields[DIMS], 0)
    if made == 0:
        return 0
    news = view(i64[...], made)
    done: i64 = bring(total, fields[DATA], type, news[DATA], to)
    if done == 0:
        Py_DecRef(made)
        return 0
    return made


def common_of(descriptor: i64, count: i64, frame: InOut[i64[...]]):
    it = view(i64[...], descriptor)
    own = view(i64[...], it[PROCESS])
    high: i64 = -1
    low: i64 = -1
    k: i64 = 0
    for i in range(count):
        if it[KINDS + i] == TENSORS:
            fields = view(i64[...], frame[ARRAYS + k])
            marks = view(i32[...], frame[ARRAYS + k])
            type: i64 = type_of(it[PROCESS], fields[DTYPE])
            if type < 0:
                return -1
            if it[ROWS + type] == 0:
                return -1
            if marks[NDIM] == 0:
                if low >= 0:
                    low = own[PROMOTED + low * TYPECOUNT + type]
                else:
                    low = type
            else:
                if high >= 0:
                    high = own[PROMOTED + high * TYPECOUNT + type]
                else:
                    high = type
        if it[KINDS + i] <= SETTINGS:
            k = k + 1
    if high < 0:
        return low
    if low < 0:
        return high
    return own[RAISED + high * TYPECOUNT + low]


def brought_together(descriptor: i64, count: i64, frame: InOut[i64[...]], copies: InOut[i64[...]]):
    it = view(i64[...], descriptor)
    own = view(i64[...], it[PROCESS])
    common: i64 = common_of(descriptor, count, frame)
    if bitor(common < 0, bitor(common == HALVES, common == BRAINS)):
        return -1
    if it[ROWS + common] == 0:
        return -1
    k: i64 = 0
    for i in range(count):
        if it[KINDS + i] == TENSORS:
            fields = view(i64[...], frame[ARRAYS + k])
            type: i64 = type_of(it[PROCESS], fields[DTYPE])
            if type != common:
                made: i64 = converted(it[PROCESS], frame[ARRAYS + k], type, common)
                if made == 0:
                    return -1
                copies[k] = made
                news = view(i64[...], made)
                frame[ARRAYS + k] = made
                frame[PLACES + k] = news[DATA]
        if it[KINDS + i] <= SETTINGS:
            k = k + 1
    return common

"""
)
