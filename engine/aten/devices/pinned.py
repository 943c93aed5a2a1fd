"""Memory of the CPU that devices read directly.

In: arrays.  Out: the same values in such memory, which the library of the devices gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.aten.values import libraries
from engine.aten.values.storage import storage_of
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError

_KIND = "cuda"


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor in memory that GPUs read directly; itself if it is there.  Raises OperatorError without a GPU."""
    if not libraries.is_there(_KIND):
        raise OperatorError(
            "Cannot access accelerator device when none is available.", hints=("pin_memory is for copies to a GPU",)
        )
    if self.is_cuda:
        raise OperatorError(f"cannot pin '{self.dtype}' on {self.device}: only memory of the CPU can be pinned")
    if is_pinned(self):
        return self
    array = self.array
    memory = libraries.library(_KIND).cuda.alloc_pinned_memory(max(array.nbytes, 1))
    pinned = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
    pinned[...] = array
    return Tensor(pinned)


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """True if the tensor is in pinned memory."""
    if _KIND not in libraries.loaded() or self.is_cuda:
        return False
    base: Any = storage_of(self.array).owner.base
    holder = base.obj if isinstance(base, memoryview) else base
    return isinstance(holder, libraries.library(_KIND).cuda.PinnedMemoryPointer)


def pinned_alike(values: Any) -> Any:
    """Tensors in lists, tuples and dicts with their memory pinned; other values as they are."""
    if isinstance(values, Tensor):
        return pin_memory(values)
    if isinstance(values, dict):
        return {name: pinned_alike(value) for name, value in values.items()}
    if isinstance(values, tuple) and hasattr(values, "_fields"):
        return type(values)(*map(pinned_alike, values))
    if isinstance(values, (list, tuple)):
        return type(values)(map(pinned_alike, values))
    return values.pin_memory() if hasattr(values, "pin_memory") else values
