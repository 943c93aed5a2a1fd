"""Calls of a kernel on a GPU for tensors of one layout, as text.

In: `Loaded`: a kernel that is prepared and loaded.  Out: a function of its arrays and numbers, which allocates the
results and launches.

    def call(x, n):
        if current() != device: ...
        out = empty(shape, dtype)
        arguments = free.pop() if free else make()
        slots = arguments.slots
        slots[0], slots[3], slots[4] = n, address(x), address(out)
        launch(arguments)
        free.append(arguments)
        return Tensor(out)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.values.libraries import Library
from engine.aten.values.tensor import Tensor
from engine.fuser.gpu.driver import Arguments
from engine.fuser.gpu.prepared import Numbers, Prepared, Step
from engine.fuser.groups.fusion_group import DTYPES
from engine.fuser.ir.kernel import SIZES
from engine.fuser.stubs.binding import Binding, NumberArgument, Result, TensorArgument
from engine.lang.generated import define
from engine.lang.records import dataclass

_ALIGNED: Final = 256
"""Bytes of which the place of a buffer in scratch memory is a multiple."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """`launches` begin the steps with their arguments; `numbers` are those of the layout."""

    binding: Binding
    prepared: Prepared
    launches: Sequence[Callable[[Arguments], None]]
    numbers: Numbers
    library: Library
    device: int | None


def call_of(loaded: Loaded) -> Callable[..., Any]:
    """The function of arrays and numbers, in the order of the binding's arguments."""
    return _Writer(loaded, {}).function()


@dataclass(eq=False, slots=True)
class _Writer:
    loaded: Loaded
    environment: dict[str, Any]

    def function(self) -> Callable[..., Any]:
        library = self.loaded.library
        self.environment |= {
            "Tensor": Tensor, "empty": library.namespace.empty, "address": library.address, "bits": _bits,
            "current": library.current, "on": library.on, "device": self.loaded.device, "from_host": library.from_host,
            "host": np.ndarray, "uint8": np.dtype(np.uint8),
        }  # fmt: skip
        names = [f"a{i}" for i in range(len(self.loaded.binding.arguments))]
        define("launched", names, self.lines(names), self.environment, "<launches>")
        listed = ", ".join(names)
        return define("call", names, [
            f"if current() == device: return launched({listed})",
            f"with on(device): return launched({listed})",
        ], self.environment, "<launches>")  # fmt: skip

    def lines(self, names: Sequence[str]) -> Iterator[str]:
        values: dict[str, str] = {}
        for name, argument in zip(names, self.loaded.binding.arguments, strict=True):
            if isinstance(argument, TensorArgument):
                if argument.rank == 0:  # numbers of the CPU come along
                    yield f"if type({name}) is host: {name} = from_host({name})"
                values[argument.name] = f"address({name})"
            elif isinstance(argument, NumberArgument):
                values[argument.name] = f"bits({name})" if argument.type == "f64" else name
        results = [each for each in self.loaded.binding.results if isinstance(each, Result)]
        for i, result in enumerate(results):
            yield f"r{i} = empty({self.shape(result)}, {self.kept(DTYPES[result.type])})"
            values[result.name] = f"address(r{i})"
        yield from self.scratch(values)
        for i, (step, launch) in enumerate(zip(self.loaded.prepared.steps, self.loaded.launches, strict=True)):
            yield from self.launch(i, step, launch, values)
        made = [f"Tensor({self.laid_out(f'r{i}', result)})" for i, result in enumerate(results)]
        yield f"return {made[0] if len(made) == 1 else '(' + ', '.join(made) + ')'}"

    def kept(self, value: Any) -> str:
        """A name for an object."""
        name = f"c{len(self.environment)}"
        self.environment[name] = value
        return name

    def shape(self, result: Result) -> tuple[int, ...]:
        """The result's sizes as they lie in memory."""
        shape = self.loaded.prepared.results[result.name]
        return shape if result.order is None else tuple(shape[d] for d in result.order)

    def laid_out(self, name: str, result: Result) -> str:
        """The result with its dimensions in their own order."""
        if result.order is None:
            return name
        return f"{name}.transpose({tuple(result.order.index(d) for d in range(len(result.order)))})"

    def scratch(self, values: dict[str, str]) -> Iterator[str]:
        """One piece of memory for buffers between launches, and for rooms of rows that are not shared."""
        made = self.loaded.prepared
        sizes = {each.name: made.scratch[each.name] * SIZES[each.type] for each in made.launches.scratch}
        sizes |= {_room(i): 0 if step.shape.in_shared else step.room for i, step in enumerate(made.steps)}
        total = 0
        for name, size in sizes.items():
            values[name] = f"scratch + {total}"
            total += -(-size // _ALIGNED) * _ALIGNED
        if total:
            yield f"memory = empty(({total},), uint8)"
        yield f"scratch = {'address(memory)' if total else '0'}"

    def launch(self, i: int, step: Step, launch: Callable[[Arguments], None], values: dict[str, str]) -> Iterator[str]:
        """One launch.  Memory for arguments is taken from those that no other thread uses."""
        names = [each.name for each in step.launch.parameters] + [_room(i)] * bool(step.launch.rooms)
        fixed = [0 if name in values else int(self.loaded.numbers[name]) for name in names]
        filled = {slot: values[name] for slot, name in enumerate(names) if name in values}
        free: list[Arguments] = []
        taken = f"{(pool := self.kept(free))}.pop() if {pool} else {self.kept(lambda: Arguments(fixed))}()"
        yield f"arguments = {taken}"
        yield "slots = arguments.slots"
        yield from (f"slots[{slot}] = {value}" for slot, value in filled.items())
        yield f"{self.kept(launch)}(arguments)"
        yield f"{pool}.append(arguments)"


def _room(i: int) -> str:
    """The name of the memory for rooms of a launch, which no buffer has."""
    return f"room {i}"


def _bits(value: float) -> int:
    """The 8 bytes of a float, as a whole number."""
    found: int = _WHOLE.unpack(_REAL.pack(value))[0]
    return found


_WHOLE: Final = struct.Struct("=q")
_REAL: Final = struct.Struct("=d")
