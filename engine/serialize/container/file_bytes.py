"""The bytes of an archive's file, of which no more are read than are looked at.

In: a path or an open binary file.  Out: private writable memory: what is written there never
reaches the file.  A large file is mapped: the system reads a page when it is first touched, and copies it when it is
first written.  The map stays whole when another file takes the place of the mapped one, as saving does it; a file
that somebody else cuts off in place is not ours to survive, and `mapped=False` reads everything for that case.
"""

from __future__ import annotations

import io
import mmap
import os
import stat
import weakref
import zlib
from contextlib import suppress
from typing import BinaryIO, Final

from engine.lang.errors import ArchiveError, MissingFileError, did_you_mean
from engine.lang.records import dataclass

MAP_FROM: Final = 16 << 20
"""Files below this size are read: that takes milliseconds, keeps no file open, and survives whatever becomes of it."""


_CHUNK: Final = 1 << 20
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)


class MappedFile:
    """The file behind a map, as it is whatever was written into the map; closed with its last reference."""

    def __init__(self, file: BinaryIO) -> None:
        self._handle = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._handle)

    def checksum(self, start: int, size: int) -> int:
        """The CRC of a stretch of it, which is read piece by piece."""
        buffer, crc, end = memoryview(bytearray(min(size, _CHUNK))), 0, start + size
        while start < end:
            count = os.preadv(self._handle, [buffer[: end - start]], start)
            if not count:
                break
            crc = zlib.crc32(buffer[:count], crc)
            start += count
        return crc


@dataclass(frozen=True, slots=True)
class FileBytes:
    """The bytes, a name to call them by, and where they are a map, the file behind it."""

    data: memoryview
    label: str
    mapped: MappedFile | None = None


def file_bytes(source: str | os.PathLike[str] | BinaryIO, mapped: bool = True) -> FileBytes:
    """The bytes of the file; of an open one, those from where it stands.  Raises ArchiveError."""
    if not isinstance(source, (str, os.PathLike)):
        return _of_object(source, mapped)
    path = os.fspath(source)
    try:
        with open_at_once(path) as file:
            return _of_file(file, path, mapped)
    except IsADirectoryError:
        raise ArchiveError(f"'{path}' is a folder, not an archive", hints=("give the path of a file",)) from None
    except FileNotFoundError:
        raise missing_file(path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ArchiveError(f"'{path}' cannot be opened: {reason.lower()}") from None


def open_at_once(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open for reading, and do not wait for anybody to write into a pipe.  Raises OSError."""
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAIT))


def not_ordinary(path: object, mode: int) -> ArchiveError:
    """The error for what is no file that can be read from its first byte to its last."""
    # A device may have no end, and a pipe may never come to it.
    what = "a pipe" if stat.S_ISFIFO(mode) else "a device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "no file"
    hint = "write what comes out of it into a file first" if stat.S_ISFIFO(mode) else "give the path of a file"
    return ArchiveError(f"'{path}' is {what}, not an ordinary file", hints=(hint,))


def missing_file(path: str | os.PathLike[str]) -> MissingFileError:
    """The error for a path where there is nothing, with the nearest name of a file beside it."""
    folder, name = os.path.split(os.fspath(path).rstrip(os.sep))
    if os.path.islink(path):
        return MissingFileError(f"'{path}' is a link to '{os.readlink(path)}', which does not exist")
    try:
        near = did_you_mean(name, os.listdir(folder or os.curdir))
    except (OSError, ValueError):
        near = (f"there is no folder '{folder}' either",)
    return MissingFileError(f"'{path}' does not exist", hints=near)


def shell_word(path: str) -> str:
    """The path as a shell wants it, and no option of a program."""
    path = f"./{path}" if path.startswith("-") else path
    plain = all(c.isalnum() or c in "/._-+=@%:," for c in path)
    if any("\ud800" <= c <= "\udfff" or not c.isprintable() for c in path):
        shown = "".join(c if 32 <= ord(c) < 127 and c not in "'\\" else _escaped(c) for c in path)
        return f"$'{shown}'"
    return path if plain else "'" + path.replace("'", "'\\''") + "'"


def _escaped(c: str) -> str:
    """Its bytes, as the shells write them in `$'...'`."""
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(c))


def _of_file(file: io.BufferedReader, label: str, mapped: bool) -> FileBytes:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise not_ordinary(label, status.st_mode)
    if mapped and status.st_size >= MAP_FROM:
        return FileBytes(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)), label, MappedFile(file))
    data = bytearray(status.st_size)
    count = file.readinto(data)
    return FileBytes(memoryview(data)[:count], label)


def _of_object(source: BinaryIO, mapped: bool) -> FileBytes:
    label = str(getattr(source, "name", "<file object>"))
    if isinstance(source, io.BufferedReader) and source.seekable() and source.tell() == 0:
        # The file of a BufferedReader may be anything that can be read; only a real one has a number.
        with suppress(OSError, AttributeError):
            return _of_file(source, label, mapped)
    data = bytearray(source.read())
    if not data and source.seekable() and source.tell():
        raise ArchiveError(f"{label} stands at its end", hints=("call seek(0) first",))
    return FileBytes(memoryview(data), label)
