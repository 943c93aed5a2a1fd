"""Values that programs write to, kept so that they can be put back.

In: values.  Out: `Kept` records, which restore a value in place: whoever holds it sees what it was.  A tensor is kept
with its elements, its version and its history; a list, dict or object with what it holds; the generator of random
numbers and the modes of the thread with their state.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import repeat
from typing import Any, Final, NamedTuple, Protocol

from engine.aten.autograd.node import AccumulateGrad, Node
from engine.aten.dispatch import autocast, grad_mode
from engine.aten.kernels.random import Generator, generator
from engine.aten.values.ivalue import Object
from engine.aten.values.storage import address
from engine.aten.values.tensor import Tensor
from engine.executor.concurrency.futures import Future
from engine.lang.records import dataclass


class Kept(Protocol):
    """`key` tells what is restored, `owner` whose it is (None: the thread's), `nbytes` the memory that this takes."""

    @property
    def key(self) -> Hashable: ...

    @property
    def owner(self) -> object: ...

    @property
    def nbytes(self) -> int: ...

    def restore(self) -> None: ...


_SMALL: Final = 200
"""Bytes of a record, roughly."""


class KeptFields:
    """The attributes of an object, by name."""

    __slots__ = ("_attributes", "_slots", "_values", "owner")

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self._slots = slots = _SLOTS.get(type(owner)) or _slots_of(type(owner))
        self._values = (*map(getattr, repeat(owner), slots.names, repeat(_UNSET)),)
        self._attributes = dict(vars(owner)) if slots.has_dict else None

    @property
    def key(self) -> Hashable:
        return "fields", id(self.owner)

    @property
    def nbytes(self) -> int:
        return _SMALL

    def restore(self) -> None:
        for name, value in zip(self._slots.names, self._values, strict=True):
            if value is not _UNSET:
                object.__setattr__(self.owner, name, value)
        if self._attributes is not None:
            attributes = vars(self.owner)
            attributes.clear()
            attributes.update(self._attributes)


_UNSET: Final = object()
_NOT_KEPT: Final = ("__dict__", "__weakref__")


class _Slots(NamedTuple):
    """The slots of a class, and whether its objects have a dict too."""

    names: tuple[str, ...]
    has_dict: bool


def _slots_of(of: type) -> _Slots:
    every = [name for each in of.__mro__ for name in _listed(vars(each).get("__slots__", ()))]
    names = tuple(name for name in every if name not in _NOT_KEPT)
    found = _SLOTS[of] = _Slots(names, of.__dictoffset__ != 0)
    return found


def _listed(slots: str | Iterable[str]) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots


_SLOTS: Final[dict[type, _Slots]] = {}


class KeptElements:
    """The elements that a tensor shows, and the version of their memory."""

    __slots__ = ("_array", "_elements", "_version", "owner")

    def __init__(self, tensor: Tensor) -> None:
        self.owner = tensor.memory
        self._array, self._version = tensor.array, self.owner.version
        self._elements = self._array.copy()

    @property
    def key(self) -> Hashable:
        return "elements", address(self._array), self._array.shape, self._array.strides

    @property
    def nbytes(self) -> int:
        return self._elements.nbytes + _SMALL

    def restore(self) -> None:
        if self._array.flags.writeable:
            self._array[...] = self._elements
        self.owner.version = self._version


@dataclass(eq=False, slots=True)
class KeptContents:
    """The contents of a list, a dict, or the slots of an object."""

    container: list[Any] | dict[Any, Any]
    contents: list[Any] | dict[Any, Any]

    @property
    def key(self) -> Hashable:
        return "contents", id(self.container)

    @property
    def owner(self) -> object:
        return self.container

    @property
    def nbytes(self) -> int:
        return _SMALL + 8 * len(self.contents)

    def restore(self) -> None:
        if isinstance(self.container, list):
            self.container[:] = self.contents
        else:
            self.container.clear()
            self.container.update(self.contents)


@dataclass(eq=False, slots=True)
class KeptState:
    """A state that a function puts back."""

    key: Hashable
    put_back: Callable[[], object]
    nbytes: int = _SMALL
    owner: object = None

    def restore(self) -> None:
        self.put_back()


def keep_random(chosen: Generator | None = None) -> Kept:
    """The state of a generator, by default the one that everybody shares."""
    used = generator(chosen)
    state = used.state_bytes()
    return KeptState(("random", id(used)), lambda: used.restore(state), len(state))


def keep_modes() -> Kept:
    """The switches of this thread: whether operators are recorded, and mixed precision."""
    grad = grad_mode.MODE.enabled, grad_mode.MODE.inference
    casts = autocast.STATE.fast, autocast.STATE.place, autocast.STATE.keeps, autocast.STATE.kept

    def put_back() -> None:
        grad_mode.restore(grad)
        state = autocast.STATE
        state.fast, state.place, state.keeps, state.kept = casts

    return KeptState("modes", put_back)


def keep(value: Any) -> list[Kept]:
    """The records of all that a write to this value may change: of a tensor, its elements, its own fields, and those of
    the tensors that it is a view of, whose histories a write changes."""
    if isinstance(value, Tensor):
        kept: list[Kept] = [KeptElements(value), KeptFields(value)]
        while (value := value._base) is not None:
            kept.append(KeptFields(value))
        return kept
    if isinstance(value, (list, dict)):
        return [keep_contents(value)]
    if isinstance(value, Object):
        return [keep_contents(value.slots)]
    return [KeptFields(value)] if isinstance(value, Future) else []


def keep_contents(container: list[Any] | dict[Any, Any]) -> KeptContents:
    return KeptContents(container, container.copy())


def keep_histories(values: Iterable[Any]) -> Iterator[Kept]:
    """The fields of views, which find their histories anew when they are read after a write to their base."""
    return (KeptFields(each) for each in values if isinstance(each, Tensor) and each._base is not None)


def keep_reachable(values: Iterable[Any]) -> Iterator[Kept]:
    """All that code with these values in its hands may change, gradients and what backward passes free among them."""
    for each in reachable(values):
        yield from [KeptFields(each)] if isinstance(each, Node) else keep(each)


def owners_in(values: Iterable[Any]) -> Iterator[object]:
    """The owners of all that can be kept of these values."""
    for each in reachable(values):
        yield each
        if isinstance(each, Tensor):
            yield each.memory
        elif isinstance(each, Object):
            yield each.slots


def reachable(values: Iterable[Any]) -> Iterator[Any]:
    """The values that can be written to, and what can be reached from them, each once."""
    seen: set[int] = set()
    left = list(values)
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        left += _inside(value)
        if isinstance(value, (Tensor, list, dict, Object, Node, Future)):
            yield value


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, Tensor):
        return [each for each in (value._grad_fn, value._base, value._grad) if each is not None]
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, Object):
        return value.slots
    if isinstance(value, AccumulateGrad):
        return (value.variable,)
    if isinstance(value, Node):
        return [*(edge.node for edge in value.edges if edge is not None), getattr(value, "operator", None)]
    return ()
