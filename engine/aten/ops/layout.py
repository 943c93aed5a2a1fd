"""Sizes, strides and memory formats: queries, and copies with other layouts.

In: arrays.  Out: numbers, or arrays laid out anew.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels.blocks import contiguous_copy
from engine.aten.kernels.rules import is_dense, ordered_like, steps, wrap_dim
from engine.aten.values.tensor import Tensor, wrapped
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError, OperatorIndexError
from engine.lang.scalars import MEMORY_FORMATS

VIEW: Final = "function method"

# ------------------------------------------------------------------ facts


def size_int(self: Array, dim: int) -> int:
    try:
        size: int = self.shape[dim]
        return size
    except IndexError:
        return self.shape[wrap_dim(dim, self.ndim)] if self.ndim else _no_dims(dim)


def _no_dims(dim: int) -> int:
    raise OperatorIndexError(f"Dimension specified as {dim} but tensor has no dimensions")


def stride_int(self: Array, dim: int) -> int:
    return steps(self)[wrap_dim(dim, self.ndim)] if self.ndim else _no_dims(dim)


def stride(self: Array) -> list[int]:
    return list(steps(self))


def storage_offset(self: Tensor) -> int:
    return self.memory.offset_of(self.array)


def is_contiguous(self: Array, memory_format: int = 0) -> bool:
    if memory_format == MEMORY_FORMATS["contiguous_format"]:
        return self.flags.c_contiguous
    order = _CHANNELS_LAST.get(memory_format)
    return order is not None and self.ndim == len(order) and self.transpose(order).flags.c_contiguous


_CHANNELS_LAST: Final = {2: (0, 2, 3, 1), 3: (0, 2, 3, 4, 1)}


def contiguous(self: Array, memory_format: int) -> Array:
    if memory_format == 0 and self.flags.c_contiguous:
        return self
    return self if is_contiguous(self, memory_format) else laid_out(self, memory_format)


def clone(self: Array, memory_format: int | None) -> Array:
    return laid_out(self, 1 if memory_format is None else memory_format)


def laid_out(self: Array, memory_format: int) -> Array:
    """A copy with a memory format's strides; `preserve_format` keeps those of dense tensors."""
    if self.flags.c_contiguous and memory_format <= MEMORY_FORMATS["preserve_format"]:
        return self.copy()
    if memory_format == MEMORY_FORMATS["preserve_format"]:
        return self.copy(order="K") if is_dense(self) else ordered_like(contiguous_copy(self), [self])
    order = _CHANNELS_LAST.get(memory_format)
    if order is None:
        return contiguous_copy(self)
    if self.ndim != len(order):
        name = {4: "channels_last", 5: "channels_last_3d"}[len(order)]
        raise OperatorError(f"required rank {len(order)} tensor to use {name} format")
    return self.transpose(order).copy(order="C").transpose(np.argsort(order))


def detach(self: Tensor) -> Tensor:
    return wrapped(self.array, self.memory)


def detach_(self: Tensor) -> Tensor:
    if self._base is not None:
        raise OperatorError("Can't detach views in-place. Use detach() instead.")
    self._grad_fn, self._requires_grad = None, False
    return self


op("aten::size.int(Tensor self, int dim) -> int", kernel=size_int, variants="method")
op("aten::size(Tensor self) -> int[]", kernel=lambda self: list(self.shape), variants="method")
op("aten::stride.int(Tensor self, int dim) -> int", kernel=stride_int, variants="method")
op("aten::stride(Tensor self) -> int[]", kernel=stride, variants="method")
op("aten::dim(Tensor self) -> int", kernel=lambda self: self.ndim, variants="method")
op("aten::numel(Tensor self) -> int", kernel=lambda self: self.size, variants=VIEW)
op("aten::storage_offset(Tensor self) -> int", python=storage_offset, variants="method")
op("aten::is_contiguous(Tensor self) -> bool", kernel=is_contiguous, variants="method")
op("aten::is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool", kernel=is_contiguous,
   variants="method")  # fmt: skip
op("aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)", kernel=contiguous,
   variants="method", gradient={"self": "grad"}, shape="self", dtype="same")  # fmt: skip
op("aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", kernel=clone,
   variants="function method out", exact=True, gradient={"self": "grad"}, shape="self", dtype="same")  # fmt: skip
op("aten::detach(Tensor(a) self) -> Tensor(a)", python=detach, variants=VIEW, shape="self", dtype="same")
op("aten::detach_(Tensor(a!) self) -> Tensor(a!)", python=detach_, variants=VIEW)
op("aten::alias(Tensor(a) self) -> Tensor(a)", kernel=lambda self: self[...], gradient={"self": "grad"}, shape="self",
   dtype="same")  # fmt: skip
op("aten::lift_fresh(Tensor(a) self) -> Tensor(a)", kernel=lambda self: self, gradient={"self": "grad"})


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("clone.out", out_check=out_checks.check_same)
