"""Sorting and sets.  In: arrays.  Out: values and where they came from."""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.aten import xp
from engine.aten.op import op
from engine.aten.promotion import wide
from engine.aten.rules import no_kernel, wrap_dim
from engine.aten.xp import Array
from engine.lang.errors import OperatorError

METHOD: Final = "function method"
_PLACES: Final = "zeros_like(self).scatter(dim, indices, grad)"


def order(self: Array, dim: int, descending: bool) -> Array:
    """Indices that sort stably; NaN counts as the largest."""
    if self.dtype.kind == "c":
        raise no_kernel("sort_stable", self.dtype)
    if self.ndim == 0:
        return np.zeros((), np.int64)
    x = self.astype(wide(self.dtype), copy=False)
    if not descending:
        return np.asarray(np.argsort(x, axis=dim, kind="stable"))
    backwards = np.flip(np.argsort(np.flip(x, dim), axis=dim, kind="stable"), dim)
    return np.asarray(self.shape[dim] - 1 - backwards)


def sort(self: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    dim = wrap_dim(dim, self.ndim)
    places = order(self, dim, descending)
    return (np.take_along_axis(self, places, dim) if self.ndim else self.copy()), places


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
    places = np.take(order(self, dim, largest), np.arange(k), axis=dim)
    return np.take_along_axis(self, places, dim), places


def unique(self: Array, sorted: bool, return_inverse: bool, return_counts: bool) -> tuple[Array, Array, Array]:
    x = self.astype(wide(self.dtype), copy=False)
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, equal_nan=False)
    none = np.empty(0, np.int64)
    placed = inverse.reshape(self.shape) if return_inverse else none
    return values.astype(self.dtype), placed, counts if return_counts else none


def bincount(self: Array, weights: Array | None, minlength: int) -> Array:
    if self.ndim != 1 or (self.size and self.min() < 0) or self.dtype.kind not in "iu":
        raise OperatorError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise OperatorError("minlength should be >= 0")
    if weights is not None and weights.shape != self.shape:
        raise OperatorError("weights should be 1-d and have the same length as input")
    counts = np.bincount(self, weights, minlength)
    return counts.astype(np.float32 if weights is not None and weights.dtype == xp.FLOAT32 else counts.dtype)


_PAIR: Final = "(Tensor values, Tensor indices)"
_OUTS: Final = "Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)"
_SORT = op(f"aten::sort(Tensor self, int dim=-1, bool descending=False) -> {_PAIR}", kernel=sort, variants=METHOD,
           gradient={"self": _PLACES})  # fmt: skip
_STABLE = op(f"aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> {_PAIR}",
             kernel=sort_stable, variants=METHOD, gradient={"self": _PLACES})  # fmt: skip
op(f"aten::sort.values_stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False, {_OUTS}",
   functional=_STABLE)  # fmt: skip
op(f"aten::sort.values(Tensor self, int dim=-1, bool descending=False, *, {_OUTS}", functional=_SORT)
op("aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", kernel=argsort, variants=METHOD)
op("aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
   kernel=argsort_stable, variants=f"{METHOD} out")  # fmt: skip
_TOPK = op(f"aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> {_PAIR}",
           kernel=topk, variants=METHOD, gradient={"self": _PLACES})  # fmt: skip
op(f"aten::topk.values(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True, *, {_OUTS}",
   functional=_TOPK)  # fmt: skip
_UNIQUE = op("aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) "
             "-> (Tensor, Tensor, Tensor)", kernel=unique)  # fmt: skip
op(
    "aten::_unique2.out(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False, *, "
    "Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    functional=_UNIQUE,
)
op("aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", kernel=bincount,
   variants="function method out")  # fmt: skip
