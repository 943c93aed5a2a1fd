"""Calls of the library's operators: for each form operands of all dtypes, layouts, sizes and special values."""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from engine.aten.values.libraries import as_strided
from engine.aten.values.tensor import Tensor
from engine.fuser.library.descriptors import DTYPES
from engine.fuser.library.forms import Form, Given
from engine.fuser.library.words import COMPLEX
from tests.table.kernel_samples import values


class Missed(Exception):
    """No stub takes the call."""


def missed(*args: Any, **named: Any) -> Any:
    """The function behind the stubs of tests.  Raises Missed."""
    raise Missed


Array = np.ndarray[Any, np.dtype[Any]]
SIZES = ((3, 5), (), (700,), (0,), (2, 3, 4), (1, 1, 1), (2, 1, 2, 1, 2, 1, 2, 2), (4, 0, 2))
SPREADING = (
    ((3, 4), (4,), (1, 4)), ((2, 1, 3), (4, 1), (1, 1, 1)), ((), (2,), ()), ((5,), (), (5,)), ((0, 3), (3,), (1, 3)),
    ((2, 3, 1), (2, 1, 4), (3, 4)), ((6, 1), (1, 7), (1, 1)),
)  # fmt: skip
"""Sizes of operands that are spread over one another."""
MIXED = (((3, 5), (3, 5)), ((), (3, 5)), ((5,), ()), ((1, 5), (3, 1)), ((0, 5), (1,)))
"""Sizes of a tensor of another type, and of the others."""
NUMBERS = (2.5, -1, 0, 3, -0.0, 0.5, float("inf"), float("nan"), 1e40, 1e-46, 2**40, -(2**63), 2**64, True)
COMPLEX_NUMBERS = (1.5 - 2j, 0j, complex(-0.0, float("inf")), complex(float("nan"), 1), complex(1e40, 0))
SHAPES = ((4, 6), (7,), (2, 3, 4), (1, 5), (3, 1), (0, 3), (3, 0), (130, 33), (1, 3000), (2000, 1), (2, 3, 4, 5), ())
"""Sizes of tensors that are gone along a dimension."""
AXES = ([0, 1], [-2, -1], [0], [], [1, 0])


# ------------------------------------------------------------------ layouts


def layouts(array: Array) -> Iterator[Array]:
    """The array as it may lie in memory otherwise: with gaps, backwards, turned, repeated, misaligned."""
    yield array
    if array.ndim:
        yield np.repeat(array, 2, array.ndim - 1)[..., ::2]
        yield array[..., ::-1]
        yield np.asfortranarray(array)
    if array.ndim > 1:
        yield np.ascontiguousarray(np.swapaxes(array, 0, 1)).swapaxes(0, 1)
        yield np.broadcast_to(array[:1], array.shape)
    if array.size:
        room = np.zeros(array.nbytes + 1, np.uint8)[1:]
        odd = np.ndarray(array.shape, array.dtype, room)
        odd[...] = array
        yield odd


def same(values: Sequence[Any]) -> list[Any]:
    """Other tensors with the same elements that lie in memory alike: aligned so, overlapping where they do."""
    rooms = dict[int, Array]()
    made = dict[int, Tensor]()
    for array in (each.array for each in values if isinstance(each, Tensor)):
        root = _root(array)
        if id(root) not in rooms:
            rooms[id(root)] = _copied(root)
        place = array.ctypes.data - root.ctypes.data
        copy: Array = np.ndarray(array.shape, array.dtype, rooms[id(root)], place, array.strides)
        copy.flags.writeable = array.flags.writeable
        made.setdefault(id(array), Tensor(copy))
    return [made[id(each.array)] if isinstance(each, Tensor) else each for each in values]


def _root(array: Any) -> Array:
    """The array that owns the memory."""
    while (base := getattr(array, "base", None)) is not None:
        array = base
    assert isinstance(array, np.ndarray)
    return array


def _copied(root: Array) -> Array:
    """Other memory with the same bytes, aligned alike."""
    room = np.zeros(root.nbytes + 128, np.uint8)
    room = room[(root.ctypes.data - room.ctypes.data) % 64 :]
    ctypes.memmove(room.ctypes.data, root.ctypes.data, root.nbytes)
    return room


# ------------------------------------------------------------------ element by element


