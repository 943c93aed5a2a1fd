"""Conversions between types of elements, and the call stub of operators that convert, as text of kernel IR over the
words and helpers of `calls`.

In: nothing.  Out: `CONVERSIONS_OF`: the row functions of `words.CONVERSIONS`; `CONVERTING`, the stub of copies that
have another dtype.

Note [Numbers without a place]
Floats that are out of a whole type's range, and NaN, are what numpy makes of them, which is what the processor makes of
them: on x86-64 the least number of 64 bits, or of 32 bits for all narrower types, which take that number's last bits.
Other processors do otherwise; there numpy converts floats to whole numbers.
"""

from __future__ import annotations

from typing import Final

from engine.fuser.ir.kernel import BOOL, FLOATS, HALVES
from engine.fuser.library.object_calls import OPENING
from engine.fuser.library.words import COMPLEX, CONVERSIONS

_ROW: Final = """
def {symbol}(n: i64, steps_: i64, places_: i64):
    steps = view(i64[...], steps_)
    places = view(i64[...], places_)
    if bitor(steps[0] != 1, steps[1] != 1):
        return 1
    source = view({read}[...], places[0])
    target = view({written}[...], places[1])
    for i in vector(n):{statements}
    return 0

"""


def _statements(read: str, written: str) -> list[str]:
    """The stores of an element, or of the two parts of a complex one, of which other types take the first."""
    parts = ["source[2 * i]", "source[2 * i + 1]"] if read in COMPLEX else ["source[i]"]
    if written in COMPLEX:
        part = COMPLEX[written]
        found = [*(f"{part}({each})" for each in parts), f"{part}(0.0)"][:2]
        return [f"target[2 * i + {k}] = {each}" for k, each in enumerate(found)]
    if written == BOOL and read in COMPLEX:
        return [f"target[i] = bitor(bool({parts[0]}), bool({parts[1]}))"]
    return [f"target[i] = {_converted(parts[0], COMPLEX.get(read, read), written)}"]


def _converted(real: str, read: str, written: str) -> str:
    if read not in (*FLOATS, *HALVES) or written in (*FLOATS, *HALVES, BOOL):
        return f"{written}({real})"
    real = f"f32({real})" if read in HALVES else real
    bits = 64 if written == "i64" else 32
    found = f"select(abs({real}) < {2.0 ** (bits - 1)!r}, i{bits}({real}), -{2 ** (bits - 1)})"
    return found if written == f"i{bits}" else f"{written}({found})"


