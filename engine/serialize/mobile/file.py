"""A flatbuffer with the face of an archive, so that whatever reads records by name reads both.

In: a path or a binary file.  Out: a `Container`.  Of a flatbuffer, it has these records, which lie in the file as they
are and have no checksums:

    code/__torch__/foo.py    TorchScript of the names `__torch__.foo.…`, where PyTorch put it in
    data/0                   the memory of tensors
    extra/notes.txt          extra files
"""

from __future__ import annotations

import os
from typing import BinaryIO, Final

from engine.serialize.container.file_bytes import file_bytes
from engine.serialize.container.qualified_names import CODE_FOLDER
from engine.serialize.container.read import Container, container_in

IDENTIFIER: Final = b"PTMF"
IDENTIFIER_AT: Final = 4
BYTECODE: Final = "bytecode.pkl"
STORAGES: Final = "data"


def open_program(source: str | os.PathLike[str] | BinaryIO, mapped: bool = True) -> Container:
    """Open an archive, or a flatbuffer as one; `mapped` maps large files.  Raises ArchiveError."""
    found = file_bytes(source, mapped)
    if not _begins_so(found.data):
        return container_in(found, source)
    from engine.serialize.mobile.records import flatbuffer_container  # most files are zip archives

    return flatbuffer_container(found)


def is_flatbuffer(container: Container) -> bool:
    return _begins_so(container.data)


def holds_code(container: Container) -> bool:
    """True if the program contains TorchScript code."""
    return any(name.startswith(CODE_FOLDER) for name in container.names())


def holds_bytecode(container: Container) -> bool:
    return is_flatbuffer(container) or BYTECODE in container


def is_bytecode_only(container: Container) -> bool:
    """True if bytecode is all there is to run."""
    return holds_bytecode(container) and not holds_code(container)


def _begins_so(data: memoryview) -> bool:
    return bytes(data[IDENTIFIER_AT : IDENTIFIER_AT + len(IDENTIFIER)]) == IDENTIFIER
