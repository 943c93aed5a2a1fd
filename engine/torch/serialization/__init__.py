"""`torch.save` and `torch.load`: tensors in dicts, lists and tuples, in PyTorch's file format.

In: a value and a path or file.  Out: a zip file with one pickle and the tensors' memory beside it, and the value read
from it.  Compiled modules are saved and loaded as `torch.jit` does.  Files are untrusted: nothing in one is executed.
"""

from __future__ import annotations

import os
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO, Final

import numpy as np

from engine.aten.kernels.rules import steps
from engine.aten.values.quantizer import Quantizer, is_quantized, quantizer_of
from engine.aten.values.storage import Storage
from engine.aten.values.tensor import Size, Tensor
from engine.lang import scalars
from engine.lang.errors import ArchiveError
from engine.serialize.archive import PathOrFile
from engine.serialize.container.read import Container, folder_for
from engine.serialize.container.write import ContainerWriter, replace_file, write_all
from engine.serialize.identify.load_errors import explain_load_errors
from engine.serialize.mobile.file import open_program
from engine.serialize.pickling.custom import notice_quantized
from engine.serialize.pickling.read import PickleRefusal
from engine.serialize.pickling.tensors import TensorReader, storage_bytes, wanted_device
from engine.serialize.pickling.unpickle import unpickle
from engine.torch import jit
from engine.torch.compiled.objects import ScriptFunction, ScriptObject
from engine.torch.nn.parameter import Parameter

_PICKLE: Final = "data.pkl"
_ZIP: Final = b"PK\x03\x04"


def save(obj: Any, f: PathOrFile, **_options: Any) -> None:
    """Write a value to a file.  Raises ArchiveError for anything but tensors, numbers, strings and containers."""
    if isinstance(obj, (ScriptFunction, ScriptObject)):
        jit.save(obj, f)  # type: ignore[arg-type]
        return
    if not hasattr(f, "write") and not isinstance(f, (str, os.PathLike)):
        raise AttributeError(f"a value is saved to a path, or to a file with a 'write' method, not {type(f).__name__}")
    pickler = _StatePickler()
    data = pickler.dump(obj)
    is_file = hasattr(f, "write")
    writer = ContainerWriter(folder_for(f))
    writer.add(_PICKLE, data)
    writer.add("byteorder", b"little")
    for number, storage in enumerate(pickler.storages):
        writer.add(f"data/{number}", storage_bytes(storage))
    writer.add("version", b"3\n")
    if is_file:
        write_all(f, writer.pieces())
    else:
        replace_file(f, writer.pieces())  # type: ignore[arg-type]


def _is_zipfile(f: BinaryIO) -> bool:
    """True if what stands at the file's place begins as archives of today do; the place stays."""
    at = f.tell()
    start = f.read(len(_ZIP))
    f.seek(at)
    return start == _ZIP


def load(f: PathOrFile, map_location: Any = None, **options: Any) -> Any:
    """The value in a file that `save` or PyTorch wrote; for an archive the compiled module.  Raises ArchiveError."""
    mapped = options.get("mmap") is not False
    place = f.tell() if hasattr(f, "tell") else 0
    container = _opened(f, mapped)
    if "constants.pkl" not in container and _PICKLE in container:
        try:
            value = _state(container, map_location)
        except ArchiveError as error:
            from engine.torch.serialization.legacy_load import with_advice  # few files need it

            raise with_advice(error, f) from None
        container.check()
        return value
    if hasattr(f, "seek"):
        f.seek(place)
    extra, budget, lazy = options.get("_extra_files"), options.get("budget"), options.get("lazy") is not False
    return jit.load(f, map_location, extra, budget=budget, mmap=mapped, lazy=lazy)


def _opened(f: PathOrFile, mapped: bool) -> Container:
    try:
        with explain_load_errors(f):
            return open_program(f, mapped)
    except ArchiveError:
        from engine.torch.serialization.legacy_load import in_todays_form  # few files need it

        old = in_todays_form(f)
        if old is None:
            raise
        return open_program(old, mapped)


def _state(container: Container, map_location: Any) -> Any:
    target = wanted_device(map_location)
    swapped = "byteorder" in container and container.read_short("byteorder") == b"big"
    reader = TensorReader(container, "data", swapped, target)
    value = unpickle(container.read(_PICKLE), _PICKLE, reader, build=_forget)
    notice_quantized(value)
    return value


def _forget(instance: Any, _state: Any) -> None:
    """Drop the attributes of state dicts: the versions of the modules' classes."""
    if type(instance) is not dict:
        raise PickleRefusal("it fills what is no dict")


