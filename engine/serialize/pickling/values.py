"""Any pickle of PyTorch's, described: containers and numbers as they are, tensors by place, all else by name.

In: a pickle's bytes.  Out: its value, in which a `TensorEntry` says where a tensor's elements lie and a `Foreign`
stands for an instance of a Python class, with the arguments and the state that were pickled.  It is the machine of
`read` with a table that builds nothing: no class is looked up, no function called.
"""

from __future__ import annotations

import pickletools
import reprlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Final

from engine.lang import scalars
from engine.lang.errors import ArchiveError
from engine.lang.records import dataclass
from engine.serialize.pickling.entries import StorageEntry as StorageEntry
from engine.serialize.pickling.entries import StorageKind, checked, size_of, storage_id
from engine.serialize.pickling.entries import TensorEntry as TensorEntry
from engine.serialize.pickling.other_tensors import TensorParts as TensorParts
from engine.serialize.pickling.other_tensors import nested, quantized, sparse, without_numbers
from engine.serialize.pickling.read import PickleGlobal, PickleMachine
from engine.serialize.pickling.scan import PickleRefusal, expect_tuple

DTYPES: Final = {**scalars.DTYPE_BY_NAME, **scalars.DTYPE_WORDS}
"""Every dtype that files may have, whether tensors here can have it or not."""
_BY_STORAGE: Final = {d.storage: d for d in DTYPES.values()}
_UNTYPED: Final = "UntypedStorage"
MAX_NAMES: Final = 10_000
MAX_VISITS: Final = 2_000_000
MAX_DEPTH: Final = 6
"""So deep are values without tensors looked for."""
MAX_SHOWN: Final = 6
"""A longer list is described by its length."""
_NESTED: Final = (dict, list, tuple)


@dataclass(slots=True, eq=False)
class Foreign:
    """An instance of a Python class, or what a Python function would have given."""

    name: str
    arguments: tuple[Any, ...] = ()
    state: Any = None


@dataclass(slots=True, eq=False)
class Described:
    """A pickle's value, the global names it uses in order, the byte behind its end, its storages by key, its start."""

    value: Any
    names: list[str]
    end: int
    storages: dict[str, StorageEntry] = field(default_factory=dict)
    start: int = 0


def describe_pickle(data: Any, record: str, at: int = 0, objects: Mapping[int, Any] | None = None) -> Described:
    """The contents of the pickle at byte `at` of `data` (bytes, or a mapped file).  Raises ArchiveError.

    `objects` are what persistent ids that are numbers, as text, stand for in the oldest files.
    """
    table = _Table(objects or {})
    machine = PickleMachine(data, record, table.find, table.persistent, _fill)
    machine.at = at
    try:
        value = machine.run()
    except PickleRefusal as reason:
        raise ArchiveError(f"the pickle is refused: {reason}", record=record) from None
    return Described(value, list(table.names), machine.at, table.storages, at)


def names_in(data: bytes) -> list[str]:
    """The global names that a pickle of any protocol mentions, as far as `data` goes; nothing is built."""
    names: dict[str, None] = {}
    texts: list[str] = []
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in ("GLOBAL", "INST"):
                names[str(argument).replace(" ", ".", 1)] = None
            elif opcode.name == "STACK_GLOBAL" and len(texts) >= 2:
                names[".".join(texts[-2:])] = None
            elif isinstance(argument, str):
                texts = [*texts[-1:], argument]
            if len(names) >= MAX_NAMES:
                break
    except (ValueError, IndexError, OverflowError, UnicodeDecodeError, MemoryError):
        pass
    return list(names)


def tensors_in(value: Any) -> Iterator[tuple[str, TensorEntry]]:
    """Every tensor in the value, by a dotted name; those of a pickled module have the names of its state dict.

    Raises ArchiveError for a value that shares its parts so that it would take forever to walk.
    """
    return _TensorWalk().tensors(value, "")