def pointwise(form: Form, type: str) -> Iterator[list[Any]]:
    """Arguments of a form of row functions: same sizes, other layouts, sizes that spread, numbers."""

    def of(shape: tuple[int, ...]) -> list[Array]:
        return [_array(type, shape, i) for i in range(form.operands)]

    for shape in SIZES:
        yield call(form, of(shape), 2.5)
    for place in range(6):
        turned = [[*layouts(each)][(place + (i > 0) * (place % 3)) % 6] for i, each in enumerate(of((4, 6)))]
        yield call(form, turned, 2.5)
    for place in range(7):
        yield call(form, [[*layouts(each)][(place + i) % 7] for i, each in enumerate(of((3, 4)))], 2.5)
    for shapes in SPREADING:
        yield call(form, [_array(type, shapes[i % 3], i) for i in range(form.operands)], 2.5)
    size = DTYPES[type].itemsize
    yield call(form, [as_strided(each, (3, 3), (size, size)) for each in of((9,))], 2)
    yield call(form, of((1,) * 9), 2)
    for number in (*NUMBERS, *COMPLEX_NUMBERS):
        yield call(form, of((3, 5)), number)
    if form.is_mixing:
        yield from mixed(form, type)


def mixed(form: Form, type: str) -> Iterator[list[Any]]:
    """Calls in which one of the tensors has another type: of the same sizes, without dimensions, spread, with gaps."""
    tensors = [k for k, each in enumerate(each for each in form.given if each.is_operand) if each.kind == "TENSORS"]
    for other, place, (own, others) in itertools.product(DTYPES, tensors, MIXED):
        arrays = [_array(other if k == place else type, own if k == place else others, k) for k in range(form.operands)]
        yield call(form, arrays, 2)
    for place in tensors:
        gaps = _array("i32", (3, 10), place)[:, ::2]
        yield call(form, [gaps if k == place else _array(type, (3, 5), k) for k in range(form.operands)], 2)


def in_place(form: Form, type: str) -> Iterator[list[Any]]:
    """Arguments of which the first is written to: those above, one tensor several times, overlaps, read-only memory."""
    yield from pointwise(form, type)
    array = _array(type, (4, 6), 3)
    frozen = array.copy()
    frozen.flags.writeable = False
    for first, second in (
        (array, array), (array[:-1], array[1:]), (array[1:], array[:-1]), (array[:2], array[2:]),
        (array[:, ::2], array[:, 1::2]), (array[::-1], array), (frozen, array),
    ):  # fmt: skip
        for others in ((second, second, second), (second, first, second)):
            yield call(form, [first, *others][: form.operands], 2)


def call(form: Form, arrays: Sequence[Array], number: Any) -> list[Any]:
    """The arguments of a call with these operands; an array that occurs twice is one tensor."""
    left, made = iter(arrays), dict[int, Tensor]()
    found: list[Any] = []
    for given in form.given:
        if not given.is_operand:
            found.append(fixed(given))
            continue
        array = next(left)
        match given.kind:
            case "TENSORS":
                found.append(made.setdefault(id(array), Tensor(array)))
            case "TRUTHS":
                with np.errstate(invalid="ignore"):
                    found.append(Tensor(array > 0))
            case "POINTS":
                found.append(Tensor(array if array.size == 1 else np.resize(array, ())))
            case _:
                found.append(number)
    return found


def fixed(given: Given) -> Any:
    """The value that an argument has to have, which words are told by."""
    return sys.intern(given.value) if isinstance(given.value, str) else given.value


def _array(type: str, shape: tuple[int, ...], seed: int) -> Array:
    found: Array = values(DTYPES[type].type, int(np.prod(shape)), seed).reshape(shape)
    return found


# ------------------------------------------------------------------ from one dtype to another

OUTSIDE = (127.5, 255.0, 256.0, 300.0, -129.0, 40000.0, 2.0**31, -(2.0**31), 3e9, -3e9, 1e12, 2.0**63, -9.3e18, 1e20)
"""Numbers that some whole type has no place for, or the last of."""
EXACT = (1 + 2.0**-11 + 2.0**-40, 65519.9999999, 2.0**-25 * (1 + 2.0**-30), 2.0**24 + 1, 2.0**53 - 1)
"""Numbers that are rounded to another one in two steps than in one."""


