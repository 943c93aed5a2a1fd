"""Method descriptors that call any function, as quickly as those of builtin types.

In: a type and a function that takes the object first.  Out: a `Method`, whose descriptor operators (`x + y`) and calls
of methods find without making bound methods.

CPython gives the C function of a method no object of its own, so there are native functions each with a place for the
object that it calls.  The library of operators has `SUPPLY` of them; without it, or beyond, so many are compiled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from engine.fuser.backend import cpython_abi
from engine.fuser.backend.symbols import compiled_ahead
from engine.fuser.stubs.process import process
from engine.lang.deferred import deferred
from engine.lang.locks import lock
from engine.lang.records import dataclass

if TYPE_CHECKING:
    from engine.fuser.backend import machine
    from engine.fuser.stubs import method_code
else:  # not needed where the library of operators has this
    machine, method_code = deferred("engine.fuser.backend.machine"), deferred("engine.fuser.stubs.method_code")

SUPPLY: Final = 256
PLACES: Final = "method.places"
"""A function that gives the address of the first place."""
NAMES: Final = (*(f"method.{i}" for i in range(SUPPLY)), PLACES)
_supplies: Final[list[list[tuple[int, int]]]] = []
"""Addresses of native functions, and of the places for what they call; what the last supply still has is free."""
_lock: Final = lock()


@dataclass(frozen=True, slots=True)
class Method:
    """A method descriptor, and the address of the place of what it calls."""

    descriptor: Any
    place: int

    def call(self, function: Callable[..., Any]) -> None:
        """Let this function serve calls from now on."""
        ctypes.c_void_p.from_address(self.place).value = cpython_abi.retain(function)


def method(kind: type, name: str, function: Callable[..., Any], doc: str = "") -> Method:
    """A method of that type which calls `function(self, …)`; raises AbiError, MachineError."""
    with _lock:
        if not _supplies or not _supplies[-1]:
            _supplies.append(_supply(len(_supplies)))
        address, place = _supplies[-1].pop()
    made = Method(cpython_abi.method(kind, name, address, doc), place)
    made.call(function)
    return made


def _supply(number: int) -> list[tuple[int, int]]:
    ahead = compiled_ahead(NAMES) if number == 0 else None
    addresses = ahead or machine.compile_program(program(number)).addresses
    first = ctypes.CFUNCTYPE(ctypes.c_int64)(addresses[PLACES])()
    return [(addresses[name], first + 8 * i) for i, name in enumerate(NAMES[:-1])]


def program(number: int = 0) -> machine.Program:
    """The native code of a supply, each of which has places of its own."""
    return machine.Program(f"methods {number} {process().layout}", method_code.module, NAMES)
