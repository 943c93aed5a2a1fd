"""Handles by which registered hooks are taken back.

In: the table of hooks and a hook.  Out: the hook in the table, and its handle.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from itertools import count
from typing import Any, Final

_numbers: Final = count()


class RemovableHandle:
    """`remove()` takes the hook out again; as a context manager it does so at the end."""

    def __init__(self, table: MutableMapping[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self.id = next(_numbers)
        self._table = table
        table[self.id] = hook

    def remove(self) -> None:
        self._table.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()
