"""Picking elements out and putting them back: running extremes, k-th values, flat indices, sets.

In: arrays.  Out: arrays.  Gradient formulas: see `pointwise`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.compose import run
from engine.aten.dispatch.table import describe, op, out_form
from engine.aten.dispatch.wrapping import overwrite
from engine.aten.kernels.accumulate import accumulate
from engine.aten.kernels.memory import check_memory
from engine.aten.kernels.order_statistics import kth_in_machine_code, kth_place
from engine.aten.kernels.refusals import no_code, unsupported
from engine.aten.kernels.rules import broadcast_shapes, no_kernel, wrap_dim
from engine.aten.ops.indexing import along, checked_source
from engine.aten.ops.parts import as_strided_view, diagonal
from engine.aten.ops.reductions import over
from engine.aten.ops.sorting import laid, order
from engine.aten.stepwise import cumulative
from engine.aten.stepwise.language import Loop, worth
from engine.aten.stepwise.selecting import SHORT
from engine.aten.values import xp
from engine.aten.values.promotion import converted, result_type, wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array, as_strided
from engine.lang.errors import OperatorError, OperatorIndexError

ALL: Final = "function method inplace out"
METHOD: Final = "function method out"
_PAIR: Final = "-> (Tensor values, Tensor indices)"
_SCATTERED: Final = "zeros_like(self).scatter(dim, indices, grad)"

# ------------------------------------------------------------------ extremes


def running(name: str, extreme: np.ufunc) -> Callable[[Array, int], tuple[Array, Array]]:
    """The extreme so far along a dimension, and where it stands; of equal ones the last, and NaN before all."""

    def kernel(self: Array, dim: int) -> tuple[Array, Array]:
        if self.size == 0:
            return self.copy(), np.zeros(self.shape, np.int64)
        if self.dtype in xp.COMPLEX:
            raise no_kernel(name, self.dtype)
        axis = wrap_dim(dim, self.ndim)
        if self.ndim == 0:
            return self.copy(), np.zeros((), np.int64)
        x = self.astype(wide(self.dtype), copy=False)
        found = _running_in_machine_code(extreme, x, axis)
        if found is not None:
            return found[0].astype(self.dtype, copy=False), found[1]
        is_extreme = x == extreme.accumulate(x, axis=axis)
        if x.dtype in xp.FLOATING:
            np.logical_or(is_extreme, np.isnan(x), is_extreme)
        numbers = np.arange(x.shape[axis]).reshape(-1, *[1] * (x.ndim - axis - 1))
        places = np.maximum.accumulate(is_extreme * numbers, axis=axis)
        return np.take_along_axis(self, places, axis), places

    return kernel


_RUNNING: Final[dict[np.ufunc, tuple[Loop, Loop]]] = {
    np.maximum: (cumulative.row_maxima, cumulative.maxima),
    np.minimum: (cumulative.row_minima, cumulative.minima),
}


def _running_in_machine_code(extreme: np.ufunc, x: Array, axis: int) -> tuple[Array, Array] | None:
    by_rows, side_by_side = _RUNNING[extreme]
    if not worth(x):
        return None
    source, values, places = np.ascontiguousarray(x), np.empty(x.shape, x.dtype), np.empty(x.shape, np.int64)
    outer, length, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    if inner == 1:
        done = by_rows.run(x.size, source, values, places, outer, length)
    else:
        done = side_by_side.run(x.size, source, values, places, outer, length, inner)
    return None if done is None else (values, places)


def aminmax(self: Array, dim: int | None, keepdim: bool) -> tuple[Array, Array]:
    if self.dtype in xp.COMPLEX:
        raise no_kernel("aminmax", self.dtype)
    axis = None if dim is None else (wrap_dim(dim, self.ndim),)
    if axis is not None and self.ndim and self.shape[axis[0]] == 0:
        raise OperatorIndexError(f"aminmax: Expected reduction dim {axis[0]} to have non-zero size.")
    if self.size == 0 and axis is None:
        raise OperatorError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    if self.ndim == 0:
        axis = None
    return over(np.minimum, self, axis, keepdim), over(np.maximum, self, axis, keepdim)


def kthvalue(self: Array, k: int, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """The k-th smallest, counted from 1."""
    axis = wrap_dim(dim, self.ndim)
    if not 1 <= k <= (self.shape[axis] if self.ndim else 1):
        raise OperatorError("kthvalue(): selected number k out of range for dimension " + str(axis))
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    found = kth_in_machine_code(self, axis, k - 1)
    if found is not None:
        return found if keepdim else (found[0].squeeze(axis), found[1].squeeze(axis))
    places = np.take(order(self, axis, False), [k - 1], axis=axis)
    values = np.take_along_axis(self, places, axis)
    if self.shape[axis] <= SHORT and np.any(np.sum(self == values, axis=axis) > 1):
        places = np.apply_along_axis(
            lambda row: [kth_place(row.tolist(), k - 1)], axis, xp.cast(self, wide(self.dtype))
        )
    return (laid(values), laid(places)) if keepdim else (laid(values.squeeze(axis)), laid(places.squeeze(axis)))


def mode(self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """The most frequent value (the smallest of several), and where it stands last."""
    axis = wrap_dim(dim, self.ndim)
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    if self.shape[axis] == 0:
        raise OperatorIndexError(f"mode(): Expected reduction dim {axis} to have non-zero size.")
    x = np.moveaxis(self, axis, -1)
    places = order(x, x.ndim - 1, False)
    sorted_ = np.take_along_axis(x, places, -1)
    starts = np.ones(sorted_.shape, np.bool_)
    starts[..., 1:] = sorted_[..., 1:] != sorted_[..., :-1]
    first = np.maximum.accumulate(np.where(starts, np.arange(x.shape[-1]), 0), axis=-1)
    length = np.arange(x.shape[-1]) - first + 1
    end = np.expand_dims(np.argmax(length, axis=-1), -1)
    found = [np.moveaxis(np.take_along_axis(v, end, -1), -1, axis) for v in (sorted_, places)]
    return (found[0], found[1]) if keepdim else (found[0].squeeze(axis), found[1].squeeze(axis))


for _name, _extreme in (("cummax", np.maximum), ("cummin", np.minimum)):
    out_form(op(f"aten::{_name}(Tensor self, int dim) {_PAIR}", kernel=running(f"{_name}_cpu", _extreme),
                variants="function method",
                gradient={"self": "zeros_like(self).scatter_add(dim, indices, grad)"}, layout="contiguous"),
             "out", "values indices")  # fmt: skip
out_form(op("aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
            kernel=aminmax, variants="function method", gradient={
                "self": "_aminmax_backward(grads[0], grads[1], self, min, max, dim, keepdim)"
            }, layout="contiguous"), "out", "min max")  # fmt: skip
_UNSQUEEZED: Final = ("(zeros_like(self).scatter(dim, indices, grad) if keepdim or self.dim() == 0 else "
                      "zeros_like(self).scatter(dim, indices.unsqueeze(dim), grad.unsqueeze(dim)))")  # fmt: skip
out_form(op(f"aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) {_PAIR}", kernel=kthvalue,
            variants="function method", gradient={"self": _UNSQUEEZED},
            layout="contiguous"), "values", "values indices")  # fmt: skip
out_form(op(f"aten::mode(Tensor self, int dim=-1, bool keepdim=False) {_PAIR}", kernel=mode,
            variants="function method", gradient={"self": _UNSQUEEZED},
            layout="contiguous"), "values", "values indices")  # fmt: skip


def msort(self: Tensor) -> Tensor:
    values: Tensor = run("sort", self, 0, False)[0]
    return values


op("aten::msort(Tensor self) -> Tensor", python=msort, variants=METHOD)

# ------------------------------------------------------------------ flat indices


def _flat(self: Array, index: Array, name: str) -> Array:
    """Checked places in the flattened array."""
    if index.dtype != np.int64:
        raise OperatorError(f"{name}(): Expected a long tensor for index, but got {xp.ir_name(index.dtype)}")
    if self.size == 0 and index.size:
        raise OperatorIndexError(f"{name}(): tried to take from an empty tensor")
    if index.size and (index.min() < -self.size or index.max() >= self.size):
        bad = index[(index < -self.size) | (index >= self.size)].ravel()[0]
        raise OperatorIndexError(f"out of range: tried to access index {bad} on a tensor of {self.size} elements.")
    return np.where(index < 0, index + self.size, index)


def take(self: Array, index: Array) -> Array:
    return np.asarray(self.reshape(-1)[_flat(self, index, "take")])


def put(self: Array, index: Array, source: Array, accumulate: bool) -> Array:
    if source.dtype != self.dtype:
        raise OperatorError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {xp.ir_name(self.dtype)} "
            f"and source.dtype = {xp.ir_name(source.dtype)}"
        )
    if index.size != source.size:
        raise OperatorIndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.size}, index.numel() = {index.size}"
        )
    places = _flat(self, index, "put_").reshape(-1)
    result = self.reshape(-1).copy()
    if accumulate:
        np.add.at(result, places, source.reshape(-1))
    else:
        result[places] = source.reshape(-1)
    return result.reshape(self.shape)


def take_along_dim(self: Tensor, indices: Tensor, dim: int | None) -> Tensor:
    if indices.array.dtype != np.int64 and indices.array.size:
        raise OperatorError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {xp.ir_name(indices.array.dtype)}"
        )
    if dim is None:
        flat: Tensor = self.reshape([-1]).gather(0, indices.reshape([-1]))
        return flat
    axis = wrap_dim(dim, self.ndim)
    size = self.shape[axis] if self.ndim else 0
    if size and indices.array.size and indices.array.min() < 0:
        indices = run("remainder.Scalar", indices, size)
    if self.ndim != indices.ndim:
        raise OperatorError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {self.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    shapes = [list(t.shape) for t in (self, indices)]
    if not self.ndim:
        raise OperatorIndexError("Dimension specified as 0 but tensor has no dimensions")
    common = list(broadcast_shapes(*((*s[:axis], 1, *s[axis + 1 :]) for s in shapes)))
    wide_self, wide_index = ([*common[:axis], s[axis], *common[axis + 1 :]] for s in shapes)
    result: Tensor = self.expand(wide_self).gather(axis, indices.expand(wide_index))
    return result


_INTO: Final[dict[str, np.ufunc]] = {
    "prod": np.multiply, "mean": np.add, "amax": np.maximum, "amin": np.minimum,
}  # fmt: skip


def index_reduce(self: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool) -> Array:
    """Slices of `source` reduced into the slices of `self` that `index` names."""
    if reduce not in _INTO:
        raise OperatorError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    base, axis, places = along(self, dim, index, "index_reduce")
    source = checked_source("index_reduce", base, axis, places, source)
    if self.dtype not in xp.REAL:
        raise no_kernel("index_func_" if include_self else "index_reduce_func_exclude_input_init", self.dtype)
    used = wide(self.dtype)
    result = np.moveaxis(base.astype(used), axis, 0).copy()
    values = np.moveaxis(source.astype(used), axis, 0)
    if not include_self:
        result[places] = _neutral(reduce, used)
    accumulate(_INTO[reduce], result, places, values)
    if reduce == "mean":
        count = np.full(len(result), int(include_self), np.int64)
        np.add.at(count, places, 1)
        count = np.maximum(count, 1).reshape(-1, *[1] * (result.ndim - 1))
        result = result // count if used in xp.INTEGERS else (result / count).astype(used)
    return np.array(np.moveaxis(result, 0, axis), self.dtype, order="C").reshape(self.shape)


def _neutral(reduce: str, d: xp.NumpyDtype) -> Any:
    """The identity element of a reduction."""
    if reduce in ("prod", "mean"):
        return int(reduce == "prod")
    limits = np.iinfo(d) if d in xp.INTEGERS else None
    low, high = (limits.min, limits.max) if limits else (-np.inf, np.inf)
    return low if reduce == "amax" else high


op("aten::take(Tensor self, Tensor index) -> Tensor", kernel=take, variants=METHOD,
   gradient={"self": "zeros_like(self).put(index, grad, True)"})  # fmt: skip
op("aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", kernel=put, variants=ALL,
   gradient={"self": "grad if accumulate else grad.put(index, zeros_like(source), False)",
             "source": "grad.take(index).reshape_as(source)"})  # fmt: skip
op("aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", python=take_along_dim,
   variants=METHOD)  # fmt: skip
_REDUCED: Final = "_index_reduce_backward(grad, self, dim, index, source, reduce, include_self, result)"
op("aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) "
   "-> Tensor", kernel=index_reduce, variants=ALL,
   gradient={"self": f"{_REDUCED}[0]", "source": f"{_REDUCED}[1]"})  # fmt: skip


def index_put_impl_(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool, unsafe: bool
) -> Tensor:
    written: Tensor = run("index_put_", self, indices, values, accumulate)
    return written


op("aten::_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, "
   "bool unsafe=False) -> Tensor(a!)", python=index_put_impl_)  # fmt: skip
op("aten::_index_put_impl_.hacked_twin(Tensor(a!) self, Tensor[] indices, Tensor values, bool accumulate=False, "
   "bool unsafe=False) -> Tensor(a!)", python=index_put_impl_)  # fmt: skip

# ------------------------------------------------------------------ parts replaced


def diagonal_scatter(self: Array, src: Array, offset: int, dim1: int, dim2: int) -> Array:
    result = self.copy()
    part = diagonal(result, offset, dim1, dim2)
    if part.shape != src.shape:
        raise OperatorError(
            "expected src to have a size equal to the slice of self. "
            f"src size = {list(src.shape)}, slice size = {list(part.shape)}"
        )
    part[...] = xp.cast(src, self.dtype)
    return result


def as_strided_scatter(
    self: Array, src: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None
) -> Array:
    result = np.array(self, order="C")
    part = as_strided_view(Tensor(result), size, stride, storage_offset or 0)
    if part.shape != src.shape:
        raise OperatorError(
            "expected src to have a size equal to the slice of self. "
            f"src size = {list(src.shape)}, slice size = {list(part.shape)}"
        )
    overwrite(part, src)
    return result


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool) -> Tensor:
    """Of a matrix, or of a cube of any dimension; `wrap` starts again below a tall matrix."""
    array = self.array
    if array.ndim < 2:
        raise OperatorError("dimensions must larger than 1")
    rows, columns = array.shape[0], array.shape[1]
    if array.ndim > 2 and len(set(array.shape)) > 1:
        raise OperatorError("all dimensions of input must be of equal length")
    value = converted(fill_value, array.dtype)
    step = sum(array.strides)
    as_strided(array, (min(array.shape),), (step,))[...] = value
    if wrap and array.ndim == 2 and rows > columns + 1:
        for start in range(columns + 1, rows, columns + 1):
            block = array[start:]
            as_strided(block, (min(block.shape),), (step,))[...] = value
    self.bump_version()
    return self


op("aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
   kernel=diagonal_scatter, variants=METHOD,
   gradient={"self": "grad.diagonal_scatter(zeros_like(src), offset, dim1, dim2)",
             "src": "grad.diagonal(offset, dim1, dim2)"})  # fmt: skip
op("aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) "
   "-> Tensor", kernel=as_strided_scatter, variants=METHOD,
   # As in the reference, the gradient of self includes that of the replaced elements.
   gradient={"self": "zeros_like(grad.contiguous()).as_strided_scatter(grad.contiguous().as_strided("
                     "size, stride, storage_offset), size, stride, storage_offset)",
             "src": "grad.contiguous().as_strided(size, stride, storage_offset)"})  # fmt: skip
op("aten::fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)", python=fill_diagonal_,
   variants="method", gradient={"self": "grad.clone().fill_diagonal_(0, wrap)"})  # fmt: skip

# ------------------------------------------------------------------ sets and places

_NONE: Final = np.empty(0, np.int64)


def unique_dim(
    self: Array, dim: int, sorted: bool, return_inverse: bool, return_counts: bool
) -> tuple[Array, Array, Array]:
    """Distinct slices along a dimension, in order."""
    axis = wrap_dim(dim, self.ndim)
    x = np.moveaxis(np.atleast_1d(self), axis, 0)
    if not x.size:
        return _no_slices(self, axis)
    rows = x.reshape(len(x), -1)
    if rows.dtype == xp.BOOL:
        rows = rows.view(np.uint8)
    _, first, inverse, counts = np.unique(
        rows.astype(wide(rows.dtype)), return_index=True, return_inverse=True, return_counts=True, axis=0
    )
    return np.ascontiguousarray(np.moveaxis(x[first], 0, axis)), inverse.reshape(-1), counts


def _no_slices(self: Array, axis: int) -> tuple[Array, Array, Array]:
    others = [n for i, n in enumerate(self.shape) if i != axis]
    if self.shape[axis] or others.count(0):
        raise OperatorError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return self.copy(), _NONE, _NONE


def unique_consecutive(
    self: Array, return_inverse: bool, return_counts: bool, dim: int | None
) -> tuple[Array, Array, Array]:
    """The first of each run of equal neighbours."""
    if self.dtype in xp.COMPLEX:
        raise no_kernel("unique" if dim is None else "unique_dim", self.dtype)
    axis = 0 if dim is None else wrap_dim(dim, self.ndim)
    if self.ndim == 1 and dim == 0:
        dim = None
    x = self.reshape(-1) if dim is None else np.moveaxis(np.atleast_1d(self), axis, 0)
    starts = np.ones(len(x), np.bool_)
    rows = x.reshape(len(x), -1) if x.size else np.empty((len(x), 0), x.dtype)
    starts[1:] = np.any(rows[1:] != rows[:-1], axis=1)
    first = np.flatnonzero(starts)
    inverse = np.cumsum(starts) - 1
    counts = np.diff(np.append(first, len(x)))
    values = np.ascontiguousarray(np.moveaxis(x[first], 0, axis))
    if dim is not None:
        return values, inverse, counts
    return values, inverse.reshape(self.shape) if return_inverse else _NONE, counts if return_counts else _NONE


def isin(elements: Any, test_elements: Any, assume_unique: bool, invert: bool) -> Array:
    for values in (elements, test_elements):
        if result_type((values,)) not in xp.REAL:
            given = xp.ir_name(result_type((values,)))
            raise OperatorError(f"Unsupported input type encountered for isin(): {given}")
    d = result_type((elements, test_elements))
    a, b = (np.asarray(v).astype(wide(d)) for v in (elements, test_elements))
    return np.asarray(np.isin(a, b.reshape(-1), invert=invert))


def nonzero_numpy(self: Array) -> list[Array]:
    return [np.ascontiguousarray(places) for places in np.nonzero(np.atleast_1d(self))]


def argwhere(self: Tensor) -> Tensor:
    result: Tensor = run("nonzero", self)
    return result


def nonzero_static(self: Array, size: int, fill_value: int) -> Array:
    """Indices of the first `size` non-zero elements, padded with rows of `fill_value`."""
    if size < 0:
        raise OperatorError("nonzero_static: 'size' must be an non-negative integer")
    check_memory((size, self.ndim), xp.INT64)
    found = np.argwhere(np.atleast_1d(self))[:size] if self.ndim else np.empty((size, 0), np.int64)
    result = np.full((size, self.ndim), fill_value, np.int64)
    result[: len(found)] = found
    return result


_THREE: Final = "-> (Tensor, Tensor, Tensor)"
out_form(op(f"aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, "
            f"bool return_counts=False) {_THREE}", kernel=unique_dim,
            data_dependent=True), "out", "out0 out1 out2")  # fmt: skip
out_form(op(f"aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, "
            f"int? dim=None) {_THREE}", kernel=unique_consecutive, variants="function method", data_dependent=True),
         "out", "out0 out1 out2")  # fmt: skip
_ISIN: Final = "*, bool assume_unique=False, bool invert=False"
for _overload, _arguments in (
    ("Tensor_Tensor", "Tensor elements, Tensor test_elements"),
    ("Tensor_Scalar", "Tensor elements, Scalar test_element"),
    ("Scalar_Tensor", "Scalar element, Tensor test_elements"),
):
    op(f"aten::isin.{_overload}({_arguments}, {_ISIN}) -> Tensor", kernel=isin, variants="function out")
op("aten::nonzero_numpy(Tensor self) -> Tensor[]", kernel=nonzero_numpy, data_dependent=True)
op("aten::argwhere(Tensor self) -> Tensor", python=argwhere, variants="function method", data_dependent=True)
op("aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor", kernel=nonzero_static,
   variants=METHOD)  # fmt: skip


# ------------------------------------------------------------------ layouts

describe("put diagonal_scatter as_strided_scatter", layout="operands: self")

# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("aminmax", refuses=no_code("c", "aminmax_cpu"))
describe("kthvalue", refuses=no_code("bc", "kthvalue_cpu"))
describe("mode", refuses=no_code("c", "mode_cpu"))
describe("unique_dim", refuses=no_code("c", "unique_dim"))
describe("msort", refuses=unsupported("c", " Sort does not support complex dtypes on CPU"))
describe(
    "aminmax.out as_strided_scatter.out diagonal_scatter.out index_reduce.out isin.Scalar_Tensor_out "
    "isin.Tensor_Scalar_out isin.Tensor_Tensor_out msort.out put.out take_along_dim.out "
    "unique_consecutive.out unique_dim.out",
    out_check=out_checks.check_same,
)
describe("cummax.out cummin.out", out_check=out_checks.only_same("expected scalar_type {wanted} but found {given}"))
describe(
    "take.out",
    out_check=out_checks.only_same(
        "take(): self and out expected to have the same dtype, but got self.dtype = {wanted} and out.dtype = {given}"
    ),
)
describe(
    "nonzero_static.out",
    out_check=out_checks.only_same(
        "nonzero_static: Expected out tensor to have scalar type {wanted} but got scalar type{given}"
    ),
)
describe("kthvalue.values", out_check=out_checks.only_same("output values must be of same type as input"))
describe("take", writes_apart=True)
