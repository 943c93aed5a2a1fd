"""The values in a mobile flatbuffer: numbers, texts, containers, tensors and objects, made when they are asked for.

In: the outermost table, and a `Maker` of tensors and objects (`makers.py`).  Out: values by their numbers.  A value is
made of values with smaller numbers, and so of no value that holds it.  Errors are ArchiveErrors with the byte offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, Final, Protocol

from engine.lang import scalars
from engine.lang.errors import ArchiveError, BudgetExceeded, EngineError, UnsupportedTensorError
from engine.lang.records import dataclass
from engine.serialize.mobile.flatbuffer import RECORD, FlatTable, Member, refused
from engine.serialize.mobile.schema import CLASS_WITH_FIELDS
from engine.serialize.pickling.read import LOOK, MAX_DEPTH
from engine.serialize.pickling.scan import PickleRefusal, UnsupportedTensor


class Maker(Protocol):
    """Makes what depends on who asks."""

    def tensor(self, described: FlatTable) -> Any:
        """A tensor, from its `TensorMetadata`."""

    def instance(self, qualname: str, state: Any) -> Any:
        """An object: its attributes by name as a dict, or what its `__setstate__` takes."""

    def note(self, value: Any, annotation: str) -> None:
        """An empty list or dict is of that type."""

    def enum(self, qualname: str, value: Any) -> Any:
        """The member of an enum that has the value."""


@dataclass(slots=True, eq=False)
class Values:
    """The values by their numbers; number 0 is None."""

    root: FlatTable
    maker: Maker
    _tables: list[FlatTable] = field(default_factory=list)
    _types: list[FlatTable] = field(default_factory=list)
    _known: dict[int, tuple[Any, int]] = field(default_factory=dict)
    """A value, and how deep it nests."""

    def __post_init__(self) -> None:
        self._tables = self.root.listed("ivalues")
        self._types = self.root.listed("object_types")

    def __len__(self) -> int:
        return len(self._tables)

    def module(self) -> Any:
        """The object that the program is."""
        return self.value(self.root["state_obj"], self.root)

    def constants(self) -> tuple[Any, ...]:
        """The table of constants: `CONSTANTS.c0`, …"""
        return tuple(self.value(index, self.root) for index in self.root.listed("jit_constants"))

    def table(self, index: int, owner: FlatTable) -> FlatTable:
        """The table of that value.  Raises ArchiveError when there is none."""
        if index >= len(self._tables):
            raise refused(f"it refers to the value {index}, and there are {len(self._tables)}", owner.at)
        return self._tables[index]

    def value(self, index: int, owner: FlatTable) -> Any:
        """The value of that number, which `owner` refers to.  Raises ArchiveError."""
        for each in sorted(self._needed(index, owner)):
            self._known[each] = self._made(each)
        return self._known[index][0]

    def _needed(self, index: int, owner: FlatTable) -> set[int]:
        """The numbers of the values that are to be made for that one, itself included."""
        needed: set[int] = set()
        waiting = [(index, owner, len(self._tables))]
        while waiting:
            number, asker, below = waiting.pop()
            member = self.table(number, asker)["val"]
            if number >= below:
                raise refused(f"the value {number} is used before it is there", asker.at)
            if number in self._known or number in needed:
                continue
            needed.add(number)
            if member is not None:
                waiting += [(each, member.value, number) for each in _references(member)]
        return needed

    def _made(self, index: int) -> tuple[Any, int]:
        """The value and how deep it nests; its parts are there."""
        member = self._tables[index]["val"]
        if member is None:
            return None, 0
        kind, held = member
        if isinstance(held, tuple):
            return (complex(*held) if kind == "ComplexDouble" else held[0]), 0
        make = _KINDS.get(kind)
        if make is None:
            raise refused(f"a '{kind}' is used as a value", held.at)
        parts = _Parts(self, held)
        value = _guarded(lambda: make(parts), held)
        if isinstance(value, (list, dict)) and not value:
            self.maker.note(value, _TYPES.get(kind) or held["annotation_str"] or "")
        if parts.depth >= MAX_DEPTH:
            raise refused(f"it nests deeper than {MAX_DEPTH}", held.at)
        return value, parts.depth + 1

    def object_type(self, index: int, owner: FlatTable) -> FlatTable:
        if index >= len(self._types):
            raise refused(f"an object is of the type {index}, and there are {len(self._types)}", owner.at)
        return self._types[index]


@dataclass(slots=True, eq=False)
class _Parts:
    """A value's table, and the values that it is made of."""

    values: Values
    table: FlatTable
    depth: int = 0

    def one(self, name: str) -> Any:
        return self._part(self.table[name])

    def several(self, name: str) -> list[Any]:
        return [self._part(each) for each in self.table.listed(name)]

    def text(self, name: str) -> str:
        found: str | None = self.table[name]
        if found is None:
            raise PickleRefusal(f"a '{self.table.name}' lacks its text")
        return found

    def _part(self, index: int) -> Any:
        value, depth = self.values._known[index]
        self.depth = max(self.depth, depth)
        return value


