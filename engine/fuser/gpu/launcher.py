"""Kernels on a GPU as functions of tensors.

In: `Binding`s of one group, in loops for threads, and the function to call where no kernel fits.  Out: a function of
the group's arguments.  What depends on dtypes, sizes and strides alone (guards, shapes of launches, code) is settled
once for each layout that calls come with; a call fills in addresses and numbers, allocates, and launches.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.grad_mode import MODE
from engine.aten.values import libraries
from engine.aten.values.hooks import HOOKS
from engine.aten.values.libraries import Library
from engine.aten.values.tensor import Tensor
from engine.fuser.backend.machine import MachineError
from engine.fuser.gpu.driver import CUPY, Arguments, Driver
from engine.fuser.gpu.launches import Launches, launches_of
from engine.fuser.gpu.prepared import Numbers, Prepared, Step, holds, number_names, numbers_of, prepared
from engine.fuser.gpu.ptx import ptx_of
from engine.fuser.groups.fusion_group import DTYPES
from engine.fuser.ir.kernel import SIZES, Name, all_expressions
from engine.fuser.stubs.binding import Argument, Binding, FixedArgument, NumberArgument, Result, TensorArgument

Run = Callable[..., Any]
_WAVES: Final = 4
"""Blocks of a grid for each that the device has room for at a time; the rest is done in loops."""
_ALIGNED: Final = 256
MOST_LAYOUTS: Final = 256
"""The number of layouts that a group is prepared for."""


def bind(name: str, bindings: Sequence[Binding], otherwise: Run, driver: Driver = CUPY, kind: str = "cuda") -> Run:
    """The function that runs the first kernel whose guards hold, else the last argument; `name` is the group's."""
    kernels = [_Kernel(each, launches_of(each.kernel, number_names(each))) for each in bindings]
    return _Bound(name, kernels, otherwise, driver, kind)


@dataclass(frozen=True, slots=True)
class _Kernel:
    binding: Binding
    launches: Launches

    @property
    def free(self) -> frozenset[int]:
        """The places of numbers that neither guards nor sizes ask for."""
        shapes = (size for each in self.binding.results if isinstance(each, Result) for size in each.shape or ())
        roots = (*self.binding.guards, *shapes, *self.launches.sizes)
        names = {each.name for root in roots for each in all_expressions(root) if isinstance(each, Name)}
        arguments = enumerate(self.binding.arguments)
        return frozenset(i for i, each in arguments if isinstance(each, NumberArgument) and each.name not in names)


@dataclass(eq=False, slots=True)
class _Bound:
    """A group's function."""

    name: str
    kernels: Sequence[_Kernel]
    otherwise: Run
    driver: Driver
    kind: str
    known: dict[Hashable, _Ready | None] = field(default_factory=dict)
    """By layout; None where no kernel fits."""
    loaded: dict[Hashable, Sequence[Any]] = field(default_factory=dict)
    """Functions by device and code."""
    free: frozenset[int] = field(init=False)
    """The places of numbers of which the type alone decides."""

    def __post_init__(self) -> None:
        self.free = frozenset.intersection(*(each.free for each in self.kernels))

    def __call__(self, *args: Any) -> Any:
        if HOOKS.trace is not None or (MODE.enabled and any(type(a) is Tensor and a._requires_grad for a in args)):
            return self.otherwise(*args)
        key = self.key(args)
        ready = self.known.get(key, _UNKNOWN)
        if ready is _UNKNOWN:
            ready = self.settle(key, args)
        return self.otherwise(*args) if ready is None else ready.run(args)

    def key(self, args: Sequence[Any]) -> Hashable:
        """All that decides what is done: of most numbers it is the type alone."""
        found: list[Any] = []
        for i, each in enumerate(args):
            if type(each) is Tensor:
                array = each.array
                found += (array.dtype, array.shape, array.strides, type(array))
            elif i in self.free:
                found.append(type(each))
            else:
                found += (type(each), tuple(each) if type(each) is list else each)
        return tuple(found)

    def settle(self, key: Hashable, args: Sequence[Any]) -> _Ready | None:
        """The kernel for arguments of a layout that is new, if there is one."""
        if len(self.known) >= MOST_LAYOUTS:
            self.known.clear()
        library = libraries.library(self.kind)
        self.known[key] = next((ready for each in self.kernels if (ready := self.ready(each, args, library))), None)
        return self.known[key]

    def ready(self, kernel: _Kernel, args: Sequence[Any], library: Library) -> _Ready | None:
        """The kernel prepared for these arguments, if it takes them."""
        binding = kernel.binding
        if len(args) != len(binding.arguments) or not all(map(_fits, binding.arguments, args)):
            return None
        numbers = numbers_of(binding, [each.array if isinstance(each, Tensor) else each for each in args])
        if not holds(binding, numbers):
            return None
        with library.on(device := _device(args, library)):
            multiprocessors = self.driver.multiprocessors()
            most = _WAVES * multiprocessors * _BLOCKS
            made = prepared(binding, numbers, kernel.launches, most)
            try:
                functions = self.functions(device, made)
            except MachineError:
                return None
            steps = [_sized(*each, self.driver, multiprocessors) for each in zip(functions, made.steps, strict=True)]
        return _Ready.of(binding, replace(made, steps=tuple(steps)), functions, numbers, library, self.driver, args)

    def functions(self, device: int | None, made: Prepared) -> Sequence[Any]:
        """The functions of the launches, loaded.  Raises MachineError."""
        key = device, made.code
        if key not in self.loaded:
            names = [step.launch.name for step in made.steps]
            self.loaded[key] = self.driver.load(ptx_of(made.code, self.driver.target()), names)
        return self.loaded[key]


