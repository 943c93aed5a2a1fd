"""The tensors in files of the first PyTorch: tar files that torch.save wrote before 0.1.10.

In: a path.  Out: the value, its tensors described, and the numbers of their storages.  Three members count:

    storages    how many; for each a pickle (key, location, type), how many elements it has, and these;
                then a pickle of the views: (key, key of the storage, offset, elements)
    tensors     how many; for each a pickle (key, key of the storage, type), and its dimensions, sizes, strides, offset
    pickle      the value, in which a persistent id is the key of a tensor or a storage

Counts are numbers in pickles, and all that follows is little-endian, of 64 bits but for the dimensions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from engine.aten.values.xp import Array
from engine.lang.errors import ArchiveError
from engine.lang.records import dataclass
from engine.serialize.identify.by_pickle import MappedPickle, mapped
from engine.serialize.identify.tar_members import tar_members
from engine.serialize.pickling.entries import StorageEntry, StorageKind, TensorEntry, checked
from engine.serialize.pickling.scan import PickleRefusal
from engine.serialize.pickling.values import describe_pickle


@dataclass(slots=True, eq=False)
class TarParts:
    """`objects` are tensors and storages by their keys; `places` where a storage's bytes lie in `data`."""

    data: MappedPickle
    value: Any = None
    objects: dict[int, TensorEntry | StorageEntry] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)

    def elements(self, entry: StorageEntry) -> Array:
        """The bytes of a storage."""
        start, size = self.places[entry.key]
        return np.frombuffer(self.data, np.uint8, size, start)


def tar_parts(path: str) -> TarParts:
    """The contents of the file.  Raises ArchiveError."""
    parts = TarParts(mapped(path))
    members = dict(_members(parts.data))
    missing = [name for name in ("storages", "tensors", "pickle") if name not in members]
    if missing:
        raise ArchiveError(f"the tar file has no member '{missing[0]}'")
    try:
        _read_storages(parts, _TarReader(parts.data, "storages", *members["storages"]))
        _read_tensors(parts, _TarReader(parts.data, "tensors", *members["tensors"]))
        parts.value = _TarReader(parts.data, "pickle", *members["pickle"]).pickle(parts.objects)
    except PickleRefusal as reason:
        raise ArchiveError(f"the tar file is refused: {reason}") from None
    return parts


def _members(data: MappedPickle) -> Iterator[tuple[str, tuple[int, int]]]:
    """Name, start and end of each."""
    for name, start, size in tar_members(lambda at, count: data[at : at + count]):
        if size > len(data) - start:
            raise ArchiveError("the file ends inside its tensors", hints=("fetch it again: it is cut off",))
        yield name, (start, start + size)


@dataclass(slots=True, eq=False)
class _TarReader:
    """Reads one member from its start to its end."""

    data: MappedPickle
    name: str
    at: int
    end: int

    def pickle(self, objects: Mapping[int, Any] | None = None) -> Any:
        described = describe_pickle(self.data, self.name, self.at, objects)
        self.at = described.end
        if self.at > self.end:
            raise self.cut_off()
        return described.value

    def count(self) -> int:
        found = self.pickle()
        if type(found) is not int or not 0 <= found <= self.end - self.at:
            raise PickleRefusal(f"'{self.name}' does not begin with a count")
        return found

    def take(self, size: int) -> int:
        """The offset of the next `size` bytes, which are skipped."""
        start, self.at = self.at, self.at + size
        if size < 0 or self.at > self.end:
            raise self.cut_off()
        return start

    def numbers(self, count: int) -> tuple[int, ...]:
        start = self.take(8 * count)
        return struct.unpack(f"<{count}q", self.data[start : self.at])

    def cut_off(self) -> PickleRefusal:
        return PickleRefusal(f"'{self.name}' is shorter than what it describes")


def _read_storages(parts: TarParts, reader: _TarReader) -> None:
    for _ in range(reader.count()):
        key, location, kind = _triple(reader.pickle())
        if not isinstance(kind, StorageKind) or kind.dtype is None or type(location) is not str:
            raise PickleRefusal("a storage is not described by its key, place and type")
        (count,) = reader.numbers(1)
        size = count * kind.dtype.itemsize
        parts.places[str(key)] = (reader.take(size), size)
        parts.objects[key] = StorageEntry(str(key), kind, location, count)
    views = reader.pickle()
    for view in views if isinstance(views, (list, tuple)) else ():
        if not isinstance(view, tuple) or len(view) != 4 or any(type(each) is not int for each in view):
            raise PickleRefusal("a view of a storage is not described by four numbers")
        _add_view(parts, *view)


def _add_view(parts: TarParts, key: int, root: int, offset: int, count: int) -> None:
    of = parts.objects.get(root)
    if not isinstance(of, StorageEntry) or of.kind.dtype is None or not 0 <= offset <= offset + count <= of.count:
        raise PickleRefusal("a view of a storage leaves it")
    start, unit = parts.places[of.key][0], of.kind.dtype.itemsize
    parts.places[str(key)] = (start + offset * unit, count * unit)
    parts.objects[key] = StorageEntry(str(key), of.kind, of.location, count)


def _read_tensors(parts: TarParts, reader: _TarReader) -> None:
    for _ in range(reader.count()):
        key, root, _ = _triple(reader.pickle())
        storage = parts.objects.get(root) if type(root) is int else None
        if not isinstance(storage, StorageEntry) or storage.kind.dtype is None:
            raise PickleRefusal("a tensor lies in no storage of the file")
        start = reader.take(8)
        (dimensions,) = struct.unpack("<i", reader.data[start : start + 4])
        if not 0 <= dimensions <= 64:
            raise PickleRefusal(f"a tensor has {dimensions} dimensions")
        size, stride = tuple(reader.numbers(dimensions)), tuple(reader.numbers(dimensions))
        (offset,) = reader.numbers(1)
        parts.objects[key] = checked(storage, storage.kind.dtype, storage.count, offset, size, stride)


def _triple(value: Any) -> tuple[int, Any, Any]:
    if not isinstance(value, tuple) or len(value) != 3 or type(value[0]) is not int:
        raise PickleRefusal("a tensor or a storage is not described by three values")
    return value
