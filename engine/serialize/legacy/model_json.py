"""The layout before PyTorch 1.3: `model.json`, `tensors/`, `attributes.pkl`, one file of methods for each module.

In: an open container.  Out: the module, as from any other archive.  The JSON tells the tree of modules:

    {"protoVersion": "5", "mainModule": {...}, "tensors": [{"dims": ["2"], "data": {"key": "tensors/0"}, ...}]}

and each module its name, submodules, parameters and buffers (numbers of tensors), attributes (a type in Python's
spelling and a number in the tuple that `attributes.pkl` holds) and the record with its methods.  Classes lie under
`libs/`.  In the pickle of PyTorch 1.1, lists and tensors are instances of `__main__.IntList`, `TensorID` and the like.
Tensors in the code (`CONSTANTS.c3`) and in the pickle are numbers in the same table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field
from functools import partial
from typing import Any, Final

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.frontend.names.type_annotations import TypeReader
from engine.frontend.syntax.parser import parse_expression
from engine.ir.unit import Function
from engine.lang import scalars
from engine.lang.errors import ArchiveError, CompileError, OperatorError
from engine.lang.records import dataclass
from engine.lang.source import Source
from engine.lang.types import TENSOR, ClassType, Type
from engine.serialize.code.parsed_code import parse_code
from engine.serialize.code.source_import import SourceImporter
from engine.serialize.container.qualified_names import MODEL, ROOT, is_qualified
from engine.serialize.container.read import Container
from engine.serialize.pickling.read import PickleGlobal, Unbuilt
from engine.serialize.pickling.scan import PickleRefusal
from engine.serialize.pickling.tensors import StorageType, TensorReader
from engine.serialize.pickling.unpickle import LIST_MAKERS, Runner, unpickle
from engine.serialize.pickling.value_types import misfit

ATTRIBUTES: Final = "attributes.pkl"
_TENSORS: Final = "tensors"
_LIBRARY: Final = "libs/"
_NEWEST_PROTO: Final = 5
_ATTRIBUTES_SINCE: Final = 2
_MAX_MODULES: Final = 100_000
_DTYPES: Final = {
    "FLOAT": scalars.float32, "DOUBLE": scalars.float64, "FLOAT16": scalars.float16, "BOOL": scalars.bool_,
    "BYTE": scalars.uint8, "UINT8": scalars.uint8, "INT8": scalars.int8, "INT16": scalars.int16,
    "INT32": scalars.int32, "INT64": scalars.int64,
}  # fmt: skip
_QUANTIZED_DTYPES: Final = {
    kind: scalars.dtype_named(name)
    for kind, name in (("BYTE", "quint8"), ("UINT8", "quint8"), ("INT8", "qint8"), ("INT32", "qint32"))
}
"""The dtype of numbers -> that of a tensor which `isQuantized` says is quantized."""
_Json = dict[str, Any]


def load_legacy(
    container: Container, version: int, map_location: scalars.device | None, run: Runner | None, *, lazy: bool
) -> Object:
    """The module in an archive of that layout.  Raises ArchiveError for an invalid one."""
    model = _model(container)
    proto = _number(model, "protoVersion", 0)
    if not 0 <= proto <= _NEWEST_PROTO:
        raise _damaged(f"it has the layout {proto}, and those up to {_NEWEST_PROTO} are known")
    tensors = _tensor_table(container, _list(model, "tensors"), map_location)
    constants = tuple(tensor.detach() for tensor in tensors)
    importer = SourceImporter(_Library(container), lambda: constants, version)
    values = _attributes(container, proto, tensors, importer, run)
    module = _Modules(container, importer, tensors, values, run).load(_dict(model, "mainModule"), (ROOT,))
    importer.read_signatures()
    if not lazy:
        importer.compile_all()
    return module


# -- the JSON, believing nothing


def _damaged(reason: str) -> ArchiveError:
    return ArchiveError(f"the description of the model is refused: {reason}", record=MODEL)


def _model(container: Container) -> _Json:
    try:
        model = json.loads(container.read(MODEL))
    except (ValueError, RecursionError) as error:
        raise _damaged(f"it is no JSON ({error})") from None
    if not isinstance(model, dict):
        raise _damaged("it is no JSON object")
    return model


def _dict(owner: _Json, key: str) -> _Json:
    found = owner.get(key)
    if not isinstance(found, dict):
        raise _damaged(f"there is no object '{key}' where one belongs")
    return found


def _list(owner: _Json, key: str) -> list[_Json]:
    found = owner.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise _damaged(f"'{key}' is no list of objects")
    return found


def _text(owner: _Json, key: str) -> str:
    found = owner.get(key)
    if not isinstance(found, str):
        raise _damaged(f"there is no text '{key}' where one belongs")
    if any("\ud800" <= char <= "\udfff" for char in found):
        raise _damaged(f"the text '{key}' holds half of a character")
    return found


def _number(owner: _Json, key: str, default: int | None = None) -> int:
    """An integer; protobuf's JSON writes those of 64 bits as text."""
    return _integer(owner.get(key, default), key)


