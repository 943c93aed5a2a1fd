"""Data classes that are made fast: the standard library's, but for what is made when it is first asked for.

In: a class.  Out: the class as `dataclasses.dataclass` makes it, `replace`, `fields` and copies included.  The standard
library describes each field, and writes and compiles up to six functions for each class, most of which a dialogue never
calls; that took a third of the time until a first answer.  Here fields are described when somebody asks for them,
`__init__` is written once `FEW` objects were filled without it, `__repr__`, `__eq__` and `__hash__` are ordinary
functions over the values of the fields, and all frozen classes refuse in the same words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import cache, partial
from operator import attrgetter
from reprlib import recursive_repr
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from engine.lang.deferred import Unwritten, unwritten

FEW = 8
"""Objects of a class that are filled field by field: to compile a function takes longer."""

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        repr: bool = True,
        eq: bool = True,
        frozen: bool = False,
        slots: bool = False,
        weakref_slot: bool = False,
        kw_only: bool = False,
    ) -> Any:
        """The same as `dataclasses.dataclass`, which explains the options."""

        def made(plain: type) -> type:
            own = {name for name in vars(plain) if name != "__hash__" or plain.__hash__ is not None}
            plain.__doc__ = plain.__doc__ or plain.__name__  # without one, it would be made of the signature
            declared = {
                name: (type, vars(plain).get(name, MISSING))
                for name, type in plain.__annotations__.items()
                if not _is_of_the_class(type)
            }
            _refuse_shared_defaults(declared)
            known = _with_slots(plain, declared, weakref_slot) if slots else _with_defaults(plain, declared)
            known.__dataclass_params__ = _parameters(repr, eq, frozen)
            known.__dataclass_fields__ = Unwritten(
                known, "__dataclass_fields__", partial(_fields_of, known, declared, kw_only)
            )
            for name, member in _members(known, repr, eq, frozen, slots):
                if name not in own:
                    setattr(known, name, member)
            return known

        return made if cls is None else made(cls)


Declared = Mapping[str, tuple[Any, Any]]
"""The annotation of each field that a class declares, and its default, or its description."""


def _is_of_the_class(annotation: Any) -> bool:
    """True if it says that it is of no field."""
    text = annotation if isinstance(annotation, str) else repr(annotation)
    return text.startswith(("ClassVar", "typing.ClassVar"))


def _refuse_shared_defaults(declared: Declared) -> None:
    """Raise the standard library's ValueError for a default that all objects would share, and might change."""
    for name, (_, given) in declared.items():
        default = given.default if isinstance(given, Field) else given
        if type(default).__hash__ is None:
            raise ValueError(f"mutable default {type(default)} for field {name} is not allowed: use default_factory")


def _with_slots(plain: type, declared: Declared, weakref_slot: bool) -> type:
    """The class with a slot for each field, and for weak references; Python can add none to a class that is there."""
    inherited = {name for base in plain.__mro__[1:] for name in _slots_of(base)}
    names = {**_inherited_fields(plain), **declared} | ({"__weakref__": None} if weakref_slot else {})
    body = {name: value for name, value in vars(plain).items() if name not in (*declared, "__dict__", "__weakref__")}
    body["__slots__"] = tuple(name for name in names if name not in inherited)
    made = type(plain)(plain.__name__, plain.__bases__, body)
    made.__qualname__ = plain.__qualname__
    return made


def _slots_of(base: type) -> Iterable[str]:
    slots = vars(base).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots


def _with_defaults(plain: type, declared: Declared) -> type:
    """The class, where the attribute of each field is its default."""
    for name, (_, given) in declared.items():
        if isinstance(given, Field):
            delattr(plain, name) if given.default is MISSING else setattr(plain, name, given.default)
    return plain


@cache
def _parameters(repr: bool, eq: bool, frozen: bool) -> SimpleNamespace:
    """The options, for data classes of the standard library that are derived from a record."""
    return SimpleNamespace(init=True, repr=repr, eq=eq, order=False, unsafe_hash=False, frozen=frozen)


def _inherited_fields(cls: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in cls.__mro__[:0:-1]:
        found.update(getattr(base, "__dataclass_fields__", {}))
    return found


def _fields_of(cls: type, declared: Declared, kw_only: bool) -> dict[str, Field[Any]]:
    """`__dataclass_fields__`."""
    found = _inherited_fields(cls)
    for name, (annotation, given) in declared.items():
        each: Any = given if isinstance(given, Field) else dataclasses.field(default=given)
        each.name, each.type = name, annotation
        each.kw_only = kw_only if each.kw_only is MISSING else each.kw_only
        each._field_type = dataclasses._FIELD  # type: ignore[attr-defined]  # by which `fields` knows them
        found[name] = each
    return found


def _members(cls: type, repr: bool, eq: bool, frozen: bool, slots: bool) -> Iterator[tuple[str, Any]]:
    """The methods that these options ask for."""
    yield "__init__", _FirstObjects(cls, frozen)
    yield "__match_args__", Unwritten(cls, "__match_args__", partial(_match_args_of, cls))
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


class _FirstObjects(Unwritten):
    """`__init__` of a class that has had few objects so far."""

    __slots__ = ("_fields", "_left", "_store")

    def __init__(self, owner: type, is_frozen: bool) -> None:
        super().__init__(owner, "__init__", partial(_written, owner, _frozen_init_of if is_frozen else _init_of))
        self._left, self._store = FEW, object.__setattr__ if is_frozen else setattr
        self._fields: tuple[Field[Any], ...] | None = None

    def __get__(self, instance: Any, kind: type) -> Any:
        if instance is None or self._left == 0:
            return super().__get__(instance, kind)
        self._left -= 1
        return partial(self._fill, instance)

    def _fill(self, instance: Any, *args: Any, **named: Any) -> None:
        """Give the object its fields, one by one.  What does not fit is left to `__init__`, which says so."""
        owner: Any = self._owner
        fields = self._fields = self._fields or dataclasses.fields(owner)
        given = dict(zip(owner.__match_args__, args, strict=False)) | named
        fits = len(given) == len(args) + len(named)
        for each in fields:
            if each.init and each.name in given:
                value = given.pop(each.name)
            elif _has_default(each):
                value = each.default if each.default_factory is MISSING else each.default_factory()
            else:
                fits = fits and not each.init
                continue
            self._store(instance, each.name, value)
        if not fits or given:
            owner.__init__(instance, *args, **named)
        elif hasattr(owner, "__post_init__"):
            instance.__post_init__()


def _match_args_of(cls: type) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(cls) if each.init and not each.kw_only)


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
