"""Writing the zip file that an archive is.

In: records in order.  Out: bytes laid out as PyTorch lays them out: code deflated and all else stored, every
record's contents on a 64-byte boundary (a padding field `FB` in its header sees to that), data descriptors, no dates,
a wide end record.  The same records always give the same bytes.  `replace_file` puts them in place of a file
in one step, so that a reader sees the old file or the new one and never half of either.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from engine.lang.errors import ArchiveError
from engine.lang.progress import is_listened_to, step
from engine.lang.records import dataclass
from engine.serialize.container.leftovers import hold, remove_leftovers, temporary_beside
from engine.serialize.container.read import (
    CENTRAL,
    CENTRAL_MAGIC,
    DEFLATED,
    END,
    END64,
    END64_MAGIC,
    END_MAGIC,
    LOCAL,
    LOCAL_MAGIC,
    LOCATOR64,
    LOCATOR64_MAGIC,
    STORED,
)  # fmt: skip

ALIGNMENT: Final = 64
SHORT: Final = 200
"""Bytes of a record that is not worth deflating."""
CHUNK: Final = 4 << 20
"""Bytes between two events of progress."""
_LARGE: Final = 1 << 18
_FLAGS: Final = 0x0808
_VERSION: Final = 45
_FULL16: Final = 0xFFFF
_FULL32: Final = 0xFFFFFFFF
_DESCRIPTOR: Final = struct.Struct("<4s3L")
_DESCRIPTOR64: Final = struct.Struct("<4sL2Q")
_DESCRIPTOR_MAGIC: Final = b"PK\x07\x08"
_MADE_BY: Final = 0x031E

Contents = bytes | memoryview
Sizes = tuple[int, int]
"""A record's size in the file, and its size once inflated."""


@dataclass(slots=True)
class ContainerWriter:
    """Collects records and gives the file's bytes piece by piece; tensors are not copied.

    `seal` is the name of a last record, and what makes its contents from the checksums of all others.
    """

    folder: str
    records: dict[str, Contents] = field(default_factory=dict)
    deflated: dict[str, bytes] = field(default_factory=dict)
    seal: tuple[str, Callable[[Mapping[str, int]], bytes]] | None = None

    def add(self, name: str, data: Contents, *, deflate: bool = False) -> None:
        """Append a record, deflated on request unless it is short.

        Raises ArchiveError when there is one of that name.
        """
        if name in self.records:
            raise ArchiveError(f"two records would be named '{name}'", record=name)
        self.records[name] = data
        if deflate and len(data) > SHORT:
            self.deflated[name] = zlib.compress(data, wbits=-zlib.MAX_WBITS)

    def size(self) -> int:
        """The bytes of all records' contents in the file."""
        return sum(len(self.deflated.get(name, data)) for name, data in self.records.items())

    def pieces(self) -> Iterator[Contents]:
        """The file, from its first byte to its last.  A large record's checksum is computed while it is written."""
        from concurrent.futures import ThreadPoolExecutor  # it takes long to load, and loading needs none

        crcs: dict[str, int] = {}
        at, directory = 0, []
        with ThreadPoolExecutor(1) as pool:
            for name, data in self._sealed(crcs):
                full_name = f"{self.folder}/{name}".encode("utf-8", "surrogateescape")
                kept = self.deflated.get(name, data)
                method = DEFLATED if name in self.deflated else STORED
                sizes = len(kept), len(data)
                extra = _padding(at, len(full_name), sizes)
                wide = _wide(max(sizes))
                before = LOCAL.pack(LOCAL_MAGIC, 0, _FLAGS, method, 0, 0, 0, wide, wide, len(full_name), len(extra))
                crc = pool.submit(zlib.crc32, data) if len(data) >= _LARGE else None
                yield before + full_name + extra
                yield kept
                crcs[name] = zlib.crc32(data) if crc is None else crc.result()
                yield (after := _descriptor(sizes, crcs[name]))
                directory.append(_central(full_name, method, sizes, crcs[name], at))
                at += len(before) + len(full_name) + len(extra) + len(kept) + len(after)
        yield from _end(b"".join(directory), len(directory), at)

    def _sealed(self, crcs: Mapping[str, int]) -> Iterator[tuple[str, Contents]]:
        yield from self.records.items()
        if self.seal is not None:
            yield self.seal[0], self.seal[1](crcs)


def _wide(size: int) -> int:
    return _FULL32 if size >= _FULL32 else 0


def _descriptor(sizes: Sizes, crc: int) -> bytes:
    return (_DESCRIPTOR64 if max(sizes) >= _FULL32 else _DESCRIPTOR).pack(_DESCRIPTOR_MAGIC, crc, *sizes)


def _padding(at: int, name_size: int, sizes: Sizes) -> bytes:
    """The header's extra fields: 64-bit sizes where needed, then what brings the contents to the boundary."""
    wide = struct.pack("<2H2Q", 1, 16, *reversed(sizes)) if max(sizes) >= _FULL32 else b""
    start = at + LOCAL.size + name_size + len(wide) + 4
    padding = -start % ALIGNMENT
    return wide + struct.pack("<2sH", b"FB", padding) + b"Z" * padding


