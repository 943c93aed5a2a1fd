"""Names of PyTorch's dispatcher that packages mention when they are imported.

In: rules for operators without elements, sets of keys.  Out: the rules as they are, since no operator runs without the
elements of its tensors; the sets, by which nothing is dispatched here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Final, TypeVar

Rule = TypeVar("Rule", bound=Callable[..., Any])

_KINDS: Final = ("", "Autograd", "Autocast")
_DEVICES: Final = ("CPU", "CUDA", "XPU", "MPS", "HPU", "PrivateUse1")


_KEYS: Final = ("Undefined", "Meta", *(kind + device for kind in _KINDS for device in _DEVICES))
DispatchKey: Any = Enum("DispatchKey", list(_KEYS))  # type: ignore[misc]
"""The names that PyTorch's dispatcher has for devices and for what steps in between operators on them."""


class DispatchKeySet:
    """Some of the keys."""

    def __init__(self, keys: Any) -> None:
        self._keys: frozenset[Any] = frozenset(keys if isinstance(keys, Iterable) else [keys])

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys & other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def has(self, key: Any) -> bool:
        return key in self._keys


def register_fake(op: Any, func: Rule | None = None, /, *, lib: Any = None, **_: Any) -> Any:
    """A rule for an operator's results without elements, which nobody asks for, or a decorator for one."""
    return func if func is not None else lambda rule: rule
