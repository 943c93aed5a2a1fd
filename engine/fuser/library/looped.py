"""Operators that loops compute, as kernel IR: normalization with its gradients, pooling with places, what is written or
brought together at places, sorting and selection.

In: `LOOPS`, a row for each kind of call of an operator.  Out: the forms of these calls, and the functions that serve
them, `i64 FUNCTION(i64 *words, i64 phase)` of `words.LOOPED`: at first it says the results' sizes and the ints that the
loop is given, or with another code than 0 that the arguments are not for it; then it computes.

Both are loops in the language of `engine.aten.stepwise.language`.  A loop has the tensors of the call for its arrays,
after them the results and the arrays that it works in, then the ints, and the call's floats; what it returns other than
0 leaves the call to Python.  One that changes a tensor has no results: it is given a copy of that, or, for the operator
in place, the tensor itself, and returns something other than 0 only where it has written nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from engine.aten.dispatch.op import Op
from engine.aten.kernels.row_normalization import SHORT
from engine.aten.stepwise import choosing, convolving, normalizing, pooling, scattering, selecting
from engine.aten.stepwise.language import Buffer, Loop, loop
from engine.fuser.groups.from_loop import kernel_of
from engine.fuser.groups.fusion_group import DTYPES
from engine.fuser.ir.kernel import (
    BOOL,
    Address,
    Call,
    Expression,
    If,
    Kernel,
    Let,
    Name,
    Return,
    Statement,
    allocate,
    apply,
    index,
)
from engine.fuser.ir.kernel import SIZES as BYTES
from engine.fuser.ir.kernel import (
    Buffer as Array,
)
from engine.fuser.library import words
from engine.fuser.library.forms import Entry, Form, Given, fewest
from engine.fuser.library.functions import WORDS, calling, tensor_at, word
from engine.lang.records import dataclass

LAID, ARRAY = Given("BLOCKS", 0), Given("BLOCKS", 1)
"""Tensors as they lie, since the result lies so, and others, copies of which may stand for them."""
MAYBE, STATE, PLACES, LISTED = (Given(kind) for kind in ("MAYBES", "STATES", "INDICES", "LISTS"))
CHANGED, CHANGED_LAID = Given("CHANGED", 1), Given("CHANGED", 0)
"""Tensors of which a copy is changed, which is in order, or lies as they do."""
REAL, FLAG, INTS, INT = Given("REALS"), Given("KEEPS"), Given("MANYINTS"), Given("INDEX", 0)
NOTHING, ALL, NONE_OF_IT, ONE = Given("SAME", None), Given("SAME", True), Given("SAME", False), Given("EQUAL", 1)
UNREAD, MASK, NUMBER = Given("UNREAD"), Given("TRUTHS"), Given("SETTINGS")
TENSORS: Final = frozenset(("BLOCKS", "MAYBES", "STATES", "INDICES", "LISTS", "CHANGED", "TRUTHS", "SETTINGS"))
"""The kinds of what loops have arrays for, of which some have types of their own."""
TYPED: Final = {"INDICES": "i64", "LISTS": "i64", "TRUTHS": "bool"}
NUMBERS_OF: Final = ("REALS", "KEEPS", "INDEX", "OPTIONS")
OWN, WHOLE = "", "i64"
"""Types of results: that of the operands; places."""
REALS: Final = ("f32", "f64")
SIGNED: Final = ("f32", "f64", "i64")
SAME_SIZE: Final = {1: "u8", 2: "i16", 4: "i32", 8: "i64"}
"""The types that stand for all others of so many bytes, where elements are moved as they are."""


@dataclass(frozen=True, slots=True)
class Looped:
    """Calls with such arguments: the loop that looks at their words, the one that computes, and the results' types.

    `rooms`: the types of arrays that the loop works in.  `types`: those of operands that there are functions for, none
    where elements of any type are moved as they are.
    """

    given: tuple[Given, ...]
    sizes: Loop
    work: Loop
    results: tuple[str, ...] = (OWN,)
    rooms: tuple[str, ...] = ()
    types: tuple[str, ...] = REALS

    @property
    def changes(self) -> bool:
        """True if the result is a tensor that the loop changes."""
        return self.given[0].kind == "CHANGED"

    def type_of(self, type: str) -> str:
        """The type that the loop has for operands of this one, "" for none."""
        if self.types:
            return type if type in self.types else ""
        is_strange = type in words.COMPLEX or (type == BOOL and NUMBER in self.given)
        return "" if is_strange else SAME_SIZE[BYTES[type]]


# ------------------------------------------------------------------ what is said of sizes

RANKS: Final = words.LOOPED["LOOPRANKS"]
SIZES: Final = words.LOOPED["LOOPSIZES"]
NUMBERS: Final = words.LOOPED["LOOPNUMBERS"]
LISTS: Final = words.LOOPED["LOOPLISTS"]
NEW_RANKS: Final = words.LOOPED["NEWRANKSAT"]
NEW_SIZES: Final = words.LOOPED["NEWSIZESAT"]
CHOSEN: Final = words.LOOPED["LOOPINTS"]
WORK: Final = words.LOOPED["LOOPWORK"]
ALONE: Final = words.LOOPED["LOOPALONE"]
ROOMS: Final = words.LOOPED["LOOPROOMS"]
MOST: Final = words.DIMENSIONS
EACH: Final = 1 + words.DIMENSIONS


@loop
def size(words: Buffer, tensor: int, dim: int) -> Any:
    return words[SIZES + tensor * MOST + dim]


@loop
def product(words: Buffer, tensor: int, begin: int, end: int) -> Any:
    """The number of elements of these dimensions."""
    total = 1
    for d in range(begin, end):
        total = total * words[SIZES + tensor * MOST + d]
    return total


@loop
def differ(words: Buffer, tensor: int, other: int, but: int) -> Any:
    """1 if two tensors have other sizes, but for one dimension (-1: none); else 0."""
    found = 0
    if words[RANKS + tensor] != words[RANKS + other]:
        found = 1
    for d in range(words[RANKS + tensor]):
        if d != but and words[SIZES + tensor * MOST + d] != words[SIZES + other * MOST + d]:
            found = 1
    return found


@loop
def is_vector(words: Buffer, tensor: int, count: int) -> Any:
    """1 if it is a tensor of so many elements in one dimension, or none; else 0."""
    found = 0
    if words[RANKS + tensor] == -1 or (words[RANKS + tensor] == 1 and words[SIZES + tensor * MOST] == count):
        found = 1
    return found


@loop
def choose_vectors(words: Buffer, first: int, count: int, length: int) -> Any:
    """Chooses, from the fifth number on, which of `count` vectors there are; 1 if one has another length, else 0."""
    wrong = 0
    for other in range(first, first + count):
        if is_vector(words, other, length) == 0:
            wrong = 1
        words[CHOSEN + 4 + other - first] = 1 if words[RANKS + other] >= 0 else 0
    return wrong


@loop
def give(words: Buffer, result: int, tensor: int) -> Any:
    """Let the result have a tensor's sizes."""
    words[NEW_RANKS + result] = words[RANKS + tensor]
    for d in range(words[RANKS + tensor]):
        words[NEW_SIZES + result * MOST + d] = words[SIZES + tensor * MOST + d]
    words[WORK] = product(words, tensor, 0, words[RANKS + tensor])
    return 0


