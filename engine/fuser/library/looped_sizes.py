"""The sizes of what loops compute: of results, of rooms that they work in, and the ints that they are given.

In: the words of a call (`words.LOOPED`), with the sizes of its tensors.  Out: written there; what is returned other
than 0 says that the arguments are not for the loop.  `looped.py` has the calls that these are of.
"""

from __future__ import annotations

from typing import Any, Final

from engine.aten.kernels.row_normalization import SHORT
from engine.aten.stepwise import selecting
from engine.aten.stepwise.language import Buffer, loop
from engine.fuser.library import words

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
