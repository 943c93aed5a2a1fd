"""PyTorch's names for the parts of graphs: `getName()` where the engine has `name`.

In: an object of the engine.  Out: a `Facade` of it, whose attributes answer to both spellings (`setDebugName` is
`set_debug_name`), and whose properties may be called: `value.node` and `value.node()` both are the node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from engine.lang import types
from engine.lang.errors import did_you_mean
from engine.torch.compiled.types import Type
from engine.torch.compiled.types import wrap as wrap_type


class CallableStr(str):
    """A string that returns itself when called, as PyTorch has methods here."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


class CallableInt(int):
    """A number that returns itself when called, as PyTorch has methods here."""

    def __call__(self) -> int:
        return int(self)


class CallableList(list[Any]):
    """A list that returns an iterator when called, as PyTorch has methods here."""

    __slots__ = ()

    def __call__(self) -> Iterator[Any]:
        return iter(self)


class Facade:
    """An object of the engine (`_ir`) under PyTorch's names.  Facades of the same object are equal."""

    __slots__ = ("_ir",)

    def __init__(self, ir: Any) -> None:
        self._ir = ir

    def __call__(self) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        plain = _snake(name)
        if name.startswith("_") or not hasattr(self._ir, plain):
            known = [each for each in (*dir(type(self)), *dir(self._ir)) if not each.startswith("_")]
            hint = "".join(f"; {h}" for h in did_you_mean(name, known))
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{hint}")
        return wrap(getattr(self._ir, plain))

    def __eq__(self, other: object) -> bool:
        return self._ir is unwrap(other)

    def __hash__(self) -> int:
        return hash(self._ir)

    def __str__(self) -> str:
        return str(self._ir)

    def __repr__(self) -> str:
        return str(self._ir)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *(name for name in dir(self._ir) if not name.startswith("_"))})


FACADES: Final[dict[type, type[Facade]]] = {}
"""Class of the engine -> its facade."""


def wrap(value: Any) -> Any:
    """The value as Python programs see it: facades, and strings, numbers and lists that may be called."""
    if type(value) in FACADES:
        return FACADES[type(value)](value)
    if isinstance(value, types.Type):
        return wrap_type(value)
    if isinstance(value, list):
        return CallableList(map(wrap, value))
    if type(value) is str:
        return CallableStr(value)
    if type(value) is int:
        return CallableInt(value)
    if isinstance(value, Iterator):
        return map(wrap, value)
    return _wrapped_method(value) if callable(value) and hasattr(value, "__self__") else value


def unwrap(value: Any) -> Any:
    """The engine's value behind a facade, also inside lists and tuples."""
    if isinstance(value, (Facade, Type)):
        return value._ir
    if isinstance(value, (list, tuple)):
        return type(value)(map(unwrap, value))
    return value


def _wrapped_method(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return wrap(method(*map(unwrap, args), **{name: unwrap(value) for name, value in kwargs.items()}))

    return call


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
