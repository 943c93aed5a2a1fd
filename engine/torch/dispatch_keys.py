"""Keys of PyTorch's dispatcher, which packages put into sets when they are imported.

In: keys.  Out: sets of them, by which nothing is dispatched here.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

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
