"""Kernels made ready for tensors of certain sizes: shapes of launches, and how much memory they take.

In: a `Binding` of a kernel for threads, and the numbers of a call: sizes, strides, number arguments.  Out: `Prepared`:
the code that is wanted, the launches with the sizes of their grids, and the sizes of scratch buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from math import prod
from typing import Any, Final

import numpy as np

from engine.fuser.gpu.launches import Launch, Launches, launches_of
from engine.fuser.gpu.shapes import Shape, shape_of_rows
from engine.fuser.gpu.to_nvptx import ROOM
from engine.fuser.ir.kernel import SIZES, Buffer, Expression
from engine.fuser.ir.numeric_functions import NUMPY
from engine.fuser.ir.to_numpy import evaluated
from engine.fuser.stubs.binding import Binding, NumberArgument, Result, TensorArgument
from engine.lang.records import dataclass

SHARED_ROOM: Final = 40 << 10
"""Bytes of shared memory that the rooms of a block's rows may take: with partial results all blocks have that much."""
NARROW: Final = 1 << 30
"""Elements up to which indices, and what threads add to them, are computed in 32 bits."""
_PER_THREAD: Final = 4
"""Elements that a thread is to compute where there are many."""

_LEAST_SIDE: Final = 16
"""Extents from which on tiles, which may stick out, are worth it."""

Numbers = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """A launch: its grid, and the bytes of memory for the rooms of its rows, which are shared or not."""

    launch: Launch
    shape: Shape
    blocks: int
    room: int

    @property
    def shared(self) -> int:
        """Bytes of shared memory that the launch asks for."""
        return self.room if self.shape.in_shared else 0


@dataclass(frozen=True, slots=True)
class Prepared:
    """`results`: the shapes of new tensors; `scratch`: elements of buffers between launches."""

    steps: tuple[Step, ...]
    results: dict[str, tuple[int, ...]]
    scratch: dict[str, int]
    launches: Launches = field(repr=False)

    @property
    def code(self) -> tuple[tuple[Launch, Shape], ...]:
        """The functions that have to be compiled."""
        return tuple((each.launch, each.shape) for each in self.steps)


def holds(binding: Binding, numbers: Numbers) -> bool:
    """True if the kernel is for these numbers."""
    return all(evaluated(guard, numbers) for guard in binding.guards)


def prepared(binding: Binding, numbers: Numbers, launches: Launches | None = None, most_blocks: int = 2048) -> Prepared:
    """The kernel for these numbers; grids of elements have `most_blocks` at most.  Raises NoLaunch."""
    found = launches or launches_of(binding.kernel, number_names(binding))

    def count(*of: Expression) -> int:
        return prod(int(evaluated(each, numbers)) for each in of)

    results = {each.name: tuple(map(count, each.shape)) for each in binding.results if isinstance(each, Result)}
    scratch = {each.name: count(*(each.shape or ())) for each in found.scratch}
    spans = [*map(prod, results.values()), *scratch.values(), *_spans(binding, numbers)]
    is_narrow = max(spans, default=0) <= NARROW
    steps = [_step(each, count, is_narrow, most_blocks) for each in found.launches]
    return Prepared(tuple(each for each in steps if each.blocks), results, scratch, found)


def number_names(binding: Binding) -> frozenset[str]:
    return frozenset(each.name for each in binding.arguments if isinstance(each, NumberArgument))


def _spans(binding: Binding, numbers: Numbers) -> list[int]:
    """The elements from the first to the last of each tensor argument."""
    found = []
    for argument in binding.arguments:
        if not isinstance(argument, TensorArgument):
            continue
        sizes = [int(numbers[f"{argument.name}_size_{d}"]) for d in range(argument.rank)]
        if argument.layout == "contiguous":
            found.append(prod(sizes))
        else:
            steps = [int(numbers[f"{argument.name}_stride_{d}"]) for d in range(argument.rank)]
            found.append(1 + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True) if n > 1))
    return found


def _step(launch: Launch, count: Callable[..., int], is_narrow: bool, most_blocks: int) -> Step:
    tiles = launch.tiles
    is_tiled = tiles is not None and min(map(count, tiles.sides)) >= _LEAST_SIDE
    rows = count(*(tiles.nest if tiles is not None and is_tiled else launch.nest).extents)
    shape = replace(_shape(launch, rows, count), is_narrow=is_narrow and rows <= NARROW, is_tiled=is_tiled)
    rooms = sum(_room(each, count) for each in launch.rooms)
    per_thread = _PER_THREAD if not launch.lengths else 1
    wanted = -(-rows // (shape.teams * per_thread))
    if rooms * shape.teams <= SHARED_ROOM:
        return Step(launch, shape, min(wanted, most_blocks), rooms * shape.teams)
    blocks = min(wanted, most_blocks // 4)
    return Step(launch, replace(shape, in_shared=False), blocks, rooms * shape.teams * blocks)


def _shape(launch: Launch, rows: int, count: Callable[..., int]) -> Shape:
    if not launch.is_shared:
        return Shape()
    length = max((count(each) for each in launch.lengths), default=1)
    return shape_of_rows(rows, length, is_across=launch.is_across)


def _room(buffer: Buffer, count: Callable[..., int]) -> int:
    """Bytes of a row's buffer."""
    size = SIZES[buffer.type] * count(*(buffer.shape or ()))
    return -(-size // ROOM) * ROOM


def numbers_of(binding: Binding, args: Sequence[Any]) -> dict[str, Any]:
    """The numbers of a call with these arguments, of which tensors are arrays."""
    found: dict[str, Any] = {}
    for argument, value in zip(binding.arguments, args, strict=True):
        if isinstance(argument, TensorArgument):
            for d in range(argument.rank):
                found[f"{argument.name}_size_{d}"] = np.int64(value.shape[d])
                found[f"{argument.name}_stride_{d}"] = np.int64(value.strides[d] // value.dtype.itemsize)
        elif isinstance(argument, NumberArgument):
            found[argument.name] = NUMPY[argument.type](value)
    return found
