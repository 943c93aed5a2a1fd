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
from typing import Final

from engine.aten.dispatch.op import Op
from engine.aten.stepwise import choosing, convolving, normalizing, pooling, scattering, selecting
from engine.aten.stepwise.language import Loop
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
from engine.fuser.library.looped_sizes import (
    CHOSEN,
    NUMBERS,
    ROOMS,
    average_gradient_sizes,
    average_sizes,
    averaged_sizes,
    batch_gradient_sizes,
    batch_sizes,
    chosen_sizes,
    class_loss_sizes,
    class_slope_sizes,
    filled_sizes,
    first_sizes,
    group_gradient_sizes,
    grouped_sizes,
    kth_sizes,
    middle_of_all_sizes,
    middle_sizes,
    padded_sizes,
    plane_sizes,
    pooled_sizes,
    put_back_sizes,
    put_sizes,
    reduced_sizes,
    row_gradient_sizes,
    row_places_sizes,
    scattered_by_sizes,
    scattered_sizes,
    short_row_gradient_sizes,
    short_row_sizes,
    sorted_sizes,
    table_sizes,
)
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