def _integer(found: Any, key: str) -> int:
    if isinstance(found, str) and len(found) <= 20 and found.lstrip("-").isdecimal():
        return int(found)
    if type(found) is not int:
        raise _damaged(f"'{key}' is no integer")
    return found


def _numbers(owner: _Json, key: str) -> tuple[int, ...]:
    found = owner.get(key, [])
    if not isinstance(found, list):
        raise _damaged(f"'{key}' is no list")
    return tuple(_integer(each, key) for each in found)


# -- tensors and attributes


def _tensor_table(
    container: Container, described: Sequence[_Json], map_location: scalars.device | None
) -> tuple[Tensor, ...]:
    reader = TensorReader(container, _TENSORS, map_location=map_location)
    return tuple(_tensor(container, reader, index, each) for index, each in enumerate(described))


def _tensor(container: Container, reader: TensorReader, index: int, described: _Json) -> Tensor:
    key = _text(_dict(described, "data"), "key")
    folder, _, name = key.partition("/")
    quantized = described.get("isQuantized") is True
    dtype = (_QUANTIZED_DTYPES if quantized else _DTYPES).get(_text(described, "dataType"))
    if dtype is None:
        raise _damaged(f"tensor {index} is of a kind that is not supported")
    if folder != _TENSORS or key not in container:
        raise _damaged(f"tensor {index} lies in '{key:.40}', which is no record of tensors")
    count = container.size(key) // dtype.itemsize
    view = (_number(described, "offset", 0), _numbers(described, "dims"), _numbers(described, "strides"))
    try:
        loaded = reader.load(("storage", StorageType(dtype), name, _text(described, "device"), count))
        if quantized:
            return reader.rebuild_quantized(loaded, *view, _quantizer(described), False, {})
        return reader.rebuild(loaded, *view, described.get("requiresGrad") is True, {})
    except (PickleRefusal, OperatorError) as refusal:
        raise ArchiveError(f"tensor {index} is refused: {refusal}", record=key) from None


def _quantizer(described: _Json) -> tuple[scalars.qscheme, float, int]:
    scale = described.get("scale")
    if not isinstance(scale, int | float):
        raise _damaged("'scale' is no number")
    return scalars.qscheme_named("per_tensor_affine"), float(scale), _number(described, "zeroPoint", 0)


def _attributes(
    container: Container, proto: int, tensors: Sequence[Tensor], importer: SourceImporter, run: Runner | None
) -> Sequence[Any]:
    """The values of all attributes."""
    if proto < _ATTRIBUTES_SINCE or ATTRIBUTES not in container:
        return ()

    def tensor(index: Any) -> Tensor:
        if type(index) is not int or not 0 <= index < len(tensors):
            raise PickleRefusal(f"the archive has no tensor {index!r:.40}")
        return tensors[index]

    makers = {**LIST_MAKERS, "TensorID": tensor}
    more = {("__main__", name): PickleGlobal(name, make, new=partial(Unbuilt, make)) for name, make in makers.items()}
    more["torch.jit._pickle", "build_tensor_from_id"] = PickleGlobal("build_tensor_from_id", tensor)
    values = unpickle(container.read(ATTRIBUTES), ATTRIBUTES, None, importer.find_signed_type, run, more=more)
    if not isinstance(values, (tuple, list)):
        raise ArchiveError("the table of attributes is no tuple", record=ATTRIBUTES)
    return values


class _Library:
    """The classes' code, for the importer."""

    def __init__(self, container: Container) -> None:
        names = [name for name in container.names() if name.startswith(_LIBRARY)]
        self._contents = {name: container.read(name) for name in names}

    def text(self, prefix: str) -> tuple[str, bytes | None] | None:
        name = f"{_LIBRARY}{prefix.replace('.', '/')}.py"
        if name not in self._contents:
            return None
        return _decoded(self._contents[name], name), self._contents.get(f"{name}.debug_pkl")


