"""A reader of the zip file of an archive, which trusts nothing in it.

In: a path or a binary file.  Out: a `Container` whose records are found by name (without the one top
folder that holds them all) and read on demand, each against its checksum.  A file whose directory,
headers, sizes or names do not agree with each other is refused with ArchiveError before any record
is read, and nothing is allocated by a size that the file does not hold.

Note [Checksums]
`read` checks a record each time.  `view` shows the memory of a stored record without reading it; where the file is
mapped, the record is then `unchecked` until `check` is called, which the loader does before a program of the archive
first runs, and which saving does.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import pairwise
from typing import BinaryIO, Final

from engine.lang.deferred import pattern_of
from engine.lang.errors import ArchiveError
from engine.lang.records import dataclass
from engine.serialize.container.file_bytes import FileBytes, MappedFile, file_bytes

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
DESCRIPTOR_MAGIC: Final = b"PK\x07\x08"
_DESCRIPTORS: Final = tuple(struct.Struct(form) for form in ("<4s3L", "<4sL2Q", "<3L", "<L2Q"))
STORED: Final = 0
DEFLATED: Final = 8
ENCRYPTED: Final = 0x2041
"""Any of the three flags that stand for it."""
HAS_DESCRIPTOR: Final = 0x8
MAX_COMMENT: Final = 0xFFFF
MAX_INFLATED: Final = 64 << 20
MAX_RATIO: Final = 16
VERSIONS: Final = (".data/version", "version")
"""Records of which one says an archive's version."""
SHORT: Final = 1 << 10
"""Bytes of a record that says but one thing about the archive, such as its version."""
"""All compressed records together may grow to `MAX_INFLATED` bytes, or to `MAX_RATIO` times the file: tensors, the
only big records, are stored as they are, or do not get that much smaller."""
_FULL16: Final = 0xFFFF
_FULL32: Final = 0xFFFFFFFF
_ZIP64_EXTRA: Final = 1
_PIECE: Final = 1 << 18
"""Bytes that are inflated at once."""

WRITTEN_BY_SAVE: Final = "an archive is what torch.jit.save writes; check that the path is right and the copy complete"


@dataclass(frozen=True, slots=True)
class ArchiveRecord:
    """One file of the archive, as its directory describes it; `start` is where its bytes begin."""

    name: str
    method: int
    crc: int | None
    """None where the format of the file has no checksums."""
    stored_size: int
    size: int
    header: int
    start: int = 0


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record apart from its file, deflated if it is so there; equal to any of the same name and contents.

    `record` places it at the beginning of `data`.
    """

    record: ArchiveRecord
    data: bytes

    def __len__(self) -> int:
        return len(self.data)

    def read(self) -> bytes:
        """Its bytes.  Raises ArchiveError when it is damaged."""
        return _contents(self.record, memoryview(self.data))


@dataclass(eq=False, slots=True)
class Container:
    """An open archive.  `folder` is the name of its top folder, `records` what it holds, `data` the whole file.

    `file` is what it was opened from, if that was an open file.  The data stay readable after `close`.
    """

    data: memoryview
    label: str
    folder: str
    records: dict[str, ArchiveRecord]
    file: BinaryIO | None = None
    mapped: MappedFile | None = None
    unchecked: set[str] = field(default_factory=set)
    seen: dict[int, str] = field(default_factory=dict)
    """Addresses at which records were found in memory."""

    def __contains__(self, name: str) -> bool:
        return name in self.records

    def names(self) -> list[str]:
        return list(self.records)

    def size(self, name: str) -> int:
        """The record's size in bytes, once inflated."""
        return self._find(name).size

    def stored_size(self, name: str) -> int:
        """The record's size in the file in bytes, deflated or not."""
        return self._find(name).stored_size

    def read(self, name: str) -> bytes:
        """A copy of the record's bytes.  Raises ArchiveError when it is missing or damaged."""
        record = self._find(name)
        return _contents(record, self.data[record.start : record.start + record.stored_size])

    def stored(self, name: str) -> StoredRecord:
        """The record as it lies in the file, which is not kept for it.  Raises ArchiveError when it is missing."""
        record = self._find(name)
        data = bytes(self.data[record.start : record.start + record.stored_size])
        return StoredRecord(ArchiveRecord(name, record.method, record.crc, len(data), record.size, 0), data)

    def read_short(self, name: str) -> bytes:
        """`read` for a record of one word.  Raises ArchiveError also for one that is longer than any."""
        if self.size(name) > SHORT:
            raise ArchiveError(f"it has {self.size(name):,} bytes, and says but one word", record=name)
        return self.read(name)

    def view(self, name: str) -> memoryview:
        """The record's bytes in writable memory, which is the file's own where it can be (see Note [Checksums])."""
        record = self._find(name)
        if record.method == DEFLATED:
            inflated = _inflate(self.data[record.start : record.start + record.stored_size], record)
            _check_crc(record, zlib.crc32(inflated))
            return memoryview(inflated)
        if self.mapped is not None and record.crc is not None:
            self.unchecked.add(name)
        else:
            self.check((name,))
        return self.data[record.start : record.start + record.size]

    def check(self, names: Iterable[str] | None = None) -> None:
        """Compare stored records, by default all that were not yet, with their checksums.  Raises ArchiveError."""
        for name in sorted(self.unchecked) if names is None else names:
            record = self._find(name)
            if record.crc is None:
                continue
            if self.mapped is not None:
                crc = self.mapped.checksum(record.start, record.stored_size)
            else:
                crc = zlib.crc32(self.data[record.start : record.start + record.stored_size])
            _check_crc(record, crc)
            self.unchecked.discard(name)

    def compared(self, address: int, crc: int) -> None:
        """Mark the record at that address as checked if `crc` is its checksum."""
        name = self.seen.get(address)
        if name is not None and self.records[name].crc == crc:
            self.unchecked.discard(name)

    def close(self) -> None:
        """A no-op: no file is kept open, and a mapping ends with its last tensor."""

    def _find(self, name: str) -> ArchiveRecord:
        record = self.records.get(name)
        if record is None:
            raise ArchiveError(f"the archive has no record '{name}'", record=name, hints=(WRITTEN_BY_SAVE,))
        return record