@loop
def give_vector(words: Buffer, result: int, count: int) -> Any:
    words[NEW_RANKS + result] = 1
    words[NEW_SIZES + result * MOST] = count
    return 0


@loop
def setting(words: Buffer, which: int, place: int) -> Any:
    """An int of a list, of which one stands for all."""
    return words[LISTS + which * EACH + 1 + min(place, words[LISTS + which * EACH] - 1)]


# ------------------------------------------------------------------ normalization


@loop
def row_sizes(words: Buffer, tensor: int, first: int, count: int) -> Any:
    """Chooses the numbers and lengths of rows of a tensor, over the dimensions of a list, which `count` tensors from
    `first` on have to have; not 0 where they are others."""
    along, wrong = words[LISTS], 0
    lead = words[RANKS + tensor] - along
    if along == 0 or lead < 0:
        wrong = 1
    for d in range(along):
        if words[LISTS + 1 + d] != words[SIZES + tensor * MOST + lead + d]:
            wrong = 1
        for other in range(first, first + count):
            if words[RANKS + other] >= 0 and words[SIZES + other * MOST + d] != words[LISTS + 1 + d]:
                wrong = 1
    for other in range(first, first + count):
        if words[RANKS + other] >= 0 and words[RANKS + other] != along:
            wrong = 1
        words[CHOSEN + 2 + other - first] = 1 if words[RANKS + other] >= 0 else 0
    words[CHOSEN] = product(words, tensor, 0, lead)
    words[CHOSEN + 1] = product(words, tensor, lead, words[RANKS + tensor])
    return wrong


@loop
def short_row_sizes(words: Buffer) -> Any:
    wrong = row_sizes(words, 0, 1, 2)
    if wrong != 0 or words[CHOSEN + 1] >= SHORT:
        return 1
    give(words, 0, 0)
    lead = words[RANKS] - words[LISTS]
    for result in range(1, 3):
        words[NEW_RANKS + result] = words[RANKS]
        for d in range(words[RANKS]):
            words[NEW_SIZES + result * MOST + d] = words[SIZES + d] if d < lead else 1
    return 0


@loop
def row_gradient_sizes(words: Buffer) -> Any:
    wrong = row_sizes(words, 1, 2, 1)
    if wrong != 0 or differ(words, 0, 1, -1) != 0:
        return 1
    give(words, 0, 1)
    for result in range(1, 3):
        words[NEW_RANKS + result] = words[LISTS]
        for d in range(words[LISTS]):
            words[NEW_SIZES + result * MOST + d] = words[LISTS + 1 + d]
    return 0


@loop
def short_row_gradient_sizes(words: Buffer) -> Any:
    wrong = row_gradient_sizes(words)
    if wrong != 0 or words[CHOSEN + 1] >= SHORT:
        return 1
    return 0


