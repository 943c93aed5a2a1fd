"""Bindings: what a kernel needs to become a function of Python values.

In: what a front door knows of arguments and results.  Out: a `Binding`, of which `stub` makes a builtin function.

The kernel's parameters are bound by name.  A buffer is the data of the tensor argument, the result or the scratch of
that name.  A scalar is a number argument, a let, or one of the names of an argument x: `x_size_0` (extent of dimension
0), `x_stride_0` (its stride in elements).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, Final, Literal

import numpy as np

from engine.fuser.ir.kernel import Expression, Kernel, Let, Name, apply, index
from engine.fuser.stubs.bound_stubs import Stub
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor on the CPU that records nothing, of this element type and rank; else the guard fails.

    `layout`: "contiguous", or "strided" for any strides that are multiples of the element.
    """

    name: str
    type: str
    rank: int
    layout: Literal["contiguous", "strided"] = "contiguous"


@dataclass(frozen=True, slots=True)
class NumberArgument:
    """A Python float, int or bool ("f64", "i64", "bool"), exactly of that type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ObjectArgument:
    """A Python list or dict, exactly of that type, whose address the kernel gets as an i64."""

    name: str
    type: Literal["list", "dict"]


@dataclass(frozen=True, slots=True)
class NoneArgument:
    """None, for which the kernel is made."""

    name: str


Argument = TensorArgument | NumberArgument | ObjectArgument | NoneArgument


@dataclass(frozen=True, slots=True)
class Result:
    """A new tensor without gaps.

    `shape`: i64 expressions over the names that kernels may use.  `order`: its dimensions as they lie in memory, the
    innermost last; None where that is as they are counted.
    """

    name: str
    type: str
    shape: tuple[Expression, ...]
    order: tuple[int, ...] | None = None


def order_of(array: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """The dimensions by their strides, the least last, after those without any; None where they are in order."""
    steps = [abs(step) if extent > 1 else 0 for step, extent in zip(array.strides, array.shape, strict=True)]
    plain = [step for step in steps if step]
    if plain == sorted(plain, reverse=True):
        return None
    return tuple(sorted(range(array.ndim), key=lambda d: (steps[d] != 0, -steps[d])))


def is_in_order(array: np.ndarray[Any, Any]) -> bool:
    """True if it has the strides of a result in the order of its dimensions."""
    step = array.itemsize
    for d in reversed(order_of(array) or range(array.ndim)):
        if array.strides[d] != step:
            return False
        step *= array.shape[d]
    return True


@dataclass(frozen=True, slots=True)
class NumberResult:
    """A number that the kernel writes to the buffer of this name, a single element: becomes float, int or bool."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ObjectResult:
    """A Python object whose address the kernel writes to the i64 buffer of this name, with a reference to it."""

    name: str


@dataclass(frozen=True, slots=True)
class Told:
    """A buffer of so many i64, where the kernel tells more of what went wrong than its code."""

    name: str
    words: int


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Binding:
    """`guards` are bool expressions that all must hold.  `lets` give more scalars, each over the ones before.

    `work`: an estimate of nanoseconds, from which on others may run meanwhile.  One result is returned itself, several
    as a tuple.  `stub`: its stub once it is there, for this very object: equal ones may differ in the sign of a zero.
    """

    kernel: Kernel
    arguments: tuple[Argument, ...]
    results: tuple[Result | NumberResult | ObjectResult, ...]
    guards: tuple[Expression, ...] = ()
    lets: tuple[Let, ...] = ()
    work: Expression | None = None
    told: Told | None = None
    stub: list[Stub] = field(default_factory=list, init=False, compare=False, repr=False)


def size(argument: str, dimension: int) -> Name:
    """The extent of a dimension of a tensor argument."""
    return Name(f"{argument}_size_{dimension}", "i64")


def stride(argument: str, dimension: int) -> Name:
    """The stride of a dimension of a tensor argument, in elements."""
    return Name(f"{argument}_stride_{dimension}", "i64")


def with_sizes(binding: Binding, sizes: Sequence[Sequence[int | None]]) -> Binding:
    """The binding for tensors of these sizes alone, given for each argument; None, and no sizes at all: any."""
    wanted = [
        apply("eq", size(argument.name, d), index(extent))
        for argument, extents in zip(binding.arguments, sizes, strict=True)
        for d, extent in enumerate(extents)
        if extent is not None
    ]
    return replace(binding, guards=(*binding.guards, *wanted)) if wanted else binding


RELEASE_AFTER: Final = 20_000
"""Nanoseconds of work from which on a kernel runs without the interpreter lock."""