def open_container(source: str | os.PathLike[str] | BinaryIO, mapped: bool = True) -> Container:
    """Open an archive and check its directory; `mapped` maps large files.  Raises ArchiveError."""
    return container_in(file_bytes(source, mapped), source)


def container_in(found: FileBytes, source: object) -> Container:
    """The archive that the bytes of `source` are.  Raises ArchiveError."""
    entries = list(_directory(found.data, found.label))
    _check_growth(entries, len(found.data))
    folder = _top_folder(entries, found.label)
    records = _located(found.data, entries, folder)
    file = None if isinstance(source, (str, os.PathLike)) else source
    return Container(found.data, found.label, folder, records, file, found.mapped)  # type: ignore[arg-type]


def _slice(data: memoryview, start: int, size: int) -> memoryview:
    piece = data[start : start + size]
    if len(piece) != size:
        raise ArchiveError(
            f"the file ends before its directory says (byte {start} of it)", offset=start, hints=(WRITTEN_BY_SAVE,)
        )
    return piece


def _refuse(reason: str, offset: int | None = None) -> ArchiveError:
    where = "" if offset is None else f" (byte {offset} of the file)"
    return ArchiveError(f"not a readable archive: {reason}{where}", offset=offset, hints=(WRITTEN_BY_SAVE,))


# -- the directory


def _directory(file: memoryview, label: str) -> Iterator[ArchiveRecord]:
    """The entries of the central directory, each checked by itself."""
    start, size, count = _find_directory(file, label)
    data = bytes(_slice(file, start, size))
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
        yield ArchiveRecord(
            _checked_path(data[name_at : name_at + name_size], start + at), method, crc, stored_size, size, header
        )
        at = following
    if at != len(data):
        raise _refuse("its directory holds more than it counts", start + at)


def _find_directory(file: memoryview, label: str) -> tuple[int, int, int]:
    """The central directory's offset, size and number of entries."""
    length = len(file)
    if length == 0:
        raise ArchiveError(f"'{label}' is empty", offset=0, hints=(WRITTEN_BY_SAVE,))
    tail_at = max(0, length - END.size - MAX_COMMENT)
    tail = bytes(file[tail_at:])
    found = tail.rfind(END_MAGIC)
    if found < 0 or found + END.size > len(tail):
        reason = f"'{label}' is not an archive, or its end is missing"
        raise ArchiveError(reason, offset=length, hints=(WRITTEN_BY_SAVE,))
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
    if count * CENTRAL.size > size:
        raise _refuse("its directory is shorter than its entries", end)
    return start, size, count