@loop
def channel_sizes(words: Buffer, tensor: int, first: int, count: int) -> Any:
    """Chooses the samples, channels and places of a tensor, and after whether it is training which of `count` vectors
    of channels there are; not 0 where they are no such."""
    channels = words[SIZES + tensor * MOST + 1]
    wrong = choose_vectors(words, first, count, channels)
    words[CHOSEN] = words[SIZES + tensor * MOST]
    words[CHOSEN + 1] = channels
    words[CHOSEN + 2] = product(words, tensor, 2, words[RANKS + tensor])
    words[CHOSEN + 3] = words[NUMBERS]
    if words[RANKS + tensor] < 2:
        wrong = 1
    if words[NUMBERS] != 0 and words[CHOSEN] * words[CHOSEN + 2] < 2:
        wrong = 1
    if words[NUMBERS] == 0 and (words[RANKS + first + count - 2] < 0 or words[RANKS + first + count - 1] < 0):
        wrong = 1
    if words[CHOSEN + 2] < NARROW and words[CHOSEN] * channels > SCATTERED:
        wrong = 1
    return wrong


NARROW: Final = 4
SCATTERED: Final = 1 << 14
"""Channels that have fewer places are gone through across memory, where this many elements are too many for that."""


@loop
def batch_sizes(words: Buffer) -> Any:
    wrong = channel_sizes(words, 0, 1, 4)
    if wrong != 0:
        return 1
    give(words, 0, 0)
    kept = words[CHOSEN + 1] if words[NUMBERS] != 0 else 0
    for result in range(1, 3):
        give_vector(words, result, kept)
    return 0


@loop
def batch_gradient_sizes(words: Buffer) -> Any:
    wrong = channel_sizes(words, 1, 2, 3)
    if wrong != 0 or differ(words, 0, 1, -1) != 0:
        return 1
    give(words, 0, 1)
    for result in range(1, 3):
        give_vector(words, result, words[CHOSEN + 1])
    return 0


@loop
def group_sizes(words: Buffer, tensor: int, first: int, count: int) -> Any:
    """Chooses rows, groups, their channels and these' places, and which of `count` vectors of channels there are."""
    channels, groups = words[SIZES + tensor * MOST + 1], words[NUMBERS]
    if words[RANKS + tensor] < 2 or groups < 1 or groups > channels:
        return 1
    if channels % groups != 0:
        return 1
    words[CHOSEN] = words[SIZES + tensor * MOST] * groups
    words[CHOSEN + 1] = groups
    words[CHOSEN + 2] = channels // groups
    words[CHOSEN + 3] = product(words, tensor, 2, words[RANKS + tensor])
    wrong = choose_vectors(words, first, count, channels)
    if words[CHOSEN + 2] * words[CHOSEN + 3] < SHORT:
        wrong = 1
    return wrong


@loop
def grouped_sizes(words: Buffer) -> Any:
    wrong = group_sizes(words, 0, 1, 2)
    give(words, 0, 0)
    return wrong


@loop
def group_gradient_sizes(words: Buffer) -> Any:
    wrong = group_sizes(words, 1, 2, 1)
    if wrong != 0 or differ(words, 0, 1, -1) != 0:
        return 1
    give(words, 0, 1)
    for result in range(1, 3):
        give_vector(words, result, words[CHOSEN + 1] * words[CHOSEN + 2])
    return 0


# ------------------------------------------------------------------ windows


@loop
def window_sizes(words: Buffer, tensor: int, overhangs: int) -> Any:
    """Chooses planes and their sizes, sizes of windows, steps, paddings, and numbers of windows; not 0 where these are
    none; `overhangs`: whether a last window may go beyond the end."""
    rank, wrong = words[RANKS + tensor], 0
    if rank < 3 or rank > 4:
        return 1
    for which in range(3):
        count = words[LISTS + which * EACH]
        if count > 2 or (count == 0 and which != 1):
            return 1
    words[CHOSEN] = product(words, tensor, 0, rank - 2)
    for axis in range(2):
        length = words[SIZES + tensor * MOST + rank - 2 + axis]
        window, padding = setting(words, 0, axis), setting(words, 2, axis)
        step = setting(words, 1, axis) if words[LISTS + EACH] > 0 else window
        if window < 1 or step < 1 or padding < 0 or padding > window // 2:
            return 1
        span = length + 2 * padding - window
        if span < 0:
            return 1
        places = span // step + 1
        if overhangs != 0:
            places = (span + step - 1) // step + 1
            if (places - 1) * step >= length + padding:
                places = places - 1
        words[CHOSEN + 1 + axis] = length
        words[CHOSEN + 3 + axis] = window
        words[CHOSEN + 5 + axis] = step
        words[CHOSEN + 7 + axis] = padding
        words[CHOSEN + 9 + axis] = places
    return wrong


@loop
def pooled_sizes(words: Buffer) -> Any:
    wrong = window_sizes(words, 0, words[NUMBERS])
    for i in range(words[LISTS + 3 * EACH]):
        if words[LISTS + 3 * EACH + 1 + i] != 1:
            return 1
    for result in range(2):
        give(words, result, 0)
        for axis in range(2):
            words[NEW_SIZES + result * MOST + words[RANKS] - 2 + axis] = words[CHOSEN + 9 + axis]
    words[WORK] = 2 * words[CHOSEN] * words[CHOSEN + 9] * words[CHOSEN + 10] * words[CHOSEN + 3] * words[CHOSEN + 4]
    if words[ALONE] != 0 and words[WORK] > WIDE:
        wrong = 1
    return wrong


WIDE: Final = 1 << 15
"""Steps from which on definitions that take each place of all windows at once are quicker, where no places are kept."""


