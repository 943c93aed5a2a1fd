"""Writes values as the pickles that archives hold, opcode for opcode as PyTorch writes them.

In: a value with its TorchScript type (programs' lists and dicts do not carry theirs).  Out: bytes of
protocol 2, the storages that they refer to in order, and the classes of the objects.  Strings, global
names and devices are written once; instances get a memo number, tensors and containers where something
else refers to them too (an instance's slot does, what `__getstate__` returned does not).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, Final

import numpy as np

from engine.aten.kernels.rules import steps
from engine.aten.values.ivalue import CustomObject, EnumValue, Object
from engine.aten.values.quantizer import integers_of, is_quantized, quantizer_of
from engine.aten.values.storage import Storage
from engine.aten.values.tensor import Tensor
from engine.lang import scalars
from engine.lang.errors import ArchiveError
from engine.lang.records import dataclass
from engine.lang.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    TENSOR,
    ClassType,
    DictType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    members_of,
)  # fmt: skip
from engine.serialize.container.qualified_names import name_of, prefix_of
from engine.serialize.pickling.read import MAX_DEPTH
from engine.serialize.pickling.tensors import packed_halves
from engine.serialize.pickling.unpickle import Runner
from engine.serialize.pickling.value_types import misfit

TypeName = Callable[[Type], str]
"""The name of a class in the archive, or its annotation with such names in it."""

SAVED: Final = "attributes are saved that are tensors, numbers, text, devices, enums, lists, dicts, tuples, objects"
"""Types that archives can hold."""
_LIST_BUILDERS: Final[dict[Type, str]] = {INT: "build_intlist", FLOAT: "build_doublelist", BOOL: "build_boollist"}


@dataclass(slots=True, eq=False)
class Pickler:
    """One pickle being written; see the module's top.

    `class_name` names a class in the archive, `annotation` a whole type, `run` runs `__getstate__`.
    """

    class_name: TypeName
    annotation: TypeName
    run: Runner | None = None
    storages: list[Storage] = field(default_factory=list)
    """The memory of tensors, in the order of their keys; a pickle in the same folder may begin with another's."""
    classes: list[ClassType] = field(default_factory=list)
    _out: bytearray = field(default_factory=bytearray)
    _memo: dict[object, int] = field(default_factory=dict)
    _count: int = 0
    _shared: Counter[int] = field(default_factory=Counter)
    _counted: set[int] = field(default_factory=set)
    _open: set[int] = field(default_factory=set)
    _states: dict[int, Any] = field(default_factory=dict)
    _places: dict[int, int] = field(default_factory=dict)
    _halves: dict[int, Storage] = field(default_factory=dict)
    """Memory of numbers of four bits, which here have a byte each, by their array."""

    def dump(self, value: Any, type: Type) -> bytes:
        """The pickle of one value.  Raises ArchiveError for what archives cannot hold."""
        self._count_uses(value, 0)
        self._out += b"\x80\x02"
        self._write(value, type)
        self._out += b"."
        return bytes(self._out)

    # -- sharing

    def share(self, value: Any) -> None:
        """Give the value a memo number, as if something else referred to it too."""
        self._shared[id(value)] += 1

    def _count_uses(self, value: Any, depth: int, kept: bool = True) -> None:
        """Count how often each container is referred to; `kept` says whether more than this pickle keeps the value."""
        if isinstance(value, Tensor):
            self._shared[id(value)] += 1 + kept
            return
        if not isinstance(value, (list, dict, tuple, Object)):
            return
        if depth > MAX_DEPTH or id(value) in self._open:
            raise ArchiveError("a value that holds itself, or nests too deep, cannot be saved")
        self._shared[id(value)] += 1
        if id(value) in self._counted:
            return
        self._counted.add(id(value))
        self._open.add(id(value))
        if isinstance(value, CustomObject):
            self._count_uses(value.state, depth + 1, False)
        elif isinstance(value, Object) and has_state_methods(value.type):
            self.share(self._state(value))
            self._count_uses(self._state(value), depth + 1, False)
        else:
            for part in self._parts(value):
                self._count_uses(part, depth + 1, kept or isinstance(value, Object))
        self._open.remove(id(value))

    def _parts(self, value: Any) -> Iterable[Any]:
        if isinstance(value, Object):
            return value.slots
        return [*value, *value.values()] if isinstance(value, dict) else value

    def _state(self, value: Object) -> Any:
        """The result of `__getstate__`, which is called once."""
        if id(value) not in self._states:
            if self.run is None:
                raise ArchiveError(f"a '{value.type.qualname}' runs code to be saved, and nothing here can run it")
            self._states[id(value)] = self.run(value.type.methods["__getstate__"], [value])  # type: ignore[arg-type]
        return self._states[id(value)]

    # -- values

    def _write(self, value: Any, type: Type) -> None:
        is_container = isinstance(value, (list, dict, tuple, Tensor))
        if not isinstance(value, Object) and not (is_container and self._shared[id(value)] > 1):
            self._write_new(value, type)
        elif not self._recall(id(value)):
            self._write_new(value, type)
            self._remember(id(value))

    def _write_new(self, value: Any, type: Type) -> None:
        writer = Pickler._tensor if isinstance(value, Tensor) else _WRITERS.get(value.__class__)
        if writer is None:
            raise ArchiveError(f"a {value.__class__.__name__} cannot be saved in an archive", hints=(SAVED,))
        writer(self, value, narrowed(value, type))

    def _recall(self, key: object) -> bool:
        """Write a reference to what was written before; False if it was not."""
        index = self._memo.get(key)
        if index is None:
            return False
        self._out += b"h" + bytes([index]) if index < 256 else b"j" + struct.pack("<I", index)
        return True

    def _remember(self, key: object) -> None:
        index = self._memo[key] = self._count
        self._count += 1
        self._out += b"q" + bytes([index]) if index < 256 else b"r" + struct.pack("<I", index)

    def _global(self, module: str, name: str) -> None:
        if not self._recall(("global", module, name)):
            self._out += f"c{module}\n{name}\n".encode()
            self._remember(("global", module, name))

    def _none(self, _value: None, _type: Type) -> None:
        self._out += b"N"

    def _bool(self, value: bool, _type: Type) -> None:
        self._out += b"\x88" if value else b"\x89"

    def _int(self, value: int, _type: Type | None = None) -> None:
        if 0 <= value < 1 << 8:
            self._out += struct.pack("<cB", b"K", value)
        elif 0 <= value < 1 << 16:
            self._out += struct.pack("<cH", b"M", value)
        elif -(1 << 31) <= value < 1 << 31:
            self._out += struct.pack("<ci", b"J", value)
        else:
            self._out += struct.pack("<cBq", b"\x8a", 8, value)

    def _float(self, value: float, _type: Type | None = None) -> None:
        self._out += struct.pack(">cd", b"G", value)

    def _complex(self, value: complex, _type: Type) -> None:
        self._global("builtins", "complex")
        self._float(value.real)
        self._float(value.imag)
        self._out += b"\x86R"

    def _str(self, value: str, _type: Type | None = None) -> None:
        if not self._recall(("str", value)):
            raw = _utf8(value)
            self._out += b"X" + struct.pack("<I", len(raw)) + raw
            self._remember(("str", value))

    def _device(self, value: scalars.device, _type: Type) -> None:
        if not self._recall(("device", str(value))):
            self._global("torch", "device")
            self._str(str(value))
            self._out += b"\x85R"
            self._remember(("device", str(value)))

    def _list(self, value: list[Any], type: Type) -> None:
        element = type.element if isinstance(type, ListType) else ANY
        builder = "build_tensorlist" if isinstance(element, TensorType) else _LIST_BUILDERS.get(element)
        self._global("torch.jit._pickle", builder or "restore_type_tag")
        self._out += b"(](" if builder else b"]("
        for each in value:
            self._write(each, element)
        self._out += b"etR" if builder else b"e"
        if not builder:
            self._tag(type)

    def _dict(self, value: dict[Any, Any], type: Type) -> None:
        key, element = (type.key, type.value) if isinstance(type, DictType) else (ANY, ANY)
        self._global("torch.jit._pickle", "restore_type_tag")
        self._out += b"}("
        for each in value.items():
            self._write(each[0], key)
            self._write(each[1], element)
        self._out += b"u"
        self._tag(type)

    def _tag(self, type: Type) -> None:
        self._str(self.annotation(type))
        self._out += b"\x86R"

    def _tuple(self, value: tuple[Any, ...], type: Type) -> None:
        elements = type.elements if isinstance(type, TupleType) else (ANY,) * len(value)
        self._out += b"(" if len(value) > 3 else b""
        for each, element in zip(value, elements, strict=True):
            self._write(each, element)
        self._out += (b")", b"\x85", b"\x86", b"\x87")[len(value)] if len(value) <= 3 else b"t"

    def _object(self, value: Object, _type: Type) -> None:
        self.classes.append(value.type)
        qualname = self.class_name(value.type)
        self._global(prefix_of(qualname), name_of(qualname))
        self._out += b")\x81"
        if has_state_methods(value.type):
            self._write(self._state(value), value.type.methods["__getstate__"].schema.returns[0].type)
        else:
            self._out += b"}("
            for attribute, slot in zip(value.type.attributes, value.slots, strict=True):
                wrong = misfit(slot, attribute.type)
                if wrong is not None:
                    raise ArchiveError(f"attribute '{attribute.name}' of '{value.type.qualname}': {wrong}")
                self._str(attribute.name)
                self._write(slot, attribute.type)
            self._out += b"u"
        self._out += b"b"

    def _custom(self, value: CustomObject, _type: Type) -> None:
        self._global(prefix_of(value.type.qualname), name_of(value.type.qualname))
        self._out += b")\x81"
        self._write(value.state, value.state_type)
        self._out += b"b"

    def _enum(self, value: EnumValue, _type: Type) -> None:
        qualname = self.class_name(value.type)
        self._global(prefix_of(qualname), name_of(qualname))
        self._write(value.value, value.type.value_type)
        self._out += b"R"

    # -- tensors

    def _tensor(self, value: Tensor, _type: Type) -> None:
        array, storage = value.array, value.memory
        if is_quantized(array):
            self._quantized(value)
            return
        self._global("torch._utils", "_rebuild_tensor_v2")
        self._out += b"("
        self._storage(storage, value)
        self._int(storage.offset_of(array))
        self._ints(array.shape)
        self._ints(steps(array))
        self._bool(value.requires_grad, BOOL)
        self._global("collections", "OrderedDict")
        self._out += b")RtR"

    def _quantized(self, value: Tensor) -> None:
        array, storage, how = value.array, value.memory, quantizer_of(value.array)
        start, strides = storage.offset_of(array), steps(array)
        if how.dtype.name == "quint4x2":
            storage = self._halves.setdefault(id(array), Storage(packed_halves(integers_of(array))))
            start, strides = 0, steps(np.ascontiguousarray(array))
        self._global("torch._utils", "_rebuild_qtensor")
        self._out += b"("
        self._storage(storage, value)
        self._int(start)
        self._ints(array.shape)
        self._ints(strides)
        self._out += b"("
        self._global("torch", scalars.QSCHEME_BY_NUMBER[how.scheme].name)
        if how.axis is None:
            self._float(how.scale)
            self._int(how.zero_point)
        else:
            self._tensor(Tensor(how.scale), TENSOR)
            self._tensor(Tensor(how.zero_point), TENSOR)
            self._int(how.axis)
        self._out += b"t"
        self._bool(value.requires_grad, BOOL)
        self._global("collections", "OrderedDict")
        self._out += b")RtR"

    def _storage(self, storage: Storage, value: Tensor) -> None:
        key = ("storage", id(storage.owner))
        if self._recall(key):
            return
        self._out += b"("
        self._str("storage")
        self._global("torch", value.dtype.storage)
        self._str(str(self._place(storage)))
        self._str(str(value.device))
        self._int(storage.owner.nbytes // value.itemsize)
        self._out += b"tQ"
        self._remember(key)

    def _place(self, storage: Storage) -> int:
        if not self._places:
            self._places.update({id(each.owner): place for place, each in enumerate(self.storages)})
        if id(storage.owner) not in self._places:
            self._places[id(storage.owner)] = len(self.storages)
            self.storages.append(storage)
        return self._places[id(storage.owner)]

    def _ints(self, values: Iterable[int]) -> None:
        self._out += b"("
        for each in values:
            self._int(each)
        self._out += b"t"


def _utf8(text: str) -> bytes:
    """The bytes of a text of a program.  Raises ArchiveError for halves of characters."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        reason = f"character {error.start} of the text {text!r:.60} is half of one, which UTF-8 cannot say"
        raise ArchiveError(reason, hints=("take lone surrogates out of it",)) from None


_WRITERS: Final[dict[type, Callable[[Pickler, Any, Type], None]]] = {
    type(None): Pickler._none, bool: Pickler._bool, int: Pickler._int, float: Pickler._float,
    complex: Pickler._complex, str: Pickler._str, scalars.device: Pickler._device, list: Pickler._list,
    dict: Pickler._dict, tuple: Pickler._tuple, Object: Pickler._object, EnumValue: Pickler._enum,
    Tensor: Pickler._tensor, CustomObject: Pickler._custom,
}  # fmt: skip


def has_state_methods(type: ClassType) -> bool:
    """True for a class whose objects are saved and filled by its own methods."""
    return "__getstate__" in type.methods and "__setstate__" in type.methods


def narrowed(value: Any, type: Type) -> Type:
    """Of an Optional or Union, the alternative that the value has."""
    if not isinstance(type, (OptionalType, UnionType)):
        return type
    return next((each for each in members_of(type) if misfit(value, each) is None), type)