def _decoded(data: bytes, record: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ArchiveError("the code is not UTF-8", record=record, offset=error.start) from None


# -- modules


@dataclass(slots=True, eq=False)
class _Modules:
    """Makes the modules of an archive, each of a class of its own that is named after its place."""

    container: Container
    importer: SourceImporter
    tensors: Sequence[Tensor]
    values: Sequence[Any]
    run: Runner | None
    count: int = 0
    reader: TypeReader = field(init=False)

    def __post_init__(self) -> None:
        self.reader = TypeReader(self.importer.resolver)

    def load(self, described: _Json, path: tuple[str, ...]) -> Object:
        """The module of that description; `path` is where it lies, the root first."""
        self.count += 1
        if self.count > _MAX_MODULES:
            raise _damaged(f"it has more than {_MAX_MODULES} modules")
        path = (*path, *(f"_{part}" if part.isdecimal() else part for part in _text(described, "name").split(".")))
        type = self._new_class(".".join(path))
        slots: list[Any] = []
        for each in _list(described, "submodules"):
            child = self.load(each, path)
            self._add(type, slots, _text(each, "name"), child.type, "attribute", child)
        for each in _list(described, "parameters"):
            self._add_tensor(type, slots, each)
        for each in _list(described, "attributes"):
            self._add_attribute(type, slots, each)
        module = Object(type, slots)
        self._add_methods(type, described)
        self._set_state(module, described)
        self._check(module)
        return module

    def _new_class(self, qualname: str) -> ClassType:
        if not is_qualified(qualname):
            raise _damaged(f"a module is named '{qualname:.80}'")
        type = ClassType(self.importer.unit.mangle(qualname), is_module=True)
        self.importer.unit.add_type(type.qualname, type)
        return type

    def _add(self, type: ClassType, slots: list[Any], name: str, of: Type, kind: str, value: Any) -> None:
        if type.slot(name) is not None:
            raise _damaged(f"a module has two attributes '{name:.80}'")
        type.add_attribute(name, of, kind)
        slots.append(value)

    def _add_tensor(self, type: ClassType, slots: list[Any], described: _Json) -> None:
        index, is_buffer = _number(described, "tensorId"), described.get("isBuffer") is True
        if not 0 <= index < len(self.tensors):
            raise _damaged(f"there is no tensor {index}")
        kind = "buffer" if is_buffer else "parameter"
        self._add(type, slots, _text(described, "name"), TENSOR, kind, self.tensors[index])

    def _add_attribute(self, type: ClassType, slots: list[Any], described: _Json) -> None:
        name = _text(described, "name")
        if type.slot(name) is not None:
            return  # a buffer, which older writers list twice
        try:
            of = self.reader.read(parse_expression(Source(_text(described, "type"), MODEL, is_generated=True)))
        except CompileError as error:
            raise _damaged(f"the type of attribute '{name:.80}' is refused: {error}") from None
        index = _number(described, "id", -1)
        if index >= len(self.values):
            raise _damaged(f"attribute '{name:.80}' has the value {index}, and there are {len(self.values)}")
        self._add(type, slots, name, of, "attribute", self.values[index] if index >= 0 else None)

    def _add_methods(self, type: ClassType, described: _Json) -> None:
        if "torchscriptArena" not in described:
            return
        record = _text(_dict(described, "torchscriptArena"), "key")
        debug = described.get("torchscriptDebugArena")
        debug_record = _text(debug, "key") if isinstance(debug, dict) else ""
        marks = self.container.read(debug_record) if debug_record in self.container else None
        trees = parse_code(_decoded(self.container.read(record), record), record, marks)
        importer = self.importer
        importer.guarded(lambda: importer.define_methods(type.qualname, trees, type), type.qualname)

    def _set_state(self, module: Object, described: _Json) -> None:
        if "getStateAttributeId" not in described:
            return
        index, setstate = _number(described, "getStateAttributeId"), module.type.methods.get("__setstate__")
        if not 0 <= index < len(self.values) or not isinstance(setstate, Function) or self.run is None:
            raise _damaged(f"'{module.type.qualname}' cannot be filled by its __setstate__")
        arguments = [module, self.values[index]]
        self.run(setstate, arguments[: len(setstate.schema.arguments)])

    def _check(self, module: Object) -> None:
        for attribute in module.type.attributes:
            wrong = misfit(module.get(attribute.name), attribute.type)
            if wrong is not None:
                raise _damaged(f"attribute '{attribute.name}' of '{module.type.qualname}': {wrong}")