@loop
def average_sizes(words: Buffer) -> Any:
    wrong = window_sizes(words, 0, words[NUMBERS])
    give(words, 0, 0)
    for axis in range(2):
        words[NEW_SIZES + words[RANKS] - 2 + axis] = words[CHOSEN + 9 + axis]
    words[CHOSEN + 11] = words[NUMBERS + 1]
    words[WORK] = words[CHOSEN] * words[CHOSEN + 9] * words[CHOSEN + 10] * words[CHOSEN + 3] * words[CHOSEN + 4]
    if words[WORK] > WIDE:
        wrong = 1
    return wrong


@loop
def average_gradient_sizes(words: Buffer) -> Any:
    wrong = window_sizes(words, 1, words[NUMBERS])
    if wrong != 0 or words[RANKS] != words[RANKS + 1]:
        return 1
    for d in range(words[RANKS] - 2):
        if words[SIZES + d] != words[SIZES + MOST + d]:
            return 1
    for axis in range(2):
        if words[SIZES + words[RANKS] - 2 + axis] != words[CHOSEN + 9 + axis]:
            return 1
    give(words, 0, 1)
    words[CHOSEN + 11] = words[NUMBERS + 1]
    words[WORK] = words[WORK] + words[CHOSEN] * words[CHOSEN + 9] * words[CHOSEN + 10] * words[CHOSEN + 3]
    return 0


@loop
def put_back_sizes(words: Buffer) -> Any:
    lead = words[RANKS + 1] - words[NUMBERS]
    if differ(words, 0, 2, -1) != 0 or words[RANKS] != words[RANKS + 1] or lead < 0 or words[NUMBERS] < 1:
        return 1
    for d in range(lead):
        if words[SIZES + d] != words[SIZES + MOST + d]:
            return 1
    give(words, 0, 1)
    words[CHOSEN] = product(words, 1, 0, lead)
    words[CHOSEN + 1] = product(words, 0, lead, words[RANKS])
    words[CHOSEN + 2] = product(words, 1, lead, words[RANKS + 1])
    return 0


@loop
def padded_sizes(words: Buffer) -> Any:
    """Of padding, from the last dimension on, for two dimensions at most."""
    count, rank = words[LISTS], words[RANKS]
    if count % 2 != 0 or count > 4 or count < 2 or rank < count // 2:
        return 1
    give(words, 0, 0)
    words[CHOSEN] = product(words, 0, 0, max(rank - 2, 0))
    for axis in range(2):
        length, before, after = 1, 0, 0
        if rank - 2 + axis >= 0:
            length = words[SIZES + rank - 2 + axis]
        if count >= 4 - 2 * axis:
            before, after = words[LISTS + 3 - 2 * axis], words[LISTS + 4 - 2 * axis]
        if length + before + after < 1:
            return 1
        words[CHOSEN + 1 + axis] = length
        words[CHOSEN + 3 + axis] = before
        words[CHOSEN + 5 + axis] = length + before + after
        if rank - 2 + axis >= 0:
            words[NEW_SIZES + rank - 2 + axis] = length + before + after
    words[WORK] = words[CHOSEN] * words[CHOSEN + 5] * words[CHOSEN + 6]
    return 0


@loop
def plane_sizes(words: Buffer) -> Any:
    """Of convolutions with a kernel for each channel: chooses planes, channels, and of both dimensions the sizes of
    images, of these with what is around them, of results, paddings, sizes of kernels, steps and gaps, and whether there
    is a bias."""
    channels = words[SIZES + 1]
    if words[RANKS] != 4 or words[RANKS + 1] != 4 or words[NUMBERS] != channels or is_vector(words, 2, channels) == 0:
        return 1
    if words[SIZES + MOST] != channels or words[SIZES + MOST + 1] != 1:
        return 1
    for which in range(3):
        if words[LISTS + which * EACH] < 1 or words[LISTS + which * EACH] > 2:
            return 1
    give(words, 0, 0)
    words[CHOSEN] = words[SIZES] * channels
    words[CHOSEN + 1] = channels
    for axis in range(2):
        length, kernel = words[SIZES + 2 + axis], words[SIZES + MOST + 2 + axis]
        step, padding, gap = setting(words, 0, axis), setting(words, 1, axis), setting(words, 2, axis)
        if step < 1 or padding < 0 or gap < 1 or length + 2 * padding < gap * (kernel - 1) + 1:
            return 1
        places = (length + 2 * padding - gap * (kernel - 1) - 1) // step + 1
        words[NEW_SIZES + 2 + axis] = places
        words[CHOSEN + 2 + axis] = length
        words[CHOSEN + 4 + axis] = length + 2 * padding
        words[CHOSEN + 6 + axis] = places
        words[CHOSEN + 8 + axis] = padding
        words[CHOSEN + 10 + axis] = kernel
        words[CHOSEN + 12 + axis] = step
        words[CHOSEN + 14 + axis] = gap
    step = words[CHOSEN + 13]
    words[CHOSEN + 5] = (words[CHOSEN + 5] + step - 1) // step * step
    words[CHOSEN + 16] = 1 if words[RANKS + 2] >= 0 else 0
    words[ROOMS] = words[CHOSEN + 4] * words[CHOSEN + 5]
    words[WORK] = words[WORK] + words[CHOSEN] * words[CHOSEN + 6] * words[CHOSEN + 7] * words[CHOSEN + 10]
    return 0


