"""Symbols of native code that are no functions of a C library, and where they are in this process.

In: functions that give addresses, from who owns the symbols; what the library of operators, compiled ahead of time, has
under them (`LIBRARY`).  Out: addresses.  Nothing here needs a compiler.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib import import_module
from typing import Any, Final

from engine.lang.records import dataclass


class MachineError(Exception):
    """There is no machine code to be had."""


PARALLEL: Final = "tsrepl_parallel"
POLL: Final = "tsrepl_poll"
WATCH: Final = "tsrepl_watch"
ALLOCATE: Final = "tsrepl_allocate"
RELEASE: Final = "tsrepl_release"


def _pool(symbol: str) -> int:
    """Of the pool, whose threads start."""
    return int(import_module("engine.fuser.backend.threads").address(symbol))


def _scratch(symbol: str) -> int:
    return int(import_module("engine.fuser.backend.scratch").addresses()[symbol])


SYMBOLS: Final[dict[str, Callable[[], int]]] = {
    **{symbol: partial(_pool, symbol) for symbol in (PARALLEL, POLL, WATCH)},
    **{symbol: partial(_scratch, symbol) for symbol in (ALLOCATE, RELEASE)},
}
"""Symbols -> functions that give their addresses; who owns one adds it."""


@dataclass(slots=True)
class _Library:
    """A slot: what finds symbols in the library of operators, where it is in use."""

    find: Callable[[str], int | None]


LIBRARY: Final = _Library(lambda symbol: None)


def compiled_ahead(symbols: Iterable[str]) -> dict[str, int] | None:
    """The addresses of all these symbols in the library of operators; None unless it has all."""
    found = {symbol: LIBRARY.find(symbol) for symbol in symbols}
    known = {symbol: address for symbol, address in found.items() if address is not None}
    return known if len(known) == len(found) else None


def address_of(symbol: str) -> int | None:
    """The address of a symbol of this process, or of a function of its C libraries; None where there is none.

    Raises AbiError or MachineError where its owner finds the process unfit.
    """
    owner = SYMBOLS.get(symbol)
    return owner() if owner is not None else _of_libraries(symbol)


def _of_libraries(symbol: str) -> int | None:
    for library in _libraries():
        function = getattr(library, symbol, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value
    return None


@cache
def _libraries() -> tuple[Any, ...]:
    """All that the process has loaded, and the library of mathematical functions, which it may not have."""
    found = [ctypes.CDLL(None)]
    for name in ("libm.so.6", "libSystem.dylib"):
        try:
            found.append(ctypes.CDLL(name))
        except OSError:
            continue
    return tuple(found)
