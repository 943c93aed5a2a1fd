"""Picking and placing by lists of indices, and along one dimension.

In: arrays; indices are int64 or int32, masks bool.  Gradient formulas: see `pointwise`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.aten import xp
from engine.aten.op import op
from engine.aten.promotion import wide
from engine.aten.rules import broadcast_shapes, wrap_dim
from engine.aten.xp import Array
from engine.lang.errors import OperatorError, OperatorIndexError

OUT: Final = "function method out"
ALL: Final = "function method inplace out"
Indices = Sequence[Array | None]

# ------------------------------------------------------------------ by lists of indices


def _key(self: Array, indices: Indices) -> tuple[Any, ...]:
    """Index tensors as numpy's index: masks become positions, None a whole dimension; checked."""
    if len(indices) > self.ndim:
        raise OperatorIndexError(f"too many indices for tensor of dimension {self.ndim} (got {len(indices)})")
    parts: list[Any] = []
    for index in indices:
        if index is None:
            parts.append(slice(None))
        elif index.dtype.kind == "b" or index.dtype == xp.UINT8:
            parts += _mask_positions(self, index, len(parts))
        else:
            parts.append(_checked(self, index, len(parts)))
    arrays = [p for p in parts if isinstance(p, np.ndarray)]
    shape: tuple[int, ...] = ()
    for array in arrays:
        try:
            shape = broadcast_shapes(shape, array.shape)
        except OperatorError:
            shapes = ", ".join(str(list(a.shape)) for a in arrays)
            raise OperatorIndexError(
                f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
            ) from None
    return tuple(parts)


def _mask_positions(self: Array, mask: Array, dim: int) -> list[Array]:
    for i, size in enumerate(mask.shape):
        if dim + i >= self.ndim or self.shape[dim + i] != size:
            raise OperatorIndexError(
                f"The shape of the mask {list(mask.shape)} at index {i} does not match the shape of the indexed tensor "
                f"{list(self.shape)} at index {dim + i}"
            )
    return [np.asarray(p) for p in np.nonzero(np.atleast_1d(mask.astype(np.bool_)))] if mask.ndim else []


def _checked(self: Array, index: Array, dim: int) -> Array:
    if index.dtype.kind not in "iu":
        raise OperatorIndexError("tensors used as indices must be long, int, byte or bool tensors")
    size = self.shape[dim]
    if index.size and (int(index.max()) >= size or int(index.min()) < -size):
        bad = index[(index >= size) | (index < -size)].ravel()[0]
        raise OperatorIndexError(f"index {bad} is out of bounds for dimension {dim} with size {size}")
    return index


def index(self: Array, indices: Indices) -> Array:
    return np.array(self[_zero_dim_mask(self, indices)], order="C")


def _zero_dim_mask(self: Array, indices: Indices) -> Any:
    """The key; a 0-dim mask adds a dimension of size 1 or 0 in front."""
    if len(indices) == 1 and indices[0] is not None and indices[0].ndim == 0 and indices[0].dtype.kind == "b":
        return (indices[0],)
    return _key(self, indices)


def index_put(self: Array, indices: Indices, values: Array, accumulate: bool) -> Array:
    if self.dtype != values.dtype:
        raise OperatorError(
            "Index put requires the source and destination dtypes match, "
            f"got {xp.ir_name(self.dtype)} for the destination and {xp.ir_name(values.dtype)} for the source."
        )
    result = self.copy()
    key = _zero_dim_mask(self, indices)
    shape = result[key].shape
    try:
        fitted = np.broadcast_to(values, shape)
    except ValueError:
        raise OperatorError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
            f"shape {list(shape)}"
        ) from None
    if accumulate:
        add_at(result, key, fitted)
    else:
        result[key] = fitted
    return result


def add_at(target: Array, key: Any, values: Array) -> None:
    """`target[key] += values` where places may repeat."""
    if target.dtype in xp.HALVES:
        sums = target.astype(np.float32)
        np.add.at(sums, key, values.astype(np.float32))
        target[...] = sums
    else:
        np.add.at(target, key, values)


op("aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", kernel=index, variants="function out",
   gradient={"self": "zeros_like(self).index_put(indices, grad, True)"})  # fmt: skip
op("aten::index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor", kernel=index,
   gradient={"self": "zeros_like(self).index_put(indices, grad, True)"})  # fmt: skip
_PUT: Final = {"self": "grad if accumulate else index_put(grad, indices, zeros_like(values))",
               "values": "index(grad, indices)"}  # fmt: skip
op("aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
   kernel=index_put, variants=ALL, gradient=_PUT)  # fmt: skip
