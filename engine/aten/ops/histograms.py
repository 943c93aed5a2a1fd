"""Histograms: how many values fall between edges.

In: arrays.  Out: counts (or shares), and the edges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.table import describe, op, out_form
from engine.aten.kernels.memory import check_memory
from engine.aten.kernels.rules import c_name, no_kernel
from engine.aten.values import xp
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

METHOD: Final = "function method out"


def histc(self: Array, bins: int, min: float, max: float) -> Array:
    """Number of values in each of `bins` equal intervals."""
    if bins <= 0:
        raise OperatorError("bins must be > 0")
    check_memory((bins,), self.dtype)
    if self.dtype not in xp.FLOATING:
        raise no_kernel("histogram_cpu", self.dtype)
    counts, _ = _histogram(self, bins, *_range(self, min, max), None)
    return counts.astype(self.dtype)


def _range(self: Array, low: float, high: float) -> tuple[float, float]:
    if low == high and self.size:
        low, high = float(self.min()), float(self.max())
    if low == high:
        low, high = low - 1, high + 1
    if not math.isfinite(low) or not math.isfinite(high):
        raise OperatorError(f"torch.histc: range of [{low}, {high}] is not finite")
    if low > high:
        raise OperatorError("torch.histc: max must be larger than min")
    return low, high


def _histogram(self: Array, bins: int, low: float, high: float, weight: Array | None) -> tuple[Array, Array]:
    x = self.reshape(-1)
    inside = (x >= low) & (x <= high)
    places = _places(x[inside], bins, low, high)
    weights = None if weight is None else weight.reshape(-1)[inside].astype(np.float64)
    edges = np.linspace(low, high, bins + 1)
    return np.bincount(places, weights, bins), edges


def _places(x: Array, bins: int, low: float, high: float) -> Array:
    """Index of each element's interval; half types are rounded after every step."""
    one = x.dtype.type
    scaled = (x - one(low)) * one(bins) / one(high - low) if x.dtype in xp.HALVES else (x - low) * (bins / (high - low))
    return np.minimum(scaled.astype(np.int64), bins - 1)


def histogram_edges(self: Array, bins: Array, weight: Array | None, density: bool) -> tuple[Array, Array]:
    _check_edges(self, bins, weight)
    x = self.reshape(-1)
    inside = (x >= bins[0]) & (x <= bins[-1])
    places = np.minimum(np.searchsorted(bins, x[inside], side="right") - 1, len(bins) - 2)
    weights = None if weight is None else weight.reshape(-1)[inside].astype(np.float64)
    counts = np.bincount(places, weights, len(bins) - 1)
    return _as_density(counts, bins, density).astype(self.dtype), bins.copy()


def _check_edges(self: Array, bins: Array, weight: Array | None) -> None:
    if bins.ndim != 1:
        raise OperatorError(
            f"torch.histogramdd: bins tensor should have one dimension, but got {bins.ndim} dimensions in the bins "
            "tensor for dimension 0"
        )
    if bins.size < 1:
        raise OperatorError(
            "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for "
            "dimension 0"
        )
    if bins.dtype != self.dtype:
        raise OperatorError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
            f"{c_name(self.dtype)} and bins for dimension 0 with dtype {c_name(bins.dtype)}"
        )
    _check_weighed(self, weight)


def _check_weighed(self: Array, weight: Array | None) -> None:
    if weight is not None and weight.shape != self.shape:
        raise OperatorError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with shape {[self.size, 1]} and weight with shape "
            f"{[weight.size]}"
        )
    if weight is not None and weight.dtype != self.dtype:
        raise OperatorError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({c_name(self.dtype)}), and weight({c_name(weight.dtype)})"
        )
    if self.dtype not in (xp.FLOAT32, xp.FLOAT64):
        raise no_kernel("histogramdd", self.dtype)


def histogram_count(
    self: Array, bins: int, range: Sequence[float] | None, weight: Array | None, density: bool
) -> tuple[Array, Array]:
    if bins <= 0:
        raise OperatorError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    check_memory((bins,), self.dtype)
    _check_weighed(self, weight)
    low, high = _range(self, *range) if range is not None else _outer_range(self)
    counts, edges = _histogram(self, bins, low, high, weight)
    return _as_density(counts, edges, density).astype(self.dtype), edges.astype(self.dtype)


def _outer_range(self: Array) -> tuple[float, float]:
    """From the least to the largest value; one number, or none, has half a step on each side."""
    if not self.size:
        return 0.0, 1.0
    low, high = float(self.min()), float(self.max())
    if not math.isfinite(low) or not math.isfinite(high):
        raise OperatorError(f"torch.histogram: range of [{low}, {high}] is not finite")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _as_density(counts: Array, edges: Array, density: bool) -> Array:
    return np.asarray(counts / counts.sum() / np.diff(edges)) if density else counts


op("aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", kernel=histc, variants=METHOD,
   data_dependent=True)  # fmt: skip
_HISTOGRAM: Final = "Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)"
out_form(op(f"aten::histogram.bins_tensor(Tensor self, Tensor bins, *, {_HISTOGRAM}", kernel=histogram_edges,
            variants="function method"), "bins_tensor_out", "hist bin_edges")  # fmt: skip
out_form(op(f"aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, {_HISTOGRAM}",
            kernel=histogram_count, variants="function method"), "bin_ct_out", "hist bin_edges")  # fmt: skip


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe(
    "histc.out histogram.bin_ct_out histogram.bins_tensor_out",
    out_check=out_checks.only_same(
        "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {c} and hist {c_given}"
    ),
)
