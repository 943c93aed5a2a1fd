"""Tensors in files that hold no program: state dicts and checkpoints of torch.save, safetensors, .npz and .npy.

In: a path.  Out: `Weights`, the tensors by name with dtype and shape, whose numbers are read when asked for;
`load_weights` gives all of them as tensors.  Nothing of the file is run, and nothing allocated that it does not hold.
"""

from __future__ import annotations

import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from itertools import islice
from typing import IO, Any, Final

import ml_dtypes
import numpy as np

from engine.aten.values.tensor import Tensor, from_numpy
from engine.aten.values.xp import BFLOAT16, TO_NUMPY, Array, as_strided
from engine.lang import scalars
from engine.lang.errors import ArchiveError, did_you_mean
from engine.lang.progress import step
from engine.lang.records import dataclass
from engine.serialize.container.read import Container, open_container
from engine.serialize.identify.by_pickle import legacy_parts, mapped
from engine.serialize.identify.identify import Identity, explained, identify
from engine.serialize.inspect.safetensors import read_header
from engine.serialize.inspect.survey import MOST_REPEATED
from engine.serialize.inspect.tar_weights import tar_parts
from engine.serialize.legacy.torch_save import storage_places
from engine.serialize.mobile.file import open_program
from engine.serialize.mobile.makers import described_module
from engine.serialize.pickling.other_tensors import RAW_DTYPES
from engine.serialize.pickling.values import (
    DTYPES,
    StorageEntry,
    TensorEntry,
    describe_pickle,
    is_module,
    plain_values,
    tensors_in,
)

_WIDER: Final = {
    "uint16": np.dtype("uint16"), "uint32": np.dtype("uint32"), "uint64": np.dtype("uint64"),
    **{name: np.dtype(getattr(ml_dtypes, name)) for name in (
        "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz")},
    **{name: np.dtype(raw) for name, raw in RAW_DTYPES.items()},
}  # fmt: skip
"""Dtypes that no tensor here has, as arrays."""
MOST_INFLATED: Final = 20
"""So many times its size in the file may an array be."""
_UNREADABLE: Final = (
    ValueError, EOFError, KeyError, TypeError, SyntaxError, NotImplementedError, OSError, MemoryError,
    zipfile.BadZipFile, zlib.error, tokenize.TokenError,
)  # fmt: skip
"""Errors of NumPy and the zip reader for damaged files."""
MOST_OTHERS: Final = 40
_LIKELY: Final = ("state_dict", "model_state_dict", "model", "module", "net", "weights", "params", "ema")
"""Keys under which checkpoints keep the state dict."""


@dataclass(frozen=True, slots=True)
class Weight:
    """One tensor of a file; `array` reads its numbers (an array of the dtype that `dtype` names, or of a quantized
    tensor its integers); `note` says what is not plain about it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    array: Callable[[], Array]
    note: str = ""
    has_numbers: bool = True

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.count * (DTYPES[self.dtype].itemsize if self.dtype in DTYPES else 1) * self.has_numbers

    def tensor(self) -> Tensor:
        """Raises ArchiveError for a dtype that no tensor has."""
        if self.dtype not in scalars.DTYPE_BY_NAME:
            raise ArchiveError(
                f"'{self.name}' has dtype {self.dtype}, and no tensor here can have it",
                hints=("tsrepl extract keeps it as it is in a .safetensors file",),
            )
        return from_numpy(self.array())


@dataclass(slots=True, eq=False)
class Weights:
    """The tensors of a file, in its order; `groups` are the keys of a checkpoint that hold some.  A context manager."""

    identity: Identity
    entries: dict[str, Weight]
    groups: tuple[str, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    close: Callable[[], object] = lambda: None
    others: tuple[tuple[str, str], ...] = ()
    """Values other than tensors in a checkpoint, as text."""

    def __enter__(self) -> Weights:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def load_weights(path: str | os.PathLike[str], key: str | None = None) -> dict[str, Tensor]:
    """The tensors of a state dict, checkpoint, pickled module, safetensors, `.npz` or `.npy` file, by name.

    `key` names the part of a checkpoint to take; without it the only one, or the one called `state_dict`, `model` or
    the like, is taken.  All tensors are on the CPU, parameters require no gradients.  Raises ArchiveError.
    """
    with open_weights(path) as weights:
        prefix = _chosen(weights, key)
        chosen = {n.removeprefix(prefix): w for n, w in weights.entries.items() if n.startswith(prefix)}
        return dict(_read(weights.identity.path, chosen))


def _read(path: str, weights: Mapping[str, Weight]) -> Iterator[tuple[str, Tensor]]:
    """Each weight with its numbers, reporting progress."""
    done, total = 0, sum(weight.bytes for weight in weights.values())
    for name, weight in weights.items():
        yield name, weight.tensor()
        done += weight.bytes
        step("reading", path, done, total)


def _chosen(weights: Weights, key: str | None) -> str:
    """The prefix of the names to take."""
    groups = weights.groups
    if key is not None:
        if not any(name.startswith(f"{key}.") for name in weights.entries):
            hints = did_you_mean(key, groups) or ((f"there is {', '.join(groups)}",) if groups else ())
            raise ArchiveError(f"'{weights.identity.path}' has no tensors under '{key}'", hints=hints)
        return f"{key}."
    if not groups:
        return ""
    found = next((name for name in _LIKELY if name in groups), groups[0] if len(groups) == 1 else None)
    if found is None:
        shown = ", ".join(groups)
        raise ArchiveError(
            f"'{weights.identity.path}' holds tensors under several keys: {shown}", hints=(f"say key={groups[0]!r}",)
        )
    return f"{found}."


def open_weights(path: str | os.PathLike[str]) -> Weights:
    """The file's tensors, none read yet.  Raises ArchiveError, which says what the file is when it has none."""
    found = identify(path)
    opener = _OPENERS.get(found.kind)
    if opener is None:
        if found.is_program:
            raise ArchiveError(
                f"'{found.path}' is a TorchScript archive, a program with its weights",
                hints=("engine.load(path).state_dict() gives its weights",),
            )
        raise explained(ArchiveError(f"'{found.path}' holds no tensors"), path, "holds no tensors to read: it is")
    try:
        return opener(found)
    except _UNREADABLE as error:
        reason = "it holds Python objects, not numbers" if "allow_pickle" in str(error) else str(error)
        raise ArchiveError(
            f"'{found.path}' cannot be read: {reason or type(error).__name__}",
            hints=("write it again where it was made: it is damaged, or holds what is no array",),
        ) from None


