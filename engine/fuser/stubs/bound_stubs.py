"""Compiled stubs as builtin functions of Python, without a compiler.

In: `Stub`s, compiled in this process or found on disk by the key of their code.  Out: a builtin that runs the first one
whose guard holds for its arguments, else calls the fallback with them (see Note [What a stub does] in `stub.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.fuser.backend import code
from engine.fuser.backend import cpython_abi as abi
from engine.fuser.backend.code import Loaded
from engine.fuser.stubs.process import process
from engine.lang.records import dataclass

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Stub:
    """The stub of a kernel of that name: the key of its code on disk, and the code in this process."""

    kernel: str
    key: str
    code: Loaded
    address: int


def symbol_of(kernel: str) -> str:
    """The name of a kernel's stub in its code."""
    return f"{kernel}.stub"


def stored(kernel: str, key: str) -> Stub | None:
    """The stub whose code is on disk; None where it is not.  Raises AbiError or MachineError where it cannot be run."""
    process()  # which owns symbols that stubs need
    found = code.known(key)
    address = None if found is None else found.addresses.get(symbol_of(kernel))
    return None if found is None or address is None else Stub(kernel, key, found, address)


def bind(name: str, stubs: Sequence[Stub], fallback: Function, *, on_error: Function | None = None) -> Function:
    """A builtin that runs the first stub whose guard holds, else `fallback(*args)`; the fallback for no stub.

    Raises AbiError where there is none to be had.
    """
    found = fallback
    for stub in reversed(stubs):
        doc = f"Compiled as {stub.kernel}."
        found = abi.holding_builtin(name, stub.address, doc, (found, on_error, stub.code))
    return found
