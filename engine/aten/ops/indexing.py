"""Picking and placing by lists of indices, and along one dimension.

In: arrays; indices are int64 or int32, masks bool.  Gradient formulas: see `pointwise`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels.accumulate import add_at
from engine.aten.kernels.rules import broadcast_shapes, check_mask, wrap_dim
from engine.aten.values import xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.promotion import converted, fit, wide
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError, OperatorIndexError

OUT: Final = "function method out"
ALL: Final = "function method inplace out"
Indices = Sequence[Array | None]

# ------------------------------------------------------------------ by lists of indices


def _key(self: Array, indices: Indices) -> tuple[Any, ...]:
    """Index tensors as numpy's index: masks become positions, None a whole dimension; checked."""
    if len(indices) > self.ndim:
        raise OperatorIndexError(f"too many indices for tensor of dimension {self.ndim} (got {len(indices)})")
    if not indices:
        raise OperatorIndexError("at least one index must be provided")
    parts: list[Any] = []
    for index in indices:
        if index is None:
            parts.append(slice(None))
        elif index.dtype == xp.BOOL or index.dtype == xp.UINT8:
            parts += _mask_positions(self, index, len(parts))
        else:
            parts.append(_checked(self, index, len(parts), sum(isinstance(part, np.ndarray) for part in parts)))
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


def _checked(self: Array, index: Array, dim: int, place: int) -> Array:
    """`place`: the how manieth of the tensors that index it is, by which errors name it."""
    if index.dtype not in xp.INTEGERS:
        raise OperatorIndexError("tensors used as indices must be long, int, byte or bool tensors")
    size = self.shape[dim]
    if index.size and (int(index.max()) >= size or int(index.min()) < -size):
        bad = index[(index >= size) | (index < -size)].ravel()[0]
        raise OperatorIndexError(f"index {bad} is out of bounds for dimension {place} with size {size}")
    return index


def index(self: Array, indices: Indices) -> Array:
    if len(indices) == 1 and indices[0] is not None and indices[0].dtype is xp.INT64 and self.ndim:
        if HOOKS.devices:  # whose libraries take places that there are not for others
            return self.take(_checked(self, indices[0], 0, 0), 0)
        try:
            return self.take(indices[0], 0)
        except IndexError:
            return self.take(_checked(self, indices[0], 0, 0), 0)
    return np.array(self[_zero_dim_mask(self, indices)], order="C")


def _zero_dim_mask(self: Array, indices: Indices) -> Any:
    """The key; a 0-dim mask adds a dimension of size 1 or 0 in front."""
    if len(indices) == 1 and indices[0] is not None and indices[0].ndim == 0 and indices[0].dtype == xp.BOOL:
        return (indices[0],)
    return _key(self, indices)


def _is_one_mask(indices: Indices) -> bool:
    """True for one mask: a single number then fills, of whatever dtype and shape it is.

    Raises OperatorError for a mask of bytes, with which only more numbers than one can be written.
    """
    given = [index for index in indices if index is not None]
    if len(given) == 1 and given[0].dtype == xp.UINT8:
        check_mask(given[0])
    return len(given) == 1 and given[0].dtype == xp.BOOL


def index_put(self: Array, indices: Indices, values: Array, accumulate: bool) -> Array:
    key = _zero_dim_mask(self, indices)
    if not accumulate and values.size == 1 and _is_one_mask(indices):
        values = np.asarray(converted(values.reshape(-1)[0].item(), self.dtype)).astype(self.dtype)
    result = self.copy()
    shape = result[key].shape
    try:
        fitted = np.broadcast_to(values, shape)
    except ValueError:
        raise OperatorError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
            f"shape {list(shape)}"
        ) from None
    if self.dtype != values.dtype:
        raise OperatorError(
            "Index put requires the source and destination dtypes match, "
            f"got {xp.ir_name(self.dtype)} for the destination and {xp.ir_name(values.dtype)} for the source."
        )
    if accumulate:
        add_at(result, key, fitted)
    else:
        result[key] = fitted
    return result


op("aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", kernel=index, variants="function out", exact=True,
   gradient={"self": "zeros_like(self).index_put(indices, grad, True)"}, data_dependent=True)  # fmt: skip
op("aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", kernel=index, exact=True,
   gradient={"self": "zeros_like(self).index_put(indices, grad, True)"}, data_dependent=True)  # fmt: skip
op("aten::_unsafe_index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor", kernel=index,
   gradient={"self": "zeros_like(self).index_put(indices, grad, True)"}, data_dependent=True)  # fmt: skip
