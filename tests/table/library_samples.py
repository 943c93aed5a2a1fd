"""Calls of the library's operators: for each form operands of all dtypes, layouts, sizes and special values."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.values.libraries import as_strided
from engine.aten.values.tensor import Tensor
from engine.fuser.library.forms import Form, Given
from engine.fuser.stubs.process import DTYPES
from tests.table.kernel_samples import values

Array = np.ndarray[Any, np.dtype[Any]]
SIZES = ((3, 5), (), (700,), (0,), (2, 3, 4), (1, 1, 1), (2, 1, 2, 1, 2, 1, 2, 2), (4, 0, 2))
SPREADING = (
    ((3, 4), (4,), (1, 4)), ((2, 1, 3), (4, 1), (1, 1, 1)), ((), (2,), ()), ((5,), (), (5,)), ((0, 3), (3,), (1, 3)),
    ((2, 3, 1), (2, 1, 4), (3, 4)), ((6, 1), (1, 7), (1, 1)),
)  # fmt: skip
"""Sizes of operands that are spread over one another."""
NUMBERS = (2.5, -1, 0, 3, -0.0, 0.5, float("inf"), float("nan"), 1e40, 1e-46, 2**40, -(2**63), True)


def layouts(array: Array) -> Iterator[Array]:
    """The array as it may lie in memory otherwise."""
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


def pointwise(form: Form, type: str) -> Iterator[list[Any]]:
    """Arguments of a form of row functions: same sizes, other layouts, sizes that spread, numbers."""
    for shape in SIZES:
        yield call(form, [_array(type, shape, i) for i in range(form.operands)], 2.5)
    for place in range(6):
        arrays = [_array(type, (4, 6), i) for i in range(form.operands)]
        turned = [[*layouts(each)][(place + (i > 0) * (place % 3)) % 6] for i, each in enumerate(arrays)]
        yield call(form, turned, 2.5)
    for place in range(7):
        yield call(form, [[*layouts(_array(type, (3, 4), i))][(place + i) % 7] for i in range(form.operands)], 2.5)
    for shapes in SPREADING:
        yield call(form, [_array(type, shapes[i % 3], i) for i in range(form.operands)], 2.5)
    yield call(
        form, [as_strided(_array(type, (9,), i), (3, 3), (_size(type), _size(type))) for i in range(form.operands)], 2
    )
    yield call(form, [_array(type, (1,) * 9, i) for i in range(form.operands)], 2)
    for number in NUMBERS:
        yield call(form, [_array(type, (3, 5), i) for i in range(form.operands)], number)


def along(form: Form, type: str) -> Iterator[list[Any]]:
    """Arguments of a form that goes along a dimension."""
    shapes = [
        (4, 6),
        (7,),
        (2, 3, 4),
        (1, 5),
        (3, 1),
        (0, 3),
        (3, 0),
        (130, 33),
        (1, 3000),
        (2000, 1),
        (2, 3, 4, 5),
        (),
    ]
    for shape in shapes:
        for axis in [*range(-len(shape), len(shape)), [0, 1], [-2, -1], [0], [], [1, 0], len(shape)]:
            for keeps, seed in ((False, 0), (True, 5)):
                yield _along(form, type, shape, axis, keeps, seed)


def _along(form: Form, type: str, shape: tuple[int, ...], axis: Any, keeps: bool, seed: int) -> list[Any]:
    place = (
        form.axis
        if form.axis >= 0
        else axis[0]
        if isinstance(axis, list) and axis
        else axis
        if type_is_int(axis)
        else 0
    )
    found: list[Any] = []
    last = list(shape[place:]) if shape and -len(shape) <= place < len(shape) else [3]
    is_last = any(each.kind == "LASTSIZES" for each in form.given)
    width = (
        last
        if is_last
        else list(shape)
        if not any(each.kind in ("AXIS", "AXES") for each in form.given) and form.axis < 0
        else last[:1]
    )
    for i, each in enumerate(form.given):
        match each.kind:
            case "WHOLES":
                found.append(Tensor(_moderate(type, shape, seed + i)))
            case "VECTORS":
                found.append(Tensor(np.abs(_moderate(type, tuple(width), 2 * i))))
            case "AXIS" | "AXES":
                found.append(axis)
            case "LASTSIZES":
                found.append(last)
            case "KEEPS":
                found.append(keeps)
            case "REALS":
                found.append(0.25)
            case _:
                found.append(fixed(each))
    return found


def type_is_int(value: Any) -> bool:
    return type(value) is int


def call(form: Form, arrays: list[Array], number: Any) -> list[Any]:
    """The arguments of a call with these operands."""
    left = iter(arrays)
    return [_argument(each, left, number) for each in form.given]


def _argument(given: Given, arrays: Iterator[Array], number: Any) -> Any:
    if not given.is_operand:
        return fixed(given)
    array = next(arrays)
    if given.kind in ("TENSORS", "TRUTHS"):
        return Tensor(array > 0 if given.kind == "TRUTHS" else array)
    return number


def fixed(given: Given) -> Any:
    """The value that an argument has to have, which words are told by."""
    return sys.intern(given.value) if isinstance(given.value, str) else given.value


def _size(type: str) -> int:
    return int(DTYPES[type].itemsize)


def _array(type: str, shape: tuple[int, ...], seed: int) -> Array:
    d = DTYPES[type]
    found: Array = values(d.type, int(np.prod(shape)), seed).reshape(shape)
    return found


def _moderate(type: str, shape: tuple[int, ...], seed: int) -> Array:
    """Numbers whose sums, products and squares stay far from the end of the range, and some NaN and infinities."""
    random = np.random.default_rng(seed)
    found = random.normal(0, 1, shape)
    if type in ("f32", "f64", "f16", "bf16") and seed % 2 and found.size > 3:
        found.flat[random.integers(0, found.size, 2)] = np.nan, np.inf
    return (found * (1 if "f" in type else 3)).astype(DTYPES[type])


def in_place(op: Op) -> bool:
    return op.functional is not None