def open_tensors(path: str | os.PathLike[str]) -> Weights:
    """The tensors in an archive's module, whatever they are; its code is not looked at.  Raises ArchiveError."""
    found = identify(path)
    return _flatbuffer(found) if ("format", "flatbuffer") in found.facts else _saved(found)


# -- torch.save


def _saved(found: Identity) -> Weights:
    """A zip file of torch.save, or a file of its older format."""
    try:
        container = open_container(found.path)
    except ArchiveError:
        return _legacy(found)
    described = describe_pickle(container.read("data.pkl"), "data.pkl")
    swapped = "byteorder" in container and container.read_short("byteorder") == b"big"
    source = _ZipStorages(container, swapped)
    return _weights_of(found, described.value, source.elements, container.close)


def _flatbuffer(found: Identity) -> Weights:
    """A file for mobile devices; one that only saves tensors keeps them all under one name, which is left out."""
    container = open_program(found.path)
    value = described_module(container)
    if found.kind == "mobile-weights" and isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    return _weights_of(found, value, _ZipStorages(container, False).elements, container.close)


def _weights_of(
    found: Identity, value: Any, elements: Callable[[StorageEntry], Array], close: Callable[[], object]
) -> Weights:
    entries = {}
    for name, tensor in tensors_in(value):
        name = name or "tensor"
        has_numbers = bool(tensor.storage.key)
        read = _reader(name, tensor, elements)
        entries[name] = Weight(name, tensor.dtype.name, tensor.shape, read, tensor.note, has_numbers)
    others = tuple(islice(((name or "value", text) for name, text in plain_values(value)), MOST_OTHERS))
    return Weights(found, entries, _groups(value), close=close, others=others)


def _groups(value: Any) -> tuple[str, ...]:
    """The keys of a checkpoint under which there are several tensors.

    Where tensors lie in the top dict itself, it is one state dict, unless a key says that it holds one (a best accuracy
    may stand beside that).
    """
    if not isinstance(value, dict) or is_module(value):
        return ()
    alone = [key for key, each in value.items() if isinstance(each, TensorEntry)]
    if alone and not any(isinstance(value.get(key), dict) for key in _LIKELY):
        return ()
    return tuple(
        str(key) for key, each in value.items() if key not in alone and next(tensors_in(each), None) is not None
    )


def _reader(name: str, tensor: TensorEntry, elements: Callable[[StorageEntry], Array]) -> Callable[[], Array]:
    def read() -> Array:
        if not tensor.storage.key:
            raise ArchiveError(f"'{name}' is a tensor on the device meta, of which there are no numbers")
        array = _view(elements(tensor.storage), tensor)
        for what in tensor.lazy:
            array = np.conjugate(array) if what == "conj" else np.negative(array)
        return array

    return read


