"""Kernels on a GPU as functions of tensors.

In: `Binding`s of one group, in loops for threads, and the function to call where no kernel fits.  Out: a function of
the group's arguments, which is written as text.

    def f(x, n):
        ... the fallback where something is traced or recorded, or x is no tensor
        ready = known.get((x.array.dtype, x.array.shape, x.array.strides, type(x.array), type(n)))
        ...
        return ready(x.array, n)

What depends on dtypes, sizes and strides alone (guards, shapes of launches, code) is settled once for each layout that
calls come with; `ready` allocates, fills in addresses and numbers, and launches (`calls`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any, Final

from engine.aten.dispatch.grad_mode import MODE
from engine.aten.values import libraries
from engine.aten.values.hooks import HOOKS
from engine.aten.values.libraries import Library
from engine.aten.values.tensor import Tensor
from engine.fuser.backend.machine import MachineError
from engine.fuser.gpu.calls import Loaded, call_of
from engine.fuser.gpu.driver import CUPY, Driver
from engine.fuser.gpu.launches import Launches, launches_of
from engine.fuser.gpu.prepared import Numbers, Prepared, Step, holds, number_names, numbers_of, prepared
from engine.fuser.gpu.ptx import ptx_of
from engine.fuser.groups.fusion_group import DTYPES
from engine.fuser.ir.kernel import Name, all_expressions
from engine.fuser.stubs.binding import Argument, Binding, NoneArgument, NumberArgument, Result, TensorArgument
from engine.lang.generated import define
from engine.lang.records import dataclass

Run = Callable[..., Any]
_WAVES: Final = 4
"""Blocks of a grid for each that the device has room for at a time; the rest is done in loops."""
_BLOCKS: Final = 8
"""Blocks of most shapes that a multiprocessor has room for."""
MOST_LAYOUTS: Final = 256
"""The number of layouts that a group is prepared for."""


def bind(name: str, bindings: Sequence[Binding], otherwise: Run, driver: Driver = CUPY, kind: str = "cuda") -> Run:
    """The function that runs the first kernel whose guards hold, else `otherwise`; `name` is the group's."""
    kernels = [_Kernel(each, launches_of(each.kernel, number_names(each))) for each in bindings]
    layouts = _Layouts(kernels, otherwise, driver, kind)
    return layouts.function(name)


@dataclass(frozen=True, slots=True)
class _Kernel:
    binding: Binding
    launches: Launches

    @property
    def free(self) -> frozenset[int]:
        """The places of numbers that neither guards nor sizes ask for."""
        shapes = (size for each in self.binding.results if isinstance(each, Result) for size in each.shape)
        roots = (*self.binding.guards, *shapes, *self.launches.sizes)
        names = {each.name for root in roots for each in all_expressions(root) if isinstance(each, Name)}
        arguments = enumerate(self.binding.arguments)
        return frozenset(i for i, each in arguments if isinstance(each, NumberArgument) and each.name not in names)

    @property
    def tensors(self) -> frozenset[int]:
        """The places of tensors."""
        arguments = enumerate(self.binding.arguments)
        return frozenset(i for i, each in arguments if isinstance(each, TensorArgument))


