"""The memory behind tensors.

A `Storage` is one block of memory with a version that every write advances; a tensor and its views
share it.  In: the array that was allocated.  Out: identity, version, and the block as a flat array; programs see it
as a row of bytes (`tensor.untyped_storage()`) or of elements (`tensor.storage()`, a `TypedStorage`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from engine.aten.values import libraries
from engine.aten.values.libraries import address as address
from engine.aten.values.xp import FROM_NUMPY, Array, as_strided
from engine.lang import scalars
from engine.lang.errors import OperatorError
from engine.lang.records import dataclass


@dataclass(eq=False, slots=True, weakref_slot=True)
class Storage:
    """One block of memory.  `owner` is the array that holds it, of any shape."""

    owner: Array
    version: int = 0

    def flat(self) -> Array:
        """The whole block as a flat array of its element type."""
        return as_strided(self.owner, (self.owner.size,), (self.owner.itemsize,))

    def offset_of(self, array: Array) -> int:
        """Offset of `array`, a view of this block, in elements."""
        if array.size == 0:
            return 0
        return (address(array) - address(self.owner)) // array.itemsize

    def byte_offset_of(self, array: Array) -> int:
        return address(array) - address(self.owner) if array.size else 0

    def show(self, offset: int, like: Array) -> Array:
        """A view of this block from that byte on, shaped like another array."""
        shown: Array = libraries.show(like.shape, like.dtype, self.bytes(), offset, like.strides)
        return shown

    # -- as programs see it: bytes

    @property
    def device(self) -> scalars.device:
        return libraries.device_of(self.owner)

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def bytes(self) -> Array:
        """The block as a flat array of bytes, in the same memory."""
        return self.flat().view(np.uint8)

    def nbytes(self) -> int:
        return self.owner.nbytes

    size = __len__ = nbytes

    def data_ptr(self) -> int:
        return address(self.owner) if self.owner.size else 0

    def __getitem__(self, index: Any) -> Any:
        found = self.bytes()[index]
        return Storage(found) if libraries.is_array(found) and isinstance(index, slice) else int(found)

    def __setitem__(self, index: Any, value: int) -> None:
        self.bytes()[index] = value
        self.version += 1

    def tolist(self) -> list[int]:
        values: list[int] = self.bytes().tolist()
        return values

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and (self is other or self.data_ptr() == other.data_ptr() != 0)

    def __hash__(self) -> int:
        return id(self)

    def clone(self) -> Storage:
        return Storage(self.owner.copy())

    def to(self, device: Any) -> Storage:
        """The block on that device, itself if it is there.  Raises OperatorError if it does not exist."""
        array = libraries.moved(self.owner, scalars.device(device))
        return self if array is self.owner else Storage(array)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Storage:
        return self.to(scalars.device("cuda", device) if isinstance(device, int) else device or "cuda")

    def cpu(self) -> Storage:
        return self.to("cpu")

    def copy_(self, source: Storage, non_blocking: bool = False) -> Storage:
        """Take over the bytes of another block.  Raises OperatorError unless it is as long."""
        if len(source) != len(self):
            raise OperatorError(f"size does not match, self was {len(self)} bytes but src was {len(source)} bytes")
        self.bytes()[:] = source.bytes()
        self.version += 1
        return self

    def fill_(self, value: int) -> Storage:
        self.bytes().fill(value)
        self.version += 1
        return self

    def resize_(self, size: int) -> None:
        """Refused: tensors hold on to the memory that they were made with.  Raises OperatorError for another size."""
        if size != self.nbytes():
            raise OperatorError(
                f"a storage of {self.nbytes()} bytes cannot be resized to {size}",
                hints=("resize_ of a tensor gives it memory of its own", "del frees memory with the last reference"),
            )

    def __repr__(self) -> str:
        values = "".join(f" {value}\n" for value in self.tolist())
        return f"{values}[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


class TypedStorage:
    """A block of memory as a row of elements of one dtype."""

    def __init__(self, storage: Storage, d: scalars.dtype) -> None:
        self._storage, self.dtype = storage, d

    @property
    def device(self) -> scalars.device:
        return self._storage.device

    @property
    def is_cuda(self) -> bool:
        return self._storage.is_cuda

    def untyped(self) -> Storage:
        return self._storage

    _untyped_storage = property(untyped)

    def size(self) -> int:
        return self._storage.owner.size

    __len__ = size

    def nbytes(self) -> int:
        return self._storage.nbytes()

    def element_size(self) -> int:
        return self._storage.owner.itemsize

    def data_ptr(self) -> int:
        return self._storage.data_ptr()

    def __getitem__(self, index: Any) -> Any:
        found = self._storage.flat()[index]
        return TypedStorage(Storage(found), self.dtype) if isinstance(index, slice) else found.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._storage.flat()[index] = value
        self._storage.version += 1

    def fill_(self, value: Any) -> TypedStorage:
        self[:] = value
        return self

    def tolist(self) -> list[Any]:
        values: list[Any] = self._storage.flat().tolist()
        return values

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._storage == other._storage

    def __hash__(self) -> int:
        return hash(self._storage)

    def resize_(self, size: int) -> None:
        """See `Storage.resize_`; counts elements."""
        self._storage.resize_(size * self.element_size())

    def __repr__(self) -> str:
        values = "".join(f" {value}\n" for value in self.tolist())
        return f"{values}[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"


def typed(storage: Storage) -> TypedStorage:
    """The block as elements of the dtype that it was made for."""
    return TypedStorage(storage, FROM_NUMPY[storage.owner.dtype])


def storage_of(array: Array) -> Storage:
    """The storage of an array that no tensor shares yet."""
    storage: Storage = _new(Storage)
    storage.owner = array if array.base is None else owner_of(array)
    storage.version = 0
    return storage


_new: Final[Callable[..., Any]] = object.__new__


def owner_of(array: Array) -> Array:
    """The array at the end of the chain of bases."""
    owner: Array = array
    base = array.base
    while base is not None:
        if libraries.is_array(base):
            owner = base
        base = getattr(base, "base", None)
    return owner
