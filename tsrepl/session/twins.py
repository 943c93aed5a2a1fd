"""Values as Python and programs hold them, in pairs.

In: a value of one side and its type.  Out: the same value for the other side.  A list, a dict or an array of Python and
its twin in the session stay a pair for as long as one of them has a name: what one side changed in place since the last
cell is written into the other, so names that meant one list on one side mean one list on the other.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from functools import cache, reduce
from itertools import chain
from operator import is_
from typing import Any, Final

import numpy as np

from engine.aten.values.tensor import Tensor
from engine.executor.conversion.from_python import Mismatch, from_python, unwrapped
from engine.executor.conversion.to_python import to_python
from engine.ir.constants import type_of
from engine.lang.errors import EngineError
from engine.lang.records import dataclass
from engine.lang.scalars import NUMBERED
from engine.lang.types import (
    ANY,
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    STR,
    TENSOR,
    DictType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    UnionType,
    unify,
)  # fmt: skip
from engine.torch.jit.scripting.python_program import PYTHON

Parts = list[Any]
_class_of: Final = type
"""Python's `type`: here that is mostly the name of a type of TorchScript."""


_SIMPLE: Final[dict[type, Type]] = {int: INT, float: FLOAT, bool: BOOL, str: STR, complex: COMPLEX}
"""The types of values that are the same on both sides."""


class Unshareable(Exception):
    """The value has no type in TorchScript; the message says why."""


@dataclass(eq=False, slots=True)
class Pair:
    """A value on both sides, and the parts of both when they were last the same.

    They are one list where no part is another for Python than for programs.  `round` is the last in which the pair was
    brought up to date, `checked` the last in which Python's parts were found unchanged.
    """

    python: Any
    program: Any
    type: Type
    python_parts: Parts
    program_parts: Parts
    round: int = 0
    checked: int = 0