def is_module(value: Any) -> bool:
    """True for a pickled `nn.Module`."""
    return (
        isinstance(value, Foreign) and isinstance(value.state, dict) and isinstance(value.state.get("_modules"), dict)
    )


def plain_values(value: Any) -> Iterator[tuple[str, str]]:
    """Contents of the value other than tensors, by dotted name and as text: numbers, texts, lists, instances.

    A pickled module is left out, whose many settings say little.
    """
    return () if is_module(value) else _leaves(value, "", MAX_DEPTH)  # type: ignore[return-value]


def _leaves(value: Any, prefix: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, (TensorEntry, TensorParts)) or is_module(value):
        return
    if isinstance(value, Foreign):
        yield prefix, f"an instance of {value.name}"
        return
    if not _opens(value) or not depth:
        yield prefix, _short(value)
        return
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _leaves(each, _joined(prefix, str(key)), depth - 1)


def _opens(value: Any) -> bool:
    """True if its parts are listed one by one; those of a list of numbers are not."""
    if isinstance(value, dict):
        return bool(value)
    parts = (*_NESTED, Foreign, TensorEntry, TensorParts)
    return isinstance(value, (list, tuple)) and any(isinstance(each, parts) for each in value)


def _short(value: Any) -> str:
    if isinstance(value, _NESTED) and len(value) > MAX_SHOWN:
        return f"{type(value).__name__} of {len(value):,}"
    return reprlib.repr(value)


@dataclass(slots=True, eq=False)
class _TensorWalk:
    """One walk over a value, which may hold the same part many times."""

    visits: int = 0

    def tensors(self, value: Any, prefix: str) -> Iterator[tuple[str, TensorEntry]]:
        self.visits += 1
        if self.visits > MAX_VISITS:
            raise ArchiveError("the pickle holds too many values")
        if isinstance(value, TensorEntry):
            yield prefix, value
        elif isinstance(value, TensorParts):
            yield from ((_joined(prefix, name) if name else prefix, each) for name, each in value.entries)
        elif isinstance(value, Foreign):
            yield from self._instance(value, prefix)
        elif isinstance(value, dict):
            for key, each in value.items():
                yield from self.tensors(each, _joined(prefix, str(key)))
        elif isinstance(value, (list, tuple)):
            for index, each in enumerate(value):
                yield from self.tensors(each, _joined(prefix, str(index)))

    def _instance(self, instance: Foreign, prefix: str) -> Iterator[tuple[str, TensorEntry]]:
        if not is_module(instance):
            yield from self.tensors(instance.state, prefix)
            return
        kept = instance.state.get("_non_persistent_buffers_set")
        hidden = kept.arguments[0] if isinstance(kept, Foreign) and kept.arguments else ()
        for slot in ("_parameters", "_buffers", "_modules"):
            found = instance.state.get(slot)
            for name, each in found.items() if isinstance(found, dict) else ():
                if not (slot == "_buffers" and isinstance(hidden, (list, tuple)) and name in hidden):
                    yield from self.tensors(each, _joined(prefix, str(name)))


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


# -- the table