class _StatePickler:
    """Writes one value as a pickle of protocol 2, storages by persistent ids."""

    def __init__(self) -> None:
        self.storages: list[Storage] = []
        self._numbers: dict[int, int] = {}
        self._out = bytearray(b"\x80\x02")
        self._open: set[int] = set()

    def dump(self, value: Any) -> bytes:
        try:
            self._write(value)
        except RecursionError:
            raise ArchiveError("the value nests too deeply") from None
        return bytes(self._out + b".")

    def _write(self, value: Any) -> None:
        write = _WRITERS.get(type(value)) or next((w for kind, w in _FAMILIES if isinstance(value, kind)), None)
        if write is None:
            raise ArchiveError(
                f"a {type(value).__name__} cannot be saved",
                hints=("save the state_dict of a module or an optimizer", "torch.jit.save saves compiled modules"),
            )
        write(self, value)

    # -- atoms

    def _number(self, value: int) -> None:
        if -(1 << 31) <= value < 1 << 31:
            self._out += struct.pack("<ci", b"J", value)
            return
        data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        if len(data) > 255:
            raise ArchiveError("an integer has too many digits")
        self._out += b"\x8a" + bytes([len(data)]) + data

    def _text(self, value: str) -> None:
        data = value.encode()
        self._out += b"X" + struct.pack("<I", len(data)) + data

    def _global(self, module: str, name: str) -> None:
        self._out += f"c{module}\n{name}\n".encode()

    # -- containers

    def _nested(self, value: Any, begin: bytes, parts: Iterable[Any], end: bytes) -> None:
        if id(value) in self._open:
            raise ArchiveError("a value that holds itself cannot be saved")
        self._open.add(id(value))
        self._out += begin
        for part in parts:
            self._write(part)
        self._out += end
        self._open.discard(id(value))

    def _mapping(self, value: Mapping[Any, Any]) -> None:
        parts = (part for pair in value.items() for part in pair)
        if isinstance(value, OrderedDict):
            self._global("collections", "OrderedDict")
            self._nested(value, b")R(", parts, b"u")
        else:
            self._nested(value, b"}(", parts, b"u")

    # -- tensors

    def _tensor(self, value: Tensor) -> None:
        if not isinstance(value, Parameter):
            self._plain_tensor(value, value.requires_grad and value.is_leaf)
            return
        self._global("torch._utils", "_rebuild_parameter")
        self._out += b"("
        self._plain_tensor(value, False)
        self._write(value.requires_grad)
        self._global("collections", "OrderedDict")
        self._out += b")RtR"

    def _plain_tensor(self, value: Tensor, requires_grad: bool) -> None:
        storage, array = value.memory, value.array
        if value.is_meta:
            self._without_numbers(value, requires_grad)
            return
        how = quantizer_of(array) if is_quantized(array) else None
        if how is not None and how.dtype.name == "quint4x2":
            raise ArchiveError("numbers of four bits are saved with the compiled module that has them alone")
        self._global("torch._utils", "_rebuild_tensor_v2" if how is None else "_rebuild_qtensor")
        self._out += b"("
        self._persistent(storage, value.dtype)
        self._number(storage.offset_of(array))
        self._write(tuple(array.shape))
        self._write(steps(array))
        if how is not None:
            self._quantizer(how)
        self._write(requires_grad)
        self._global("collections", "OrderedDict")
        self._out += b")RtR"

    def _without_numbers(self, value: Tensor, requires_grad: bool) -> None:
        self._global("torch._utils", "_rebuild_meta_tensor_no_storage")
        self._out += b"("
        for part in (value.dtype, tuple(value.array.shape), steps(value.array), requires_grad):
            self._write(part)
        self._out += b"tR"

    def _quantizer(self, how: Quantizer) -> None:
        self._out += b"("
        self._global("torch", scalars.QSCHEME_BY_NUMBER[how.scheme].name)
        for part in (how.scale, how.zero_point, *(() if how.axis is None else (how.axis,))):
            self._write(Tensor(part) if isinstance(part, np.ndarray) else part)
        self._out += b"t"

    def _persistent(self, storage: Storage, d: scalars.dtype) -> None:
        if id(storage.owner) not in self._numbers:
            self._numbers[id(storage.owner)] = len(self.storages)
            self.storages.append(storage)
        self._out += b"("
        self._text("storage")
        self._global("torch", d.storage)
        self._text(str(self._numbers[id(storage.owner)]))
        self._text(str(storage.device))
        self._number(storage.owner.size)
        self._out += b"tQ"

    def _device(self, value: scalars.device) -> None:
        self._global("torch", "device")
        self._write((value.type,) if value.index is None else (value.type, value.index))
        self._out += b"R"

    def _size(self, value: Size) -> None:
        self._global("torch", "Size")
        self._nested(value, b"(", (tuple(value),), b"tR")

    def _bytes(self, data: bytes) -> None:
        self._out += data


Write = Callable[[_StatePickler, Any], None]
_WRITERS: Final[dict[type, Write]] = {
    type(None): lambda p, v: p._bytes(b"N"),
    bool: lambda p, v: p._bytes(b"\x88" if v else b"\x89"),
    int: _StatePickler._number,
    float: lambda p, v: p._bytes(b"G" + struct.pack(">d", v)),
    str: _StatePickler._text,
    tuple: lambda p, v: p._nested(v, b"(", v, b"t"),
    list: lambda p, v: p._nested(v, b"](", v, b"e"),
    Size: _StatePickler._size,
    scalars.device: _StatePickler._device,
    scalars.dtype: lambda p, v: p._global("torch", v.name),
}
_FAMILIES: Final[tuple[tuple[type, Write], ...]] = (
    (Tensor, _StatePickler._tensor), (Mapping, _StatePickler._mapping),
)  # fmt: skip