# ------------------------------------------------------------------ places


@loop
def axis_in(words: Buffer) -> Any:
    """The dimension of the first tensor that the first number says, or another number than one of these."""
    return words[NUMBERS] + words[RANKS] if words[NUMBERS] < 0 else words[NUMBERS]


@loop
def along_sizes(words: Buffer, axis: int, places: int) -> Any:
    """Chooses what comes before a dimension of the first tensor, that, the number of places, and what comes after."""
    words[CHOSEN] = product(words, 0, 0, axis)
    words[CHOSEN + 1] = words[SIZES + axis]
    words[CHOSEN + 2] = places
    words[CHOSEN + 3] = product(words, 0, axis + 1, words[RANKS])
    words[WORK] = 2 * words[CHOSEN] * places * words[CHOSEN + 3]
    return 0


@loop
def scattered_sizes(words: Buffer) -> Any:
    """Of places for each value, which may be one number, in a tensor of the same sizes but along the dimension."""
    axis, is_number = axis_in(words), 1 if words[RANKS + 2] == -1 else 0
    if axis < 0 or axis >= words[RANKS]:
        return 1
    if (is_number == 0 and differ(words, 1, 2, -1) != 0) or differ(words, 0, 1, axis) != 0:
        return 1
    words[CHOSEN + 4] = 1 - is_number
    return along_sizes(words, axis, words[SIZES + MOST + axis])


@loop
def reduced_sizes(words: Buffer) -> Any:
    wrong = scattered_sizes(words)
    words[CHOSEN + 4] = words[NUMBERS + 1]
    words[CHOSEN + 5] = words[NUMBERS + 2]
    return wrong


@loop
def scattered_by_sizes(words: Buffer) -> Any:
    wrong = scattered_sizes(words)
    words[CHOSEN + 4] = words[NUMBERS + 1]
    words[CHOSEN + 5] = 1
    return wrong


@loop
def averaged_sizes(words: Buffer) -> Any:
    wrong = scattered_sizes(words)
    words[CHOSEN + 4] = words[NUMBERS + 1]
    words[ROOMS] = product(words, 0, 0, words[RANKS])
    words[WORK] = words[WORK] + 2 * words[ROOMS]
    return wrong


@loop
def row_places_sizes(words: Buffer) -> Any:
    """Of a place for each row of values, which may be one number, along the dimension."""
    axis, is_number = axis_in(words), 1 if words[RANKS + 2] == -1 else 0
    if axis < 0 or axis >= words[RANKS] or words[RANKS + 1] != 1:
        return 1
    if is_number == 0 and (differ(words, 0, 2, axis) != 0 or words[SIZES + 2 * MOST + axis] != words[SIZES + MOST]):
        return 1
    words[CHOSEN + 4] = 0
    words[CHOSEN + 5] = 1 - is_number
    return along_sizes(words, axis, words[SIZES + MOST])


@loop
def filled_sizes(words: Buffer) -> Any:
    wrong = row_places_sizes(words)
    if wrong == 0:
        words[CHOSEN + 4] = 0 - words[CHOSEN + 1]
    return wrong


@loop
def put_sizes(words: Buffer) -> Any:
    count = words[RANKS + 1]
    if words[RANKS] < 1 or words[RANKS + 2] != count + words[RANKS] - 1:
        return 1
    for d in range(words[RANKS + 2]):
        wanted = words[SIZES + MOST + d]
        if d >= count:
            wanted = words[SIZES + d - count + 1]
        if words[SIZES + 2 * MOST + d] != wanted:
            return 1
    words[CHOSEN + 4] = 0 - words[SIZES]
    words[CHOSEN + 5] = 1
    return along_sizes(words, 0, product(words, 1, 0, count))


@loop
def chosen_sizes(words: Buffer) -> Any:
    """Of elements that a mask chooses."""
    words[CHOSEN] = product(words, 0, 0, words[RANKS])
    words[CHOSEN + 1] = product(words, 2, 0, words[RANKS + 2])
    words[WORK] = 3 * words[CHOSEN]
    return differ(words, 0, 1, -1)


@loop
def table_sizes(words: Buffer) -> Any:
    """Of the gradient of looked-up rows, of places, and the numbers of rows and of the one that is skipped."""
    count = words[RANKS + 1]
    if words[RANKS] != count + 1 or words[NUMBERS] < 1:
        return 1
    for d in range(count):
        if words[SIZES + d] != words[SIZES + MOST + d]:
            return 1
    width = words[SIZES + count]
    words[NEW_RANKS] = 2
    words[NEW_SIZES] = words[NUMBERS]
    words[NEW_SIZES + 1] = width
    words[CHOSEN] = words[NUMBERS]
    words[CHOSEN + 1] = product(words, 1, 0, count)
    words[CHOSEN + 2] = width
    words[CHOSEN + 3] = words[NUMBERS + 1]
    words[WORK] = (words[NUMBERS] + words[CHOSEN + 1]) * width
    return 0


# ------------------------------------------------------------------ losses