@dataclass(slots=True, eq=False)
class _Table:
    """Meanings of global names and persistent ids."""

    objects: Mapping[int, Any]
    names: dict[str, None] = field(default_factory=dict)
    storages: dict[str, StorageEntry] = field(default_factory=dict)

    def find(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        self.names[full] = None
        if module in ("torch", "torch.storage") and (name in _BY_STORAGE or name == _UNTYPED):
            return StorageKind(_BY_STORAGE.get(name))
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        build = _BUILDERS.get(full)
        if build is not None:
            return PickleGlobal(full, build)
        return PickleGlobal(full, lambda *arguments: _made(full, arguments), new=lambda: Foreign(full))

    def persistent(self, pid: Any) -> Any:
        if isinstance(pid, str) and pid.isdecimal() and len(pid) < 30 and int(pid) in self.objects:
            return self.objects[int(pid)]
        parts = expect_tuple(pid, "what it refers to")
        if len(parts) == 4 and parts[0] == "module":
            return parts[1]  # old files keep a class's source beside its name
        if self.objects and parts:
            return parts[0]
        if parts and type(parts[0]) is str and parts[0] != "storage":
            return Foreign("a persistent id", (parts,))  # as packages and other libraries have them
        _, kind, key, location, count = storage_id(_without_part(parts))
        if not isinstance(kind, StorageKind):
            raise PickleRefusal("it refers to something that is no storage")
        found = StorageEntry(key, kind, location, count)
        return self.storages.setdefault(key, found) if self.storages.get(key, found) == found else found


def _without_part(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The id without the part of a storage that the tensor has, which old files name sixth."""
    return parts[:5] if len(parts) == 6 else parts


def _fill(instance: Any, state: Any) -> None:
    if isinstance(instance, Foreign):
        instance.state = state


def _made(name: str, arguments: tuple[Any, ...]) -> Foreign:
    """`copyreg._reconstructor(C, object, None)` makes a C, and so does a class that is called."""
    if (
        name in ("copyreg._reconstructor", "copy_reg._reconstructor")
        and arguments
        and isinstance(arguments[0], PickleGlobal)
    ):
        return Foreign(arguments[0].name)
    return Foreign(name, arguments)


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *rest: Any) -> TensorEntry:
    if not isinstance(storage, StorageEntry) or storage.kind.dtype is None:
        raise PickleRefusal("a tensor's description is damaged")
    lazy = tuple(key for key in ("conj", "neg") if rest and type(rest[-1]) is dict and rest[-1].get(key) is True)
    return checked(storage, storage.kind.dtype, storage.count, offset, size, stride, lazy)


def _tensor_of_bytes(
    storage: Any, offset: Any, size: Any, stride: Any, _grad: Any, _hooks: Any, dtype: Any, *_rest: Any
) -> TensorEntry:
    if not isinstance(storage, StorageEntry) or not isinstance(dtype, scalars.dtype):
        raise PickleRefusal("a tensor's description is damaged")
    unit = 1 if storage.kind.dtype is None else storage.kind.dtype.itemsize
    return checked(storage, dtype, storage.count * unit // dtype.itemsize, offset, size, stride)


def _parameter(data: Any, *_rest: Any) -> Any:
    if not isinstance(data, TensorEntry):
        return data
    return replace(data, is_parameter=True)


def _of_type(build: Any, _kind: Any, arguments: Any, _state: Any = None) -> Any:
    """A tensor of a subclass: the tensor."""
    if not isinstance(build, PickleGlobal) or build.call is None:
        raise PickleRefusal("a tensor's description is damaged")
    return build.call(*expect_tuple(arguments, "what a tensor is made of"))


def _ordered_dict(items: Any = ()) -> dict[Any, Any]:
    if not isinstance(items, (list, tuple)) or any(len(each) != 2 for each in items):
        raise PickleRefusal("an ordered dict is not made of pairs")
    return dict(map(tuple, items))


def _as_set(items: Any = ()) -> Foreign:
    return Foreign("set", (list(items) if isinstance(items, (list, tuple)) else [],))


_BUILDERS: Final[dict[str, Callable[..., Any]]] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _tensor_of_bytes,
    "torch._utils._rebuild_qtensor": quantized,
    "torch._utils._rebuild_sparse_tensor": sparse,
    "torch._utils._rebuild_sparse_csr_tensor": sparse,
    "torch._utils._rebuild_nested_tensor": nested,
    "torch._utils._rebuild_meta_tensor_no_storage": without_numbers,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._tensor._rebuild_from_type_v2": _of_type,
    "collections.OrderedDict": _ordered_dict,
    "torch.Size": size_of,
    "builtins.set": _as_set,
    "__builtin__.set": _as_set,
}
