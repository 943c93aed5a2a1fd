"""The zip file that an archive is: reading it, believing nothing.

In: a path or a binary file.  Out: a `Container` whose records are found by name (without the one top
folder that holds them all) and read on demand, each against its checksum.  A file whose directory,
headers, sizes or names do not agree with each other is refused with ArchiveError before any record
is read, and nothing is allocated by a size that the file does not hold.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from engine.lang.errors import ArchiveError, MissingFileError

END: Final = struct.Struct("<4s4H2LH")
END64: Final = struct.Struct("<4sQ2H2L4Q")
LOCATOR64: Final = struct.Struct("<4sLQL")
CENTRAL: Final = struct.Struct("<4s6H3L5H2L")
LOCAL: Final = struct.Struct("<4s5H3L2H")
END_MAGIC: Final = b"PK\x05\x06"
END64_MAGIC: Final = b"PK\x06\x06"
LOCATOR64_MAGIC: Final = b"PK\x06\x07"
CENTRAL_MAGIC: Final = b"PK\x01\x02"
LOCAL_MAGIC: Final = b"PK\x03\x04"
STORED: Final = 0
DEFLATED: Final = 8
ENCRYPTED: Final = 0x1
HAS_DESCRIPTOR: Final = 0x8
MAX_COMMENT: Final = 0xFFFF
MAX_INFLATED: Final = 1 << 30
"""A compressed record may not grow beyond this; tensors, the only big records, are stored as they are."""
_FULL16: Final = 0xFFFF
_FULL32: Final = 0xFFFFFFFF
_ZIP64_EXTRA: Final = 1

WRITTEN_BY_SAVE: Final = "an archive is what torch.jit.save writes; check that the path is right and the copy complete"


@dataclass(frozen=True, slots=True)
class Record:
    """One file of the archive, as its directory describes it; `start` is where its bytes begin."""

    name: str
    method: int
    crc: int
    stored_size: int
    size: int
    header: int
    start: int = 0


@dataclass(eq=False, slots=True)
class Container:
    """An open archive.  `folder` is the name of its top folder, `records` what it holds."""

    file: BinaryIO
    label: str
    folder: str
    records: dict[str, Record]

    def __contains__(self, name: str) -> bool:
        return name in self.records

    def names(self) -> list[str]:
        return list(self.records)

    def size(self, name: str) -> int:
        """The record's size in bytes, once inflated."""
        return self._find(name).size

    def read(self, name: str) -> bytes:
        """The record's bytes.  Raises ArchiveError when it is missing, cut off or damaged."""
        record = self._find(name)
        if record.method == DEFLATED:
            data = _inflate(_read_at(self.file, record.start, record.stored_size), record)
        else:
            data = _read_at(self.file, record.start, record.size)
        _check_crc(record, zlib.crc32(data))
        return data

    def read_into(self, name: str, buffer: memoryview) -> None:
        """Fill `buffer`, bytes of exactly the record's size.  Raises ArchiveError as `read` does."""
        record = self._find(name)
        assert buffer.nbytes == record.size
        if record.method == DEFLATED:
            buffer[:] = self.read(name)
            return
        self.file.seek(record.start)
        if self.file.readinto(buffer) != record.size:  # type: ignore[attr-defined]
            raise ArchiveError("the file ends inside a record", record=name, hints=(WRITTEN_BY_SAVE,))
        _check_crc(record, zlib.crc32(buffer))

    def close(self) -> None:
        self.file.close()

    def _find(self, name: str) -> Record:
        record = self.records.get(name)
        if record is None:
            raise ArchiveError(f"the archive has no record '{name}'", record=name, hints=(WRITTEN_BY_SAVE,))
        return record


def open_container(source: str | os.PathLike[str] | BinaryIO) -> Container:
    """Open an archive and check its directory.  Raises ArchiveError."""
    file, label = _open(source)
    try:
        entries = list(_directory(file, label))
        folder = _top_folder(entries, label)
        records = _located(file, entries, folder)
    except BaseException:
        if file is not source:
            file.close()
        raise
    return Container(file, label, folder, records)


def _open(source: str | os.PathLike[str] | BinaryIO) -> tuple[BinaryIO, str]:
    if not isinstance(source, (str, os.PathLike)):
        if hasattr(source, "readinto"):
            return source, getattr(source, "name", "<file object>")
        return io.BytesIO(source.read()), "<file object>"
    path = Path(source)
    try:
        return path.open("rb"), str(path)
    except IsADirectoryError:
        raise ArchiveError(f"'{path}' is a folder, not an archive", hints=("give the path of a file",)) from None
    except FileNotFoundError:
        raise MissingFileError(f"there is no file '{path}'", hints=("check the path",)) from None
    except (OSError, ValueError) as error:
        raise ArchiveError(f"'{path}' cannot be opened: {error}") from None


