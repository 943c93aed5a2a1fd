"""The parts of a flatbuffer as an archive's records.

In: the bytes of a file.  Out: a `Container` whose records lie in the file as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.serialize.container.file_bytes import FileBytes
from engine.serialize.container.qualified_names import is_qualified, record_of
from engine.serialize.container.read import STORED, ArchiveRecord, Container, check_folders, checked_name
from engine.serialize.mobile.file import IDENTIFIER, STORAGES
from engine.serialize.mobile.flatbuffer import ByteSpan, FlatBuffer, FlatTable, refused
from engine.serialize.mobile.schema import FORMS, OLDEST, ROOT_TABLE
from engine.serialize.upgrade.versions import NEWEST_READ


def root_of(container: Container) -> FlatTable:
    """The outermost table of a flatbuffer.  Raises ArchiveError."""
    return _root(container.data)


def version_of(root: FlatTable) -> int:
    """The version of its operators.  Raises ArchiveError for an unknown one."""
    version: int = root["bytecode_version"]
    if not OLDEST <= version <= NEWEST_READ:
        known = f"versions {OLDEST} to {NEWEST_READ} of this format are known"
        raise refused(f"it has version {version}, and {known}", root.place_of("bytecode_version"))
    return version


def _root(data: memoryview) -> FlatTable:
    return FlatBuffer(data, FORMS).root(ROOT_TABLE, IDENTIFIER)


def flatbuffer_container(found: FileBytes) -> Container:
    """The file, with the records described in `file.py`.  Raises ArchiveError."""
    records: dict[str, ArchiveRecord] = {}
    for record in _records(_root(found.data)):
        if record.name in records:
            raise refused(f"two parts are named '{record.name}'", record.header)
        records[record.name] = record
    check_folders(records)
    return Container(found.data, found.label, "", records, None, found.mapped)


def _records(root: FlatTable) -> Iterator[ArchiveRecord]:
    for source in root.listed("jit_sources"):
        prefix = source["name"] or ""
        if not is_qualified(prefix):
            raise refused(f"code is said to be of the names under '{prefix:.80}'", source.place_of("name"))
        yield _record(record_of(prefix), source, "content")
    for file in root.listed("extra_files"):
        name = checked_name((file["name"] or "").encode("utf-8", "surrogateescape"), file.place_of("name"))
        yield _record(f"extra/{name}", file, "content")
    storages = root.listed("storage_data")
    if len(storages) != root["storage_data_size"]:
        counts = f"{len(storages)} storages and speaks of {root['storage_data_size']}"
        raise refused(f"it has {counts}", root.place_of("storage_data_size"))
    for index, storage in enumerate(storages):
        yield _record(f"{STORAGES}/{index}", storage, "data")


def _record(name: str, table: FlatTable, field: str) -> ArchiveRecord:
    start, size = table[field] or ByteSpan(table.at, 0)
    return ArchiveRecord(name, STORED, None, size, size, table.at, start)