def converted(source: str, target: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Tensors to convert, of all layouts, and tensors of the other type, of the same sizes or such to spread over."""
    for shape in SIZES:
        yield Tensor(_array(source, shape, len(shape))), Tensor(_array(target, shape, 1))
    with np.errstate(all="ignore"):
        outside = np.array([*OUTSIDE, *EXACT] * 9).astype(DTYPES[source])
    for array in (outside, outside[:1], np.repeat(outside, 3)[::3]):
        yield Tensor(array), Tensor(_array(target, array.shape, 1))
    for shape, seed in itertools.product(((4, 6), (2, 3, 4), (1, 5, 3), (5, 1), (40, 1, 33), (0, 3)), (0, 1)):
        array = _array(source, shape, seed)
        for k, each in enumerate(layouts(array)):
            yield Tensor(each), Tensor([*layouts(_array(target, shape, 2))][k * (1 + seed) % 6])
        for axes in itertools.permutations(range(len(shape))):
            yield Tensor(array.transpose(axes)), Tensor(_array(target, array.transpose(axes).shape, 3))
    wide = _array(source, (2, 6, 8), 4)
    repeated = as_strided(wide, (5, 3), (0, wide.itemsize))
    for each in (wide[:, ::2, ::-1], wide.transpose(2, 0, 1)[::2, :1], wide[0, ::-1].T, repeated):
        yield Tensor(each), Tensor(_array(target, each.shape, 5))
    for ours, theirs in (
        ((), (3, 5)),
        ((5,), (3, 5)),
        ((3, 1), (3, 5)),
        ((3, 5), (5,)),
        ((2,), (3, 2, 0)),
        ((4,), (3,)),
    ):
        yield Tensor(_array(source, ours, 6)), Tensor(_array(target, theirs, 7))
    own = np.zeros(64, np.uint8)
    yield Tensor(own[:32].view(DTYPES[source])[:4]), Tensor(own[8:40].view(DTYPES[target])[:4])
    yield Tensor(_array(source, (3,), 8)), Tensor(np.broadcast_to(_array(target, (1,), 9), (3,)))


# ------------------------------------------------------------------ along a dimension


def along(form: Form, type: str) -> Iterator[list[Any]]:
    """Arguments of a form that goes along a dimension."""
    for shape in SHAPES:
        for axis in [*range(-len(shape), len(shape)), *AXES, len(shape)]:
            for keeps, seed in ((False, 0), (True, 5)):
                yield [*_along(form, type, shape, axis, keeps, seed)]
    for way in range(7):
        for shape, axis in itertools.product(((4, 6), (2, 3, 4), (2, 3, 4, 5)), (0, 1, -1, [0, 1])):
            yield [_otherwise(each, way) for each in _along(form, type, shape, axis, way % 2 > 0, 2 * way)]


def _otherwise(value: Any, way: int) -> Any:
    """A tensor that lies in memory in another way; all else as it is."""
    if not isinstance(value, Tensor):
        return value
    ways = [*layouts(value.array)]
    return Tensor(ways[way % len(ways)])


def _along(form: Form, type: str, shape: tuple[int, ...], axis: Any, keeps: bool, seed: int) -> Iterator[Any]:
    last, width = _last(form, shape, axis), _width(form, shape, axis)
    for i, each in enumerate(form.given):
        match each.kind:
            case "WHOLES":
                yield Tensor(_moderate(type, shape, seed + i))
            case "VECTORS":
                yield Tensor(np.abs(_moderate(type, tuple(width), 2 * i)))
            case "AXIS" | "AXES":
                yield axis
            case "LASTSIZES":
                yield last
            case "KEEPS":
                yield keeps
            case "REALS":
                yield 0.25
            case _:
                yield fixed(each)


def _last(form: Form, shape: tuple[int, ...], axis: Any) -> list[int]:
    """The sizes from the dimension on that is gone along."""
    place = form.axis if form.axis >= 0 else axis if isinstance(axis, int) else [*axis, 0][0]
    return [*shape[place:]] if -len(shape) <= place < len(shape) else [3]


def _width(form: Form, shape: tuple[int, ...], axis: Any) -> list[int]:
    """The sizes of tensors that belong to what is gone along."""
    kinds = {each.kind for each in form.given}
    if "LASTSIZES" in kinds:
        return _last(form, shape, axis)
    return _last(form, shape, axis)[:1] if kinds & {"AXIS", "AXES"} or form.axis >= 0 else [*shape]


def _moderate(type: str, shape: tuple[int, ...], seed: int) -> Array:
    """Numbers whose sums, products and squares stay far from the end of the range, and some NaN and infinities."""
    random = np.random.default_rng(seed)
    if type in COMPLEX:
        parts = np.stack([_moderate(COMPLEX[type], shape, 3 * seed + k) for k in range(2)], -1)
        whole: Array = parts.view(DTYPES[type])[..., 0]
        return whole
    found = random.normal(0, 1, shape)
    if type in ("f32", "f64", "f16", "bf16") and seed % 2 and found.size > 3:
        found.flat[random.integers(0, found.size, 2)] = np.nan, np.inf
    return (found * (1 if "f" in type else 3)).astype(DTYPES[type])