def _read_at(file: BinaryIO, start: int, size: int) -> bytes:
    file.seek(start)
    data = file.read(size)
    if len(data) != size:
        raise ArchiveError("the file ends before its directory says", offset=start, hints=(WRITTEN_BY_SAVE,))
    return data


def _refuse(reason: str, offset: int | None = None) -> ArchiveError:
    where = "" if offset is None else f" (byte {offset} of the file)"
    return ArchiveError(f"not a readable archive: {reason}{where}", offset=offset, hints=(WRITTEN_BY_SAVE,))


# -- the directory


def _directory(file: BinaryIO, label: str) -> Iterator[Record]:
    """The entries of the central directory, each checked by itself."""
    start, size, count = _find_directory(file, label)
    data = _read_at(file, start, size)
    at = 0
    for _ in range(count):
        if at + CENTRAL.size > len(data):
            raise _refuse("its directory ends early", start + at)
        fields = CENTRAL.unpack_from(data, at)
        magic, _, _, flags, method, _, _, crc, stored_size, size, name_size, extra_size, comment_size = fields[:13]
        disk, _, _, header = fields[13:]
        name_at = at + CENTRAL.size
        following = name_at + name_size + extra_size + comment_size
        if magic != CENTRAL_MAGIC or following > len(data):
            raise _refuse("an entry of its directory is damaged", start + at)
        if flags & ENCRYPTED or disk not in (0, _FULL16) or method not in (STORED, DEFLATED):
            raise _refuse("it is encrypted, split or compressed in an unknown way", start + at)
        extra = data[name_at + name_size : name_at + name_size + extra_size]
        size, stored_size, header = _widened((size, stored_size, header), extra, start + at)
        if method == STORED and size != stored_size:
            raise _refuse("an entry has two different sizes", start + at)
        yield Record(_record_name(data[name_at : name_at + name_size]), method, crc, stored_size, size, header)
        at = following
    if at != len(data):
        raise _refuse("its directory holds more than it counts", start + at)


def _find_directory(file: BinaryIO, label: str) -> tuple[int, int, int]:
    """Where the central directory starts, its size, and how many entries it has."""
    file.seek(0, os.SEEK_END)
    length = file.tell()
    if length == 0:
        raise ArchiveError(f"'{label}' is empty", hints=(WRITTEN_BY_SAVE,))
    tail_at = max(0, length - END.size - MAX_COMMENT)
    tail = _read_at(file, tail_at, length - tail_at)
    found = tail.rfind(END_MAGIC)
    if found < 0 or found + END.size > len(tail):
        raise ArchiveError(f"'{label}' is not an archive, or its end is missing", hints=(WRITTEN_BY_SAVE,))
    end = tail_at + found
    _, disk, first_disk, here, count, size, start, comment = END.unpack_from(tail, found)
    if end + END.size + comment != length or disk != first_disk or disk not in (0, _FULL16) or here != count:
        raise _refuse("its end record is damaged", end)
    limit = end
    if end >= LOCATOR64.size:
        wide = _find_directory64(file, end - LOCATOR64.size)
        if wide is not None:
            if start not in (wide[1], _FULL32) or size not in (wide[2], _FULL32) or count not in (wide[3], _FULL16):
                raise _refuse("its two end records disagree", end)
            limit, start, size, count = wide
    if start + size != limit:
        raise _refuse("its directory is not where its end record says", end)
    return start, size, count


def _find_directory64(file: BinaryIO, locator_at: int) -> tuple[int, int, int, int] | None:
    """Where the wide end record is, and what it says; None when there is none."""
    magic, disk, at, disks = LOCATOR64.unpack(_read_at(file, locator_at, LOCATOR64.size))
    if magic != LOCATOR64_MAGIC:
        return None
    if disk != 0 or disks > 1 or at + END64.size > locator_at:
        raise _refuse("its wide end record is damaged", locator_at)
    fields = END64.unpack(_read_at(file, at, END64.size))
    if fields[0] != END64_MAGIC or fields[1] + 12 != locator_at - at or fields[6] != fields[7]:
        raise _refuse("its wide end record is damaged", at)
    return at, fields[9], fields[8], fields[7]


