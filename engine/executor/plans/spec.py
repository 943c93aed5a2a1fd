"""`ArgumentSpec`: the properties of tensor arguments that a plan is specialised for.

In: a graph's input types.  Out: a `SpecReader`, whose `read(*inputs)` gives a key in well under a microsecond: of every
tensor that is an argument, or in a tuple that is one, dtype, rank, whether it requires grad and, if tensors may be on
several devices, its device (None where there is no tensor), and whether operators are recorded now.  `ArgumentSpec` is
a key with names, for people and for passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from engine.aten.dispatch.grad_mode import MODE
from engine.aten.values.libraries import device_of
from engine.aten.values.xp import FROM_NUMPY, QUANTIZED
from engine.ir.graph import Value
from engine.lang import scalars
from engine.lang.generated import compile_function
from engine.lang.records import dataclass
from engine.lang.types import OptionalType, TensorType, TupleType, Type

Key = tuple[Any, ...]
"""Grad mode, then of each tensor (numpy dtype, rank, requires_grad), and its device where that may vary, or None."""
Path = tuple[int, ...]
"""The position of a tensor: the argument's index, then indices of tuples in it."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """The specialised properties of one tensor."""

    dtype: scalars.dtype
    rank: int
    requires_grad: bool
    device: scalars.device = scalars.CPU

    def __str__(self) -> str:
        grad = ["requires_grad"] * self.requires_grad
        place = [str(self.device)] * (self.device != scalars.CPU)
        return f"{self.dtype.ir_name}({', '.join(['*'] * self.rank + grad + place)})"

    @property
    def type(self) -> TensorType:
        known = None if self.dtype.name in QUANTIZED else self.dtype  # passes know how plain dtypes combine
        return TensorType(known, (None,) * self.rank, None, self.requires_grad, self.device)


@dataclass(frozen=True, slots=True)
class ArgumentSpec:
    """One combination of properties.  `tensors` are in the order of `SpecReader.paths`; None: undefined."""

    grad_mode: bool
    names: tuple[str, ...]
    tensors: tuple[TensorSpec | None, ...]

    def __str__(self) -> str:
        shown = [f"{name}: {spec or 'undefined'}" for name, spec in zip(self.names, self.tensors, strict=True)]
        return f"({', '.join(shown)})" + ("" if self.grad_mode else " without grad")

    def difference(self, other: ArgumentSpec) -> str:
        """The difference from another spec, as the reason why its plan does not fit."""
        found = [
            f"{name}: {theirs or 'undefined'} → {mine or 'undefined'}"
            for name, mine, theirs in zip(self.names, self.tensors, other.tensors, strict=True)
            if mine != theirs
        ]
        if self.grad_mode != other.grad_mode:
            found.append("grad mode is on" if self.grad_mode else "grad mode is off")
        return ", ".join(found)


class SpecReader:
    """Reads keys of the arguments of one graph.  `device` is the device of all tensors; None: any."""

    __slots__ = ("device", "names", "paths", "read")

    def __init__(self, inputs: Sequence[Value], device: scalars.device | None = scalars.CPU) -> None:
        self.device = device
        found = [
            (path, value.debug_name.partition(".")[0])
            for i, value in enumerate(inputs)
            for path in _tensors((i,), value.type)
        ]
        self.paths: tuple[Path, ...] = tuple(path for path, _ in found)
        self.names = tuple(name + "".join(f"[{i}]" for i in path[1:]) for path, name in found)
        self.read: Callable[..., Key] = _reader(len(inputs), self.paths, device is None)

    def spec(self, key: Key) -> ArgumentSpec:
        """The key as an `ArgumentSpec`."""
        return ArgumentSpec(key[0], self.names, tuple(map(_tensor_spec, key[1:])))

    def accelerator(self, key: Key) -> scalars.device | None:
        """The device, other than the CPU, that all tensors are on, but for numbers (0-dim tensors) of the CPU; None
        where there is no such."""
        if self.device is not None:
            return None
        places = {part[3] for part in key[1:] if part is not None and (part[1] or part[3] is not scalars.CPU)}
        return None if scalars.CPU in places or len(places) != 1 else places.pop()


def _tensors(path: Path, type: Type) -> Iterator[Path]:
    if isinstance(type, OptionalType):
        type = type.element if isinstance(type.element, TensorType) else type
    if isinstance(type, TensorType):
        yield path
    elif isinstance(type, TupleType):
        for i, element in enumerate(type.elements):
            yield from _tensors((*path, i), element)


def _tensor_spec(part: Any) -> TensorSpec | None:
    if part is None:
        return None
    dtype, rank, requires_grad, *place = part
    return TensorSpec(FROM_NUMPY[dtype], rank, bool(requires_grad), *place)


def _reader(count: int, paths: Sequence[Path], reads_devices: bool) -> Callable[..., Key]:
    """A function of all inputs, written out so that reading takes no loop."""
    parts = [_part(f"v{first}" + "".join(f"[{i}]" for i in rest), reads_devices) for first, *rest in paths]
    names = ", ".join(f"v{i}" for i in range(count))
    text = f"def read({names}): return (mode.enabled, {''.join(p + ', ' for p in parts)})"
    return compile_function(text, "read", {"mode": MODE, "device_of": device_of}, "<argument spec>")


def _part(tensor: str, reads_devices: bool) -> str:
    grad = f"{tensor}._requires_grad or {tensor}._base is not None and {tensor}.requires_grad"
    place = ", device_of(a)" * reads_devices
    return f"None if {tensor} is None else ((a := {tensor}.array).dtype, a.ndim, {grad}{place})"