_UNKNOWN: Final[Any] = object()
_BLOCKS: Final = 8
"""Blocks of most shapes that a multiprocessor has room for."""


def _sized(function: Any, step: Step, driver: Driver, multiprocessors: int) -> Step:
    """The launch with a grid for as many blocks as there is room for."""
    room = max(driver.active_blocks(function, step), 1) * multiprocessors * _WAVES
    return replace(step, blocks=min(step.blocks, room))


def _device(args: Sequence[Any], library: Library) -> int | None:
    """The number of the device that tensors are on."""
    arrays = (each.array for each in args if isinstance(each, Tensor) and type(each.array) is library.array)
    return next((library.index_of(each) for each in arrays), None)


def _fits(argument: Argument, value: Any) -> bool:
    """True if the value is of the argument's kind."""
    match argument:
        case TensorArgument():
            if not isinstance(value, Tensor) or value.array.ndim != argument.rank:
                return False
            is_contiguous = argument.layout == "strided" or value.array.flags.c_contiguous
            return bool(value.array.dtype == DTYPES[argument.type]) and bool(is_contiguous)
        case NumberArgument():
            return type(value) is _TYPES[argument.type]
        case FixedArgument():
            return value is argument.value or (type(value) is type(argument.value) and value == argument.value)
    return False


_TYPES: Final = {"f64": float, "i64": int, "bool": bool}

# ------------------------------------------------------------------ calls


@dataclass(frozen=True, slots=True)
class _Launch:
    """`fixed`: the slots with what is the same in all calls; `filled`: slots, and the places of their values."""

    function: Any
    step: Step
    fixed: tuple[int, ...]
    filled: tuple[tuple[int, int], ...]
    free: list[Arguments] = field(default_factory=list)

    def begin(self, driver: Driver, values: Sequence[int]) -> None:
        """One launch.  Memory for arguments is taken from those that no other thread uses."""
        arguments = self.free.pop() if self.free else self.arguments()
        slots = arguments.slots
        for slot, place in self.filled:
            slots[slot] = values[place]
        driver.launch(self.function, self.step, arguments)
        self.free.append(arguments)

    def arguments(self) -> Arguments:
        made = Arguments(len(self.fixed))
        made.slots[:] = [*self.fixed]
        return made


