"""Sorting and sets.  In: arrays.  Out: values and where they came from."""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels.memory import check_memory
from engine.aten.kernels.order_statistics import top_places
from engine.aten.kernels.refusals import no_code, unsupported
from engine.aten.kernels.rules import no_kernel, wrap_dim
from engine.aten.stepwise.selecting import SHORT
from engine.aten.values import xp
from engine.aten.values.promotion import wide
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

METHOD: Final = "function method"
_SCATTERED: Final = "zeros_like(self).scatter(dim, indices, grad)"


def order(self: Array, dim: int, descending: bool) -> Array:
    """Indices that sort stably; NaN counts as the largest."""
    if self.ndim == 0:
        return np.zeros((), np.int64)
    x = self.astype(wide(self.dtype), copy=False)
    if descending:
        found = self.shape[dim] - 1 - np.flip(np.argsort(np.flip(x, dim), axis=dim, kind="stable"), dim)
    else:
        found = np.argsort(x, axis=dim, kind="stable")
    return laid(found)


def laid(found: Array) -> Array:
    """The array in C order, also by the strides of dimensions of size 1, which numpy leaves as they come."""
    return found.ravel().reshape(found.shape)


def sort(self: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    dim = wrap_dim(dim, self.ndim)
    places = order(self, dim, descending)
    return (_taken(self, places, dim) if self.ndim else self.copy()), places


def sort_stable(self: Array, stable: bool | None, dim: int, descending: bool) -> tuple[Array, Array]:
    return sort(self, dim, descending)


def argsort(self: Array, dim: int, descending: bool) -> Array:
    return order(self, wrap_dim(dim, self.ndim), descending)


def argsort_stable(self: Array, stable: bool, dim: int, descending: bool) -> Array:
    return argsort(self, dim, descending)


def topk(self: Array, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Array, Array]:
    dim = wrap_dim(dim, self.ndim)
    if not 0 <= k <= (self.shape[dim] if self.ndim else 1):
        raise OperatorError("selected index k out of range")
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    count = self.shape[dim]
    if self.dtype in xp.FLOATS and self.size <= _FEW and k > 0 and count <= SHORT and k * 64 > count:
        is_last = dim == self.ndim - 1
        rows = self if is_last else np.moveaxis(self, dim, -1)
        found = [_first_places(row, k, largest) for row in rows.reshape(-1, count).tolist()]
        few = np.array(found, np.int64).reshape(*rows.shape[:-1], k)
        if not is_last:
            few = laid(np.moveaxis(few, -1, dim))
        return laid(_taken(self, few, dim)), few
    sure = _sure_places(self, k, dim, largest)
    if sure is not None:
        return laid(np.take_along_axis(self, sure, dim)), laid(sure)
    ordered = order(self, dim, largest)
    places = np.take(ordered, np.arange(k), axis=dim)
    if self.size and k > 0 and count <= SHORT and k * 64 > count and _has_tie(self, ordered, dim):
        rows = self.astype(wide(self.dtype), copy=False)
        places = np.apply_along_axis(lambda row: top_places(row.tolist(), k, largest), dim, rows)
    return laid(np.take_along_axis(self, places, dim)), laid(places)


_FEW: Final = 256
"""So few elements are looked at as Python's numbers."""


def _first_places(row: list[float], k: int, largest: bool) -> list[int]:
    """`top_places`, quickly where no two numbers are equal (and none is NaN)."""
    if len(set(row)) < len(row) or any([x != x for x in row]):  # noqa: C419  (quicker)
        return top_places(row, k, largest)
    return sorted(range(len(row)), key=row.__getitem__, reverse=largest)[:k]


def _taken(self: Array, places: Array, dim: int) -> Array:
    """`np.take_along_axis` without bounds checks."""
    if self.ndim == 1:
        return np.asarray(self[places])
    last = self.ndim - 1
    key: list[Array] = [np.arange(n).reshape(-1, *(1,) * (last - axis)) for axis, n in enumerate(places.shape)]
    key[dim] = places
    return np.asarray(self[tuple(key)])


def _sure_places(self: Array, k: int, dim: int, largest: bool) -> Array | None:
    """Indices of the first k, if k is small and no two of the first k + 1 are equal (or NaN); else None."""
    count = self.shape[dim]
    if self.dtype not in xp.FLOATS or not 0 < k <= count // 8:
        return None
    rows = np.negative(self) if largest else self
    first = np.take(np.argpartition(rows, k, dim), np.arange(k + 1), dim)
    values = np.take_along_axis(rows, first, dim)
    by_value = np.argsort(values, dim)
    values = np.take_along_axis(values, by_value, dim)
    before, after = np.take(values, np.arange(k), dim), np.take(values, np.arange(1, k + 1), dim)
    if not np.all(before < after) or np.isnan(rows).any():
        return None
    return np.asarray(np.take_along_axis(first, np.take(by_value, np.arange(k), dim), dim))


def _has_tie(self: Array, ordered: Array, dim: int) -> bool:
    values = np.moveaxis(np.take_along_axis(self, ordered, dim), dim, 0)
    return bool(np.any((values[1:] == values[:-1]) | ((values[1:] != values[1:]) & (values[:-1] != values[:-1]))))


def unique(self: Array, sorted: bool, return_inverse: bool, return_counts: bool) -> tuple[Array, Array, Array]:
    x = self.astype(wide(self.dtype), copy=False)
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, equal_nan=False)
    none = np.empty(0, np.int64)
    placed = inverse.reshape(self.shape) if return_inverse else none
    return values.astype(self.dtype), placed, counts if return_counts else none


