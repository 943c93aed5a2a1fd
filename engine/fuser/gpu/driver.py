"""The driver of a GPU, as far as kernels need it: loading PTX and launching, through cupy.

In: PTX, names, launches with the 8 bytes of each of their arguments.  Out: `Driver`, which those have who launch;
`CUPY`, which asks cupy.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol

from engine.fuser.backend.machine import MachineError
from engine.fuser.gpu.prepared import Step
from engine.lang.records import dataclass

KNOWN: Final = (70, 75, 80, 86, 89, 90, 100, 120)
"""Compute capabilities that code is made for; others run that of the one before."""


class Arguments:
    """Memory for the arguments of a launch, 8 bytes each, and the list that tells the driver where it is."""

    __slots__ = ("extra", "list", "size", "slots")

    def __init__(self, first: Sequence[int]) -> None:
        self.slots = (ctypes.c_int64 * len(first))(*first)
        self.size = ctypes.c_size_t(ctypes.sizeof(self.slots))
        places = (_BUFFER, ctypes.addressof(self.slots), _BUFFER_SIZE, ctypes.addressof(self.size), 0)
        self.list = (ctypes.c_void_p * len(places))(*places)
        self.extra = ctypes.addressof(self.list)


_BUFFER, _BUFFER_SIZE = 1, 2
"""Keys of the driver's list."""


class Driver(Protocol):
    """The driver of the current device.  Raises MachineError where there is none."""

    def target(self) -> str:
        """The target that code for the device is made for."""
        ...

    def multiprocessors(self) -> int: ...

    def load(self, ptx: str, names: Sequence[str]) -> Sequence[Any]:
        """The functions of these names."""
        ...

    def active_blocks(self, function: Any, step: Step) -> int:
        """The blocks of the launch that a multiprocessor has room for."""
        ...

    def launcher(self, function: Any, step: Step) -> Callable[[Arguments], None]:
        """The function that begins the launch on the current stream."""
        ...


@dataclass(frozen=True, slots=True)
class _Cupy:
    """cupy's driver; `threads` are those in which a context is known to be there."""

    threads: set[int] = field(default_factory=set)

    def target(self) -> str:
        capability = int(_cupy().cuda.Device().compute_capability)
        return f"sm_{max(each for each in KNOWN if each <= max(capability, KNOWN[0]))}"

    def multiprocessors(self) -> int:
        return int(_cupy().cuda.Device().attributes["MultiProcessorCount"])

    def load(self, ptx: str, names: Sequence[str]) -> Sequence[Any]:
        module = _cupy().cuda.function.Module()
        module.load(ptx.encode() + b"\0")
        return [_Function(each.ptr, each) for each in (module.get_function(name) for name in names)]

    def active_blocks(self, function: Any, step: Step) -> int:
        return int(_api().occupancyMaxActiveBlocksPerMultiprocessor(function.address, step.shape.threads, step.shared))

    def launcher(self, function: Any, step: Step) -> Callable[[Arguments], None]:
        begin, stream, free = _api().launchKernel, _cupy().cuda.get_current_stream, _cupy().cuda.runtime.free
        blocks, threads, shared = step.blocks, step.shape.threads, step.shared
        known, here = self.threads, threading.get_ident

        def launch(arguments: Arguments) -> None:
            if here() not in known:
                free(0)  # makes the device's context this thread's
                known.add(here())
            begin(function.address, blocks, 1, 1, threads, 1, 1, shared, stream().ptr, 0, arguments.extra)

        return launch


@dataclass(frozen=True, slots=True)
class _Function:
    address: int
    owner: Any
    """Keeps the module loaded."""


@cache
def _cupy() -> Any:
    try:
        return import_module("cupy")
    except ImportError as error:
        raise MachineError("kernels on a GPU need cupy, which is not installed") from error


@cache
def _api() -> Any:
    return import_module("cupy_backends.cuda.api.driver")


CUPY: Final[Driver] = _Cupy()
