"""The call stub of elements that an index names along a dimension, as text of kernel IR over the words and helpers of
`calls`.

In: nothing.  Out: `GATHERING`: each row of the result, along the last dimension, is a piece of work: its elements lie
one after another in the tensor or at one place, and as far on as the index says along its dimension.
"""

from __future__ import annotations

from typing import Final

from engine.fuser.library.copying_calls import WHOLES, of_size
from engine.fuser.library.object_calls import OPENING

_ROWS: Final = """
def gather_{bytes}(n: i64, source_: i64, step: i64, pitch: i64, numbers: InOut[i64[...]], begin: i64, target_: i64):
    source = view({type}[...], source_)
    target = view({type}[...], target_)
    if bitand(step == 0, pitch == 1):
        for j in range(n):
            near = numbers[begin + j]
            target[[begin + j]] = source[[near]]
        return 0
    for j in range(n):
        place = j * step + numbers[begin + j] * pitch
        target[[begin + j]] = source[[place]]
    return 0

"""
_ROW: Final = """
        if work[GATHERITEM] == {bytes}:
            done_{bytes}: i64 = gather_{bytes}(n, source, step, pitch, numbers, r * n, target)"""
_PIECE: Final = """
def gather_piece(context: i64, begin: i64, end: i64):
    work = view(i64[...], context)
    numbers = view(i64[...], work[GATHERINDEX])
    target = work[GATHERTARGET]
    n = work[GATHERLENGTH]
    step = work[GATHERSTEP]
    pitch = work[GATHERPITCH]
    for r in range(begin, end):
        source: i64 = work[GATHERSOURCE]
        left: i64 = r
        d: i64 = work[GATHEROUTER] - 1
        while d >= 0:
            size = work[GATHERSIZES + d]
            source = source + rest(left, size) * work[GATHERSTEPS + d]
            left = quotient(left, size)
            d = d - 1"""
_STUB: Final = f"""
    return 0


def gathered(descriptor: i64, args: i64, count: i64):
{OPENING}
    table: i64 = plain_array(descriptor, given[0])
    index: i64 = plain_array(descriptor, given[2])
    if bitor(table == 0, index == 0):
        return 0
    if count > 3:
        fixed: i64 = is_fixed(descriptor, 3, given[3])
        if fixed == 0:
            return 0
    fields = view(i64[...], table)
    marks = view(i32[...], table)
    sizes = view(i64[...], fields[DIMS])
    strides = view(i64[...], fields[STRIDESOF])
    places = view(i64[...], index)
    counts = view(i32[...], index)
    lengths = view(i64[...], places[DIMS])
    rank = i64(marks[NDIM])
    type: i64 = type_of(process, fields[DTYPE])
    axis: i64 = axis_of(process, given[1], rank)
    if bitor(bitor(type < 0, axis < 0), bitor(places[DTYPE] != own[DTYPES + LONGS], i64(counts[NDIM]) != rank)):
        return 0
    may: i64 = may_record(descriptor, given[0], 0)
    history: i64 = history_wanted(descriptor, args, count, may, type)
    if history < 0:
        return 0
    work = allocate(i64[GATHERWORDS])
    total: i64 = 1
    for d in range(rank):
        total = total * lengths[d]
        work[GATHERSIZES + d] = lengths[d]
        work[GATHERSTEPS + d] = select(d == axis, 0, strides[d])
        if bitand(d != axis, lengths[d] > sizes[d]):
            return 0
    if total == 0:
        return 0
    numbers = view(i64[...], places[DATA])
    within: i64 = are_within(numbers, total, sizes[axis], 0)
    if within == 0:
        return 0
    made = allocate(i64[1])
    target: i64 = new_result(process, type, rank, places[DIMS], 0, made)
    if target == 0:
        return 0
    item = own[SIZES + type]
    work[GATHERSOURCE] = fields[DATA]
    work[GATHERTARGET] = target
    work[GATHERINDEX] = places[DATA]
    work[GATHERITEM] = item
    work[GATHERLENGTH] = lengths[rank - 1]
    work[GATHEROUTER] = rank - 1
    work[GATHERSTEP] = select(axis == rank - 1, 0, 1)
    work[GATHERPITCH] = quotient(strides[axis], item)
    rows: i64 = quotient(total, lengths[rank - 1])
    place: i64 = address_of(address(work[0]))
    code: i64 = 0
    if total * item < LONGBYTES:
        short: i64 = gather_piece(place, 0, rows)
    else:
        arrays = allocate(i64[2])
        arrays[0] = table
        arrays[1] = index
        state: i64 = hold(2, arrays)
        grain = quotient(PARTBYTES, lengths[rank - 1] * item) + 1
        long: i64 = invoke(own[PARALLEL], own[GATHERPIECE], place, rows, grain)
        let_go(state, 2, arrays)
        code = long
    done: i64 = finished(descriptor, history, args, count, 1, made, code)
    return done
"""
GATHERING: Final = "".join(
    (
        *(of_size(_ROWS, bytes).format(bytes=bytes, type=type) for bytes, type in WHOLES.items()),
        _PIECE,
        *(_ROW.format(bytes=bytes) for bytes in WHOLES),
        _STUB,
    )
)
