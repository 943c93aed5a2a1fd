"""Machine code, and graphs of archives, on disk, so that a second process need not compile again.

In: a key and the bytes of an object file or of graphs.  Out: these bytes again, in this process or another.  Files lie
in the user's cache directory (`TSREPL_KERNEL_CACHE` names another one, or is 0 for none), one for each key.

Note [Trusting the cache]
What is loaded is run.  So the directory has to belong to the user alone and be no link; a file begins with the digest
of the rest, and one that does not fit is taken for none and written anew.  Files come into being under another name and
are moved in place, so that nobody sees half of one.  Nothing here ever fails a program: without a directory that can be
written, code is just compiled.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final

from platformdirs import user_cache_path

ROOM: Final = 256 << 20
"""Bytes that all files may take; those that were used least recently go first."""
_MAGIC: Final = b"tsrepl kernel 1\n"
_DIGEST: Final = 32
_SUFFIX: Final = ".kernel"
_SETTING: Final = "TSREPL_KERNEL_CACHE"


def key_of(parts: Iterable[str]) -> str:
    """A key for code that is the same if all parts are."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


def state_of(folders: Iterable[Path]) -> str:
    """A key for all sources in the folders, by their sizes and times: to read them would take too long."""
    return key_of(fact for folder in folders for fact in sorted(_facts(folder)))


def _facts(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                found = entry.stat()
                yield f"{entry.path} {found.st_size} {found.st_mtime_ns}"
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _facts(Path(entry.path))


def load(key: str) -> bytes | None:
    """The bytes that were stored under the key; None where there are none that can be trusted."""
    folder = directory()
    if folder is None:
        return None
    path = folder / f"{key}{_SUFFIX}"
    try:
        with _opened(path) as file:
            found = file.read()
        os.utime(path)
    except OSError:
        return None
    head, data = found[: len(_MAGIC) + _DIGEST], found[len(_MAGIC) + _DIGEST :]
    return data if head == _MAGIC + _digest(key, data) else None


def store(key: str, data: bytes) -> None:
    """Keep the bytes, if that is possible."""
    folder = directory()
    if folder is None:
        return
    name = ""
    try:
        handle, name = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + _digest(key, data) + data)
        os.replace(name, folder / f"{key}{_SUFFIX}")
        _make_room(folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(name)


def directory() -> Path | None:
    """The directory, made if need be; None where the user wants none, or there is none that is the user's alone."""
    return _directory(os.environ.get(_SETTING, ""))


@cache
def _directory(setting: str) -> Path | None:
    if setting == "0":
        return None
    try:
        folder = Path(setting) if setting else user_cache_path("tsrepl", appauthor=False) / "kernels"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if _is_private(folder.lstat(), stat.S_ISDIR) else None
    except (OSError, RuntimeError):  # there may be no home
        return None


def _is_private(found: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    """True if nobody else can write it, and it is no link."""
    if not is_kind(found.st_mode):
        return False
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)


def _opened(path: Path) -> BinaryIO:
    """The file for reading; raises OSError for one that is a link or that others may write."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    file = os.fdopen(handle, "rb")
    if not _is_private(os.fstat(handle), stat.S_ISREG):
        file.close()
        raise PermissionError(f"{path} is not the user's own")
    return file


def _digest(key: str, data: bytes) -> bytes:
    return hashlib.sha256(key.encode() + data).digest()


def _make_room(folder: Path) -> None:
    """Remove what was used least recently, until the rest fits; others may remove the same."""
    found: list[tuple[float, int, Path]] = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            facts = path.lstat()
            found.append((facts.st_mtime, facts.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= ROOM:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size
