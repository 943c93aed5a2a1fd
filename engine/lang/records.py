"""Data classes that are made fast: the standard library's, but for methods that are written when they are first used.

In: a class.  Out: the class as `dataclasses.dataclass` makes it, `replace`, `fields` and copies included.  The standard
library writes and compiles up to six functions for each class, most of which a dialogue never calls; that took a third
of the time until a first answer.  Here `__init__` is written with the first object of its class, `__repr__`, `__eq__`
and `__hash__` are ordinary functions over the values of the fields, and all frozen classes refuse in the same words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

from engine.lang.deferred import unwritten

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, repr: bool = True, eq: bool = True, frozen: bool = False, **options: Any
    ) -> Any:
        """The same as `dataclasses.dataclass`, which explains the options."""

        def made(plain: type) -> type:
            own = {name for name in vars(plain) if name != "__hash__" or plain.__hash__ is not None}
            plain.__doc__ = plain.__doc__ or plain.__name__  # without one, it would be made of the signature
            known = dataclasses.dataclass(plain, init=False, repr=False, eq=False, **options)
            for name, member in _members(known, repr, eq, frozen, options.get("slots", False)):
                if name not in own:
                    setattr(known, name, member)
            return known

        return made if cls is None else made(cls)


def _members(cls: type, repr: bool, eq: bool, frozen: bool, slots: bool) -> Iterator[tuple[str, Any]]:
    """The methods that these options ask for."""
    yield _late(cls, "__init__", _frozen_init_of if frozen else _init_of)
    if repr:
        yield _late(cls, "__repr__", _repr_of)
    if eq:
        yield _late(cls, "__eq__", _eq_of)
        yield _late(cls, "__hash__", _hash_of) if frozen else ("__hash__", None)
    if frozen:
        yield "__setattr__", _refuse_write
        yield "__delattr__", _refuse_removal
    if frozen and slots:  # copies and pickles are written around the refusal
        yield "__getstate__", _state
        yield "__setstate__", _set_state


def _late(cls: type, name: str, write: Callable[[type], Callable[..., Any]]) -> tuple[str, Any]:
    return name, unwritten(cls, name, partial(_written, cls, write))


def _written(cls: type, write: Callable[[type], Callable[..., Any]]) -> Callable[..., Any]:
    function = write(cls)
    function.__qualname__ = f"{cls.__qualname__}.{function.__name__}"
    return function


def _init_of(cls: type, store: str = "self.{0} = {1}") -> Callable[..., Any]:
    """`__init__`, which takes the fields and stores each as the line `store` says."""
    made = dataclasses.fields(cls)
    parameters = [_parameter(each) for each in made if each.init and not each.kw_only]
    named = [_parameter(each) for each in made if each.init and each.kw_only]
    lines = [store.format(each.name, _value(each)) for each in made if each.init or _has_default(each)]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    signature = ", ".join(["self", *parameters, *(["*", *named] if named else [])])
    names: dict[str, Any] = {"_MADE": _MADE, "_store": object.__setattr__}
    names |= {f"_default_{each.name}": each.default for each in made}
    names |= {f"_factory_{each.name}": each.default_factory for each in made}
    exec(f"def __init__({signature}):\n " + "\n ".join(lines or ["pass"]), names)
    init: Callable[..., Any] = names["__init__"]
    init.__annotations__ = {each.name: each.type for each in made if each.init} | {"return": None}
    return init


def _frozen_init_of(cls: type) -> Callable[..., Any]:
    return _init_of(cls, "_store(self, '{0}', {1})")


class _Made:
    """The default of a field that a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Made()


def _is_made(each: Field[Any]) -> bool:
    return each.default_factory is not MISSING


def _has_default(each: Field[Any]) -> bool:
    return _is_made(each) or each.default is not MISSING


def _parameter(each: Field[Any]) -> str:
    if _is_made(each):
        return f"{each.name}=_MADE"
    return f"{each.name}=_default_{each.name}" if _has_default(each) else each.name


def _value(each: Field[Any]) -> str:
    """The text of the value that `__init__` stores in a field."""
    if not _is_made(each):
        return each.name if each.init else f"_default_{each.name}"
    made = f"_factory_{each.name}()"
    return f"{made} if {each.name} is _MADE else {each.name}" if each.init else made


def _repr_of(cls: type) -> Callable[[Any], str]:
    names = [each.name for each in dataclasses.fields(cls) if each.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _eq_of(cls: type) -> Callable[[Any, Any], Any]:
    values = _values(each.name for each in dataclasses.fields(cls) if each.compare)

    def __eq__(self: Any, other: Any) -> Any:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    return __eq__


def _hash_of(cls: type) -> Callable[[Any], int]:
    values = _values(
        each.name for each in dataclasses.fields(cls) if (each.compare if each.hash is None else each.hash)
    )

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _values(names: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that takes the values of these fields."""
    wanted = tuple(names)
    if len(wanted) > 1:
        return attrgetter(*wanted)
    return lambda self: tuple(getattr(self, name) for name in wanted)


def _refuse_write(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_removal(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
