"""The library of operators in this process: addresses of its functions, from the images that there are.

In: symbols.  Out: their addresses, for as long as the process lives; None for what is not there, or not there yet.
Images that came with the package go before those of the user's folder, and these before what the package has for
processors that can do less.  What cannot be loaded is left, and `troubles` says why: then operators run on numpy.

Note [Parts that come later]
While another process builds, parts are published one by one.  Whoever asks for a symbol that is not known looks at the
folder's time, at most twice a second.  `parts_found()` grows when something came.

Note [Loading]
Images are mapped when they are found, and settled when one of their symbols is first asked for.  Both are done aside
and published at once: what was interrupted is found anew.  Who asks while another thread looks waits for what it finds.
No lock is held while addresses are looked up, since owners of symbols take locks of their own; data is written under
one, once.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from engine.fuser.backend.cpython_abi import AbiError
from engine.fuser.backend.symbols import LIBRARY, MachineError, address_of
from engine.fuser.images.mapping import Mapped, mapped
from engine.fuser.images.objects import ImageError, MemoryRefused
from engine.fuser.library import beside, image_files, key, processor
from engine.fuser.library.image_files import ImageFile
from engine.fuser.library.key import Key
from engine.lang.locks import lock
from engine.lang.records import dataclass

INTERVAL: Final = 0.5
"""Seconds between two looks at the folder."""
_FRESH: Final = 2.0
"""Seconds for which the time of a folder may stay as it is though something more came."""


@dataclass(slots=True)
class _Store:
    """`symbols`: addresses of what is settled.  `offers`: images by what they offer.  `troubles`: why files, or the
    library as a whole, are of no use.  `seen`: files that were looked at, by what tells them from later ones of the
    same name, or None if they were of use.  `times`: of folders when they were looked at."""

    symbols: Mapping[str, int] = field(default_factory=dict)
    offers: Mapping[str, Mapped] = field(default_factory=dict)
    found: tuple[Mapped, ...] = ()
    troubles: Mapping[str, str] = field(default_factory=dict)
    seen: Mapping[Path, tuple[int, int] | None] = field(default_factory=dict)
    times: Mapping[Path, int] = field(default_factory=dict)
    looked: float = float("-inf")
    looking: Any = field(default_factory=lock)
    """Held while the folders are looked at, so that nobody goes on without what another one is about to find."""
    lock: Any = field(default_factory=lock)


_STORE = _Store()
_SETTLING: Final = threading.local()
"""The images whose needs this thread is looking up."""


def address(symbol: str) -> int | None:
    """Where the library's function is; None where it has none, or does not have it yet."""
    found = _STORE.symbols.get(symbol)
    if found is not None:
        return found
    image = _STORE.offers.get(symbol)
    if image is None:
        _look_and_build()
        image = _STORE.offers.get(symbol)
    return None if image is None or not _settled(image) else (image.addresses or {}).get(symbol)


def offered(prefix: str) -> list[str]:
    """The symbols that begin so, of all images so far."""
    return [symbol for symbol in _STORE.offers if symbol.startswith(prefix)]


def text(symbol: str) -> bytes:
    """The text of that symbol, which ends with a zero.  Nothing of the image is called for it."""
    return _STORE.offers[symbol].text(symbol)


def parts_found() -> int:
    """The number of images so far: whoever remembers it knows when to ask again."""
    _look_and_build()
    return len(_STORE.found)


def parts_there() -> int:
    """The same, but that no process is started which builds what is missing."""
    _look()
    return len(_STORE.found)


def troubles() -> tuple[str, ...]:
    """Why images are of no use, or the library as a whole."""
    return tuple(f"{name}: {why}" for name, why in _STORE.troubles.items())


LIBRARY.find = address

# ------------------------------------------------------------------ images


def _settled(image: Mapped) -> bool:
    """True if the image's functions can be called now."""
    if image.addresses is not None:
        return True
    waiting: list[Mapped] = getattr(_SETTLING, "images", [])
    if image in waiting:
        return False  # two images that need each other
    _SETTLING.images = [*waiting, image]
    try:
        needed = image.needed(_of_process)
    except (ImageError, AbiError, MachineError) as error:
        _note("a part", str(error))
        return False
    finally:
        _SETTLING.images = waiting
    with _STORE.lock:
        if image.addresses is None:
            image.settle(needed)
        _STORE.symbols = {**_STORE.symbols, **(image.addresses or {})}
    return True


def _of_process(symbol: str) -> int | None:
    """The address of what another image, the process or a C library has."""
    found = address_of(symbol)
    return address(symbol) if found is None else found


def _note(name: str, why: str) -> None:
    with _STORE.lock:
        _STORE.troubles = {**_STORE.troubles, name: why}


# ------------------------------------------------------------------ files


def _look_and_build() -> None:
    """The same as `_look`; a process is started to build what is missing."""
    _look()
    beside.begin()


def _look() -> None:
    """Take in what images there are.  See Note [Parts that come later]."""
    if time.monotonic() - _STORE.looked < INTERVAL:
        return
    with _STORE.looking:
        now = time.monotonic()
        if now - _STORE.looked < INTERVAL:
            return
        try:
            current = key.current()
        except ImageError as error:
            _note("library", str(error))
            _STORE.looked = float("inf")
            return
        is_first = _STORE.looked < 0
        if is_first:
            _take_in(image_files.packaged(current), current)
        _take_in_folder(current)
        for lower in processor.levels()[1:] if is_first else ():
            lesser = current.at(lower.name)
            _take_in(image_files.packaged(lesser), lesser)
        _STORE.looked = now


def _take_in_folder(current: Key) -> None:
    """Take in what has come to the user's folder since the last look."""
    room = image_files.folder()
    if room is None:
        return
    try:
        changed = room.stat().st_mtime_ns
    except OSError:
        return
    if changed == _STORE.times.get(room):
        return
    _take_in([file for file in image_files.kept(room) if file.key == current.digest], current)
    if time.time() - changed / 1e9 > _FRESH:
        _STORE.times = {**_STORE.times, room: changed}


def _take_in(files: Iterable[ImageFile], current: Key) -> None:
    """Offer the images of those of these files that were not read before, all at once."""
    seen = dict[Path, tuple[int, int] | None]()
    found = [image for file in files if (image := _read(file, current, seen)) is not None]
    offers = {symbol: image for image in reversed(found) for symbol in image.image.exports}
    with _STORE.lock:
        _STORE.offers = {**offers, **_STORE.offers}
        _STORE.found = (*_STORE.found, *found)
        _STORE.seen = {**_STORE.seen, **seen}


def _read(file: ImageFile, current: Key, seen: dict[Path, tuple[int, int] | None]) -> Mapped | None:
    """The image of a file, in memory; None where it was read before, or is of no use.  Adds to what is `seen`."""
    try:
        handle = file.open()
    except OSError as error:
        _note(file.path.name, str(error))
        return None
    found = None
    try:
        facts = os.fstat(handle)
        stamp = facts.st_ino, facts.st_mtime_ns
        if _STORE.seen.get(file.path, ()) in (None, stamp):
            return None
        found = mapped(handle, current.fits_packaged if file.is_packaged else current.fits)
        if not file.is_packaged:
            os.utime(handle)
    except (ImageError, OSError, ValueError) as error:
        _note(file.path.name, str(error))
        if not file.is_packaged and not isinstance(error, MemoryRefused):
            image_files.forget(current, file.path.parent)  # it is built again
    finally:
        os.close(handle)
    seen[file.path] = stamp if found is None else None
    return found