@dataclass(eq=False, slots=True)
class _Layouts:
    """The layouts that calls of a group come with, and the functions for them."""

    kernels: Sequence[_Kernel]
    otherwise: Run
    driver: Driver
    kind: str
    known: dict[Hashable, Run] = field(default_factory=dict)
    """Functions of arrays and numbers, by layout; `_NONE` where no kernel fits."""
    loaded: dict[Hashable, Sequence[Any]] = field(default_factory=dict)
    """Functions by device and code."""

    # -- the group's function

    def function(self, name: str) -> Run:
        """The function of the group's arguments."""
        names = [f"a{i}" for i in range(len(self.kernels[0].binding.arguments))]
        environment = {
            "Tensor": Tensor, "form": _form, "plain": _plain, "hooks": HOOKS, "mode": MODE, "known": self.known,
            "settle": self.settle, "none": _NONE, "otherwise": self.otherwise,
        }  # fmt: skip
        return define(name, names, self.lines(names), environment, f"<calls of {name}>")

    def lines(self, names: Sequence[str]) -> Iterator[str]:
        tensors = [name for i, name in enumerate(names) if i in self.tensors]
        mixed = [name for i, name in enumerate(names) if i in self.mixed]
        listed, fallback = "".join(f"{name}, " for name in names), f"return otherwise({', '.join(names)})"
        wrong = " or ".join(["hooks.trace is not None", *(f"type({name}) is not Tensor" for name in tensors)])
        yield f"if {wrong}: {fallback}"
        recording = [f"{name}._requires_grad" for name in tensors]
        recording += [f"(type({name}) is Tensor and {name}._requires_grad)" for name in mixed]
        if recording:
            yield f"if ({' or '.join(recording)}) and mode.enabled: {fallback}"
        yield from (f"{name}_ = {name}.array" for name in tensors)
        yield f"key = {''.join(self.key(names))}"
        yield "ready = known.get(key)"
        yield f"if ready is None: ready = settle(key, ({listed}))"
        yield f"if ready is none: {fallback}"
        yield f"return ready({', '.join(self.given(i, name) for i, name in enumerate(names))})"

    @property
    def tensors(self) -> frozenset[int]:
        """The places where all kernels take tensors."""
        return frozenset.intersection(*(each.tensors for each in self.kernels))

    @property
    def mixed(self) -> frozenset[int]:
        """The places where some take tensors, and others something else."""
        return frozenset.union(*(each.tensors for each in self.kernels)) - self.tensors

    def given(self, i: int, name: str) -> str:
        """An argument as the functions of layouts take it."""
        return f"{name}_" if i in self.tensors else f"plain({name})" if i in self.mixed else name

    def key(self, names: Sequence[str]) -> Iterator[str]:
        """All that decides what is done: of most numbers it is the type alone."""
        free = frozenset.intersection(*(each.free for each in self.kernels))
        yield "("
        for i, name in enumerate(names):
            if i in self.mixed:
                yield f"*form({name}), "
            elif i in self.tensors:
                yield f"{name}_.dtype, {name}_.shape, {name}_.strides, type({name}_), "
            elif i in free:
                yield f"type({name}), "
            else:
                yield f"type({name}), tuple({name}) if type({name}) is list else {name}, "
        yield ")"

    # -- layouts

    def settle(self, key: Hashable, args: Sequence[Any]) -> Run:
        """The function for arguments of a layout that is new."""
        if len(self.known) >= MOST_LAYOUTS:
            self.known.clear()
        library = libraries.library(self.kind)
        found = (ready for each in self.kernels if (ready := self.ready(each, args, library)) is not None)
        self.known[key] = next(found, _NONE)
        return self.known[key]

    def ready(self, kernel: _Kernel, args: Sequence[Any], library: Library) -> Run | None:
        """The kernel's function for these arguments, if it takes them."""
        binding = kernel.binding
        if not all(map(_fits, binding.arguments, args)):
            return None
        numbers = numbers_of(binding, [each.array if isinstance(each, Tensor) else each for each in args])
        if not holds(binding, numbers):
            return None
        device = _device(args, library)
        try:
            with library.on(device):
                return call_of(self.loaded_for(kernel, numbers, library, device))
        except MachineError:
            return None

    def loaded_for(self, kernel: _Kernel, numbers: Numbers, library: Library, device: int | None) -> Loaded:
        """The kernel on the current device, for these sizes.  Raises MachineError."""
        multiprocessors = self.driver.multiprocessors()
        made = prepared(kernel.binding, numbers, kernel.launches, _WAVES * multiprocessors * _BLOCKS)
        functions = self.functions(device, made)
        pairs = zip(functions, made.steps, strict=True)
        steps = tuple(_sized(*each, self.driver, multiprocessors) for each in pairs)
        launches = [self.driver.launcher(*each) for each in zip(functions, steps, strict=True)]
        return Loaded(kernel.binding, replace(made, steps=steps), launches, numbers, library, device)

    def functions(self, device: int | None, made: Prepared) -> Sequence[Any]:
        """The functions of the launches, loaded.  Raises MachineError."""
        key = device, made.code
        if key not in self.loaded:
            names = [step.launch.name for step in made.steps]
            self.loaded[key] = self.driver.load(ptx_of(made.code, self.driver.target()), names)
        return self.loaded[key]


def _form(value: Any) -> tuple[Any, ...]:
    """All of an argument that may decide what is done."""
    if type(value) is not Tensor:
        return type(value), value
    array = value.array
    return array.dtype, array.shape, array.strides, type(array)


def _plain(value: Any) -> Any:
    return value.array if type(value) is Tensor else value


def _NONE(*args: Any) -> Any:
    """Stands for no function, where no kernel fits."""
    raise AssertionError(args)


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
        case NoneArgument():
            return value is None
    return False


_TYPES: Final = {"f64": float, "i64": int, "bool": bool}
