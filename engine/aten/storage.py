"""The memory behind tensors.

A `Storage` is one block of memory with a version that every write advances; a tensor and its views
share it.  In: the array that was allocated.  Out: identity, version, and the block as a flat array.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.aten.xp import Array, as_strided


@dataclass(eq=False, slots=True, weakref_slot=True)
class Storage:
    """One block of memory.  `owner` is the array that holds it, of any shape."""

    owner: Array
    version: int = 0

    def flat(self) -> Array:
        """The whole block as a flat array of its element type."""
        return as_strided(self.owner, (self.owner.size,), (self.owner.itemsize,))

    def offset_of(self, array: Array) -> int:
        """Where `array`, a view of this block, starts, in elements."""
        if array.size == 0:
            return 0
        return (address(array) - address(self.owner)) // array.itemsize


def storage_of(array: Array) -> Storage:
    """The storage of an array that no tensor shares yet."""
    return Storage(owner_of(array))


def owner_of(array: Array) -> Array:
    """The array at the end of the chain of bases."""
    owner: Array = array
    base = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            owner = base
        base = getattr(base, "base", None)
    return owner


def address(array: Array) -> int:
    location: int = array.__array_interface__["data"][0]
    return location