def bincount(self: Array, weights: Array | None, minlength: int) -> Array:
    if self.dtype not in xp.INTEGERS:
        raise no_kernel("bincount_cpu", self.dtype)
    if minlength < 0:
        raise OperatorError("minlength should be >= 0")
    if self.ndim == 1 and not self.size:
        return np.zeros(minlength, np.int64)
    if self.ndim != 1 or self.min() < 0:
        raise OperatorError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != self.shape:
        raise OperatorError("weights should be 1-d and have the same length as input")
    check_memory((max(minlength, int(self.max()) + 1),), xp.INT64)
    counts = np.bincount(self, None if weights is None else xp.cast(weights, xp.FLOAT64), minlength)
    return counts.astype(np.float32 if weights is not None and weights.dtype == xp.FLOAT32 else counts.dtype)


_PAIR: Final = "(Tensor values, Tensor indices)"
_OUTS: Final = "Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)"
_SORT = op(f"aten::sort(Tensor self, int dim=-1, bool descending=False) -> {_PAIR}", kernel=sort, variants=METHOD,
           gradient={"self": _SCATTERED})  # fmt: skip
_STABLE = op(f"aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> {_PAIR}",
             kernel=sort_stable, variants=METHOD, gradient={"self": _SCATTERED})  # fmt: skip
op(f"aten::sort.values_stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False, {_OUTS}",
   functional=_STABLE)  # fmt: skip
op(f"aten::sort.values(Tensor self, int dim=-1, bool descending=False, *, {_OUTS}", functional=_SORT)
op("aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", kernel=argsort, variants=METHOD,
   shape="self", dtype="int64")  # fmt: skip
op("aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
   kernel=argsort_stable, variants=f"{METHOD} out", shape="self", dtype="int64")  # fmt: skip
_TOPK = op(f"aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> {_PAIR}",
           kernel=topk, variants=METHOD, gradient={"self": _SCATTERED})  # fmt: skip
op(f"aten::topk.values(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True, *, {_OUTS}",
   functional=_TOPK)  # fmt: skip
_UNIQUE = op("aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) "
             "-> (Tensor, Tensor, Tensor)", kernel=unique, data_dependent=True)  # fmt: skip
op(
    "aten::_unique2.out(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False, *, "
    "Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    functional=_UNIQUE,
)
op("aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", kernel=bincount,
   variants="function method out", data_dependent=True)  # fmt: skip


# ------------------------------------------------------------------ layouts

describe("sort.stable sort argsort", layout="operands")
describe("topk", layout="contiguous")

# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("_unique2", refuses=no_code("c", "unique"))
describe("sort argsort", refuses=unsupported("c", " Sort does not support complex dtypes on CPU"))
describe("topk", refuses=unsupported("c", "topk does not support complex dtypes on CPU"))
describe("topk", refuses=unsupported("b", "topk does not support bool dtypes on CPU"))
describe(
    "_unique2.out argsort.stable_out bincount.out sort.values sort.values_stable topk.values",
    out_check=out_checks.check_same,
)