def _find_directory64(file: memoryview, locator_at: int) -> tuple[int, int, int, int] | None:
    """Offset and contents of the zip64 end record; None when there is none."""
    magic, disk, at, disks = LOCATOR64.unpack_from(file, locator_at)
    if magic != LOCATOR64_MAGIC:
        return None
    if disk != 0 or disks > 1 or at + END64.size > locator_at:
        raise _refuse("its wide end record is damaged", locator_at)
    fields = END64.unpack_from(file, at)
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


def _checked_path(raw: bytes, offset: int) -> str:
    """The folder, whose name is that of a file when it was saved, and the checked name of a record in it.

    The folder is no place for anything here, and so its name is any that is not that of a place elsewhere.
    """
    folder, slash, name = raw.partition(b"/")
    if not slash or _NO_FOLDER.fullmatch(folder):
        return checked_name(raw, offset)
    within = checked_name(name, offset) if name else ""
    return f"{folder.decode('utf-8', 'surrogateescape')}/{within}"


_NO_FOLDER: Final = pattern_of(rb"\.{0,2}|[A-Za-z]:")
_PLAIN_NAME: Final = pattern_of(rb"\.?\w[\w.-]*+(?:/\.?\w[\w.-]*+)*+")
_ODD_IN_FOLDERS: Final = pattern_of(r"[\x00-\x1f\x7f\\\ud800-\udfff]")


def folder_for(path: object) -> str:
    """The folder in an archive that is saved to the path: the file's name without its ending.

    It is "archive" for an open file.  Characters that do not print, and `\\`, become `_`.
    """
    if not isinstance(path, (str, os.PathLike)):
        return "archive"
    name = os.path.basename(os.fsdecode(path))
    stem = _ODD_IN_FOLDERS.sub("_", name.rpartition(".")[0] or name)
    return "archive" if _NO_FOLDER.fullmatch(stem.encode()) else stem


def checked_name(raw: bytes, offset: int) -> str:
    """The name of a record, which leads to no place outside.  Raises ArchiveError."""
    if _PLAIN_NAME.fullmatch(raw):  # nearly all are
        return raw.decode()
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        raise _refuse(f"a record's name is not UTF-8: {raw!r:.80}", offset) from None
    parts = name.removesuffix("/").split("/")
    if "\\" in name or ":" in parts[0] or any(part in ("", ".", "..") for part in parts):
        raise _refuse(f"a record's name leads outside the archive: {name!r:.80}", offset)
    if any(c < " " or c == "\x7f" for c in name):
        raise _refuse(f"a record's name has characters that do not print: {name!r:.80}", offset)
    return name


def _check_growth(entries: list[ArchiveRecord], length: int) -> None:
    total = sum(entry.size for entry in entries if entry.method == DEFLATED)
    if total > max(MAX_INFLATED, MAX_RATIO * length):
        largest = max(entries, key=lambda entry: entry.size * (entry.method == DEFLATED))
        reason = f"it and others would inflate to {total} bytes, over the limit"
        raise ArchiveError(reason, record=largest.name.partition("/")[2])


def _top_folder(entries: list[ArchiveRecord], label: str) -> str:
    folders = {entry.name.partition("/")[0] for entry in entries}
    if not folders:
        raise ArchiveError(f"'{label}' holds no records", offset=0, hints=(WRITTEN_BY_SAVE,))
    if len(folders) > 1 or any("/" not in entry.name for entry in entries):
        raise _refuse("its records do not lie in one folder", entries[-1].header)
    return folders.pop()


def _located(file: memoryview, entries: list[ArchiveRecord], folder: str) -> dict[str, ArchiveRecord]:
    """The records by name, their local headers checked; folders are left out."""
    end = 0
    places: dict[int, ArchiveRecord] = {}
    for entry in sorted(entries, key=lambda e: e.header):
        if entry.header < end:
            raise _refuse(f"record '{entry.name}' overlaps another", entry.header)
        places[entry.header], end = _locate(file, entry)
    if end > len(file):
        raise _refuse("its last record is cut off", end)
    records: dict[str, ArchiveRecord] = {}
    for entry in entries:
        name = entry.name[len(folder) + 1 :]
        if name in records:
            raise _refuse(f"two records are named '{name}'", entry.header)
        if not entry.name.endswith("/"):
            records[name] = places[entry.header]
        elif entry.size:
            raise _refuse(f"folder '{name}' has contents of its own", entry.header)
    check_folders(records, [entry.name[len(folder) + 1 :] for entry in entries if entry.name.endswith("/")])
    return records


