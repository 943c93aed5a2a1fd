"""Gather and scatter, masks, and parts replaced.

In: arrays; indices are int64 or int32, masks bool.  Gradient formulas: see `pointwise`.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels import shapes
from engine.aten.kernels.accumulate import accumulate, add_at
from engine.aten.kernels.memory import check_memory
from engine.aten.kernels.rules import are_within, broadcast_shapes, no_kernel, wrap_dim
from engine.aten.ops.parts import select, slice_
from engine.aten.stepwise.language import Loop, worth
from engine.aten.stepwise.scattering import add_each, take_each
from engine.aten.values import xp
from engine.aten.values.promotion import converted, wide
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

OUT: Final = "function method out"
ALL: Final = "function method inplace out"

# ------------------------------------------------------------------ gather and scatter


def _points(
    self: Array, dim: int, index: Array, name: str, src: Array | None = None
) -> tuple[Array, int, Array, tuple[Any, ...]]:
    """Self and index with at least one dimension, the dimension, and numpy's key of the places that index names."""
    wrap_dim(dim, self.ndim)
    if index.size and index.dtype not in (xp.INT64, xp.INT32):
        raise OperatorError(f"{'gather' if name == 'gather' else 'scatter'}(): Expected dtype int32/int64 for index")
    dim = wrap_dim(dim, self.ndim)
    base, places = (a if a.ndim else a.reshape(1) for a in (self, index))
    if places.size and base.ndim != places.ndim:
        raise OperatorError(f"Index tensor must have the same number of dimensions as {_other(name)} tensor")
    if not places.size:
        return base, dim, places, ()
    for axis in range(base.ndim):
        if axis != dim and places.shape[axis] > base.shape[axis]:
            raise OperatorError(
                f"Size does not match at dimension {axis} expected index {list(index.shape)} to be no larger than "
                f"self {list(self.shape)} apart from dimension {dim}"
            )
    size = base.shape[dim]
    if src is not None and src.ndim and src.ndim != places.ndim:
        raise OperatorError("Index tensor must have the same number of dimensions as src tensor")
    if not are_within(places, size):
        bad = places[(places < 0) | (places >= size)].ravel()[0]
        raise OperatorError(f"index {bad} is out of bounds for dimension {dim} with size {size}")
    last = places.ndim - 1
    key = [np.arange(n).reshape(-1, *(1,) * (last - axis)) for axis, n in enumerate(places.shape)]
    key[dim] = places
    return base, dim, places, tuple(key)


def _other(name: str) -> str:
    return "input" if name == "gather" else "self"


def _runs_over(loop: Loop, self: Array, dim: int, index: Array, first: Array, last: Array) -> bool:
    """Run a loop over each place of an index as large as the array but along `dim`; False if numpy has to do it,
    which also raises the errors."""
    if not (worth(index) and self.ndim == index.ndim and -self.ndim <= dim < self.ndim):
        return False
    dim %= self.ndim
    if self.shape[:dim] != index.shape[:dim] or self.shape[dim + 1 :] != index.shape[dim + 1 :]:
        return False
    if index.dtype not in (xp.INT64, xp.INT32):
        return False
    outer, inner = math.prod(index.shape[:dim]), math.prod(index.shape[dim + 1 :])
    places = np.ascontiguousarray(index)
    return loop.run(index.size, first, places, last, outer, self.shape[dim], index.shape[dim], inner) == 0


def gather(self: Array, dim: int, index: Array, sparse_grad: bool) -> Array:
    if worth(index):
        taken = np.empty(index.shape, self.dtype)
        if _runs_over(take_each, self, dim, index, np.ascontiguousarray(self), taken):
            return taken
    base, _, _, key = _points(self, dim, index, "gather")
    return base[key].reshape(index.shape) if key else np.empty(index.shape, self.dtype)


def _check_alike(self: Array, index: Array, src: Array) -> None:
    """Raise OperatorError for operands of two dtypes, unless the index is invalid, which is reported first."""
    if self.dtype != src.dtype and index.dtype in xp.INTEGERS:
        raise OperatorError("scatter(): Expected self.dtype to be equal to src.dtype")


def _source(self: Array, dim: int, places: Array, src: Array, name: str) -> Array:
    """The part of `src` that is scattered."""
    source = src if src.ndim else src.reshape(1)
    if source.ndim != places.ndim:
        raise OperatorError("Index tensor must have the same number of dimensions as src tensor")
    if any(n > m for n, m in zip(places.shape, source.shape, strict=True)):
        raise OperatorError(
            f"Expected index {list(places.shape)} to be no larger than self {list(self.shape)} apart from dimension "
            f"{dim} and to be no larger size than src {list(src.shape)}"
        )
    return source[tuple(slice(n) for n in places.shape)]


