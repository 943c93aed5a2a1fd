"""`torch._C.PyTorchFileReader` and `PyTorchFileWriter`: the records of an archive by name.

In: a path or an open file.  Out: the bytes of records; an archive of records that were written one by one.
"""

from __future__ import annotations

import os

from engine.lang.errors import ArchiveError
from engine.serialize.archive import PathOrFile
from engine.serialize.container.read import folder_for, open_container
from engine.serialize.container.write import ContainerWriter, replace_file, write_all

_VERSION = "version"


class PyTorchFileReader:
    """An archive that is open for reading.  Raises ArchiveError for a file that is none, and for missing records."""

    def __init__(self, name_or_buffer: PathOrFile) -> None:
        self._container = open_container(name_or_buffer)

    def get_record(self, name: str) -> bytes:
        return self._container.read(name)

    def get_all_records(self) -> list[str]:
        return self._container.names()

    def has_record(self, name: str) -> bool:
        return name in self._container

    def version(self) -> int:
        """The number in the record `version`; 0 without one."""
        return int(self._container.read(_VERSION)) if _VERSION in self._container else 0


class PyTorchFileWriter:
    """An archive that is being written; the file is made by `write_end_of_file`."""

    def __init__(self, name_or_buffer: PathOrFile) -> None:
        self._target = name_or_buffer
        self._writer = ContainerWriter(folder_for(name_or_buffer))

    def archive_name(self) -> str:
        """The name of the folder that all records lie in."""
        return self._writer.folder

    def write_record(self, name: str, data: bytes | bytearray | memoryview, size: int) -> None:
        """Append the first `size` bytes as a record.  Raises ArchiveError for fewer bytes, or a second of that name."""
        if size > len(data):
            raise ArchiveError(f"record '{name}' is to have {size} bytes, and only {len(data)} are given", record=name)
        self._writer.add(name, bytes(data[:size]))

    def write_end_of_file(self) -> None:
        """Write the file.  Raises ArchiveError where it cannot be written."""
        if isinstance(self._target, (str, os.PathLike)):
            replace_file(self._target, self._writer.pieces())
        else:
            write_all(self._target, self._writer.pieces())
