"""Unpickling of an archive's records: the allow-list of global names, and the filling of instances.

In: a record of the archive, a reader for its tensors, a resolver for its classes.  Out: the value.
The allow-list is `_TABLE`, the storage types, and the classes that the archive's own code defines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from engine.aten.values.ivalue import CustomObject, EnumValue, Object
from engine.aten.values.parameter import as_parameter
from engine.aten.values.tensor import Size, Tensor
from engine.aten.values.xp import QUANTIZED
from engine.ir.unit import Function
from engine.lang import scalars
from engine.lang.custom_classes import is_custom
from engine.lang.types import ClassType, EnumType, Type
from engine.serialize.container.qualified_names import ROOT, is_qualified
from engine.serialize.pickling.custom import ReadType, StateTypes, fill_custom, notice_quantized
from engine.serialize.pickling.entries import size_of
from engine.serialize.pickling.read import PickleGlobal, PickleMachine, PickleRefusal, no_build, no_persistent
from engine.serialize.pickling.scan import UnsupportedTensor
from engine.serialize.pickling.tensors import StorageType, TensorReader
from engine.serialize.pickling.value_types import misfit

Runner = Callable[[Function, list[Any]], Any]
"""Runs a method with its arguments; archives need it for `__setstate__` and `__getstate__`."""
NOT_RUN: Final = object()
"""Result of a runner that only records that the method should run; the instance then stays empty."""
ClassResolver = Callable[[str], Type | None]


def _tensor_list(values: Any) -> list[Any]:
    if type(values) is not list or not all(isinstance(each, Tensor) for each in values):
        raise PickleRefusal("a list of tensors holds something else")
    return values


def _typed_list(kind: type) -> Callable[[Any], list[Any]]:
    def check(values: Any) -> list[Any]:
        if type(values) is not list or any(type(each) is not kind for each in values):
            raise PickleRefusal(f"a list of {kind.__name__} holds something else")
        return values

    return check


def _tagged(value: Any, tag: Any) -> Any:
    # The tag repeats what the slot's own type says, and the slot is checked against that.
    if type(tag) is not str:
        raise PickleRefusal("a type tag is no string")
    return value


def _complex(real: Any, imag: Any) -> complex:
    if type(real) is not float or type(imag) is not float:
        raise PickleRefusal("a complex number is not made of two floats")
    return complex(real, imag)


def _device(*parts: Any) -> scalars.device:
    if len(parts) not in (1, 2) or type(parts[0]) is not str or any(type(p) is not int for p in parts[1:]):
        raise PickleRefusal("a device is not made of its name")
    return scalars.device(":".join(map(str, parts)))


def _ordered_dict(items: Any = ()) -> dict[Any, Any]:
    if items != ():
        raise PickleRefusal("an ordered dict is filled by its constructor")
    return {}


LIST_MAKERS: Final[dict[str, Callable[[Any], list[Any]]]] = {
    "IntList": _typed_list(int), "DoubleList": _typed_list(float), "BoolList": _typed_list(bool),
    "TensorList": _tensor_list,
}  # fmt: skip
"""Lists of one type, by the names that mark them in pickles."""
_TABLE: Final[dict[tuple[str, str], Callable[..., Any]]] = {
    ("collections", "OrderedDict"): _ordered_dict,
    ("builtins", "complex"): _complex,
    ("torch", "device"): _device,
    ("torch", "Size"): lambda sizes=(): Size(size_of(sizes)),
    **{("torch.jit._pickle", f"build_{name.lower()}"): make for name, make in LIST_MAKERS.items()},
    ("torch.jit._pickle", "restore_type_tag"): _tagged,
}
_PLAIN: Final = {name: PickleGlobal(".".join(name), call) for name, call in _TABLE.items()}
_OTHER_TENSORS: Final = {
    "torch._utils._rebuild_nested_tensor": "nested",
    "torch._utils._rebuild_sparse_tensor": "sparse", "torch._utils._rebuild_sparse_csr_tensor": "sparse",
    **{f"torch.{each.storage}": each.name for each in scalars.DTYPE_WORDS.values()},
}  # fmt: skip
_STORAGES: Final = {
    each.storage: StorageType(each) for each in (*scalars.DTYPES, *(scalars.DTYPE_WORDS[name] for name in QUANTIZED))
}
_WORDS: Final[dict[str, Any]] = {**scalars.DTYPE_BY_NAME, **scalars.QSCHEME_BY_NAME}
"""Values in the module `torch`."""


def unpickle(
    data: bytes,
    record: str,
    tensors: TensorReader | None = None,
    classes: ClassResolver | None = None,
    run: Runner | None = None,
    build: Callable[[Any, Any], None] = no_build,
    more: Mapping[tuple[str, str], PickleGlobal] | None = None,
    stored: int | None = None,
    read_type: ReadType | None = None,
) -> Any:
    """The value that a pickle holds.  Raises ArchiveError, with record and byte, for whatever is not on the list.

    `build` gets what carries a state of its own, and that state; without it, the class that is known says how that is
    filled.  `more` are further names.
    `stored` is the pickle's length in the file, where it lies compressed in it, `read_type` reads annotations.
    """
    names = GlobalNames(tensors, classes, more or {})
    own = build is not no_build or not classes
    fill = build if own else Filler(run, names.tags, read_type).fill
    load = tensors.load if tensors else no_persistent
    return PickleMachine(data, record, names.find, load, fill, stored=stored).run()


class GlobalNames:
    """Finds what a global name stands for."""

    def __init__(
        self, tensors: TensorReader | None, classes: ClassResolver | None, more: Mapping[tuple[str, str], PickleGlobal]
    ) -> None:
        self._classes = classes
        self._known: dict[tuple[str, str], Any] = {**_PLAIN, **more}
        self.tags = StateTypes()
        if tensors is not None:
            self._known["torch._utils", "_rebuild_tensor_v2"] = PickleGlobal("_rebuild_tensor_v2", tensors.rebuild)
            self._known["torch._utils", "_rebuild_tensor"] = PickleGlobal("_rebuild_tensor", tensors.rebuild_oldest)
            self._known["torch._utils", "_rebuild_qtensor"] = PickleGlobal(
                "_rebuild_qtensor", tensors.rebuild_quantized
            )
            self._known["torch._utils", "_rebuild_meta_tensor_no_storage"] = PickleGlobal(
                "_rebuild_meta_tensor_no_storage", tensors.rebuild_without_numbers
            )
            self._known["torch._utils", "_rebuild_parameter"] = PickleGlobal("_rebuild_parameter", _parameter)

    def find(self, module: str, name: str) -> Any:
        known = self._known.get((module, name))
        if known is None:
            known = self._known[module, name] = self._find_new(module, name)
        return known

    def _find_new(self, module: str, name: str) -> Any:
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        if module == "torch" and name in _WORDS:
            return _WORDS[name]
        qualname = f"{module}.{name}"
        other = _OTHER_TENSORS.get(qualname)
        if other is not None:
            raise UnsupportedTensor(f"it holds {other} tensors, which programs here cannot have")
        if module.partition(".")[0] != ROOT or self._classes is None:
            raise PickleRefusal(f"the global name '{qualname:.200}' is not allowed in an archive")
        found = self._classes(qualname) if is_qualified(qualname) else None
        if isinstance(found, ClassType) and is_custom(found):
            self.tags.begin(self._known)
            return PickleGlobal(qualname, new=lambda: CustomObject(found))
        if isinstance(found, ClassType):
            return PickleGlobal(qualname, new=lambda: Object(found))
        if isinstance(found, EnumType):
            return PickleGlobal(qualname, call_bare=lambda value: _enum_member(found, value))
        raise PickleRefusal(f"the archive has no class '{qualname:.200}'")


def _parameter(data: Any, requires_grad: Any, _hooks: Any) -> Tensor:
    if not isinstance(data, Tensor) or type(requires_grad) is not bool:
        raise PickleRefusal("a parameter's description is damaged")
    data.requires_grad = requires_grad
    return as_parameter(data)  # type: ignore[no-any-return]


def _enum_member(type: EnumType, value: Any) -> EnumValue:
    for name, known in type.members:
        if known.__class__ is value.__class__ and known == value:
            return EnumValue(type, name)
    raise PickleRefusal(f"enum '{type.qualname}' has no member with the value {value!r:.40}")


class Filler:
    """Fills instances with their pickled state."""

    def __init__(self, run: Runner | None, tags: StateTypes | None = None, read_type: ReadType | None = None) -> None:
        self._run, self._tags, self._read_type = run, tags or StateTypes(), read_type

    def fill(self, instance: Any, state: Any) -> None:
        if not isinstance(instance, Object):
            raise PickleRefusal("it fills what is no instance")
        if isinstance(instance, CustomObject):
            fill_custom(instance, state, self._tags, self._read_type)
            return
        setstate = instance.type.methods.get("__setstate__")
        if setstate is not None and "__getstate__" in instance.type.methods:
            self._set_state(instance, setstate, state)
            return
        if type(state) is not dict:
            raise PickleRefusal(f"the state of a '{instance.type.qualname}' is no dict")
        for attribute in instance.type.attributes:
            if attribute.name not in state:
                raise PickleRefusal(f"the state of a '{instance.type.qualname}' lacks '{attribute.name}'")
            value = state[attribute.name]
            wrong = misfit(value, attribute.type)
            if wrong is not None:
                raise PickleRefusal(f"attribute '{attribute.name}' of '{instance.type.qualname}': {wrong}")
            notice_quantized(value)
            instance.set(attribute.name, value)

    def _set_state(self, instance: Object, setstate: Any, state: Any) -> None:
        if self._run is None:
            raise PickleRefusal(f"a '{instance.type.qualname}' runs code to fill itself, and nothing here can run it")
        wrong = misfit(state, setstate.schema.arguments[1].type)
        if wrong is not None:
            raise PickleRefusal(f"the state of a '{instance.type.qualname}': {wrong}")
        if self._run(setstate, [instance, state]) is NOT_RUN:
            return
        for attribute in instance.type.attributes:
            wrong = misfit(instance.get(attribute.name), attribute.type)
            if wrong is not None:
                place = f"attribute '{attribute.name}' of '{instance.type.qualname}'"
                raise PickleRefusal(f"{place} is not as it should be after __setstate__: {wrong}")