def scatter(self: Array, dim: int, index: Array, src: Any, reduce: str | None = None) -> Array:
    if reduce not in (None, "add", "multiply"):
        raise OperatorError("reduce argument must be either add or multiply.")
    if isinstance(src, np.ndarray):
        _check_alike(self, index, src)
    base, dim, places, key = _points(self, dim, index, "scatter", src if isinstance(src, np.ndarray) else None)
    result = base.copy()
    if not key:
        return result.reshape(self.shape)
    values = _source(base, dim, places, src, "scatter") if isinstance(src, np.ndarray) else np.broadcast_to(
        np.asarray(converted(src, self.dtype)).astype(self.dtype), places.shape
    )  # fmt: skip
    if reduce is None:
        result[key] = values
    elif reduce == "add":
        add_at(result, key, values, checked=True)
    else:
        accumulate(np.multiply, result, key, values, checked=True)
    return result.reshape(self.shape)


_ADDED: Final = frozenset({*xp.FLOATS, xp.INT64, xp.INT32})
"""Dtypes that accumulate without conversion."""


def scatter_add(self: Array, dim: int, index: Array, src: Array) -> Array:
    if worth(index) and src.shape == index.shape and src.dtype == self.dtype and self.dtype in _ADDED:
        total = self.copy(order="C")
        if _runs_over(add_each, self, dim, index, total, np.ascontiguousarray(src)):
            return total
    _check_alike(self, index, src)
    base, dim, places, key = _points(self, dim, index, "scatter_add", src)
    result = base.copy()
    if key:
        add_at(result, key, _source(base, dim, places, src, "scatter_add"), checked=True)
    return result.reshape(self.shape)


_NEUTRAL: Final[dict[str, Any]] = {"sum": 0, "mean": 0, "prod": 1, "amax": -np.inf, "amin": np.inf}
_INTO: Final[dict[str, np.ufunc]] = {
    "sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum,
}  # fmt: skip


def scatter_reduce(self: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool) -> Array:
    if reduce not in _INTO:
        raise OperatorError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    _check_alike(self, index, src)
    if (reduce in ("amax", "amin") and self.dtype in xp.COMPLEX) or (reduce == "mean" and self.dtype == xp.BOOL):
        raise no_kernel(f"scatter_gather_tensor_cpu_reduce_{reduce}", self.dtype)
    base, dim, places, key = _points(self, dim, index, "scatter_reduce", src)
    if not key:
        return self.copy()
    values = _source(base, dim, places, src, "scatter_reduce")
    used = wide(self.dtype)
    result = base.astype(used)
    if not include_self:
        result[key] = _neutral(reduce, used)
    accumulate(_INTO[reduce], result, key, values.astype(used), checked=True)
    if reduce == "mean":
        count = np.full(base.shape, int(include_self), np.int64)
        accumulate(np.add, count, key, np.ones((), np.int64), checked=True)
        count = np.maximum(count, 1)
        result = result // count if used in xp.INTEGERS else np.asarray(result / count).astype(used)
    return result.astype(self.dtype).reshape(self.shape)


def _neutral(reduce: str, d: xp.NumpyDtype) -> Any:
    """The identity element of a reduction."""
    if reduce in ("amax", "amin") and d == xp.BOOL:
        return reduce == "amin"
    if reduce in ("amax", "amin") and d in xp.INTEGERS:
        limits = np.iinfo(d)
        return limits.min if reduce == "amax" else limits.max
    return np.asarray(_NEUTRAL[reduce]).astype(d)


op("aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", kernel=gather,
   variants=OUT, gradient={"self": "zeros_like(self).scatter_add(dim, index, grad)"}, shape="index",
   dtype="same", layout="contiguous")  # fmt: skip
op("aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", kernel=scatter, variants=ALL,
   gradient={"self": "grad.scatter(dim, index, 0)"}, shape="self", dtype="same")  # fmt: skip
op("aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", kernel=scatter, variants=ALL,
   gradient={"self": "grad.scatter(dim, index, 0)", "src": "grad.gather(dim, index)"}, shape="self",
   dtype="same")  # fmt: skip
op("aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor", kernel=scatter,
   variants=ALL, shape="self", dtype="same")  # fmt: skip
op("aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
   kernel=scatter, variants=ALL, shape="self", dtype="same")  # fmt: skip
op("aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", kernel=scatter_add, variants=ALL,
   gradient={"self": "grad", "src": "grad.gather(dim, index)"}, shape="self", dtype="same")  # fmt: skip
_REDUCE_BACKWARD: Final = "_scatter_reduce_backward(grad, self, dim, index, src, reduce, include_self, result)"
op("aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) "
   "-> Tensor", kernel=scatter_reduce, variants=ALL,
   gradient={"self": f"{_REDUCE_BACKWARD}[0]", "src": f"{_REDUCE_BACKWARD}[1]"}, layout="contiguous")  # fmt: skip

# ------------------------------------------------------------------ masks


def masked_select(self: Array, mask: Array) -> Array:
    if mask.dtype != xp.BOOL:
        raise OperatorError("masked_select: expected BoolTensor for mask")
    shape = broadcast_shapes(self.shape, mask.shape)
    return np.asarray(np.broadcast_to(self, shape)[np.broadcast_to(mask, shape)].reshape(-1))


