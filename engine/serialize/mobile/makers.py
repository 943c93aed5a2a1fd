"""Constructors of the tensors and objects in a mobile flatbuffer: real ones, or descriptions of them.

In: tables that describe them, and where a program's classes come from.  Out: `Tensor`s and `Object`s as the pickles of
other archives give them, by the same checks; or, where a program is only looked at, `TensorEntry`s and dicts.
"""

from __future__ import annotations

from typing import Any, Final

from engine.lang import scalars
from engine.lang.records import dataclass
from engine.serialize.container.read import Container
from engine.serialize.mobile.bare import BareClasses
from engine.serialize.mobile.file import STORAGES
from engine.serialize.mobile.flatbuffer import FlatTable
from engine.serialize.mobile.records import root_of
from engine.serialize.mobile.values import Values
from engine.serialize.pickling.entries import StorageEntry, StorageKind, TensorEntry, checked
from engine.serialize.pickling.other_tensors import TensorParts, quantized
from engine.serialize.pickling.scan import PickleRefusal, UnsupportedTensor
from engine.serialize.pickling.tensors import StorageType, TensorReader
from engine.serialize.pickling.unpickle import ClassResolver, Filler, GlobalNames, Runner

_DTYPES: Final = {each.number: each for each in (*scalars.DTYPES, *scalars.DTYPE_WORDS.values())}
_SCHEMES: Final = {
    0: "per_tensor_affine", 1: "per_channel_affine", 4: "per_channel_affine_float_qparams",
}  # fmt: skip
"""Quantization schemes."""


def program_values(
    container: Container, classes: ClassResolver, map_location: scalars.device | None, run: Runner | None
) -> Values:
    """The values of a program, whose classes come from its code; `run` runs a `__setstate__`."""
    tensors = TensorReader(container, STORAGES, map_location=map_location)
    names = GlobalNames(tensors, classes, {})
    return Values(root_of(container), ProgramMaker(tensors, names, Filler(run, names.tags)))


def described_module(container: Container) -> Any:
    """The attributes of the program's module by name, with a `TensorEntry` for each tensor."""
    return Values(root_of(container), Describer(container)).module()


@dataclass(frozen=True, slots=True, eq=False)
class ProgramMaker:
    """Makes a program's tensors and objects as those in pickles are made: by the same names, with the same checks."""

    tensors: TensorReader
    names: GlobalNames
    filler: Filler | BareClasses

    def tensor(self, described: FlatTable) -> Any:
        key, location, count = _place(self.tensors.container, described)
        storage = self.tensors.load(("storage", StorageType(_dtype(described)), key, location, count))
        view: tuple[Any, ...] = (storage, *_view(described), described["requires_grad"], {})
        how = described["quantized_schema"]
        if how is None:
            return self.tensors.rebuild(*view)
        build = self.names.find("torch._utils", "_rebuild_qtensor").call
        return build(*view[:4], self._quantizer(how), *view[4:])

    def _quantizer(self, how: FlatTable) -> tuple[Any, ...]:
        """The scheme, then scale and zero point, or tensors of them and their dimension."""
        scheme = self.names.find("torch", _scheme(how))
        if how["scales"] is None:
            return (scheme, how["scale"], how["zero_point"])
        return (scheme, self.tensor(_plain(how, "scales")), self.tensor(_plain(how, "zero_points")), how["axis"])

    def instance(self, qualname: str, state: Any) -> Any:
        made = self._known(qualname).new()
        self.filler.fill(made, state)
        return made

    def note(self, value: Any, annotation: str) -> None:
        if isinstance(self.filler, BareClasses):  # other classes have their attributes' types from their code
            self.filler.note(value, annotation)

    def enum(self, qualname: str, value: Any) -> Any:
        return self._known(qualname, "call_bare").call_bare(value)

    def _known(self, qualname: str, how: str = "new") -> Any:
        module, _, name = qualname.rpartition(".")
        found = self.names.find(module, name)
        if getattr(found, how, None) is None:
            raise PickleRefusal(f"a value is of '{qualname:.80}', of which the file's code says nothing that fits")
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Describer:
    """Tells where tensors lie and what they are; objects are dicts of their attributes."""

    container: Container

    def tensor(self, described: FlatTable) -> TensorEntry | TensorParts:
        dtype = _dtype(described)
        key, location, count = _place(self.container, described)
        storage = StorageEntry(key, StorageKind(dtype), location, count)
        how = described["quantized_schema"]
        if how is None:
            return checked(storage, dtype, count, *_view(described))
        return quantized(storage, *_view(described), self._quantizer(how))

    def _quantizer(self, how: FlatTable) -> tuple[Any, ...]:
        scheme = _scheme(how)
        if how["scales"] is None:
            return (scheme, how["scale"], how["zero_point"])
        return (scheme, self.tensor(_plain(how, "scales")), self.tensor(_plain(how, "zero_points")), how["axis"])

    def instance(self, qualname: str, state: Any) -> Any:
        return state

    def note(self, value: Any, annotation: str) -> None:
        """Nothing is said of types."""

    def enum(self, qualname: str, value: Any) -> Any:
        return value


def _dtype(described: FlatTable) -> scalars.dtype:
    dtype = _DTYPES.get(described["scalar_type"])
    if dtype is None:
        raise UnsupportedTensor(f"a tensor is of the dtype {described['scalar_type']}, which is not known")
    return dtype


def _place(container: Container, described: FlatTable) -> tuple[str, str, int]:
    """The storage's key, device and number of elements."""
    key = str(described["storage_location_index"])
    name = f"{STORAGES}/{key}"
    if name not in container:
        raise PickleRefusal(f"a tensor lies in the storage {key}, which is not there")
    return key, "cpu", container.size(name) // _dtype(described).itemsize


def _view(described: FlatTable) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return described["storage_offset"], tuple(described.listed("sizes")), tuple(described.listed("strides"))


def _scheme(how: FlatTable) -> str:
    name = _SCHEMES.get(how["qscheme"])
    if name is None:
        raise UnsupportedTensor(f"a tensor is quantized in the way {how['qscheme']}, which is not known")
    return name


def _plain(how: FlatTable, name: str) -> FlatTable:
    """The tensor of scales or zero points, which is not quantized itself."""
    found: FlatTable | None = how[name]
    if found is None or found["quantized_schema"] is not None:
        raise PickleRefusal("a quantized tensor's description is damaged")
    return found
