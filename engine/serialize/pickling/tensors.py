"""Tensors in an archive: their memory lies in records, their shapes in the pickle.

In: the persistent ids and `_rebuild_tensor_v2` calls of a pickle.  Out: tensors, those of one storage
sharing memory, which is the file's own where that is mapped: it is read when it is first touched, and a
page that is written to becomes a copy.  Sizes must be those of the record, and every view must stay inside
its storage.  The way back gives a storage's bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, cast

import numpy as np

from engine.aten.values import libraries
from engine.aten.values.meta import MetaArray, formed
from engine.aten.values.quantizer import PER_TENSOR, Quantizer, described, is_quantized, per_channel, per_tensor
from engine.aten.values.storage import Storage, address
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import COMPLEX, FLOATING, QUANTIZED, REAL, TO_NUMPY, Array, NumpyDtype, as_strided
from engine.lang import scalars
from engine.lang.deferred import pattern_of
from engine.lang.errors import ArchiveError, MissingDeviceError, OperatorError, OperatorMemoryError, OperatorTypeError
from engine.lang.records import dataclass
from engine.serialize.container.file_bytes import shell_word
from engine.serialize.container.qualified_names import CODE_FOLDER
from engine.serialize.container.read import Container
from engine.serialize.pickling.entries import check_view, size_of, storage_id
from engine.serialize.pickling.read import PickleRefusal
from engine.serialize.pickling.scan import expect_tuple

_KEY: Final = pattern_of(r"[A-Za-z0-9_.\-]{1,200}")
_DEVICE: Final = pattern_of(r"[a-z]+(:[0-9]{1,4})?")


@dataclass(frozen=True, slots=True)
class StorageType:
    """A storage type in a pickle, such as `torch FloatStorage`."""

    dtype: scalars.dtype


@dataclass(frozen=True, slots=True)
class LoadedStorage:
    dtype: scalars.dtype
    storage: Storage


@dataclass(slots=True, eq=False)
class TensorReader:
    """Reads the storages that one pickle refers to, each once.

    `folder` is where their records lie ("data"), `map_location` the device to bring all of them to; or a dict of where
    to bring what was where; or a function of a storage on the CPU and where it was, which gives the storage to take, or
    None.
    """

    container: Container
    folder: str
    swapped: bool = False
    map_location: Any = None
    _storages: dict[str, LoadedStorage] = field(default_factory=dict)

    def load(self, pid: Any) -> LoadedStorage:
        """The storage of a persistent id `("storage", type, key, location, count)`.  Raises PickleRefusal."""
        _, kind, key, location, count = storage_id(pid)
        if not isinstance(kind, StorageType):
            raise PickleRefusal("it refers to something that is no storage")
        if not _KEY.fullmatch(key):
            raise PickleRefusal(f"a storage has the key {key!r:.40}")
        known = self._storages.get(key)
        if known is None:
            array = (
                self._without_numbers(kind.dtype, count) if location == "meta" else self._read(key, kind.dtype, count)
            )
            array = self._mapped(array, location)
            known = self._storages[key] = LoadedStorage(kind.dtype, Storage(array))
        if known.dtype is not kind.dtype or known.storage.owner.size < count:
            raise PickleRefusal(f"storage '{key}' is described in two ways")
        return known

    def _mapped(self, array: Array, location: str) -> Array:
        """The storage's memory where it is wanted.  Raises PickleRefusal where there is no such device.

        What has no numbers stays on `meta`.
        """
        wanted = None if location == "meta" else self.map_location
        if callable(wanted):
            chosen = wanted(Storage(array), location)
            if isinstance(chosen, Storage):
                return chosen.flat().view(array.dtype)
            wanted = None
        if isinstance(wanted, Mapping):
            wanted = wanted.get(location)
        return cast(Array, libraries.moved(array, self._place(str(wanted or location))))

    def _place(self, wanted: str) -> scalars.device:
        """The device.  Raises MissingDeviceError where there is none, PickleRefusal for what is no name of one."""
        try:
            place = scalars.device(wanted)
            libraries.checked(place)
        except OperatorError as error:
            if not _DEVICE.fullmatch(wanted):
                raise PickleRefusal(f"a storage is said to lie on {wanted!r:.60}, which is no device") from None
            raise self._missing(wanted) from error
        return place

    def _missing(self, wanted: str) -> MissingDeviceError:
        """The error for tensors on a device that is not here, with the ways out."""
        hints = ["load them on the CPU: map_location='cpu'"]
        if any(name.startswith(CODE_FOLDER) for name in self.container.names()) and self.container.folder:
            path = "FILE" if self.container.file is not None else shell_word(self.container.label)
            hints.append(f"or make a file for the CPU: tsrepl fix --device cpu {path} -o cpu.pt")
        text = f"its tensors lie on '{wanted}', and this machine has no such device"
        return MissingDeviceError(text, record=f"{self.folder}.pkl", hints=hints)

    def _without_numbers(self, dtype: scalars.dtype, count: int) -> Array:
        """A storage on `meta`, whose record is empty: addresses, which take no memory."""
        try:
            return formed((count,), _memory_dtype(dtype), (dtype.itemsize,))
        except OperatorMemoryError as error:
            raise PickleRefusal(f"a storage on meta is said to hold {count} numbers") from error

    def _read(self, key: str, dtype: scalars.dtype, count: int) -> Array:
        name = f"{self.folder}/{key}"
        if name not in self.container:
            raise PickleRefusal(f"there is no record '{name}' for one of its storages")
        size = self.container.size(name)
        if count != size // dtype.itemsize:
            raise PickleRefusal(
                f"storage '{key}' is said to hold {count} {dtype.name} numbers, its record {size} bytes"
            )
        if not count:
            return np.empty(0, _memory_dtype(dtype))
        array = np.frombuffer(self.container.view(name), _memory_dtype(dtype), count)
        self.container.seen[address(array)] = name
        if not array.flags.aligned:
            array = array.copy()
        if self.swapped:
            _swap_bytes(array)
        return array

    def rebuild(
        self, loaded: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, metadata: Any = None
    ) -> Tensor:
        """The tensor that a `_rebuild_tensor_v2` call describes.  Raises PickleRefusal when it leaves its storage.

        `metadata` may say that the tensor is its memory's conjugate or negative, which here gets memory of its own.
        """
        if not isinstance(loaded, LoadedStorage) or type(requires_grad) is not bool or hooks not in ({}, None):
            raise PickleRefusal("a tensor's description is damaged")
        dtype, base = loaded.dtype, loaded.storage.owner
        if dtype.name in QUANTIZED:
            raise PickleRefusal(f"a {dtype.name} tensor does not say how it is quantized")
        check_view(base.size, dtype.itemsize, offset, size, stride)
        if requires_grad and dtype.category not in ("float", "complex"):
            raise PickleRefusal(f"a {dtype.name} tensor cannot require gradients")
        strides = tuple(step * dtype.itemsize for step in stride)
        array = as_strided(base[offset:], size, strides)
        lazy = {key for key in ("conj", "neg") if metadata.get(key) is True} if type(metadata) is dict else ()
        if not lazy:
            return Tensor(array, requires_grad, storage=loaded.storage)
        if "conj" in lazy:
            array = np.conjugate(array)
        return Tensor(np.negative(array) if "neg" in lazy else array, requires_grad)

    def rebuild_without_numbers(self, dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
        """The tensor that a `_rebuild_meta_tensor_no_storage` call describes, on `meta`.  Raises PickleRefusal."""
        if not isinstance(dtype, scalars.dtype) or type(requires_grad) is not bool:
            raise PickleRefusal("a tensor's description is damaged")
        sizes, steps = size_of(size), size_of(stride)
        if len(sizes) != len(steps) or min(*sizes, *steps, 0) < 0:
            raise PickleRefusal("a tensor's description is damaged")
        libraries.library("meta")
        span = 1 + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True)) if 0 not in sizes else 0
        storage = LoadedStorage(dtype, Storage(self._without_numbers(dtype, span)))
        return self.rebuild(storage, 0, sizes, steps, requires_grad, None)

    def rebuild_oldest(self, loaded: Any, offset: Any, size: Any, stride: Any) -> Tensor:
        """The tensor of a `_rebuild_tensor` call, of files from before PyTorch 0.4."""
        return self.rebuild(loaded, offset, size, stride, False, None)

    def rebuild_quantized(
        self, loaded: Any, offset: Any, size: Any, stride: Any, how: Any, requires_grad: Any, hooks: Any
    ) -> Tensor:
        """The tensor that a `_rebuild_qtensor` call describes.  Raises PickleRefusal, OperatorError."""
        if not isinstance(loaded, LoadedStorage) or type(requires_grad) is not bool or hooks not in ({}, None):
            raise PickleRefusal("a tensor's description is damaged")
        if loaded.dtype.name not in QUANTIZED:
            raise PickleRefusal(f"a quantized tensor has a storage of {loaded.dtype.name}")
        base, halved = loaded.storage.owner, loaded.dtype.name == "quint4x2"
        check_view(base.size * (2 if halved else 1), 1 if halved else loaded.dtype.itemsize, offset, size, stride)
        quantizer = quantizer_from(loaded.dtype, size, how)
        if halved:
            values = as_strided(unpacked_halves(base)[offset:], size, stride)
            return Tensor(described(np.ascontiguousarray(values), quantizer))
        array = as_strided(base[offset:], size, tuple(step * base.itemsize for step in stride))
        return Tensor(described(array, quantizer), storage=loaded.storage)


def quantizer_from(dtype: scalars.dtype, size: tuple[int, ...], how: Any) -> Quantizer:
    """The quantizer of a pickle's tuple: a scheme, then a scale and a zero point, or tensors of them and a dimension.

    Raises PickleRefusal, OperatorError.
    """
    scheme = how[0] if expect_tuple(how, "how a tensor is quantized") else None
    if not isinstance(scheme, scalars.qscheme):
        raise PickleRefusal("a quantized tensor does not say how it is quantized")
    kinds = tuple(map(type, how[1:]))
    if scheme.number in _UNIFORM and kinds == (float, int):
        return per_tensor(dtype, how[1], how[2])
    if scheme.number not in _UNIFORM and kinds == (Tensor, Tensor, int):
        scales, zeros = how[1].array, how[2].array
        if scales.dtype not in FLOATING or zeros.dtype not in REAL or is_quantized(scales) or is_quantized(zeros):
            raise PickleRefusal("a quantized tensor has scales or zero points that are no such numbers")
        return per_channel(dtype, scales, zeros, how[3], size)
    raise PickleRefusal(f"a quantized tensor's scheme {scheme!r} is described as another")


_UNIFORM: Final = (PER_TENSOR, 2)
"""Numbers of the schemes with one scale: as they are, and symmetric."""


def unpacked_halves(packed: Array) -> Array:
    """Numbers of four bits, two in a byte, the lower half first, in a byte each."""
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1)


def packed_halves(values: Array) -> Array:
    """The 4-bit numbers packed two in a byte."""
    flat = np.ascontiguousarray(values).reshape(-1)
    flat = np.concatenate([flat, np.zeros(flat.size % 2, np.uint8)])
    halves: Array = flat[::2] | (flat[1::2] << 4)
    return halves


def _memory_dtype(dtype: scalars.dtype) -> NumpyDtype:
    return QUANTIZED.get(dtype.name) or TO_NUMPY[dtype]


def wanted_device(map_location: Any) -> Any:
    """The device that a `map_location` names; a dict and a function of places as they are.

    Raises ArchiveError where there is no such device, OperatorError for text that names none, OperatorTypeError for
    other values.
    """
    if isinstance(map_location, str):
        map_location = scalars.device(map_location)
    if isinstance(map_location, scalars.device):
        try:
            libraries.checked(map_location)
        except OperatorError as error:
            raise ArchiveError(error.message, hints=error.hints) from None
    elif not (map_location is None or callable(map_location) or isinstance(map_location, Mapping)):
        kind = type(map_location).__name__
        raise OperatorTypeError(f"map_location is a device, its name, or None, and not a value of type {kind}")
    return map_location


def storage_bytes(storage: Storage) -> bytes | memoryview:
    """The storage's memory as little-endian bytes; not a copy where it is so already.  Of one on `meta` none."""
    if isinstance(storage.owner, MetaArray):
        return b""
    flat = np.ascontiguousarray(libraries.on_host(storage.flat()))
    if sys.byteorder == "big":
        flat = flat.copy()
        _swap_bytes(flat)
    return flat.view(np.uint8).data if flat.size else b""


def _swap_bytes(array: Array) -> None:
    """Turn every number round; the two halves of a complex number by themselves."""
    width = array.itemsize // (2 if array.dtype in COMPLEX else 1)
    array.view(f"u{width}").byteswap(inplace=True)