def masked_scatter(self: Array, mask: Array, source: Array) -> Array:
    if self.dtype != source.dtype:
        raise OperatorError("masked_scatter: expected self and source to have same dtypes but got"
                            f"{xp.ir_name(self.dtype)} and {xp.ir_name(source.dtype)}")  # fmt: skip
    if mask.dtype != xp.BOOL:
        raise OperatorError("masked_scatter_ only supports boolean masks, "
                            f"but got mask with dtype {xp.ir_name(mask.dtype)}")  # fmt: skip
    shape = broadcast_shapes(self.shape, mask.shape)
    result = np.array(np.broadcast_to(self, shape), order="C")
    chosen = np.broadcast_to(mask, shape)
    count = int(chosen.sum())
    if count > source.size:
        raise OperatorError("masked_scatter: expected source to have at least as many elements as the mask has ones")
    result[chosen] = source.reshape(-1)[:count]
    return result


def nonzero(self: Array) -> Array:
    """Places as rows; in memory the places along each dimension are together."""
    return np.stack(np.nonzero(self)).T if self.ndim else np.empty((int(bool(self)), 0), np.int64)


op("aten::masked_select(Tensor self, Tensor mask) -> Tensor", kernel=masked_select, variants=OUT,
   gradient={"self": "zeros_like(self).masked_scatter(mask, grad)"}, shape=shapes.of_unknown_length, dtype="same",
   data_dependent=True)  # fmt: skip
op("aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", kernel=masked_scatter, variants=ALL,
   gradient={"self": "grad.masked_fill(mask, 0)",
             "source": "_masked_scatter_backward(grad, mask, source.size())"})  # fmt: skip
op("aten::nonzero(Tensor self) -> Tensor", kernel=nonzero, variants=OUT, data_dependent=True)

# ------------------------------------------------------------------ parts replaced, diagonals


def slice_scatter(self: Array, src: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    result = self.copy()
    part = slice_(result, dim, start, end, step)
    if part.shape != src.shape:
        raise OperatorError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
            f"slice size = {list(part.shape)}"
        )
    part[...] = xp.cast(src, self.dtype)
    return result


def select_scatter(self: Array, src: Array, dim: int, index: int) -> Array:
    result = self.copy()
    part = select(result, dim, index)
    if part.shape != src.shape:
        raise OperatorError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
            f"slice size = {list(part.shape)}"
        )
    part[...] = xp.cast(src, self.dtype)
    return result


def diag(self: Array, diagonal: int) -> Array:
    if self.ndim not in (1, 2):
        raise OperatorError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D")
    if self.ndim == 2 and not _has_diagonal(self, diagonal):
        return np.empty(0, self.dtype)
    return np.array(np.diag(self, diagonal))


def _has_diagonal(matrix: Array, offset: int) -> bool:
    rows, columns = matrix.shape
    return bool(-rows <= offset <= columns)


def diag_embed(self: Array, offset: int, dim1: int, dim2: int) -> Array:
    a, b = wrap_dim(dim1, self.ndim + 1), wrap_dim(dim2, self.ndim + 1)
    if a == b:
        raise OperatorError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    length = self.shape[-1] if self.ndim else 1
    size = length + abs(offset)
    check_memory((*self.shape[:-1], size, size), self.dtype)
    result = np.zeros((*self.shape[:-1], size, size), self.dtype)
    place = np.arange(length)
    result[..., place + max(-offset, 0), place + max(offset, 0)] = self
    return np.ascontiguousarray(np.moveaxis(result, (-2, -1), (a, b)))


op("aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) "
   "-> Tensor", kernel=slice_scatter, variants=OUT,
   gradient={"self": "grad.slice_scatter(zeros_like(src), dim, start, end, step)",
                           "src": "slice(grad, dim, start, end, step)"})  # fmt: skip
op("aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", kernel=select_scatter,
   variants=OUT, gradient={"self": "grad.select_scatter(zeros_like(src), dim, index)",
                           "src": "grad.select(dim, index)"})  # fmt: skip
op("aten::diag(Tensor self, int diagonal=0) -> Tensor", kernel=diag, variants=OUT,
   gradient={"self": "_diagonal_backward(grad, self.size(), diagonal, 0, 1) if self.dim() == 2 else "
                     "grad.diagonal(diagonal, 0, 1)"})  # fmt: skip
op("aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", kernel=diag_embed,
   variants=OUT, gradient={"self": "grad.diagonal(offset, dim1, dim2)"})  # fmt: skip


# ------------------------------------------------------------------ layouts

describe("select_scatter slice_scatter", layout="operands: self")

# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe(
    "diag.out diag_embed.out gather.out masked_scatter.out scatter.reduce_out scatter.src_out "
    "scatter.value_out scatter.value_reduce_out scatter_add.out scatter_reduce.two_out select_scatter.out "
    "slice_scatter.out",
    out_check=out_checks.check_same,
)
describe(
    "masked_select.out",
    out_check=out_checks.only_same("masked_select(): self and result must have the same scalar type"),
)
describe(
    "nonzero.out",
    out_check=out_checks.only_same(
        "nonzero: Expected out tensor to have scalar type {wanted} but got scalar type{given}"
    ),
)
describe("gather masked_select", writes_apart=True)