op("aten::index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor",
   kernel=index_put, variants="function inplace", gradient=_PUT)  # fmt: skip

# ------------------------------------------------------------------ along one dimension


def _along(self: Array, dim: int, index: Array, name: str) -> tuple[Array, int, Array]:
    """Self with at least one dimension, the dimension, and the checked flat index."""
    if index.dtype.kind not in "iu" or index.dtype.itemsize < 4:
        raise OperatorError(f"{name}(): Expected dtype int32/int64 for index but got: {xp.ir_name(index.dtype)}")
    if index.ndim > 1:
        raise OperatorIndexError(f"{name}(): Index is supposed to be a vector")
    dim = wrap_dim(dim, self.ndim)
    source = self if self.ndim else self.reshape(1)
    flat = index.reshape(-1)
    size = source.shape[dim]
    if flat.size and (flat.max() >= size or flat.min() < (-size if name in ("index_fill",) else 0)):
        raise OperatorIndexError("index out of range in self")
    return source, dim, flat


def index_select(self: Array, dim: int, index: Array) -> Array:
    source, dim, flat = _along(self, dim, index, "index_select")
    picked = np.take(source, flat, axis=dim)
    return picked if self.ndim else picked.reshape(())


def _taken(source: Array, dim: int, flat: Array) -> tuple[int, ...]:
    return (*source.shape[:dim], flat.size, *source.shape[dim + 1 :])


def _place(dim: int, flat: Array) -> tuple[Any, ...]:
    return (slice(None),) * dim + (flat,)


def _check_source(name: str, self: Array, dim: int, flat: Array, source: Array) -> Array:
    if self.dtype != source.dtype:
        raise OperatorError(
            f"{name}(): self and source expected to have the same dtype, but got (self) "
            f"{xp.ir_name(self.dtype)} and (source) {xp.ir_name(source.dtype)}"
        )
    wanted = _taken(self, dim, flat)
    if source.size == 1 and source.ndim == 0 and int(np.prod(wanted)) == 1:
        return source.reshape(wanted)
    if source.ndim and source.shape[min(dim, source.ndim - 1)] != flat.size:
        raise OperatorIndexError(
            f"{name}(): Number of indices ({flat.size}) should be equal to source.size(dim): "
            f"({source.shape[min(dim, source.ndim - 1)]}), for dim: {dim}"
        )
    if source.shape != wanted:
        raise OperatorError(
            f"source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(self.shape)} source.shape = {list(source.shape)}"
        )
    return source


def index_add(self: Array, dim: int, index: Array, source: Array, alpha: Any) -> Array:
    base, dim, flat = _along(self, dim, index, "index_add")
    values = _check_source("index_add", base, dim, flat, source)
    result = base.copy()
    used = values.astype(wide(values.dtype))
    add_at(result, _place(dim, flat), used if alpha == 1 else np.asarray(used * alpha).astype(used.dtype))
    return result.reshape(self.shape)


def index_copy(self: Array, dim: int, index: Array, source: Array) -> Array:
    base, dim, flat = _along(self, dim, index, "index_copy")
    values = _check_source("index_copy", base, dim, flat, source)
    result = base.copy()
    result[_place(dim, flat)] = values
    return result.reshape(self.shape)


def index_fill(self: Array, dim: int, index: Array, value: Any) -> Array:
    if isinstance(value, np.ndarray):
        if value.ndim:
            raise OperatorError(
                "index_fill_ only supports a 0-dimensional value tensor, "
                f"but got tensor with {value.ndim} dimension(s)."
            )
        value = value.item()
    base, dim, flat = _along(self, dim, index, "index_fill")
    result = base.copy()
    result[_place(dim, flat)] = np.asarray(value).astype(self.dtype)
    return result.reshape(self.shape)


op("aten::index_select(Tensor self, int dim, Tensor index) -> Tensor", kernel=index_select, variants=OUT,
   gradient={"self": "zeros_like(self).index_add(dim, index, grad)"})  # fmt: skip
op("aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", kernel=index_add,
   variants=ALL, gradient={"self": "grad", "source": "grad.index_select(dim, index) * alpha"})  # fmt: skip
op("aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", kernel=index_copy, variants=ALL,
   gradient={"self": "grad.index_fill(dim, index, 0)", "source": "grad.index_select(dim, index)"})  # fmt: skip
op("aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", kernel=index_fill,
   variants=ALL,
   gradient={"self": "grad.index_fill(dim, index, 0)", "value": "grad.index_select(dim, index).sum()"})  # fmt: skip
op("aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", kernel=index_fill,
   variants=ALL, gradient={"self": "grad.index_fill(dim, index, 0)"})  # fmt: skip