op("aten::index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor", kernel=index,
   gradient={"self": "zeros_like(self).index_put(indices, grad, True)"}, data_dependent=True)  # fmt: skip
_PUT: Final = {"self": "grad if accumulate else index_put(grad, indices, zeros_like(values))",
               "values": "index(grad, indices)"}  # fmt: skip
op("aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
   kernel=index_put, variants=ALL, gradient=_PUT)  # fmt: skip
op("aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
   kernel=index_put, gradient=_PUT)  # fmt: skip
op("aten::_unsafe_index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor",
   kernel=index_put, gradient=_PUT)  # fmt: skip
op("aten::index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor",
   kernel=index_put, variants="function inplace", gradient=_PUT)  # fmt: skip

# ------------------------------------------------------------------ along one dimension


def along(self: Array, dim: int, index: Array, name: str) -> tuple[Array, int, Array]:
    """Self with at least one dimension, the dimension, and the checked flat index."""
    dim = wrap_dim(dim, self.ndim)
    _check_index(index, name)
    source = self if self.ndim else self.reshape(1)
    return source, dim, index.reshape(-1)


def _check_index(index: Array, name: str) -> None:
    """Raise OperatorError unless the tensor can be the index of that operator."""
    whole = index.dtype in (xp.INT64, xp.INT32)
    if name == "index_fill":
        if index.dtype != xp.INT64:
            raise OperatorIndexError("index_fill_(): Expected dtype int64 for index.")
        if index.ndim > 1:
            raise OperatorError("Index has to be a vector/scalar")
    elif index.ndim > 1:
        given = f"dim: {index.ndim} with type: {xp.ir_name(index.dtype)} and size: {list(index.shape)}"
        raise OperatorIndexError(_TOO_MANY_DIMS[name].format(given=given, ndim=index.ndim))
    elif name == "index_copy" and index.dtype != xp.INT64:
        raise OperatorError(f"index_copy_(): Expected a long tensor for index, but got {xp.ir_name(index.dtype)}")
    elif not whole and name == "index_select":
        raise OperatorError("index_select(): Expected dtype int32 or int64 for index")
    elif not whole:
        raise OperatorError(f"{name}_(): Expected dtype int32/int64 for index but got: {xp.ir_name(index.dtype)}")


_TOO_MANY_DIMS: Final = {
    "index_select": "index_select(): Index is supposed to be a vector",
    "index_copy": "index_copy_(): Index should have dimension 1 or 0 (got {ndim})",
    "index_add": "index_add_(): Index is supposed to be a vector, but got {given}",
    "index_reduce": "index_reduce_(): Index is supposed to be a vector, but got {given}",
}


def _check_range(name: str, size: int, dim: int, flat: Array) -> None:
    """Raise OperatorIndexError for an index outside; only filling counts from the end."""
    low = -size if name == "index_fill" else 0
    if not flat.size or (int(flat.max()) < size and int(flat.min()) >= low):
        return
    bad = flat[(flat >= size) | (flat < low)][0]
    outside = f"index {bad} is out of bounds for dimension {dim} with size {size}"
    words = {"index_copy": f"index_copy_(): {outside}", "index_fill": outside}
    raise OperatorIndexError(words.get(name, "index out of range in self"))


def index_select(self: Array, dim: int, index: Array) -> Array:
    source, dim, flat = along(self, dim, index, "index_select")
    if not self.ndim and flat.size != 1:
        raise OperatorError(f"index_select(): Index to scalar can have only 1 value, got {flat.size} value(s)")
    _check_range("index_select", source.shape[dim], dim, flat)
    picked = np.take(source, flat, axis=dim)
    return picked if self.ndim else picked.reshape(())


def _taken(source: Array, dim: int, flat: Array) -> tuple[int, ...]:
    return (*source.shape[:dim], flat.size, *source.shape[dim + 1 :])


def _place(dim: int, flat: Array) -> tuple[Any, ...]:
    return (slice(None),) * dim + (flat,)


def checked_source(name: str, self: Array, dim: int, flat: Array, source: Array) -> Array:
    """The checked source of index_add and index_reduce for the slices in `flat`; raises OperatorError."""
    if self.dtype != source.dtype:
        raise OperatorError(
            f"{name}_(): self ({xp.ir_name(self.dtype)}) and source ({xp.ir_name(source.dtype)}) must have the same "
            "scalar type"
        )
    if source.ndim and dim >= source.ndim:
        raise OperatorError(
            f"{name}_(): Indexing dim {dim} is out of bounds of the source tensor with dim {source.ndim}"
        )
    count = source.shape[dim] if source.ndim else 1
    if count != flat.size:
        raise OperatorError(
            f"{name}_(): Number of indices ({flat.size}) should be equal to source.size(dim): ({count}), for dim: {dim}"
        )
    wanted = _taken(self, dim, flat)
    if source.ndim == 0 and wanted == (1,):
        source = source.reshape(1)
    if source.shape != wanted:
        raise OperatorError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(self.shape)} source.shape = {list(source.shape)}"
        )
    _check_range(name, self.shape[dim], dim, flat)
    return source


