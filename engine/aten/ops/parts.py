"""Parts of tensors, as views: select, slice, split, diagonal, windows, any strides.

In: arrays.  Out: arrays in the same memory.  Gradient formulas: see `pointwise`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.table import op
from engine.aten.dispatch.wrapping import view
from engine.aten.kernels import shapes
from engine.aten.kernels.memory import check_memory
from engine.aten.kernels.rules import wrap_dim
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array, as_strided
from engine.lang.errors import OperatorError, OperatorIndexError

VIEW: Final = "function method"

# ------------------------------------------------------------------ parts


def select(self: Array, dim: int, index: int) -> Array:
    shape = self.shape
    if not shape:
        raise OperatorIndexError("select() cannot be applied to a 0-dim tensor.")
    if dim and not 0 < dim < len(shape):
        dim = wrap_dim(dim, len(shape))
    size = shape[dim]
    if not -size <= index < size:
        raise OperatorIndexError(
            f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {dim}"
        )
    return self[(*(_ALL * dim), index, ...)] if dim else self[index, ...]


_ALL: Final[tuple[Any, ...]] = (slice(None),)


def slice_(self: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    ndim = self.ndim
    if ndim == 0:
        raise OperatorIndexError("slice() cannot be applied to a 0-dim tensor.")
    if dim and not 0 < dim < ndim:
        dim = wrap_dim(dim, ndim)
    if step <= 0:
        raise OperatorError("slice step must be positive")
    return self[(*(_ALL * dim), slice(start, end, step))] if dim else self[start:end:step]


def narrow(self: Array, dim: int, start: int | Array, length: int) -> Array:
    if isinstance(start, np.ndarray):
        if start.ndim or start.dtype not in xp.INTEGERS:
            raise OperatorError("start must be an 0-dim integral Tensor.")
        start = int(start)
    if self.ndim == 0:
        raise OperatorError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise OperatorError("narrow(): length must be non-negative.")
    dim = wrap_dim(dim, self.ndim)
    size = self.shape[dim]
    if not -size <= start <= size:
        raise OperatorIndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start += size if start < 0 else 0
    if start + length > size:
        raise OperatorError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return slice_(self, dim, start, start + length, 1)


def split(self: Array, split_size: int, dim: int) -> list[Array]:
    _check_has_dims("split", self)
    dim = wrap_dim(dim, self.ndim)
    if split_size < 0:
        raise OperatorError(f"split expects split_size be non-negative, but got split_size={split_size}")
    size = self.shape[dim]
    if split_size == 0 and size:
        raise OperatorError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
    starts, before = range(0, max(size, 1), max(split_size, 1)), (slice(None),) * dim
    return [self[(*before, slice(start, start + split_size))] for start in starts]


def split_with_sizes(self: Array, split_sizes: Sequence[int], dim: int) -> list[Array]:
    _check_has_dims("split", self)
    dim = wrap_dim(dim, self.ndim)
    size = self.shape[dim]
    if any(part < 0 for part in split_sizes):
        raise OperatorError(
            "split_with_sizes expects split_sizes have only non-negative entries, "
            f"but got split_sizes={list(split_sizes)}"
        )
    if sum(split_sizes) != size:
        raise OperatorError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {dim}), "
            f"but got split_sizes={list(split_sizes)}"
        )
    starts = itertools.accumulate([0, *split_sizes])
    return [slice_(self, dim, start, start + part, 1) for start, part in zip(starts, split_sizes, strict=False)]


def chunk(self: Array, chunks: int, dim: int) -> list[Array]:
    _check_has_dims("chunk", self)
    if chunks <= 0:
        raise OperatorError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrap_dim(dim, self.ndim)
    size = self.shape[dim]
    step = -(-size // chunks)
    if step == 0:
        return split_with_sizes(self, [0] * chunks, dim)
    return split(self, step, dim)


def _check_has_dims(name: str, self: Array) -> None:
    if self.ndim == 0:
        raise OperatorError(f"{name} expects at least a 1-dimensional tensor")


def unbind(self: Array, dim: int) -> list[Array]:
    if self.ndim == 0:
        raise OperatorIndexError("Dimension specified as 0 but tensor has no dimensions")
    dim = wrap_dim(dim, self.ndim)
    before = _ALL * dim
    return [self[(*before, i, ...)] for i in range(self.shape[dim])]


def diagonal(self: Array, offset: int, dim1: int, dim2: int) -> Array:
    a, b = wrap_dim(dim1, self.ndim), wrap_dim(dim2, self.ndim)
    if a == b:
        raise OperatorError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if offset >= 0:
        shifted = self[(slice(None),) * b + (slice(offset, None),)]
    else:
        shifted = self[(slice(None),) * a + (slice(-offset, None),)]
    length = max(0, min(shifted.shape[a], shifted.shape[b]))
    rest = [d for d in range(self.ndim) if d not in (a, b)]
    shape = (*(self.shape[d] for d in rest), length)
    strides = (*(self.strides[d] for d in rest), self.strides[a] + self.strides[b])
    return as_strided(shifted, shape, strides)


def unfold(self: Array, dimension: int, size: int, step: int) -> Array:
    dim = wrap_dim(dimension, self.ndim)
    length, stride_ = (self.shape[dim], self.strides[dim]) if self.ndim else (1, self.itemsize)
    if not 0 <= size <= length:
        raise OperatorError(f"maximum size for tensor at dimension {dim} is {length} but size is {size}")
    if step <= 0:
        raise OperatorError(f"step is {step} but must be > 0")
    shape, strides = list(self.shape), list(self.strides)
    if self.ndim:
        shape[dim], strides[dim] = (length - size) // step + 1, step * stride_
    return as_strided(self, (*shape, size), (*strides, stride_))


def as_strided_view(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Tensor:
    if len(size) != len(stride):
        raise OperatorError("mismatch in length of strides and shape")
    if any(step < 0 for step in stride):
        raise OperatorError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}"
        )
    if any(n < 0 for n in size):
        raise OperatorError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    storage, itemsize = self.memory, self.array.itemsize
    offset = storage.offset_of(self.array) if storage_offset is None else storage_offset
    memory = storage.flat()
    span = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if offset < 0:
        raise OperatorError(f"Tensor: invalid storage offset {offset}")
    if span and offset + span > memory.size:
        raise OperatorError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {itemsize} "
            f"requiring a storage size of {(offset + span) * itemsize} are out of bounds for storage of size "
            f"{memory.size * itemsize}"
        )
    check_memory(size, xp.UINT8)
    array = as_strided(
        memory[offset if span else 0 :].view(self.array.dtype), tuple(size), tuple(s * itemsize for s in stride)
    )
    return view(array, self)


def as_strided_(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Tensor:
    self.array = as_strided_view(self, size, stride, storage_offset).array
    return self


_JOINED: Final = {"self": "cat(grads, dim)"}
op("aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", kernel=select, variants=VIEW,
   gradient={"self": "zeros_like(self).select_scatter(grad, dim, index)"}, shape=shapes.select,
   dtype="same")  # fmt: skip
op("aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
   kernel=slice_, variants="function",
   gradient={"self": "zeros_like(self).slice_scatter(grad, dim, start, end, step)"}, dtype="same")  # fmt: skip
op("aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", kernel=narrow, variants=VIEW,
   gradient={"self": "_narrow_backward(grad, self.size(), dim, start, length)"}, dtype="same")  # fmt: skip
op("aten::narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)", kernel=narrow,
   variants=VIEW, gradient={"self": "_narrow_backward(grad, self.size(), dim, start.item(), length)"},
   dtype="same")  # fmt: skip
op("aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", kernel=split, variants=VIEW,
   gradient=_JOINED)  # fmt: skip
op("aten::split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]", kernel=split_with_sizes,
   variants=VIEW, gradient=_JOINED)  # fmt: skip
op("aten::split(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor(a)[]", kernel=split_with_sizes,
   variants=VIEW, gradient=_JOINED)  # fmt: skip
op("aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
   kernel=split_with_sizes, variants=VIEW, gradient=_JOINED)  # fmt: skip
op("aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", kernel=chunk, variants=VIEW,
   gradient=_JOINED)  # fmt: skip
op("aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", kernel=unbind, variants=VIEW,
   gradient={"self": "stack(grads, dim)"})  # fmt: skip
op("aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", kernel=diagonal, variants=VIEW,
   gradient={"self": "_diagonal_backward(grad, self.size(), offset, dim1, dim2)"})  # fmt: skip
op("aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", kernel=unfold, variants="method",
   gradient={"self": "_unfold_backward(grad, self.size(), dimension, size, step)"})  # fmt: skip
op("aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
   python=as_strided_view, variants=VIEW,
   gradient={"self": "_as_strided_backward(grad, self, size, stride, storage_offset)"})  # fmt: skip
op("aten::as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a!)",
   python=as_strided_, variants=VIEW, inplace_view=True)  # fmt: skip