def check_folders(records: Mapping[str, ArchiveRecord], more: Iterable[str] = ()) -> None:
    """Raises ArchiveError where a name is that of a record and of a folder; `more` are folders' names, with a slash."""
    # What lies in a folder follows its name at once when names that end in slashes are sorted.
    ordered = sorted(f"{name}/" for name in records)
    folders = [*(name for name, following in pairwise(ordered) if following.startswith(name)), *more]
    both = next((name[:-1] for name in folders if name[:-1] in records), None)
    if both is not None:
        refusal = _refuse(f"'{both}' is a record and a folder", records[both].header)
        refusal.record = both
        raise refusal


def _locate(file: memoryview, entry: ArchiveRecord) -> tuple[ArchiveRecord, int]:
    """The entry with the place of its bytes, its local header compared with the directory; where the next may begin."""
    fields = LOCAL.unpack(_slice(file, entry.header, LOCAL.size))
    magic, _, flags, method, _, _, crc, stored_size, size, name_size, extra_size = fields
    name_at = entry.header + LOCAL.size
    start = name_at + name_size + extra_size
    end = start + entry.stored_size
    extra = bytes(_slice(file, name_at + name_size, extra_size))
    size, stored_size, _ = _widened((size, stored_size, 0), extra, entry.header)
    here, there = (crc, stored_size, size), (entry.crc, entry.stored_size, entry.size)
    same = magic == LOCAL_MAGIC and method == entry.method and not flags & ENCRYPTED
    same = same and bytes(_slice(file, name_at, name_size)) == entry.name.encode("utf-8", "surrogateescape")
    if flags & HAS_DESCRIPTOR:
        end += _descriptor_size(file, end, there)
        # What is not known when the header is written is zero in it, and follows in the descriptor.
        same = same and (here == there or all(mine in (0, other) for mine, other in zip(here, there, strict=True)))
    else:
        same = same and here == there
    if not same:
        raise _refuse(f"the header of record '{entry.name}' disagrees with the directory", entry.header)
    return ArchiveRecord(entry.name.partition("/")[2], method, *there, entry.header, start), end


def _descriptor_size(file: memoryview, at: int, expected: tuple[int | None, int, int]) -> int:
    """Length of the data descriptor in bytes; its numbers must be those of the directory."""
    for form in _DESCRIPTORS:
        piece = file[at : at + form.size]
        if (
            len(piece) == form.size
            and form.unpack(piece)[-3:] == expected
            and (form.size in (12, 20) or bytes(piece[:4]) == DESCRIPTOR_MAGIC)
        ):
            return form.size
    raise _refuse("what follows a record disagrees with the directory", at)


# -- contents


def _contents(record: ArchiveRecord, stored: memoryview) -> bytes:
    """A copy of the record's bytes, compared with its checksum."""
    data = bytes(_inflate(stored, record) if record.method == DEFLATED else stored)
    _check_crc(record, zlib.crc32(data))
    return data


def _inflate(data: memoryview, record: ArchiveRecord) -> bytearray:
    """The record's bytes; they are in memory once, and never more of them than its header gives."""
    machine, inflated, at = zlib.decompressobj(-zlib.MAX_WBITS), bytearray(record.size), 0
    waiting, following = b"", 0
    try:
        while at <= record.size and not machine.eof and (waiting or following < len(data)):
            if not waiting:
                waiting, following = bytes(data[following : following + _PIECE]), following + _PIECE
            piece = machine.decompress(waiting, _PIECE)
            waiting = machine.unconsumed_tail
            inflated[at : at + len(piece)] = piece
            at += len(piece)
    except zlib.error as error:
        raise ArchiveError(f"its compressed bytes are damaged ({error})", record=record.name) from None
    if at != record.size or not machine.eof or machine.unused_data or following < len(data):
        raise ArchiveError("it does not inflate to the size its header gives", record=record.name)
    return inflated


def _check_crc(record: ArchiveRecord, crc: int) -> None:
    if record.crc not in (crc, None):
        raise ArchiveError(
            "its bytes do not match their checksum", record=record.name, hints=("copy the file again: it is damaged",)
        )
