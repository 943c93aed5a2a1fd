"""Machine code in this process, by keys: from disk, or as the compiler gives it.

In: keys, and flat images.  Out: `Loaded`, whose addresses are valid for as long as somebody holds it.  Nothing here
needs a compiler.

Note [Giving code back]
Of each key there is one piece of code in the process, so plans made again, of a model loaded again, find it.  Those who
hold a `Loaded` are the builtins that call into it, and callers hold a builtin while it runs.  The last one that goes
puts the code among what is to be given back, which is done when code is loaded next, so that whoever drops a plan does
not wait for it.  When Python ends nothing is given back, since what still runs may call it.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Final
from weakref import WeakValueDictionary

from engine.fuser.backend import kernel_cache, processors, target
from engine.fuser.backend.cpython_abi import AbiError
from engine.fuser.backend.memory import keep_freed
from engine.fuser.backend.symbols import LIBRARY, MachineError, address_of
from engine.fuser.images import mapping
from engine.fuser.images.mapping import Mapped
from engine.fuser.images.objects import ImageError
from engine.lang.locks import lock
from engine.lang.records import dataclass


@dataclass(eq=False, slots=True, weakref_slot=True)
class Loaded:
    """Functions, by name, valid for as long as this is held."""

    addresses: Mapping[str, int]
    is_kept: bool = False
    """True of code that was on disk."""


_LOADED: Final[WeakValueDictionary[str, Loaded]] = WeakValueDictionary()
"""The code in the process by its key.  See Note [Giving code back]."""
_TO_GIVE_BACK: Final[deque[Mapped]] = deque()
"""Images that nobody holds any more."""
_lock: Final = lock()


def known(key: str) -> Loaded | None:
    """The code in the process, or on disk; None where there is none, or it calls what the library lacks."""
    found = _LOADED.get(key)
    if found is None and (data := kernel_cache.load(key)) is not None:
        with suppress(MachineError):
            return loaded(key, data, is_kept=True)
    return found


def loaded(key: str, data: bytes, *, is_kept: bool = False) -> Loaded:
    """The code of an image, known by its key from here on; raises MachineError."""
    found = placed(data, is_kept=is_kept)
    with _lock:
        return _LOADED.setdefault(key, found)


def forget(key: str) -> None:
    """Let nobody find the code any more, here or on disk; who has it keeps it."""
    kernel_cache.discard(key)
    with _lock:
        _LOADED.pop(key, None)


def placed(data: bytes, *, is_kept: bool = False) -> Loaded:
    """The code of an image; raises MachineError where it cannot be run."""
    keep_freed()
    _give_back()
    try:
        image = mapping.placed(data)
        try:
            found = Loaded(image.settle(image.needed(_address)), is_kept)
        except BaseException:
            image.give_back()
            raise
    except (ImageError, AbiError) as error:
        raise MachineError(f"no machine code: {error}") from error
    weakref.finalize(found, _TO_GIVE_BACK.append, image).atexit = False
    return found


def _address(symbol: str) -> int | None:
    """The address of what the process has, or the library of operators."""
    found = address_of(symbol)
    return LIBRARY.find(symbol) if found is None else found


def _give_back() -> None:
    """Free the code that nobody holds any more."""
    with _lock:  # or two threads find the same last one
        while _TO_GIVE_BACK:
            _TO_GIVE_BACK.popleft().give_back()


# ------------------------------------------------------------------ keys


def key_of(text: str) -> str:
    """The key of the code of a program, of which the text says all that it is made of."""
    return kernel_cache.key_of((text, *circumstances()), "code")


@cache
def circumstances() -> tuple[str, ...]:
    """The rest of what decides the code of a program: who writes and compiles it, and for which processor."""
    writers = kernel_cache.state_of_engine("fuser")
    return kernel_cache.compiler(), *_processor(), sys.version, writers


def _processor() -> tuple[str, ...]:
    """The facts that decide the processor that code is made for: the system's, where it tells them, else LLVM's."""
    described = processors.described()
    if described:
        return *described.values(), os.environ.get(processors.VARIABLE, "")
    found = target.current()
    return found.triple, found.cpu, found.flags