class Twins:
    """All the pairs."""

    def __init__(self) -> None:
        self._of_python: dict[int, Pair] = {}
        self._of_program: dict[int, Pair] = {}
        self._round = 0

    def begin(self) -> None:
        """Begin a round, in which each pair is brought up to date once."""
        self._round += 1

    def keep(self, python: Any) -> None:
        """Keep the pair of a Python value that has a name and did not change, if there is one."""
        pair = self._of_python.get(id(python))
        if pair is not None:
            pair.round = self._round

    def end(self) -> None:
        """End a round of giving: pairs that it did not reach have no names any more."""
        pairs = [pair for pair in self._of_program.values() if pair.round == self._round]
        self._of_python = {id(pair.python): pair for pair in pairs}
        self._of_program = {id(pair.program): pair for pair in pairs}

    # -- types

    def type_of(self, value: Any, known: Type | None = None) -> Type:
        """The type of a Python value; the `known` one of an empty container.  Raises Unshareable."""
        if isinstance(value, (list, dict)):
            pair = self._of_python.get(id(value))
            if pair is not None and self._is_unchanged(pair, _depth(pair.type)):
                return pair.type
            known = pair.type if pair is not None else known
            return known if not value and isinstance(known, _kind_of(value)) else self._container_type(value)
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return _tuple_of(tuple(map(type, value))) or TupleType(tuple(map(self.type_of, value)))
        if isinstance(value, (enum.Enum, tuple)):
            return self._class_type(type(value))
        if isinstance(value, (np.ndarray, Tensor)):
            return TENSOR
        if isinstance(value, NUMBERED):
            return INT
        inner = value.item() if isinstance(value, np.generic) else unwrapped(value)
        try:
            return type_of(value if inner is None else inner)
        except AssertionError:
            name = type(value).__name__
            article = "an" if name[0] in "aeiouAEIOU" else "a"
            raise Unshareable(f"{article} {name} has no type in TorchScript") from None

    def _container_type(self, value: Any) -> Type:
        if isinstance(value, list):
            return _list_of(self._common_type(value, TENSOR))
        return DictType(self._common_type(value, STR), self._common_type(value.values(), TENSOR))

    def _common_type(self, values: Iterable[Any], empty: Type) -> Type:
        kinds = dict.fromkeys(map(type, values))
        found = map(_SIMPLE.__getitem__, kinds) if kinds.keys() <= _SIMPLE.keys() else map(self.type_of, values)
        # Equal types of many elements are mostly one object, which is not hashed as often.
        types = list(dict.fromkeys({id(each): each for each in found}.values()))
        common = reduce(lambda a, b: unify(a, b) or ANY, types) if types else empty
        if common is ANY:
            raise Unshareable(f"its elements have different types: {types[0]} and {types[1]}")
        return common

    def _class_type(self, cls: type) -> Type:
        try:
            return PYTHON.type_of(cls)
        except EngineError as error:
            raise Unshareable(error.message) from None

    # -- to the session

    def take(self, value: Any, type: Type) -> Any:
        """The program's value of a Python one.  Raises Unshareable."""
        try:
            return self._take(value, type)
        except (Mismatch, EngineError) as error:
            raise Unshareable(str(error) or f"it is no {type.annotation_str}") from None

    def _take(self, value: Any, type: Type) -> Any:
        if isinstance(type, OptionalType):
            return None if value is None else self._take(value, type.element)
        if type is ANY or isinstance(type, UnionType):
            type = self.type_of(value)
        if isinstance(type, (ListType, DictType)) and isinstance(value, (list, dict)):
            return self._take_container(value, type)
        if isinstance(type, TupleType) and isinstance(value, tuple) and len(value) == len(type.elements):
            if _tuple_of(tuple(map(_class_of, value))) is type and _fit([e for e in value if _class_of(e) is int]):
                return value
            parts = tuple(map(self._take, value, type.elements))
            return value if type.name is None and _same(parts, value) else parts
        pair = self._of_python.get(id(value))
        if pair is not None:
            pair.round = self._round
            return pair.program
        made = from_python(type)(value.item() if isinstance(value, np.generic) else value)
        if isinstance(value, np.ndarray):
            self._pair(value, made, type)
        return made

    def _take_container(self, value: Any, type: Type) -> Any:
        pair = self._of_python.get(id(value))
        if pair is None or (pair.type is not type and pair.type != type):
            pair = self._pair(value, builtin_like(value), type)
        elif pair.round == self._round or (value and self._is_unchanged(pair, _depth(type))):
            pair.round = self._round
            return pair.program
        pair.round = self._round
        theirs = parts_of(value)
        parts = self._taken_parts(value, theirs, type)
        if not _same(parts, parts_of(pair.program)):
            fill(pair.program, parts)
        pair.python_parts, pair.program_parts = theirs, parts
        return pair.program

    def _is_unchanged(self, pair: Pair, depth: int) -> bool:
        """True if Python's list or dict has the very parts that it had, and they theirs; gone through once in a round.

        `depth` is that of its type.
        """
        now = self._round
        if pair.checked == now:
            return True
        if not depth or not _holds_same(pair.python, pair.python_parts):
            return False
        if depth > 1:
            for each in _containers_in(pair.python):
                inner = self._of_python.get(id(each))
                if inner is None or not self._is_unchanged(inner, depth - 1):
                    return False
        pair.checked = now
        return True

    def _is_left(self, pair: Pair, depth: int) -> bool:
        """The same for programs, whose pairs this brings up to date as far as they have the parts that they had."""
        if pair.round == self._round:
            return True
        if not depth or not _holds_same(pair.program, pair.program_parts):
            return False
        if depth > 1:
            for each in _containers_in(pair.program):
                inner = self._of_program.get(id(each))
                if inner is None or not self._is_left(inner, depth - 1):
                    return False
        pair.round = self._round
        return True

    def _taken_parts(self, value: Any, parts: Parts, type: Type) -> Parts:
        if isinstance(type, ListType) and _holds(type.element, parts):
            return parts
        return [self._take(each, kind) for each, kind in zip(parts, _part_types(value, type), strict=True)]

    # -- to Python

    def give(self, value: Any, type: Type) -> Any:
        """The Python value of a program's."""
        if isinstance(type, OptionalType):
            return None if value is None else self.give(value, type.element)
        if type is ANY or isinstance(type, UnionType):
            return _converted(value, type)
        if isinstance(type, (ListType, DictType)):
            return self._give_container(value, type)
        if isinstance(type, TupleType) and type.name is None:
            parts = tuple(map(self.give, value, type.elements))
            return value if _same(parts, value) else parts
        pair = self._of_program.get(id(value))
        if pair is not None:
            pair.round = self._round
            return pair.python
        return _converted(value, type)

    def _give_container(self, value: Any, type: Type) -> Any:
        pair = self._of_program.get(id(value))
        if pair is None:
            pair = self._pair(builtin_like(value), value, type)
        elif pair.round == self._round or (value and self._is_left(pair, _depth(type))):
            return pair.python
        pair.round = self._round
        ours = parts_of(value)
        is_shared = _depth(type) == 1 and pair.python_parts is pair.program_parts
        parts = ours if is_shared else self._given_parts(pair, ours, type)
        if not _same(parts, parts_of(pair.python)):
            fill(pair.python, parts)
        pair.python_parts, pair.program_parts = parts, ours
        return pair.python

    def _given_parts(self, pair: Pair, ours: Parts, type: Type) -> Parts:
        kinds = _part_types(pair.program, type)
        return [self._given_part(pair, at, each, kinds[at]) for at, each in enumerate(ours)]

    def _given_part(self, pair: Pair, at: int, part: Any, type: Type) -> Any:
        """Python's own part where the program left it as it was: numbers of numpy stay what they are."""
        given = self.give(part, type)
        is_old = at < len(pair.program_parts) and part is pair.program_parts[at]
        return pair.python_parts[at] if is_old and given is part else given

    def _pair(self, python: Any, program: Any, type: Type) -> Pair:
        none: Parts = []
        pair = Pair(python, program, type, none, none, self._round)
        self._of_python[id(python)] = self._of_program[id(program)] = pair
        return pair


