"""Operators with expressions, and numbers to try their kernels with: all dtypes and layouts, with NaN, infinities,
denormal numbers and without elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import entries
from engine.aten.values.tensor import Tensor
from engine.fuser.groups.from_graph import has_kernel, is_pointwise
from engine.lang.types import NUMBER, OptionalType, TensorType

OPERATORS = [op for op in entries() if op.functional is None and has_kernel(op) and is_pointwise(op)]
FLOATS = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
COMPLEX = {np.complex64: np.float32, np.complex128: np.float64}
DTYPES = (*FLOATS, np.int64, np.int32, np.uint8, np.bool_)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, -1e-310, 6e-8, 65504.0, -3e38, 1e300, 0.5, -1.0, 1.0, 2.0)
COMMON = (np.float32, np.int64)
WHOLE = (0, 1, 2, 7, 255, -1, -8, 2**31 - 1, -(2**31), 2**62)


PREPARED: dict[str, Callable[[Tensor], Tensor]] = {
    "condition": lambda x: Tensor(x.array > 0),
    "mask": lambda x: Tensor(x.array > 0),
    "value": lambda x: Tensor(np.ones((), x.array.dtype)),
}
OTHERS: dict[str, Any] = {"approximate": "tanh", "rounding_mode": "floor", "self_is_result": False}


def values(dtype: Any, count: int, seed: int) -> Any:
    """Special and common numbers of the dtype, in an order of their own for each seed."""
    random = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        if dtype in COMPLEX:
            parts = [values(COMPLEX[dtype], count, 2 * seed + k) for k in range(2)]
            return np.stack(parts, -1).view(dtype)[..., 0]
        if dtype in FLOATS:
            common = random.normal(0, 2, count).astype(np.float64)
            found = np.where(random.random(count) < 0.4, random.choice(SPECIAL, count), common)
            return found.astype(dtype)
        if dtype is np.bool_:
            return random.random(count) < 0.5
        return np.where(random.random(count) < 0.4, random.choice(WHOLE, count), random.integers(-9, 9, count)).astype(
            dtype
        )


def flat(dtype: Any) -> Iterator[list[Tensor]]:
    """Tensors that lie in memory without gaps, for up to three operands."""
    for shape in ((3, 5), (), (700,), (0,), (2, 3, 4)):
        yield [Tensor(values(dtype, int(np.prod(shape)), i).reshape(shape)) for i in range(3)]


def strided(dtype: Any) -> Iterator[list[Tensor]]:
    """Tensors of two dimensions that lie in memory otherwise, some of them spread over the others."""

    def of(rows: int, columns: int, seed: int) -> Any:
        return values(dtype, rows * columns, seed).reshape(rows, columns)

    yield [Tensor(of(6, 8, 0)[:, ::2]), Tensor(of(4, 6, 1).T), Tensor(of(12, 4, 2)[::2])]
    yield [Tensor(np.broadcast_to(of(6, 1, 0), (6, 4))), Tensor(of(6, 4, 1)), Tensor(of(1, 4, 2))]


def arguments(op: Op, tensors: list[Tensor], number: float) -> list[Any]:
    """The tensors, in their order, and numbers; what is no tensor or number as by default."""
    found, left = [], [*tensors]
    for argument in op.schema.arguments:
        type = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
        if isinstance(type, TensorType):
            value: Any = left.pop(0)
            value = PREPARED.get(argument.name, lambda x: x)(value)
        elif type == NUMBER:
            value = number
        else:
            value = argument.default if argument.has_default else OTHERS[argument.name]
        found.append(value)
    return found


def agree(found: Any, wanted: Any, least: Any = 0.0) -> None:
    """Equal dtypes, sizes and elements; `least`: what is allowed in any case, a number or an array of such.

    Parts of complex numbers, which cancel, differ by units of the last place of the greater one.
    """
    assert (found.array.dtype, found.array.shape) == (wanted.array.dtype, wanted.array.shape)
    a, b = found.array, wanted.array
    if a.dtype == ml_dtypes.complex32:
        a, b = a.astype(np.complex64), b.astype(np.complex64)
    if a.dtype.type in COMPLEX:
        with np.errstate(all="ignore"):
            size = np.nan_to_num(np.maximum(np.abs(b.real), np.abs(b.imag)).astype(np.float64), posinf=0.0)
            apart = least + 16 * float(np.finfo(a.dtype).eps) * size
        for one, other in ((a.real, b.real), (a.imag, b.imag)):
            agree(Tensor(one), Tensor(other), apart)
        return
    if a.dtype.kind not in "fV":
        np.testing.assert_array_equal(a, b)
        return
    a, b, about = a.astype(np.float64), b.astype(np.float64), ml_dtypes.finfo(a.dtype)
    eps, tiny = float(about.eps), float(about.smallest_subnormal)
    allowed = (
        16 * eps * np.abs(b) + np.where(np.abs(b) > eps / 4, 4 * eps, 16 * tiny) + least
    )  # terms of sums may cancel
    with np.errstate(invalid="ignore"):
        wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= allowed))
    wrong |= (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    assert not wrong.any(), (a[wrong], b[wrong])


def special_arguments(op: Op) -> list[Any]:
    """Arguments in which each special number meets each other one."""
    special = np.array(SPECIAL, np.float64)
    first, second = np.repeat(special, special.size), np.tile(special, special.size)
    return arguments(op, [Tensor(each) for each in (first, second, np.roll(second, 5))], 2.5)


def are_alike(call: list[Any]) -> bool:
    """True if the tensors are of the same sizes, so that one kernel is for all ranks."""
    return len({each.array.shape for each in call if isinstance(each, Tensor)}) == 1


def dtypes(op: Op) -> Iterator[Any]:
    """Those that programs have most, and two of the others in turn: not all operators need all of them."""
    others = [dtype for dtype in DTYPES if dtype not in COMMON]
    place = OPERATORS.index(op)
    yield from (*COMMON, others[place % len(others)], others[(place + 1) % len(others)])