def _widened(values: tuple[int, int, int], extra: bytes, offset: int) -> tuple[int, int, int]:
    """Sizes and header offset, those that do not fit 32 bits taken from the zip64 field."""
    if _FULL32 not in values:
        return values
    wide = _extra_field(extra, _ZIP64_EXTRA)
    missing = sum(value == _FULL32 for value in values)
    if wide is None or len(wide) < 8 * missing:
        raise _refuse("an entry lacks its 64-bit sizes", offset)
    numbers = iter(struct.unpack_from(f"<{missing}Q", wide))
    size, stored_size, header = (next(numbers) if value == _FULL32 else value for value in values)
    return size, stored_size, header


def _extra_field(extra: bytes, wanted: int) -> bytes | None:
    at = 0
    while at + 4 <= len(extra):
        tag, size = struct.unpack_from("<2H", extra, at)
        if tag == wanted:
            return extra[at + 4 : at + 4 + size]
        at += 4 + size
    return None


# -- names and places


def _record_name(raw: bytes) -> str:
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        raise _refuse(f"a record's name is not UTF-8: {raw!r:.80}") from None
    parts = name.removesuffix("/").split("/")
    if "\\" in name or "\0" in name or ":" in parts[0] or any(part in ("", ".", "..") for part in parts):
        raise _refuse(f"a record's name leads outside the archive: {name!r:.80}")
    return name


def _top_folder(entries: list[Record], label: str) -> str:
    folders = {entry.name.partition("/")[0] for entry in entries}
    if not folders:
        raise ArchiveError(f"'{label}' holds no records", hints=(WRITTEN_BY_SAVE,))
    if len(folders) > 1 or any("/" not in entry.name for entry in entries):
        raise _refuse("its records do not lie in one folder")
    return folders.pop()


def _located(file: BinaryIO, entries: list[Record], folder: str) -> dict[str, Record]:
    """The records by name, their local headers checked; folders are left out."""
    records: dict[str, Record] = {}
    end = 0
    places: dict[str, Record] = {}
    for entry in sorted(entries, key=lambda e: e.header):
        if entry.header < end:
            raise _refuse(f"record '{entry.name}' overlaps another", entry.header)
        place = _locate(file, entry)
        end = place.start + place.stored_size
        places[entry.name] = place
    for entry in entries:
        name = entry.name[len(folder) + 1 :]
        if name in records:
            raise _refuse(f"two records are named '{name}'", entry.header)
        if not entry.name.endswith("/"):
            records[name] = places[entry.name]
        elif entry.size:
            raise _refuse(f"folder '{name}' has contents of its own", entry.header)
    file.seek(0, os.SEEK_END)
    if end > file.tell():
        raise _refuse("its last record is cut off", end)
    return records


def _locate(file: BinaryIO, entry: Record) -> Record:
    """The entry with the place of its bytes, its local header compared with the directory."""
    fields = LOCAL.unpack(_read_at(file, entry.header, LOCAL.size))
    magic, _, flags, method, _, _, crc, stored_size, size, name_size, extra_size = fields
    raw = _read_at(file, entry.header + LOCAL.size, name_size)
    same = magic == LOCAL_MAGIC and method == entry.method and not flags & ENCRYPTED and raw == entry.name.encode()
    later = bool(flags & HAS_DESCRIPTOR)
    for here, there in ((crc, entry.crc), (stored_size, entry.stored_size), (size, entry.size)):
        same = same and (here in (there, _FULL32) or (later and here == 0))
    if not same:
        raise _refuse(f"the header of record '{entry.name}' disagrees with the directory", entry.header)
    start = entry.header + LOCAL.size + name_size + extra_size
    return Record(entry.name.partition("/")[2], method, entry.crc, entry.stored_size, entry.size, entry.header, start)


# -- contents


def _inflate(data: bytes, record: Record) -> bytes:
    if record.size > MAX_INFLATED:
        raise ArchiveError(f"it would inflate to {record.size} bytes, over the limit", record=record.name)
    machine = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        inflated = machine.decompress(data, record.size + 1)
    except zlib.error as error:
        raise ArchiveError(f"its compressed bytes are damaged ({error})", record=record.name) from None
    if len(inflated) != record.size or not machine.eof or machine.unused_data:
        raise ArchiveError("it does not inflate to the size its header gives", record=record.name)
    return inflated


def _check_crc(record: Record, crc: int) -> None:
    if crc != record.crc:
        raise ArchiveError(
            "its bytes do not match their checksum", record=record.name, hints=("copy the file again: it is damaged",)
        )
