"""Images in memory: mapped from their file where the system allows it, so that processes share the pages.

In: the descriptor of a file that can be trusted, or its bytes, and addresses of symbols.  Out: a `Mapped`.  Raises
ImageError where the image needs what is not there, MemoryRefused where memory cannot be made executable.

Note [Executable memory]
No page is ever both written and run.  Code is a mapping of the file that can be read and run; where the system maps no
files so (they may lie where nothing is to be run), it is copied into memory that is made executable afterwards.  Data,
which the table of addresses belongs to, is the process's own.  Some systems allow neither.  What was loaded stays, as
what runs while Python ends may still call it, unless it is given back.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np

from engine.fuser.images.image import Image, from_bytes
from engine.fuser.images.objects import ImageError, MemoryRefused
from engine.lang.records import dataclass

_PRIVATE, _FIXED = mmap.MAP_PRIVATE, 0x10
_READ, _WRITE, _RUN = 1, 2, 4
_FAILED: Final = ctypes.c_void_p(-1).value


@dataclass(slots=True)
class Mapped:
    """An image in memory, whose code may be called once its data is `settled`.

    `is_shared`: its code is the file's own pages.
    """

    image: Image
    base: int
    is_shared: bool
    addresses: Mapping[str, int] | None = None
    """Those of what the image offers, once it is settled."""

    def needed(self, address: Callable[[str], int | None]) -> dict[str, int]:
        """The addresses of what the image needs; raises ImageError where one is missing."""
        found = {name: address(name) for name, _ in self.image.imports}
        known = {name: where for name, where in found.items() if where is not None}
        if missing := sorted(found.keys() - known.keys()):
            raise ImageError(f"this process has no {', '.join(missing)}")
        return known

    def text(self, symbol: str) -> bytes:
        """The bytes there, up to a zero; whether the image is settled or not."""
        return ctypes.string_at(self.base + self.image.exports[symbol])

    def settle(self, needed: Mapping[str, int]) -> Mapping[str, int]:
        """Let data be what it is at this place; the addresses of what the image offers."""
        image, start = self.image, len(self.image.code)
        if len(image.data):
            room = _view(self.base + start, len(image.data))
            room[:] = image.data
            words = np.frombuffer(room, "<u8", len(room) // 8)
            words[(image.relatives - start) // 8] += np.uint64(self.base)
            for name, place in image.imports:
                (addend,) = struct.unpack_from("<Q", room, place - start)
                struct.pack_into("<Q", room, place - start, (addend + needed[name]) % (1 << 64))
        self.addresses = {name: self.base + place for name, place in image.exports.items()}
        return self.addresses

    def give_back(self) -> None:
        """Free the memory; nothing of the image is called, or looked at, any more."""
        _library().munmap(self.base, self.image.size)


def mapped(handle: int, fits: Callable[[str], bool]) -> Mapped:
    """The image of a file; raises ImageError unless its key fits, MemoryRefused where it cannot be had in memory."""
    found, offset = from_bytes(memoryview(mmap.mmap(handle, 0, prot=mmap.PROT_READ, flags=_PRIVATE)))
    if not fits(found.key):
        raise ImageError("the image is made of other sources, or for another machine")
    # the file is not held any longer: programs may close all descriptors
    return _placed(found, lambda base: _maps(base, len(found.code), handle, offset))


def placed(file: bytes) -> Mapped:
    """The image in these bytes, in memory of the process alone; raises as `mapped` does."""
    return _placed(from_bytes(memoryview(file))[0], lambda base: False)


def _placed(found: Image, maps: Callable[[int], bool]) -> Mapped:
    """The image in memory, whose code is copied there unless it can be mapped."""
    if found.page % mmap.PAGESIZE:
        raise MemoryRefused(f"pages of this system have {mmap.PAGESIZE} bytes")
    base = _reserved(found.size)
    try:
        is_shared = maps(base)
        if not is_shared:
            _copy(base, found.code)
    except BaseException:
        _library().munmap(base, found.size)
        raise
    return Mapped(replace(found, code=_view(base, len(found.code)), data=bytes(found.data)), base, is_shared)


def _view(address: int, size: int) -> memoryview:
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")


# ------------------------------------------------------------------ the system


@cache
def _library() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64
    ]  # fmt: skip
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return library


def _reserved(size: int) -> int:
    found = _library().mmap(None, size, _READ | _WRITE, _PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if found == _FAILED:
        raise MemoryRefused("there is no memory for the image")
    return int(found)


def _maps(base: int, size: int, handle: int, offset: int) -> bool:
    """True if the file's code is mapped there now."""
    if size == 0:
        return True
    found: int = _library().mmap(base, size, _READ | _RUN, _PRIVATE | _FIXED, handle, offset)
    return found == base


def _copy(base: int, code: bytes | memoryview) -> None:
    """Let the code be there, in memory of this process.  A mapping that failed may have left nothing there."""
    room = _library().mmap(base, len(code), _READ | _WRITE, _PRIVATE | _FIXED | mmap.MAP_ANONYMOUS, -1, 0)
    if room != base:
        raise MemoryRefused("there is no memory for the image")
    ctypes.memmove(base, bytes(code), len(code))
    if _library().mprotect(base, len(code), _READ | _RUN):
        raise MemoryRefused("this system makes no memory executable")
    if hasattr(_library(), "sys_icache_invalidate"):  # macOS; Linux does so itself
        _library().sys_icache_invalidate(ctypes.c_void_p(base), ctypes.c_size_t(len(code)))