def _copied_source(self: Array, dim: int, flat: Array, source: Array) -> Array:
    """The checked source of index_copy for the slices in `flat`; raises OperatorError."""
    if source.ndim == 0 and flat.size != 1:
        raise OperatorIndexError(
            f"index_copy_(): When source is scalar, index should have one element (got {flat.size})"
        )
    if source.ndim and self.ndim and source.ndim != self.ndim:
        raise OperatorIndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. "
            f"Source dimensionality ({source.ndim}), destination dimensionality ({self.ndim})"
        )
    if self.dtype != source.dtype:
        raise OperatorError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{xp.ir_name(self.dtype)} and (source) {xp.ir_name(source.dtype)}"
        )
    own, others = ([n for i, n in enumerate(a.shape) if i != dim] for a in (self, source))
    if own != others:
        slices = [" ".join(map(str, shape)) for shape in (own, others)]
        raise OperatorError(
            f"index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{slices[0]} at dimension {dim} and source slice shape: {slices[1]} at dimension 0."
        )
    if source.ndim and source.shape[dim] != flat.size:
        raise OperatorIndexError(
            f"index_copy_(): Number of indices ({flat.size}) should be equal to source.size(dim) ({source.shape[dim]})"
        )
    _check_range("index_copy", self.shape[dim], dim, flat)
    return source.reshape(_taken(self, dim, flat))


def index_add(self: Array, dim: int, index: Array, source: Array, alpha: Any) -> Array:
    base, dim, flat = along(self, dim, index, "index_add")
    values = checked_source("index_add", base, dim, flat, source)
    result = base.copy()
    used = values.astype(wide(values.dtype))
    add_at(result, _place(dim, flat), used if alpha == 1 else used * np.asarray(fit(alpha, used.dtype), used.dtype))
    return result.reshape(self.shape)


def index_copy(self: Array, dim: int, index: Array, source: Array) -> Array:
    base, dim, flat = along(self, dim, index, "index_copy")
    values = _copied_source(base, dim, flat, source)
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
    base, dim, flat = along(self, dim, index, "index_fill")
    if isinstance(value, complex) and self.dtype not in xp.COMPLEX:
        raise OperatorError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    _check_range("index_fill", base.shape[dim], dim, flat)
    result = base.copy()
    result[_place(dim, flat)] = np.asarray(converted(value, self.dtype)).astype(self.dtype)
    return result.reshape(self.shape)


op("aten::index_select(Tensor self, int dim, Tensor index) -> Tensor", kernel=index_select, variants=OUT,
   gradient={"self": "zeros_like(self).index_add(dim, index, grad)"})  # fmt: skip
op("aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", kernel=index_add,
   variants=ALL, gradient={"self": "grad", "source": "grad.index_select(dim, index) * alpha"},
   shape="self", dtype="same")  # fmt: skip
op("aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", kernel=index_copy, variants=ALL,
   gradient={"self": "grad.index_fill(dim, index, 0)", "source": "grad.index_select(dim, index)"},
   shape="self", dtype="same", autocast="widest")  # fmt: skip
op("aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", kernel=index_fill,
   variants=ALL,
   gradient={"self": "grad.index_fill(dim, index, 0)",
             "value": "grad.index_select(dim, _unique2(index)[0]).sum()"}, shape="self", dtype="same")  # fmt: skip
op("aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", kernel=index_fill,
   variants=ALL, gradient={"self": "grad.index_fill(dim, index, 0)"}, shape="self", dtype="same")  # fmt: skip


# ------------------------------------------------------------------ layouts

describe("index_put _unsafe_index_put index_fill", layout="operands: self")

# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe(
    "index_add.out index_copy.out index_fill.int_Scalar_out index_fill.int_Tensor_out index_put.out",
    out_check=out_checks.check_same,
)
describe(
    "index.Tensor_out",
    out_check=out_checks.only_same("index_out: self ({wanted}) and result ({given}) must have the same scalar type"),
)
describe(
    "index_select.out",
    out_check=out_checks.only_same("index_select(): self and result must have the same scalar type"),
)
describe("index_fill_ index_put_", writes_again=True)
describe("index_select", writes_apart=True)