@loop
def class_sizes(words: Buffer, scores: int, targets: int) -> Any:
    """Chooses samples, classes, places of samples, the way to reduce losses, and the class that does not count; not 0
    where there is no target for each place of each sample."""
    rank, wrong = words[RANKS + scores], 0
    axis = 1 if rank > 1 else 0
    if rank < 1 or words[RANKS + targets] != rank - 1:
        wrong = 1
    for d in range(rank - 1):
        if words[SIZES + targets * MOST + d] != words[SIZES + scores * MOST + d + (1 if d >= axis else 0)]:
            wrong = 1
    words[CHOSEN] = product(words, scores, 0, axis)
    words[CHOSEN + 1] = words[SIZES + scores * MOST + axis]
    words[CHOSEN + 2] = product(words, scores, axis + 1, rank)
    words[CHOSEN + 3] = words[NUMBERS]
    words[CHOSEN + 4] = words[NUMBERS + 1]
    return wrong


@loop
def class_loss_sizes(words: Buffer) -> Any:
    wrong = class_sizes(words, 0, 1)
    give(words, 0, 1)
    words[WORK] = 4 * words[WORK]
    if words[NUMBERS] != 0:
        words[NEW_RANKS] = 0
    return wrong


@loop
def class_slope_sizes(words: Buffer) -> Any:
    wrong = class_sizes(words, 1, 2)
    if words[NUMBERS] == 0 and differ(words, 0, 2, -1) != 0:
        wrong = 1
    if words[NUMBERS] != 0 and words[RANKS] != 0:
        wrong = 1
    give(words, 0, 1)
    return wrong


# ------------------------------------------------------------------ in order


@loop
def rows_sizes(words: Buffer, axis: int, steps: int) -> Any:
    """Chooses what comes before a dimension of the tensor, that, and what comes after; room for two rows."""
    at = axis + words[RANKS] if axis < 0 else axis
    if at < 0 or at >= words[RANKS]:
        return 1
    words[CHOSEN] = product(words, 0, 0, at)
    words[CHOSEN + 1] = words[SIZES + at]
    words[CHOSEN + 2] = product(words, 0, at + 1, words[RANKS])
    for room in range(2):
        words[ROOMS + room] = 2 * words[SIZES + at]
    words[WORK] = steps * product(words, 0, 0, words[RANKS])
    return 0


SORTING: Final = 40
CHOOSING: Final = 10
"""Roughly the nanoseconds that an element takes until all are in order, or one is found."""
LONGEST: Final = selecting.SHORT
LONGEST_SORTED: Final = 512
"""Elements of a row from which on numpy, which sorts by vectors, takes less time for all its steps around it."""


@loop
def sorted_sizes(words: Buffer) -> Any:
    """Of rows in order, with the dimension and whether the largest come first."""
    wrong = rows_sizes(words, words[NUMBERS], SORTING)
    words[CHOSEN + 3] = words[NUMBERS + 1]
    for result in range(2):
        words[NEW_RANKS + result] = words[RANKS]
        for d in range(words[RANKS]):
            words[NEW_SIZES + result * MOST + d] = words[SIZES + d]
    words[ROOMS + 2] = product(words, 0, 0, words[RANKS])
    return 1 if wrong != 0 or words[CHOSEN + 1] > LONGEST_SORTED else 0


@loop
def first_sizes(words: Buffer) -> Any:
    """Of the first of rows in order, with their number, the dimension and whether these are the largest."""
    wrong, k = rows_sizes(words, words[NUMBERS + 1], CHOOSING), words[NUMBERS]
    axis = words[NUMBERS + 1] + words[RANKS] if words[NUMBERS + 1] < 0 else words[NUMBERS + 1]
    words[CHOSEN + 3] = k
    words[CHOSEN + 4] = words[NUMBERS + 2]
    for result in range(2):
        words[NEW_RANKS + result] = words[RANKS]
        for d in range(words[RANKS]):
            words[NEW_SIZES + result * MOST + d] = k if d == axis else words[SIZES + d]
    return 1 if wrong != 0 or k < 1 or k > words[CHOSEN + 1] else 0


@loop
def one_of_rows_sizes(words: Buffer, axis: int, keeps: int) -> Any:
    """Of one element of each row and its place."""
    wrong, at = rows_sizes(words, axis, CHOOSING), axis + words[RANKS] if axis < 0 else axis
    for result in range(2):
        kept = 0
        for d in range(words[RANKS]):
            if d != at or keeps != 0:
                words[NEW_SIZES + result * MOST + kept] = 1 if d == at else words[SIZES + d]
                kept = kept + 1
        words[NEW_RANKS + result] = kept
    return wrong


@loop
def kth_sizes(words: Buffer) -> Any:
    """Of the k-th of rows, with that, the dimension and whether the results keep it."""
    wrong, k = one_of_rows_sizes(words, words[NUMBERS + 1], words[NUMBERS + 2]), words[NUMBERS]
    words[CHOSEN + 3] = k - 1
    return 1 if wrong != 0 or k < 1 or k > words[CHOSEN + 1] or words[CHOSEN + 1] > LONGEST else 0


@loop
def middle_sizes(words: Buffer) -> Any:
    return one_of_rows_sizes(words, words[NUMBERS], words[NUMBERS + 1])


@loop
def middle_of_all_sizes(words: Buffer) -> Any:
    total = product(words, 0, 0, words[RANKS])
    words[CHOSEN] = 1
    words[CHOSEN + 1] = total
    words[CHOSEN + 2] = 1
    words[NEW_RANKS] = 0
    words[ROOMS] = total
    words[ROOMS + 1] = total
    words[ROOMS + 2] = 1
    words[WORK] = CHOOSING * total
    return 0