CONVERSIONS_OF: Final = "".join(
    _ROW.format(
        symbol=symbol,
        read=COMPLEX.get(read, read),
        written=COMPLEX.get(written, written),
        statements="".join(f"\n        {each}" for each in _statements(read, written)),
    )
    for symbol in dict.fromkeys(CONVERSIONS.values())
    for _, read, written in [symbol.split("_")]
)
CONVERTING: Final = f"""
def asked_type(process: i64, kind: i64, value: i64):
    own = view(i64[...], process)
    for i in range(TYPECOUNT):
        if value == select(kind == NUMBERED, own[DTYPECODES + i], own[DTYPEOBJECTS + i]):
            return i
    return -1


def keep_order(frame: InOut[i64[...]]):
    rank = frame[RANK]
    marks = view(i32[...], frame[ARRAYS])
    fields = view(i64[...], frame[ARRAYS])
    strides = view(i64[...], fields[STRIDESOF])
    is_spread: i64 = 0
    for d in range(rank):
        is_spread = bitor(is_spread, select(strides[d] == 0, 1, 0))
    is_turned = bitand(is_spread == 0, bitand(i64(marks[FLAGS]), FORTRAN) != 0)
    for d in range(rank):
        frame[ORDER + d] = select(is_turned, d, rank - 1 - d)
    if bitor(is_turned, is_spread != 0):
        pass
    else:
        for i in range(1, rank):
            here = frame[ORDER + i]
            j: i64 = i
            while j > 0:
                before = frame[ORDER + j - 1]
                if abs(strides[before]) <= abs(strides[here]):
                    break
                frame[ORDER + j] = before
                j = j - 1
            frame[ORDER + j] = here
    step: i64 = frame[ITEMS + 1]
    for j in range(rank):
        frame[OUTSTRIDES + frame[ORDER + j]] = step
        step = step * frame[SHAPE + frame[ORDER + j]]
    return 0


def converted_to(descriptor: i64, args: i64, count: i64):
{OPENING}
    frame = allocate(i64[FRAME])
    target: i64 = 0
    from_: i64 = -1
    to: i64 = -1
    may: i64 = 0
    for i in range(count):
        kind = it[KINDS + i]
        value = given[i]
        if bitor(kind == SHOWN, bitor(kind == LIKE, kind == TARGETS)):
            array: i64 = array_of(process, value, it[ISBARE])
            if array == 0:
                return 0
            found: i64 = may_record(descriptor, value, select(kind == TARGETS, 1, 0))
            may = bitor(may, found)
            fields = view(i64[...], array)
            type: i64 = type_of(process, fields[DTYPE])
            if type < 0:
                return 0
            place = select(kind == SHOWN, 0, 1)
            frame[ARRAYS + place] = array
            frame[PLACES + place] = fields[DATA]
            if kind == SHOWN:
                from_ = type
            else:
                to = type
            if kind == TARGETS:
                target = value
        else:
            if bitor(kind == NUMBERED, kind == NAMED):
                asked: i64 = asked_type(process, kind, value)
                if asked < 0:
                    return 0
                to = asked
            else:
                fixed: i64 = is_fixed(descriptor, i, value)
                if fixed == 0:
                    return 0
    history: i64 = history_wanted(descriptor, args, count, may, to)
    if bitor(history < 0, bitand(history != 0, target != 0)):
        return 0
    if from_ == to:
        if bitor(target != 0, history != 0):
            return 0
        again: i64 = retain(given[0])
        return again
    row = own[CONVERSIONS + from_ * TYPECOUNT + to]
    marks = view(i32[...], frame[ARRAYS])
    if bitor(row == 0, bitand(i64(marks[FLAGS]), ALIGNED) == 0):
        return 0
    frame[ROW] = row
    frame[TYPE] = to
    frame[ITEMS] = own[SIZES + from_]
    frame[ITEMS + 1] = own[SIZES + to]
    frame[ITEMS + 2] = own[SIZES + to]
    frame[WIDTH] = select(target != 0, 2, 1)
    if bitand(target == 0, bitand(i64(marks[FLAGS]), PLAIN) == PLAIN):
        flatten(frame)
    else:
        fits: i64 = spread(frame)
        if fits == 0:
            return 0
        if target == 0:
            keep_order(frame)
        else:
            arrange(it, frame)
            aimed: i64 = aim(it, frame, target)
            if aimed == 0:
                return 0
        merge(frame)
        frame[WIDTH] = 1
    if target != 0:
        if it[ISBARE] == 0:
            advanced: i64 = advance(process, target)
            if advanced == 0:
                return 0
        written: i64 = run(it, frame)
        if written != 0:
            return 0
        itself: i64 = retain(target)
        return itself
    is_plain = bitand(i64(marks[FLAGS]), PLAIN) == PLAIN
    sizes: i64 = address_of(address(frame[SHAPE]))
    strides: i64 = address_of(address(frame[OUTSTRIDES]))
    made = allocate(i64[1])
    place: i64 = new_result(process, to, frame[RANK], sizes, select(is_plain, 0, strides), made)
    if place == 0:
        return 0
    frame[ARRAYS + 1] = made[0]
    frame[PLACES + 1] = place
    code: i64 = run(it, frame)
    done: i64 = finished(descriptor, history, args, count, 1, made, code)
    return done
"""