def _central(name: bytes, method: int, sizes: Sizes, crc: int, header: int) -> bytes:
    wide = b"".join(struct.pack("<Q", n) for n in (*reversed(sizes), header) if n >= _FULL32)
    extra = struct.pack("<2H", 1, len(wide)) + wide if wide else b""
    narrow = (min(size, _FULL32) for size in sizes)
    fields = (CENTRAL_MAGIC, 0, 0, _FLAGS, method, 0, 0, crc, *narrow, len(name), len(extra), 0, 0, 0, 0)
    return CENTRAL.pack(*fields, min(header, _FULL32)) + name + extra


def _end(directory: bytes, count: int, at: int) -> Iterator[bytes]:
    yield directory
    size, end = len(directory), at + len(directory)
    yield END64.pack(END64_MAGIC, END64.size - 12, _MADE_BY, _VERSION, 0, 0, count, count, size, at)
    yield LOCATOR64.pack(LOCATOR64_MAGIC, 0, end, 1)
    narrow = (min(count, _FULL16), min(count, _FULL16), min(size, _FULL32), min(at, _FULL32))
    yield END.pack(END_MAGIC, 0, 0, *narrow, 0)


def replace_file(path: str | os.PathLike[str], pieces: Iterable[Contents]) -> None:
    """Write the pieces to `path` in one step.  Raises ArchiveError when that cannot be done; then nothing changed.

    The pieces go to a temporary file beside the target, which is synced and renamed; the permissions of
    a file that is replaced are kept, and what killed saves to the path have left behind is removed.  What is no
    ordinary file (a pipe, `/dev/null`) is written into as it is.  A file that may not be written is not replaced.
    """
    target = Path(os.fsdecode(path))
    try:
        target = _target_of(path)
        if target.exists() and not os.access(target, os.W_OK):
            raise ArchiveError(f"'{path}' cannot be written: permission denied for the file that is there")
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                file.writelines(pieces)
            return
        _write_beside(target, pieces)
    except OSError as error:
        raise _not_written(path, target, error) from error


def _target_of(path: str | os.PathLike[str]) -> Path:
    """The file that the path leads to, over links.  Raises ArchiveError for what can be none."""
    name = os.fsdecode(path)
    try:
        fits = bool(name) and "\0" not in name and bool(os.fsencode(name))
    except UnicodeEncodeError:
        fits = False
    if not fits:
        raise ArchiveError(f"{name!r} is no name for a file")
    target = Path(os.path.realpath(name))
    if name.endswith("/") or target.is_dir():
        raise ArchiveError(f"'{path}' is a folder", hints=("give the path of a file",))
    return target


def write_all(file: Any, pieces: Iterable[Contents]) -> None:
    """Write the pieces completely into an open file or other object with a method `write`."""
    for piece in pieces:
        rest = memoryview(piece)
        while len(rest):
            written = file.write(rest)
            # A file without a buffer says how much it took; others take all, and may say nothing.
            rest = rest[written if type(written) is int and written > 0 else len(rest) :]


def _not_written(path: object, target: Path, error: OSError) -> ArchiveError:
    folder = target.parent
    if not folder.exists():
        return ArchiveError(f"'{path}' cannot be written: there is no folder '{folder}'", hints=("make it first",))
    return ArchiveError(f"'{path}' cannot be written: {(error.strerror or str(error)).lower()}")


def _write_beside(target: Path, pieces: Iterable[Contents]) -> None:
    temporary = temporary_beside(target)
    try:
        with open(temporary, "xb") as file:
            hold(file.fileno())
            file.writelines(pieces)
            file.flush()
            if target.exists():
                _take_over(file.fileno(), target.stat())
            os.fsync(file.fileno())
            with _released_later(target):
                os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(target.parent)
    remove_leftovers(target)


def _take_over(handle: int, status: os.stat_result) -> None:
    """Give the new file the owner, as far as we may, and the permissions of the one that it replaces."""
    with contextlib.suppress(OSError, AttributeError):
        os.fchown(handle, status.st_uid, status.st_gid)
    os.fchmod(handle, stat.S_IMODE(status.st_mode))


@contextlib.contextmanager
def _released_later(target: Path) -> Iterator[None]:
    """Hold on to the file that is about to be replaced: giving back the space of a large one takes long."""
    old = os.open(target, os.O_RDONLY) if target.exists() and os.access(target, os.R_OK) else None
    try:
        yield
    finally:
        if old is not None:
            threading.Thread(target=os.close, args=(old,)).start()


def _sync_folder(folder: Path) -> None:
    # Some file systems cannot sync a folder; the file itself is safe by then.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def told(pieces: Iterable[Contents], path: object, total: int) -> Iterable[Contents]:
    """The pieces of a file that is written, large ones in parts, each told of as it is asked for."""
    return _told(pieces, str(path), total) if is_listened_to() else pieces


def _told(pieces: Iterable[Contents], path: str, total: int) -> Iterator[Contents]:
    done = 0
    for piece in pieces:
        view = memoryview(piece)
        for at in range(0, len(view), CHUNK):
            part = view[at : at + CHUNK]
            yield part
            done += len(part)
            step("writing", path, min(done, total), total)
