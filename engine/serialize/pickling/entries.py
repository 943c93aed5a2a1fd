"""Tensors and storages of a pickle, described.

In: what a pickle says of them.  Out: where they lie and what they are, checked against each other; nothing is read.
"""

from __future__ import annotations

from typing import Any

from engine.lang import scalars
from engine.lang.records import dataclass
from engine.serialize.pickling.tensors import check_view


@dataclass(frozen=True, slots=True)
class StorageKind:
    """`torch.FloatStorage`; `dtype` is None for one that is bytes."""

    dtype: scalars.dtype | None


@dataclass(frozen=True, slots=True)
class StorageEntry:
    """A storage: its key in the file, the device it was on, how many elements of `kind` it has."""

    key: str
    kind: StorageKind
    location: str
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class TensorEntry:
    """A tensor's place in its storage, in elements; `note` says what is not plain about it.

    `lazy` names what its memory's numbers still have to become: "conj", "neg".
    """

    storage: StorageEntry
    dtype: scalars.dtype
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    is_parameter: bool = False
    note: str = ""
    lazy: tuple[str, ...] = ()


def checked(
    storage: StorageEntry, d: scalars.dtype, count: int, offset: Any, size: Any, stride: Any, lazy: tuple[str, ...] = ()
) -> TensorEntry:
    """A view of `count` elements of the storage.  Raises PickleRefusal when it leaves them."""
    size, stride = (tuple(each) if isinstance(each, list) else each for each in (size, stride))
    check_view(count, d.itemsize, offset, size, stride)
    return TensorEntry(storage, d, offset, size, stride, lazy=lazy)
