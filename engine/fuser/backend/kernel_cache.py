"""Machine code, and graphs of archives, on disk, so that a second process need not compile again.

In: a key and the bytes of an object file or of graphs.  Out: these bytes again, in this process or another.  Files lie
in the user's cache directory (`TSREPL_KERNEL_CACHE` names another one, or is 0 for none), one for each key.

Note [Trusting the cache]
What is loaded is run.  So the directory has to belong to the user alone and be no link; a file begins with the digest
of the rest, and one that does not fit is taken for none and written anew.  Files come into being under another name and
are moved in place, so that nobody sees half of one.  Nothing here ever fails a program: without a directory that can be
written, code is just compiled.  What others put there stays: only regular files of ours are replaced or removed.

Note [Making room]
To list the files takes ten microseconds for each, so it is not done with every file that is stored, but when about
`SWEPT` bytes were stored since: a file decides it by its size and by its key, which is as good as chance.  So processes
that store one file each make room as well, and none has to keep count.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

ROOM: Final = 256 << 20
"""Bytes that all files may take; those that were used least recently go first."""
SWEPT: Final = 1 / 16
"""Part of `ROOM` that is stored, on average, until room is made again.  See Note [Making room]."""
_MAGIC: Final = b"tsrepl kernel 1\n"
_DIGEST: Final = 32
_SUFFIX: Final = ".kernel"
_UNFINISHED: Final = ".unfinished"
_NAME: Final = re.compile(rf"[0-9a-f]{{64}}(\{_SUFFIX}|\..*\{_UNFINISHED})")
_ABANDONED: Final = 3600.0
"""Seconds after which the unfinished file of another process is nobody's."""
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
        with io.FileIO(path, opener=_opened) as file:
            found = file.read()
        os.utime(path)
    except (OSError, MemoryError):
        return None
    head, data = found[: len(_MAGIC) + _DIGEST], found[len(_MAGIC) + _DIGEST :]
    return data if head == _MAGIC + _digest(key, data) else None


def store(key: str, data: bytes) -> None:
    """Keep the bytes, if that is possible."""
    folder = directory()
    if folder is None:
        return
    path, unfinished = folder / f"{key}{_SUFFIX}", ""
    try:
        if not _may_replace(path):
            return
        handle, unfinished = tempfile.mkstemp(_UNFINISHED, f"{key}.", folder)
        with os.fdopen(handle, "wb") as file:
            file.writelines((_MAGIC, _digest(key, data), data))
        os.replace(unfinished, path)
        unfinished = ""
        if int(key[:8], 16) * ROOM * SWEPT <= len(data) << 32:
            _make_room(folder)
    except (OSError, MemoryError):
        return
    finally:
        if unfinished:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)


def directory() -> Path | None:
    """The directory, made if need be; None where the user wants none, or there is none that is the user's alone."""
    setting = os.environ.get(_SETTING, "")
    if setting == "0":
        return None
    if setting not in _directories and (found := _directory(setting)) is not None:
        _directories[setting] = found
    return _directories.get(setting)


_directories: Final[dict[str, Path]] = {}
"""Those that were found, by settings; one that is missing may be there next time."""


def _directory(setting: str) -> Path | None:
    try:
        folder = Path(setting) if setting else user_cache_path("tsrepl", appauthor=False) / "kernels"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if _is_private(folder.lstat(), stat.S_ISDIR) else None
    except (OSError, RuntimeError):  # there may be no home
        return None


def _may_replace(path: Path) -> bool:
    """True if there is nothing, or a regular file of the user's."""
    try:
        return _is_private(path.lstat(), stat.S_ISREG, written_by_others=True)
    except FileNotFoundError:
        return True


def _is_private(found: os.stat_result, is_kind: Callable[[int], bool], *, written_by_others: bool = False) -> bool:
    """True if it is the user's own and no link, and, unless that is allowed, nobody else can write it."""
    if not is_kind(found.st_mode):
        return False
    may_write = 0 if written_by_others else found.st_mode & 0o022
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not may_write)


def _opened(path: str, flags: int) -> int:
    """The file, open for reading; raises OSError for what is no file of the user's own.  It never waits for a pipe."""
    handle = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    if not _is_private(os.fstat(handle), stat.S_ISREG):
        os.close(handle)
        raise PermissionError(f"{path} is not the user's own")
    return handle


def _digest(key: str, data: bytes) -> bytes:
    return hashlib.sha256(key.encode() + data).digest()


def _make_room(folder: Path) -> None:
    """Remove what was used least recently, until the rest fits; others may remove the same."""
    found: list[tuple[float, int, str]] = []
    now = time.time()
    with os.scandir(folder) as entries:
        for entry in entries:
            if not _NAME.fullmatch(entry.name):
                continue
            with contextlib.suppress(OSError):
                facts = entry.stat(follow_symlinks=False)
                if not _is_private(facts, stat.S_ISREG):
                    continue
                if entry.name.endswith(_SUFFIX):
                    found.append((facts.st_mtime, facts.st_size, entry.path))
                elif now - facts.st_mtime > _ABANDONED:
                    os.unlink(entry.path)
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= ROOM:
            return
        with contextlib.suppress(OSError):
            if _begins_as_ours(path):
                os.unlink(path)
                total -= size


def _begins_as_ours(path: str) -> bool:
    with io.FileIO(path, opener=_opened) as file:
        return file.read(len(_MAGIC)) == _MAGIC
