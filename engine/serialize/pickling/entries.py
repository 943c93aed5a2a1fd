"""Tensors and storages of a pickle, described.

In: what a pickle says of them.  Out: where they lie and what they are, checked against each other; nothing is read.
"""

from __future__ import annotations

from typing import Any, Final

from engine.lang import scalars
from engine.lang.records import dataclass
from engine.serialize.pickling.scan import PickleRefusal, expect_tuple

_MAX_DIMS: Final = 32
_MAX_BYTES: Final = 1 << 62


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


def size_of(sizes: Any = ()) -> tuple[int, ...]:
    """The numbers of a `torch.Size`.  Raises PickleRefusal for anything but a tuple of integers."""
    if any(type(each) is not int for each in expect_tuple(sizes, "what a size is made of")):
        raise PickleRefusal("a size is not made of integers")
    return sizes  # type: ignore[no-any-return]  # as it was checked


def storage_id(pid: Any) -> tuple[str, Any, str, str, int]:
    """The parts of the persistent id `("storage", type, key, location, count)`.  Raises PickleRefusal for another."""
    if expect_tuple(pid, "what it refers to")[5:] == (None,):
        pid = pid[:5]  # old files say of a storage whether it is a part of another one
    if len(pid) != 5 or pid[0] != "storage":
        raise PickleRefusal("it refers to something that is no storage")
    if tuple(map(type, pid[2:4])) != (str, str):
        raise PickleRefusal(f"a storage has the key {pid[2]!r:.40} and the place {pid[3]!r:.40}")
    if type(pid[4]) is not int or pid[4] < 0:
        raise PickleRefusal(f"a storage is said to hold {pid[4]!r:.40} numbers")
    return pid  # type: ignore[no-any-return]  # as it was checked


def checked(
    storage: StorageEntry, d: scalars.dtype, count: int, offset: Any, size: Any, stride: Any, lazy: tuple[str, ...] = ()
) -> TensorEntry:
    """A view of `count` elements of the storage.  Raises PickleRefusal when it leaves them."""
    check_view(count, d.itemsize, offset, size, stride)
    return TensorEntry(storage, d, offset, size, stride, lazy=lazy)


def check_view(count: int, itemsize: int, offset: Any, size: Any, stride: Any) -> None:
    """Raises PickleRefusal unless the view lies inside a storage of `count` elements."""
    numbers = (offset, *expect_tuple(size, "what says a tensor's sizes"))
    numbers += expect_tuple(stride, "what says a tensor's strides")
    if any(type(n) is not int or n < 0 for n in numbers) or len(size) != len(stride) or len(size) > _MAX_DIMS:
        raise PickleRefusal(f"a tensor has sizes {size!r:.60} and strides {stride!r:.60}")
    elements = 1
    for extent in size:
        elements *= max(extent, 1)
    if elements * itemsize > _MAX_BYTES or any(step * itemsize > _MAX_BYTES for step in stride):
        raise PickleRefusal("a tensor is larger than any memory")
    last = offset + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True))
    if offset > count or (0 not in size and last >= count):
        raise PickleRefusal(f"a tensor reaches element {last} of a storage that has {count}")