@cache
def _depth(type: Type) -> int:
    """1 for containers of values that cannot change in themselves, 1 more for containers of such; 0 for all else."""
    if not isinstance(type, (ListType, DictType)):
        return 0
    element = type.value if isinstance(type, DictType) else type.element
    if _is_fixed(element):
        return 1
    inner = _depth(element)
    return inner + 1 if inner else 0


def _is_fixed(type: Type) -> bool:
    """True for numbers, strings and tuples of these: objects that stay what they are."""
    if isinstance(type, TupleType):
        return type.name is None and all(map(_is_fixed, type.elements))
    return type in _SIMPLE.values()


@cache
def _tuple_of(kinds: tuple[type, ...]) -> TupleType | None:
    """The type of tuples of values of these classes, if all are simple: one object for each."""
    simple = [*map(_SIMPLE.get, kinds)]
    return TupleType(tuple(each for each in simple if each is not None)) if None not in simple else None


_list_of: Final = cache(ListType)
"""Types of lists, of which there is one object for each type of elements."""


def _containers_in(value: Any) -> Iterable[Any]:
    """The elements of a list, the values of a dict: those parts that may be containers."""
    return value.values() if isinstance(value, dict) else value


def _holds(element: Type, parts: Parts) -> bool:
    """True if the parts are all of this simple type, so that programs take them as they are."""
    kinds = set(map(type, parts))
    return len(kinds) == 1 and _SIMPLE.get(kinds.pop()) == element and (element is not INT or _fit(parts))


def _fit(numbers: Parts) -> bool:
    return not numbers or bool(min(numbers) >= -(2**63) and max(numbers) < 2**63)


def parts_of(value: Any) -> Parts:
    """The elements of a list; the keys of a dict, then its values."""
    return [*value, *value.values()] if isinstance(value, dict) else list(value)


def fill(container: Any, parts: Parts) -> None:
    """Give a list or dict new contents."""
    if isinstance(container, dict):
        half = len(parts) // 2
        container.clear()
        container.update(zip(parts[:half], parts[half:], strict=True))
    else:
        container[:] = parts


def builtin_like(value: Any) -> Any:
    """An empty list or dict."""
    return {} if isinstance(value, dict) else []


def _part_types(value: Any, type: Type) -> list[Type]:
    if isinstance(type, DictType):
        return [type.key] * len(value) + [type.value] * len(value)
    assert isinstance(type, ListType), f"{type} is no container"
    return [type.element] * len(value)


def _kind_of(value: Any) -> type[Type]:
    return ListType if isinstance(value, list) else DictType


def _same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """True if both have the very same parts."""
    return len(a) == len(b) and all(map(is_, a, b))


def _holds_same(value: Any, parts: Parts) -> bool:
    """True if a list or dict has the very same parts, which are not copied for that: there may be a million."""
    if isinstance(value, dict):
        return 2 * len(value) == len(parts) and all(map(is_, chain(value, value.values()), parts))
    return _same(value, parts)


def _converted(value: Any, type: Type) -> Any:
    convert = to_python(type)
    return convert(value) if convert else value
