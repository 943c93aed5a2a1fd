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
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor on the CPU that records nothing, of this element type and rank; else the guard fails.

    `layout`: "contiguous"; "strided" for any strides that are multiples of the element; "flat" for contiguous ones of
    any rank, all of the same sizes, that the kernel takes for one dimension (`rank` is 1).  `is_written`: the kernel
    writes to it, which advances the version of its memory; then it shares no memory with the other arguments.
    """

    name: str
    type: str
    rank: int
    layout: Literal["contiguous", "strided", "flat"] = "contiguous"
    is_written: bool = False


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
class FixedArgument:
    """None, a bool, an int, a string or a list of ints: exactly this value, of exactly its type (but an int may stand
    for the list of it), for which the kernel is made.

    `may_be_missing`: calls may leave it out, with all after it.  `is_named`: calls of methods give it by name only.
    """

    name: str
    value: int | str | tuple[int, ...] | None
    may_be_missing: bool = False
    is_named: bool = False


Argument = TensorArgument | NumberArgument | ObjectArgument | FixedArgument


@dataclass(frozen=True, slots=True)
class Result:
    """A new tensor without gaps, or, without a shape, the argument of that name itself.

    `shape`: i64 expressions over the names that kernels may use.  `order`: its dimensions as they lie in memory, the
    innermost last; None where that is as they are counted.  `is_flat`: that is one dimension for the kernel, and the
    tensor has the sizes of the flat arguments.
    """

    name: str
    type: str
    shape: tuple[Expression, ...] | None
    order: tuple[int, ...] | None = None
    is_flat: bool = False


@dataclass(frozen=True, slots=True)
class ViewResult:
    """A new tensor in the memory of a tensor argument, of which the kernel knows nothing.

    `strides`, and the distance of its `first` element from that of the argument, are in elements.
    """

    name: str
    type: str
    of: str
    shape: tuple[Expression, ...]
    strides: tuple[Expression, ...]
    first: Expression


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


@dataclass(frozen=True, slots=True)
class Kept:
    """Something that a node keeps for its gradient: a tensor, the form of one (shape and dtype), the object that was
    given for an argument, or a constant.  `name`: the argument, or the result."""

    kind: Literal["tensor", "form", "given", "constant"]
    name: str


@dataclass(frozen=True, slots=True)
class History:
    """The node of the only result, for calls that record.

    `sources`: the arguments that its edges lead to.  `recording`: the tensor arguments that require grad; the others do
    not.  `plan`: that of the node, see `autograd.record`.  `constants`: the values of fixed arguments that are kept.
    """

    sources: tuple[str, ...]
    recording: tuple[str, ...]
    kept: tuple[Kept, ...]
    plan: Any = field(repr=False)
    constants: tuple[Any, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Binding:
    """`guards` are bool expressions that all must hold.  `lets` give more scalars, each over the ones before.

    `work`: an estimate of nanoseconds, from which on others may run meanwhile.  One result is returned itself, several
    as a tuple.  `history`: the result's; calls that have another one, or none, are left to the fallback.  `stubs`: its
    code and the addresses of it by their roles, for this very object: equal ones may differ in the sign of a zero.
    """

    kernel: Kernel
    arguments: tuple[Argument, ...]
    results: tuple[Result | ViewResult | NumberResult | ObjectResult, ...]
    guards: tuple[Expression, ...] = ()
    lets: tuple[Let, ...] = ()
    work: Expression | None = None
    told: Told | None = None
    history: History | None = None
    stubs: dict[str, tuple[Any, int]] = field(default_factory=dict, init=False, compare=False, repr=False)


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