def _view(raw: Array, tensor: TensorEntry) -> Array:
    """The tensor in its storage's bytes, as an array of its own."""
    d = _numpy_dtype(tensor.dtype.name)
    size = math.prod(tensor.shape) * d.itemsize
    if size > raw.size + MOST_REPEATED:
        raise _too_large(size)
    base = raw[: raw.size // d.itemsize * d.itemsize].view(d)
    strides = tuple(step * d.itemsize for step in tensor.stride)
    return np.array(as_strided(base[tensor.offset :], tensor.shape, strides), order="C")


def _too_large(size: int) -> ArchiveError:
    return ArchiveError(f"a tensor of {size:,} bytes is declared, which is more than the file holds")


def _numpy_dtype(name: str) -> Any:
    known = scalars.DTYPE_BY_NAME.get(name)
    if known is not None:
        return TO_NUMPY[known]
    if name not in _WIDER:
        raise ArchiveError(f"numbers of dtype {name} cannot be read")
    return _WIDER[name]


def _storage_bytes(entry: StorageEntry) -> int:
    return entry.count * (1 if entry.kind.dtype is None else entry.kind.dtype.itemsize)


@dataclass(slots=True, eq=False)
class _ZipStorages:
    """The storages of a zip file, as bytes; the last one read is kept, as tensors that share one follow each other."""

    container: Container
    swapped: bool
    _last: tuple[str, Array] | None = None

    def elements(self, entry: StorageEntry) -> Array:
        if self._last is None or self._last[0] != entry.key:
            self._last = (entry.key, self._read(entry))
        return self._last[1]

    def _read(self, entry: StorageEntry) -> Array:
        name = f"data/{entry.key}"
        size = self.container.size(name) if name in self.container else -1
        if size < _storage_bytes(entry):
            raise ArchiveError(f"a storage of {_storage_bytes(entry)} bytes is wanted, and there is none", record=name)
        raw = np.frombuffer(self.container.read(name), np.uint8)
        return _swapped(raw, entry) if self.swapped else raw


def _swapped(raw: Array, entry: StorageEntry) -> Array:
    """Big-endian numbers with their bytes swapped; the halves of a complex number each by itself."""
    if entry.kind.dtype is None:
        raise ArchiveError("big-endian storages without a dtype cannot be read")
    width = entry.kind.dtype.itemsize // (2 if entry.kind.dtype.category == "complex" else 1)
    return raw[: raw.size // width * width].view(f"u{width}").byteswap().view(np.uint8)


def _legacy(found: Identity) -> Weights:
    """A file of torch.save's older format."""
    data = mapped(found.path)
    value = legacy_parts(data)
    places = storage_places(data, value)

    def elements(entry: StorageEntry) -> Array:
        start, size = places.get(entry.key, (0, -1))
        if size < _storage_bytes(entry):
            raise ArchiveError(f"storage '{entry.key}' is not as large as the pickle says")
        return np.frombuffer(data, np.uint8, size, start)

    return _weights_of(found, value.value, elements, lambda: None)


def _tar(found: Identity) -> Weights:
    parts = tar_parts(found.path)
    return _weights_of(found, parts.value, parts.elements, lambda: None)


# -- arrays of others


def _safetensors(found: Identity) -> Weights:
    header = read_header(found.path)
    entries = {}
    for name, entry in header.tensors.items():

        def read(entry: Any = entry) -> Array:
            raw = np.memmap(found.path, np.uint8, "r")[entry.start : entry.start + entry.size]
            array: Array = np.array(raw).view(_numpy_dtype(entry.dtype)).reshape(entry.shape)
            return array

        entries[name] = Weight(name, entry.dtype, entry.shape, read)
    return Weights(found, entries, metadata=header.metadata)


def _numpy_file(found: Identity) -> Weights:
    _check_sizes(found)
    loaded = np.load(found.path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return Weights(found, _arrays({"array": loaded}))
    with loaded:
        return Weights(found, _arrays({name: loaded[name] for name in loaded.files}))


def _check_sizes(found: Identity) -> None:
    """Compare what the headers declare with what there is, before NumPy allocates it.  Raises ArchiveError."""
    if found.kind == "npy":
        with open(found.path, "rb") as file:
            _check_header(file, found.size)
        return
    with zipfile.ZipFile(found.path) as archive:
        for info in archive.infolist():
            # A compressed array may be larger than the file, though not without end.
            limit = min(info.file_size, max(info.compress_size, MOST_REPEATED) * MOST_INFLATED)
            with archive.open(info) as member:
                _check_header(member, limit)


def _check_header(file: IO[bytes], limit: int) -> None:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    size = math.prod(shape) * dtype.itemsize
    if size > limit:
        raise _too_large(size)


def _arrays(arrays: Mapping[str, Array]) -> dict[str, Weight]:
    return {name: _array_weight(name, array) for name, array in arrays.items()}


def _array_weight(name: str, array: Array) -> Weight:
    return Weight(name, _name_of(array), tuple(array.shape), lambda: np.asarray(array, order="C"))


def _name_of(array: Array) -> str:
    if array.dtype == BFLOAT16:
        return "bfloat16"
    return str(array.dtype.newbyteorder("=").name)


_OPENERS: Final[dict[str, Callable[[Identity], Weights]]] = {
    **dict.fromkeys(("state-dict", "checkpoint", "module-pickle", "optimizer", "tensors"), _saved),
    "torch-tar": _tar, "mobile-weights": _flatbuffer, "safetensors": _safetensors, "npz": _numpy_file,
    "npy": _numpy_file,
}  # fmt: skip
