"""Files of torch.save from before PyTorch 1.6: pickles one after the other, then the storages.

In: the file's bytes.  Out: the place of each storage; or the zip file that torch.save would write today, which
the readers of zip files read.  The pickles are a magic number, the protocol, facts about the system, the value, and the
keys of the storages in the order in which they follow, each with its count of elements before it.
"""

from __future__ import annotations

import io
from typing import Any, Final

from engine.lang.errors import ArchiveError
from engine.serialize.container.write import ContainerWriter
from engine.serialize.identify.by_pickle import MappedPickle, legacy_parts
from engine.serialize.pickling.values import Described, describe_pickle

_COUNT: Final = 8


def storage_places(data: MappedPickle, value: Described) -> dict[str, tuple[int, int]]:
    """First byte and number of bytes of each storage, by its key.  Raises ArchiveError."""
    keys = describe_pickle(data, "the keys of the storages", value.end)
    known, at, places = value.storages, keys.end, {}
    for key in keys.value if isinstance(keys.value, list) else ():
        count = int.from_bytes(data[at : at + _COUNT], "little")
        entry = known.get(key) if isinstance(key, str) else None
        unit = 1 if entry is None or entry.kind.dtype is None else entry.kind.dtype.itemsize
        at += _COUNT
        places[str(key)] = (at, count * unit)
        at += count * unit
    if at > len(data):
        raise ArchiveError("the file ends inside its tensors", hints=("fetch it again: it is cut off",))
    return places


def as_zip_file(data: MappedPickle) -> io.BytesIO:
    """The file's value as a zip file in the present format.  Raises ArchiveError."""
    value = legacy_parts(data)
    writer = ContainerWriter("archive")
    writer.add("data.pkl", data[value.start : value.end])
    writer.add("byteorder", b"little")
    view: Any = memoryview(data)
    for key, (start, size) in storage_places(data, value).items():
        writer.add(f"data/{key}", view[start : start + size])
    file = io.BytesIO()
    file.writelines(writer.pieces())
    file.seek(0)
    return file
