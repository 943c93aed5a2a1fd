"""Programs for phones, written: bytecode as a pickle beside the code of an archive, or all of it as a flatbuffer.

In: a module, and the code of its archive.  Out: the value of the record `bytecode.pkl` with its type; or a flatbuffer's
bytes.  The bytecode is that of the module's methods, and of the `__setstate__` that its objects are filled by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Final

import numpy as np

from engine.aten.kernels.rules import steps
from engine.aten.values.ivalue import CustomObject, EnumValue, Object
from engine.aten.values.quantizer import integers_of, is_quantized, quantizer_of
from engine.aten.values.storage import Storage
from engine.aten.values.submodules import each_module
from engine.aten.values.tensor import Tensor
from engine.ir.unit import Function
from engine.lang import scalars
from engine.lang.errors import ArchiveError
from engine.lang.records import dataclass
from engine.lang.types import ANY, BOOL, FLOAT, INT, STR, ClassType, DictType, ListType, TupleType, Type
from engine.serialize.code.class_export import CodeExporter
from engine.serialize.mobile.bytecode import MobileFunction
from engine.serialize.mobile.emit import mobile_function, refuse_enums
from engine.serialize.mobile.file import IDENTIFIER
from engine.serialize.mobile.flatbuffer_writer import FlatWriter
from engine.serialize.mobile.schema import (
    CLASS_WITH_FIELDS,
    CLASS_WITH_SETSTATE,
    CUSTOM_CLASS,
    FORMS,
    OPCODES,
    ROOT_TABLE,
)
from engine.serialize.mobile.value_types import general_type
from engine.serialize.pickling.tensors import packed_halves, storage_bytes
from engine.serialize.pickling.unpickle import Runner
from engine.serialize.pickling.write import SAVED, has_state_methods, narrowed
from engine.serialize.upgrade.versions import OLDEST

PICKLED_VERSION: Final = 8
FLAT_VERSION: Final = 9
"""The versions of bytecode that are written."""


def mobile_functions(module: Object, code: CodeExporter) -> list[tuple[ClassType, MobileFunction]]:
    """The bytecode of the module's methods, and of its submodules' `__setstate__`, with their classes.

    Raises NotSupportedError for what no bytecode does, and for attributes that phones cannot read.
    """
    for _, inner in each_module(module):
        refuse_enums([slot for slot in inner.slots if not isinstance(slot, Object)])
    found: list[tuple[ClassType, MobileFunction]] = []
    for type, method in _methods(module):
        found.append((type, mobile_function(method, f"{code.name_of(type)}.{method.name}", code.annotation)))
    return found


def _methods(module: Object) -> Iterator[tuple[ClassType, Function]]:
    for method in module.type.methods.values():
        if isinstance(method, Function):
            yield module.type, method
    seen = {module.type}
    for _, inner in each_module(module):
        if inner.type not in seen and has_state_methods(inner.type):
            yield inner.type, inner.type.methods["__setstate__"]  # type: ignore[misc]
        seen.add(inner.type)


# -- as a pickle


def bytecode_value(functions: list[tuple[ClassType, MobileFunction]]) -> tuple[Any, Type]:
    """The value of the record `bytecode.pkl`, and its type."""
    parts = [_pickled(function) for _, function in functions]
    return (PICKLED_VERSION, *(value for value, _ in parts)), TupleType((INT, *(type for _, type in parts)))


def _pickled(function: MobileFunction) -> tuple[Any, Type]:
    operators = tuple(each if each.arguments is not None else each[:2] for each in function.operators)
    tables = (
        ("instructions", tuple(map(tuple, function.instructions))),
        ("operators", tuple(map(tuple, operators))),
        ("constants", function.constants),
        ("types", function.types),
        ("register_size", function.registers),
    )
    constants = TupleType(tuple(map(general_type, function.constants)))
    of_tables = TupleType((ANY, ANY, TupleType((STR, constants)), ANY, ANY))
    defaults = [function.defaults.get(name) for name, _ in function.arguments]
    arguments = tuple(_argument(*each, default) for each, default in zip(function.arguments, defaults, strict=True))
    of_arguments = TupleType(tuple(TupleType((ANY, ANY, TupleType((STR, general_type(each))))) for each in defaults))
    returns = tuple(_argument("", type, None) for type in function.returns)
    value = (function.name, tables, (("arguments", arguments), ("returns", returns)))
    return value, TupleType((STR, of_tables, TupleType((TupleType((STR, of_arguments)), ANY))))


def _argument(name: str, type: str, default: Any) -> tuple[Any, ...]:
    return (("name", name), ("type", type), ("default_value", default))


# -- as a flatbuffer


def flatbuffer(module: Object, extra_files: Mapping[str, bytes], run: Runner | None) -> bytes:
    """The program as a flatbuffer with its code.  Raises ArchiveError, NotSupportedError."""
    code = CodeExporter()
    values = _FlatValues(code, run)
    methods = [values.function(*each) for each in mobile_functions(module, code)]
    state = values.number(module, module.type)
    own = len(values.tables)
    code.write_all(module.type, values.classes)
    constants = [values.number(*each) for each in zip(code.constants.values, code.constants.types, strict=True)]
    sources = [
        {"name": prefix, "content": str(printer.body).encode()} for prefix, printer in code.printers.items()
    ]  # fmt: skip
    root = {
        "bytecode_version": FLAT_VERSION, "methods": methods, "state_obj": state, "ivalues": values.tables,
        "extra_files": [{"name": name, "content": content} for name, content in extra_files.items()],
        "storage_data_size": len(values.storages),
        "storage_data": [{"data": storage_bytes(each)} for each in values.storages],
        "object_types": values.types, "jit_sources": sources, "jit_constants": constants,
        "operator_version": max(code.version, OLDEST), "mobile_ivalue_size": own,
    }  # fmt: skip
    return FlatWriter(FORMS).file(ROOT_TABLE, IDENTIFIER, root)


@dataclass(slots=True, eq=False)
class _FlatValues:
    """The values of a flatbuffer, as tables; number 0 is None."""

    code: CodeExporter
    run: Runner | None
    tables: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    types: list[dict[str, Any]] = field(default_factory=list)
    storages: list[Storage] = field(default_factory=list)
    classes: list[ClassType] = field(default_factory=list)
    """The classes of the objects, each as often as there are such objects."""
    _setters: dict[ClassType, int] = field(default_factory=dict)
    _known: dict[Any, int] = field(default_factory=dict)
    _places: dict[Any, int] = field(default_factory=dict)
    _kept: list[Any] = field(default_factory=list)
    """Values that are made here, whose `id` is used as a key."""

    def number(self, value: Any, type: Type) -> int:
        """The value's number; it is written behind its parts unless it is there.

        Raises ArchiveError for what files cannot hold.
        """
        if value is None:
            return 0
        simple = isinstance(value, (str, int, float, complex, scalars.device))
        key = (value.__class__, repr(value)) if simple else id(value)
        if key not in self._known:
            member = self._member(value, narrowed(value, type))
            self._known[key] = len(self.tables)
            self._kept.append(value)
            self.tables.append({"val": member})
        return self._known[key]

    def _member(self, value: Any, type: Type) -> tuple[str, Any]:
        if isinstance(value, Tensor):
            return "TensorMetadata", self._tensor(value)
        if isinstance(value, Object):
            return "Object", self._custom(value) if isinstance(value, CustomObject) else self._object(value)
        if isinstance(value, EnumValue):
            held = self.number(value.value, value.type.value_type)
            return "EnumValue", {"type_name": self.code.name_of(value.type), "value": held}
        if isinstance(value, tuple):
            elements = type.elements if isinstance(type, TupleType) else map(general_type, value)
            return "Tuple", {"items": [self.number(*each) for each in zip(value, elements, strict=True)]}
        if isinstance(value, (list, dict)):
            return self._container(value, type if isinstance(type, (ListType, DictType)) else general_type(value))
        for kind, member, parts in _SIMPLE:
            if value.__class__ is kind:
                return member, parts(value)
        raise ArchiveError(f"a {value.__class__.__name__} cannot be saved in a program for phones", hints=(SAVED,))

    def _container(self, value: list[Any] | dict[Any, Any], type: Type) -> tuple[str, Any]:
        annotation = self.code.annotation(type)
        if isinstance(value, dict):
            assert isinstance(type, DictType)
            keys = [self.number(each, type.key) for each in value]
            values = [self.number(each, type.value) for each in value.values()]
            return "Dict", {"keys": keys, "values": values, "annotation_str": annotation}
        assert isinstance(type, ListType)
        if type.element in _LISTS:
            return _LISTS[type.element], {"items": value}
        items = [self.number(each, type.element) for each in value]
        return "List", {"items": items, "annotation_str": annotation}

    # -- tensors

    def _tensor(self, value: Tensor) -> dict[str, Any]:
        array, storage = value.array, value.memory
        start, strides = storage.offset_of(array), steps(array)
        how = quantizer_of(array) if is_quantized(array) else None
        if how is not None and how.dtype.name == "quint4x2":
            storage = Storage(packed_halves(integers_of(array)))
            start, strides = 0, steps(np.ascontiguousarray(array))
        return {
            "storage_location_index": self._storage(storage), "scalar_type": value.dtype.number,
            "storage_offset": start, "sizes": [*array.shape], "strides": [*strides],
            "requires_grad": value.requires_grad, "quantized_schema": None if how is None else self._quantizer(how),
        }  # fmt: skip

    def _storage(self, storage: Storage) -> int:
        key = id(storage.owner)
        if key not in self._places:
            self._places[key] = len(self.storages)
            self.storages.append(storage)
        return self._places[key]

    def _quantizer(self, how: Any) -> dict[str, Any]:
        if how.axis is None:
            return {"qscheme": how.scheme, "scale": how.scale, "zero_point": how.zero_point}
        scales, zeros = Tensor(how.scale), Tensor(how.zero_point)
        self._kept += (scales, zeros)
        return {
            "qscheme": how.scheme, "scales": self._tensor(scales), "zero_points": self._tensor(zeros), "axis": how.axis
        }  # fmt: skip

    # -- objects

    def _object(self, value: Object) -> dict[str, Any]:
        name = self.code.name_of(value.type)
        self.classes.append(value.type)
        if has_state_methods(value.type):
            if self.run is None:
                raise ArchiveError(f"a '{name}' runs code to be saved, and nothing here can run it")
            getstate, setter = value.type.methods["__getstate__"], self._setters.get(value.type)
            if setter is None:
                raise ArchiveError(f"a '{name}' is no module, and is filled by code, which phones do not have")
            state = self.run(getstate, [value])  # type: ignore[arg-type]
            self._kept.append(state)
            number = self.number(state, getstate.schema.returns[0].type)
            place = self.type(value.type, CLASS_WITH_SETSTATE)
            return {"type_index": place, "state": number, "setstate_func": setter}
        attributes = zip(value.slots, value.type.attributes, strict=True)
        attrs = [self.number(slot, attribute.type) for slot, attribute in attributes]
        return {"type_index": self.type(value.type, CLASS_WITH_FIELDS), "attrs": attrs}

    def _custom(self, value: CustomObject) -> dict[str, Any]:
        state = self.number(value.state, value.state_type)
        return {"type_index": self.type(value.type, CUSTOM_CLASS), "state": state}

    def type(self, type: ClassType, how: int) -> int:
        """The place of the type, which says how its objects are made."""
        if type not in self._places:
            self._places[type] = len(self.types)
            names = [each.name for each in type.attributes] if how == CLASS_WITH_FIELDS else []
            name = type.qualname if how == CUSTOM_CLASS else self.code.name_of(type)
            self.types.append({"type_name": name, "type": how, "attr_names": names})
        return self._places[type]

    # -- functions

    def function(self, owner: ClassType, function: MobileFunction) -> int:
        """The number of a method, which is written behind its constants."""
        constants = [self.number(each, general_type(each)) for each in function.constants]
        arguments = [
            {"name": name, "type": type, "default_value": self._default(function, name)}
            for name, type in function.arguments
        ]
        how = CLASS_WITH_SETSTATE if has_state_methods(owner) else CLASS_WITH_FIELDS
        member = {
            "qn": function.name, "constants": constants, "type_annotations": [*function.types],
            "instructions": [(OPCODES.index(opcode), n, x) for opcode, x, n in function.instructions],
            "operators": [
                {"name": each.name, "overload_name": each.overload,
                 "num_args_serialized": -1 if each.arguments is None else each.arguments}
                for each in function.operators
            ],
            "register_size": function.registers, "class_type": self.type(owner, how),
            "schema": {"arguments": arguments, "returns": [{"name": "", "type": type} for type in function.returns]},
        }  # fmt: skip
        if function.name.endswith(".__setstate__"):
            self._setters[owner] = len(self.tables)
        self.tables.append({"val": ("Function", member)})
        return len(self.tables) - 1

    def _default(self, function: MobileFunction, name: str) -> int:
        default = function.defaults.get(name)
        return self.number(default, general_type(default))


_LISTS: Final[dict[Type, str]] = {INT: "IntList", FLOAT: "DoubleList", BOOL: "BoolList"}
_SIMPLE: Final[tuple[tuple[type, str, Any], ...]] = (
    (bool, "Bool", lambda value: (value,)), (int, "Int", lambda value: (value,)),
    (float, "Double", lambda value: (value,)), (complex, "ComplexDouble", lambda value: (value.real, value.imag)),
    (str, "String", lambda value: {"data": value}), (scalars.device, "Device", lambda value: {"str": str(value)}),
)  # fmt: skip