# ------------------------------------------------------------------ the calls

_POOL: Final = (INTS, INTS, INTS)
_ROWS_BACK: Final = (ARRAY, ARRAY, INTS, MAYBE, REAL)


def _each(
    sizes: Loop, work: Loop, *rest: Given, types: tuple[str, ...] = SIGNED, rooms: tuple[str, ...] = ()
) -> Looped:
    """Calls with a place for each value."""
    return Looped((CHANGED, INT, PLACES, *rest), sizes, work, rooms=rooms, types=types)


def _rows(sizes: Loop, work: Loop, *rest: Given, types: tuple[str, ...] = SIGNED) -> Looped:
    """Calls with a place for each row of values."""
    return Looped((CHANGED, INT, PLACES, *rest), sizes, work, types=types)


def _planes(*rest: Given) -> Looped:
    """Convolutions with a kernel for each channel."""
    return Looped((LAID, ARRAY, MAYBE, *_POOL, *rest), plane_sizes, convolving.planes_and_bias, rooms=(OWN,))


def _sorted(*given: Given) -> Looped:
    return Looped((LAID, *given), sorted_sizes, selecting.sorted_rows, (OWN, WHOLE), (OWN, WHOLE), SIGNED)


def _sorted_places(*given: Given) -> Looped:
    return Looped((LAID, *given), sorted_sizes, selecting.sorted_places, (WHOLE,), (OWN, WHOLE, OWN), SIGNED)


def _selected(*given: Given, sizes: Loop, work: Loop) -> Looped:
    """Calls that choose elements of rows, with their places."""
    return Looped(given, sizes, work, (OWN, WHOLE), (OWN, WHOLE), SIGNED)


LOOPS: Final[Mapping[str, Sequence[Looped]]] = {
    "aten::native_layer_norm": [
        Looped((ARRAY, INTS, MAYBE, MAYBE, REAL), short_row_sizes, normalizing.short_rows, (OWN,) * 3)
    ],
    "aten::_layer_norm_backward": [
        Looped(_ROWS_BACK, short_row_gradient_sizes, normalizing.short_rows_backward, (OWN,) * 3),
        Looped(_ROWS_BACK, row_gradient_sizes, normalizing.rows_backward, (OWN,) * 3),
    ],
    "aten::native_batch_norm": [
        Looped((LAID, MAYBE, MAYBE, STATE, STATE, FLAG, REAL, REAL), batch_sizes, normalizing.channels_forward,
               (OWN,) * 3)
    ],
    "aten::_batch_norm_backward": [
        Looped((LAID, LAID, MAYBE, MAYBE, MAYBE, FLAG, REAL), batch_gradient_sizes, normalizing.channels_backward,
               (OWN,) * 3)
    ],
    "aten::_group_norm": [Looped((ARRAY, INT, MAYBE, MAYBE, REAL), grouped_sizes, normalizing.groups_forward)],
    "aten::_group_norm_backward": [
        Looped((ARRAY, ARRAY, MAYBE, INT, REAL), group_gradient_sizes, normalizing.groups_backward, (OWN,) * 3)
    ],
    "aten::max_pool2d_with_indices": [
        Looped((LAID, *_POOL, INTS, FLAG), pooled_sizes, pooling.greatest, (OWN, WHOLE))
    ],
    "aten::_put_back": [Looped((ARRAY, ARRAY, PLACES, INT), put_back_sizes, pooling.put_back)],
    "aten::avg_pool2d": [Looped((LAID, *_POOL, FLAG, FLAG, NOTHING), average_sizes, pooling.averages)],
    "aten::avg_pool2d_backward": [
        Looped((ARRAY, LAID, *_POOL, FLAG, FLAG, NOTHING), average_gradient_sizes, pooling.averages_back)
    ],
    "aten::conv2d": [_planes(INT)],
    "aten::convolution": [_planes(NONE_OF_IT, UNREAD, INT)],
    "aten::_convolution": [_planes(NONE_OF_IT, UNREAD, INT, *[UNREAD] * 4)],
    "aten::constant_pad_nd": [Looped((ARRAY, INTS, REAL), padded_sizes, pooling.padded)],
    "aten::scatter_add": [_each(scattered_sizes, scattering.add_each, ARRAY)],
    "aten::scatter.src": [_each(scattered_sizes, scattering.put_each, ARRAY, types=())],
    "aten::scatter.value": [_each(scattered_sizes, scattering.put_each, NUMBER, types=())],
    "aten::scatter.reduce": [
        _each(scattered_by_sizes, scattering.reduce_each, ARRAY, Given("OPTIONS", ["add", "multiply"]))
    ],
    "aten::scatter_reduce.two": [
        _each(reduced_sizes, scattering.reduce_each, ARRAY, Given("OPTIONS", ["sum", "prod", "amax", "amin"]), FLAG),
        _each(averaged_sizes, scattering.average_each, ARRAY, Given("SAME", "mean"), FLAG, types=REALS, rooms=(WHOLE,)),
    ],
    "aten::index_add": [_rows(row_places_sizes, scattering.add_rows, ARRAY, ONE)],
    "aten::index_copy": [_rows(row_places_sizes, scattering.put_rows, ARRAY, types=())],
    "aten::index_fill.int_Scalar": [
        Looped((CHANGED_LAID, INT, PLACES, NUMBER), filled_sizes, scattering.put_rows, types=())
    ],
    "aten::index_put": [
        Looped((CHANGED_LAID, LISTED, ARRAY, ALL), put_sizes, scattering.add_rows, types=SIGNED),
        Looped((CHANGED_LAID, LISTED, ARRAY, NONE_OF_IT), put_sizes, scattering.put_rows, types=()),
    ],
    "aten::masked_scatter": [Looped((CHANGED, MASK, ARRAY), chosen_sizes, scattering.put_chosen, types=())],
    "aten::_nll_loss": [Looped((ARRAY, PLACES, NOTHING, INT, INT), class_loss_sizes, choosing.class_losses)],
    "aten::_nll_loss_backward": [
        Looped((ARRAY, ARRAY, PLACES, NOTHING, INT, INT), class_slope_sizes, choosing.class_slopes)
    ],
    "aten::sort": [_sorted(INT, FLAG)],
    "aten::sort.stable": [_sorted(UNREAD, INT, FLAG)],
    "aten::argsort": [_sorted_places(INT, FLAG)],
    "aten::argsort.stable": [_sorted_places(UNREAD, INT, FLAG)],
    "aten::topk": [_selected(ARRAY, INT, INT, FLAG, UNREAD, sizes=first_sizes, work=selecting.first_of_rows)],
    "aten::kthvalue": [_selected(ARRAY, INT, INT, FLAG, sizes=kth_sizes, work=selecting.kth_that_is_there)],
    "aten::median.dim": [_selected(ARRAY, INT, FLAG, sizes=middle_sizes, work=selecting.medians)],
    "aten::median": [
        Looped((ARRAY,), middle_of_all_sizes, selecting.median_of_all, (OWN,), (OWN, WHOLE, WHOLE), SIGNED)
    ],
    "aten::_embedding_backward": [
        Looped((ARRAY, PLACES, INT, INT, Given("SAME", False)), table_sizes, scattering.summed_rows)
    ],
}  # fmt: skip
"""The calls that have loops, by operator."""


