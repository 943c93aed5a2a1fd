"""Images in memory: mapped from their file where the system allows it, so that processes share the pages.

In: the descriptor of a file that can be trusted, and a function that knows addresses of symbols.
Out: a `Loaded`.  Raises ImageError where the image needs what is not there, or memory cannot be made executable.

Note [Executable memory]
No page is ever both written and run.  Code is a mapping of the file that can be read and run; where the system maps no
files so (they may lie where nothing is to be run), it is copied into memory that is made executable afterwards.  Data,
which the table of addresses belongs to, is the process's own.  Some systems allow neither.  What was loaded stays: what
runs while Python ends may still call it.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import numpy as np

from engine.fuser.library.image import Image, from_bytes
from engine.fuser.library.objects import ImageError
from engine.lang.records import dataclass

_PRIVATE, _FIXED = mmap.MAP_PRIVATE, 0x10
_READ, _WRITE, _RUN = 1, 2, 4
_FAILED: Final = ctypes.c_void_p(-1).value


@dataclass(frozen=True, slots=True)
class Loaded:
    """An image in memory: addresses of what it offers, and whether its code is the file's own pages."""

    key: str
    addresses: Mapping[str, int]
    is_shared: bool


def load(handle: int, fits: Callable[[str], bool], address: Callable[[str], int | None]) -> Loaded:
    """The image of a file; raises ImageError unless its key fits, OSError where the file cannot be mapped."""
    image, offset = from_bytes(memoryview(mmap.mmap(handle, 0, prot=mmap.PROT_READ, flags=_PRIVATE)))
    if not fits(image.key):
        raise ImageError("the image is made of other sources, or for another machine")
    return _placed(image, handle, offset, address)


def _placed(image: Image, handle: int, offset: int, address: Callable[[str], int | None]) -> Loaded:
    if image.page % mmap.PAGESIZE:
        raise ImageError(f"pages of this system have {mmap.PAGESIZE} bytes")
    needed = {name: address(name) for name, _ in image.imports}
    if missing := sorted(name for name, where in needed.items() if where is None):
        raise ImageError(f"this process has no {', '.join(missing)}")
    base = _reserved(image.size)
    try:
        _fill(image, base, {name: where for name, where in needed.items() if where is not None})
        is_shared = _mapped(base, len(image.code), handle, offset)
        if not is_shared:
            _copied(base, image.code)
    except BaseException:
        _library().munmap(base, image.size)
        raise
    return Loaded(image.key, {name: base + place for name, place in image.exports.items()}, is_shared)


def _fill(image: Image, base: int, needed: Mapping[str, int]) -> None:
    """Let data be what it is at this address."""
    start, size = len(image.code), len(image.data)
    if size == 0:
        return
    room = memoryview((ctypes.c_char * size).from_address(base + start)).cast("B")
    room[:] = image.data
    words = np.frombuffer(room, "<u8", size // 8)
    words[(image.relatives - start) // 8] += np.uint64(base)
    for name, place in image.imports:
        (addend,) = struct.unpack_from("<Q", room, place - start)
        struct.pack_into("<Q", room, place - start, (addend + needed[name]) % (1 << 64))


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
        raise ImageError("there is no memory for the image")
    return int(found)


def _mapped(base: int, size: int, handle: int, offset: int) -> bool:
    """True if the file's code is mapped there now."""
    if size == 0:
        return True
    found: int = _library().mmap(base, size, _READ | _RUN, _PRIVATE | _FIXED, handle, offset)
    return found == base


def _copied(base: int, code: bytes | memoryview) -> None:
    """Let the code be there, in memory of this process.  A mapping that failed may have left nothing there."""
    room = _library().mmap(base, len(code), _READ | _WRITE, _PRIVATE | _FIXED | mmap.MAP_ANONYMOUS, -1, 0)
    if room != base:
        raise ImageError("there is no memory for the image")
    ctypes.memmove(base, bytes(code), len(code))
    if _library().mprotect(base, len(code), _READ | _RUN):
        raise ImageError("this system makes no memory executable")
    if hasattr(_library(), "sys_icache_invalidate"):  # macOS; Linux does so itself
        _library().sys_icache_invalidate(ctypes.c_void_p(base), ctypes.c_size_t(len(code)))