_REFERENCES: Final = {
    "List": ("items",), "Tuple": ("items",), "Dict": ("keys", "values"), "Object": ("attrs", "state"),
    "EnumValue": ("value",),
}  # fmt: skip
"""The fields that hold numbers of values."""
_TYPES: Final = {"IntList": "List[int]", "DoubleList": "List[float]", "BoolList": "List[bool]"}
"""The types of lists that do not say theirs."""


def _references(member: Member) -> Iterator[int]:
    for name in _REFERENCES.get(member.kind, ()):
        found = member.value[name]
        yield from found if isinstance(found, list) else (found,) if found is not None else ()


def _guarded(action: Callable[[], Any], table: FlatTable) -> Any:
    """Run the action; its errors are raised with the byte offset."""
    try:
        return action()
    except UnsupportedTensor as reason:
        raise UnsupportedTensorError(str(reason), record=RECORD, offset=table.at, hints=(LOOK,)) from None
    except PickleRefusal as reason:
        raise refused(str(reason), table.at) from None
    except BudgetExceeded as error:
        raise BudgetExceeded(error.message, record=RECORD, offset=table.at, hints=error.hints) from None
    except ArchiveError:
        raise
    except EngineError as error:
        raise refused(str(error), table.at) from None


# -- kinds of values


def _dict(parts: _Parts) -> dict[Any, Any]:
    keys, values = parts.several("keys"), parts.several("values")
    if len(keys) != len(values) or any(isinstance(key, (list, dict, tuple)) for key in keys):
        raise PickleRefusal("the keys of a dict are not those that programs can have")
    return dict(zip(keys, values, strict=True))


def _object(parts: _Parts) -> Any:
    type = parts.values.object_type(parts.table["type_index"], parts.table)
    qualname, how = type["type_name"] or "", type["type"]
    if how != CLASS_WITH_FIELDS:
        return parts.values.maker.instance(qualname, parts.one("state"))
    names, attributes = type.listed("attr_names"), parts.several("attrs")
    if len(names) != len(attributes) or len(set(names)) != len(names):
        raise PickleRefusal(f"a '{qualname:.80}' has {len(attributes)} attributes with {len(set(names))} names")
    return parts.values.maker.instance(qualname, dict(zip(names, attributes, strict=True)))


_KINDS: Final[dict[str, Callable[[_Parts], Any]]] = {
    "String": lambda parts: parts.text("data"),
    "Device": lambda parts: scalars.device(parts.text("str")),
    "IntList": lambda parts: parts.table.listed("items"),
    "DoubleList": lambda parts: parts.table.listed("items"),
    "BoolList": lambda parts: parts.table.listed("items"),
    "List": lambda parts: parts.several("items"),
    "Tuple": lambda parts: tuple(parts.several("items")),
    "Dict": _dict,
    "TensorMetadata": lambda parts: parts.values.maker.tensor(parts.table),
    "Object": _object,
    "EnumValue": lambda parts: parts.values.maker.enum(parts.text("type_name"), parts.one("value")),
}