def looped_of(op: Op, types: Sequence[str]) -> tuple[list[Form], dict[str, Kernel]]:
    """The forms of an operator for tensors of these types, and its functions by their symbols."""
    forms, kernels = list[Form](), dict[str, Kernel]()
    for row in LOOPS.get(op.qualified_name, ()):
        entries, given = dict[str, Entry](), (*_with_defaults(op, row.given),)
        for type in types:
            if row.type_of(type):
                kernel = _function(row, row.type_of(type))
                entries[type], kernels[kernel.name] = Entry(kernel.name, row.results[0] or type, 0), kernel
        if entries:
            asked = [UNREAD if each.kind in FILLED else each for each in given]
            forms.append(Form(given, fewest(op, asked), (), entries, "serve_looped", results=row.results))
    return forms, kernels


FILLED: Final = (*NUMBERS_OF, "MAYBES")
"""The kinds of what the stub has a default for, where the operator has."""


def _with_defaults(op: Op, given: Sequence[Given]) -> Iterator[Given]:
    """The kinds of arguments, with the numbers that stand for those that are not given."""
    for argument, each in zip(op.schema.arguments, given, strict=True):
        is_number = each.kind in ("REALS", "KEEPS", "INDEX") and argument.has_default
        yield replace(each, value=argument.default) if is_number else each


def _function(row: Looped, type: str) -> Kernel:
    """A function of words that calls both loops."""
    tensors = [TYPED.get(each.kind, type) for each in row.given if each.kind in TENSORS]
    results = [] if row.changes else [each or type for each in row.results]
    rooms = [each or type for each in row.rooms]
    sizes = replace(kernel_of(row.sizes, (DTYPES["i64"],)), name=f"sizes_of_{row.sizes.function.__name__}")
    work = kernel_of(row.work, tuple(DTYPES[each] for each in (*tensors, *results, *rooms)))
    asked = Call(sizes.name, (Address("words", (index(0),)),), "code", "i64")
    first = If(apply("eq", Name("phase", "i64"), index(0)), (asked, Return(Name("code", "i64"))))
    given = _given(row, work, len(tensors) + len(results))
    return calling(work, "looped", ["words_", "phase"], (WORDS, first, *given), (sizes,))


def _given(row: Looped, work: Kernel, arrays: int) -> list[Statement]:
    """The arguments of the loop, by the names of its parameters; `arrays`: those that are given."""
    numbers = [each.kind for each in row.given if each.kind in NUMBERS_OF]
    reals = iter(i for i, kind in enumerate(numbers) if kind == "REALS")
    places, ints, found = itertools.count(), itertools.count(), list[Statement]()
    for each in work.parameters:
        if isinstance(each, Array):
            place = next(places)
            if place < arrays:
                found.append(tensor_at(each.name, each.type, words.LOOPED["LOOPPLACES"] + place))
            else:
                found.append(allocate(each.name, each.type, word(ROOMS + place - arrays)))
        elif each.type == "f64":
            bits: Expression = word(NUMBERS + next(reals))
            found.append(Let(each.name, apply("bits_to_f64", bits)))
        else:
            found.append(Let(each.name, word(CHOSEN + next(ints))))
    return found
