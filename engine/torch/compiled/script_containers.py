"""`torch.jit.script([1, 2])`, `torch.jit.script({"a": 1})`: lists and dicts that Python and programs share.

In: a Python list or dict, and its type in programs.  Out: `ScriptList`, `ScriptDict`, with the methods of Python's list
and dict.  A program that is given one writes to the same memory, where any other list is copied on its way in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, MutableSequence
from typing import Any

from engine.executor.conversion.from_python import Mismatch, Shared, from_python
from engine.executor.conversion.to_python import to_python
from engine.lang.types import DictType, ListType, Type
from engine.torch.compiled.facade import wrap


class _Container(Shared):
    """The base of both: the program's own container, and its type."""

    __slots__ = ()

    @property
    def type(self) -> Any:
        return wrap(self.shared_type)

    def _type(self) -> Any:
        return wrap(self.shared_type)

    def __len__(self) -> int:
        return len(self.shared)

    def __eq__(self, other: object) -> bool:
        return bool(self.shared == (other.shared if isinstance(other, Shared) else other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.shared)


class ScriptList(_Container, MutableSequence[Any]):
    """A list of a program.  Elements of the wrong type raise TypeError."""

    __slots__ = ()
    shared_type: ListType

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return ScriptList(self.shared[index], self.shared_type)
        return _out(self.shared[index], self.shared_type.element)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self.shared[index] = [self._in(each) for each in value]
        else:
            self.shared[index] = self._in(value)

    def __delitem__(self, index: Any) -> None:
        del self.shared[index]

    def insert(self, index: int, value: Any) -> None:
        self.shared.insert(index, self._in(value))

    def extend(self, values: Iterable[Any]) -> None:
        self.shared.extend([self._in(each) for each in values])

    def count(self, value: Any) -> int:
        return int(self.shared.count(self._in(value)))

    def remove(self, value: Any) -> None:
        self.shared.remove(self._in(value))

    def sort(self, *, reverse: bool = False) -> None:
        self.shared.sort(reverse=reverse)

    def __contains__(self, value: object) -> bool:
        return self._in(value) in self.shared

    def _in(self, value: Any) -> Any:
        return _in(value, self.shared_type.element)


class ScriptDict(_Container, MutableMapping[Any, Any]):
    """A dict of a program.  Keys and values of the wrong type raise TypeError; those that are asked for, KeyError."""

    __slots__ = ()
    shared_type: DictType

    def __getitem__(self, key: Any) -> Any:
        return _out(self.shared[self._known(key)], self.shared_type.value)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.shared[_in(key, self.shared_type.key)] = _in(value, self.shared_type.value)

    def __delitem__(self, key: Any) -> None:
        del self.shared[_in(key, self.shared_type.key)]

    def __contains__(self, key: object) -> bool:
        return self._known(key) in self.shared

    def __iter__(self) -> Iterator[Any]:
        return iter(self.shared)

    def _known(self, key: Any) -> Any:
        try:
            return _in(key, self.shared_type.key)
        except TypeError as error:
            raise KeyError(str(error)) from None


def script_container(value: list[Any] | dict[Any, Any], type: Type) -> ScriptList | ScriptDict:
    """The container as programs and Python share it.  Raises TypeError for elements that are not of the type."""
    made = _in(value, type)
    return ScriptList(made, type) if isinstance(type, ListType) else ScriptDict(made, type)


def _in(value: Any, type: Type) -> Any:
    try:
        return from_python(type)(value)
    except Mismatch as error:
        reason = f": {error}" if str(error) else ""
        raise TypeError(f"{value!r} is not of type {type.annotation_str}{reason}") from None


def _out(value: Any, type: Type) -> Any:
    """The element for Python: a container that is shared, too, or the value as calls return it."""
    if isinstance(type, ListType):
        return ScriptList(value, type)
    if isinstance(type, DictType):
        return ScriptDict(value, type)
    convert = to_python(type)
    return convert(value) if convert else value