@dataclass(frozen=True, slots=True)
class _Ready:
    """A kernel for one layout.

    The values of a call are the addresses of its tensors, its numbers, and the addresses of results and of rooms in
    the scratch memory, which begin at `rooms`.
    """

    launches: tuple[_Launch, ...]
    tensors: tuple[int, ...]
    numbers: tuple[tuple[int, bool], ...]
    """Places of number arguments, and whether they are floats."""
    results: tuple[tuple[tuple[int, ...], Any, tuple[int, ...] | None], ...]
    """Shape in memory, dtype, and the order in which dimensions are those of the tensor."""
    rooms: tuple[int, ...]
    scratch: int
    library: Library
    driver: Driver
    device: int | None

    @classmethod
    def of(
        cls, binding: Binding, made: Prepared, functions: Sequence[Any], numbers: Numbers, library: Library,
        driver: Driver, args: Sequence[Any],
    ) -> _Ready:  # fmt: skip
        """Lay out the values of calls, and what launches take of them."""
        arguments = list(enumerate(binding.arguments))
        tensors = [(i, each.name) for i, each in arguments if isinstance(each, TensorArgument)]
        given = [(i, each) for i, each in arguments if isinstance(each, NumberArgument)]
        results = [each for each in binding.results if isinstance(each, Result)]
        sizes = [made.scratch[each.name] * SIZES[each.type] for each in made.launches.scratch]
        sizes += [0 if step.shape.in_shared else step.room for step in made.steps]
        rooms = [0, *accumulate(-(-size // _ALIGNED) * _ALIGNED for size in sizes)]
        names = [name for _, name in tensors] + [each.name for _, each in given] + [each.name for each in results]
        names += [each.name for each in made.launches.scratch] + [_room(i) for i in range(len(made.steps))]
        places = {name: i for i, name in enumerate(names)}
        launches = [
            _Launch(function, step, *_slots(step, _room(i), places, numbers))
            for i, (function, step) in enumerate(zip(functions, made.steps, strict=True))
        ]
        forms = [(*_form(made.results[each.name], each.order), DTYPES[each.type]) for each in results]
        return cls(
            tuple(launches), tuple(i for i, _ in tensors), tuple((i, each.type == "f64") for i, each in given),
            tuple((shape, dtype, back) for shape, back, dtype in forms), tuple(rooms[:-1]), rooms[-1], library, driver,
            _device(args, library),
        )  # fmt: skip

    def run(self, args: Sequence[Any]) -> Any:
        library = self.library
        if library.current() != self.device:
            with library.on(self.device):
                return self.launched(args)
        return self.launched(args)

    def launched(self, args: Sequence[Any]) -> Any:
        library, empty = self.library, self.library.namespace.empty
        address = library.address
        arrays = [self.here(args[i].array) for i in self.tensors]
        made = [empty(shape, dtype) for shape, dtype, _ in self.results]
        values = [*map(address, arrays), *(_bits(args[i], real) for i, real in self.numbers), *map(address, made)]
        scratch = empty((self.scratch,), np.uint8) if self.scratch else None
        begin = 0 if scratch is None else address(scratch)
        values += [begin + each for each in self.rooms]
        for launch in self.launches:
            launch.begin(self.driver, values)
        found = [
            Tensor(array if form[2] is None else array.transpose(form[2]))
            for array, form in zip(made, self.results, strict=True)
        ]
        return found[0] if len(found) == 1 else tuple(found)

    def here(self, array: Any) -> Any:
        """The array, which is brought to the device if it is a number of the CPU."""
        return self.library.from_host(array) if type(array) is np.ndarray else array


def _room(i: int) -> str:
    """The name of the memory for rooms of a launch, which no buffer has."""
    return f"room {i}"


def _slots(
    step: Step, room: str, places: dict[str, int], numbers: Numbers
) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    fixed: list[int] = []
    filled: list[tuple[int, int]] = []
    for slot, name in enumerate(_parameters(step, room)):
        if name in places:
            filled.append((slot, places[name]))
        fixed.append(0 if name in places else int(numbers[name]))
    return tuple(fixed), tuple(filled)


def _parameters(step: Step, room: str) -> Iterator[str]:
    yield from (each.name for each in step.launch.parameters)
    if step.launch.rooms:
        yield room


def _form(shape: tuple[int, ...], order: tuple[int, ...] | None) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """The shape as it lies in memory, and the order that gives the tensor's own back."""
    if order is None:
        return shape, None
    return tuple(shape[d] for d in order), tuple(order.index(d) for d in range(len(order)))


def _bits(value: Any, is_real: bool) -> int:
    """The 8 bytes of a number, as a whole number."""
    if not is_real:
        return int(value)
    found: int = _WHOLE.unpack(_REAL.pack(value))[0]
    return found


_WHOLE: Final = struct.Struct("=q")
_REAL: Final = struct.Struct("=d")
