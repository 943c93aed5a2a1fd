"""Statistics: sums and middles that skip NaN, quantiles, histograms, covariance, areas and slopes.

In: tensors.  Out: tensors.  Most are made of other operators, from which their gradients come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.aten import xp
from engine.aten.compose import run, where
from engine.aten.op import op, out_form
from engine.aten.ops.sorting import order
from engine.aten.promotion import default_dtype, to_float, wide
from engine.aten.rules import reduce_dims, wrap_dim
from engine.aten.tensor import Tensor
from engine.aten.xp import Array
from engine.lang.errors import OperatorError

METHOD: Final = "function method out"

# ------------------------------------------------------------------ without NaN


def _without_nan(self: Tensor) -> Tensor:
    return where(run("isnan", self), 0.0, self) if xp.is_float(self.array.dtype) else self


def nansum(self: Tensor, dim: Sequence[int] | None, keepdim: bool, dtype: int | None) -> Tensor:
    if self.array.dtype.kind == "c":
        raise OperatorError("nansum does not support complex inputs")
    result: Tensor = run("sum.dim_IntList", _without_nan(self), dim, keepdim, dtype)
    return result


def nanmean(self: Tensor, dim: Sequence[int] | None, keepdim: bool, dtype: int | None) -> Tensor:
    if not xp.is_float(self.array.dtype) and self.array.dtype.kind != "c":
        raise OperatorError("nanmean(): expected input to have floating point or complex dtype but got "
                            f"{xp.ir_name(self.array.dtype)}")  # fmt: skip
    kept = run("logical_not", run("isnan", self))
    count = run("sum.dim_IntList", kept, dim, keepdim, None)
    mean: Tensor = nansum(self, dim, keepdim, dtype) / count
    return mean


def nanmedian(self: Array) -> Array:
    flat = self.reshape(-1)
    kept = flat[flat == flat]
    if not kept.size:
        return np.asarray(np.nan if xp.is_float(self.dtype) else 0).astype(self.dtype)
    return np.asarray(np.sort(kept.astype(wide(self.dtype)))[(kept.size - 1) // 2]).astype(self.dtype)


def nanmedian_dim(self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """The lower middle of what is not NaN, and where it stands."""
    axis = wrap_dim(dim, self.ndim)
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    kept = np.sum(self == self, axis=axis, keepdims=True)
    places = np.take_along_axis(order(self, axis, False), np.maximum(kept - 1, 0) // 2, axis)
    values = np.take_along_axis(self, places, axis)
    return (values, places) if keepdim else (values.squeeze(axis), places.squeeze(axis))


_DIMS: Final = "Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None"
op(f"aten::nansum({_DIMS}) -> Tensor", python=nansum, variants=METHOD)
op(f"aten::nanmean({_DIMS}) -> Tensor", python=nanmean, variants=METHOD)
op("aten::nanmedian(Tensor self) -> Tensor", kernel=nanmedian, variants=METHOD)
out_form(op("aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
            kernel=nanmedian_dim, variants="function method", gradient={
                "self": "(zeros_like(self).scatter(dim, indices, grad) if keepdim or self.dim() == 0 else "
                        "zeros_like(self).scatter(dim, indices.unsqueeze(dim), grad.unsqueeze(dim)))"}),
         "dim_values", "values indices")  # fmt: skip

# ------------------------------------------------------------------ quantiles

_ROUNDED: Final = {"lower": "floor", "higher": "ceil", "nearest": "round"}


def quantile(
    self: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str, ignore_nan: bool = False
) -> Tensor:
    """Where the share q of the values lies below, between the two nearest of them."""
    _check_quantile(self, q, interpolation)
    levels = Tensor(np.asarray(q, self.array.dtype)) if isinstance(q, float) else q
    axis = wrap_dim(dim, self.ndim) if dim is not None else 0
    flat = self.reshape([-1]) if dim is None or self.ndim == 0 else self.movedim(axis, -1)
    ordered = run("sort", flat, -1, False)[0]
    ranks = _ranks(ordered, levels, ignore_nan)
    if interpolation in _ROUNDED:
        ranks = run(_ROUNDED[interpolation], ranks)
    low = ranks.to(xp.FROM_NUMPY[xp.INT64])
    lower = ordered.gather(-1, low)
    if interpolation in ("linear", "midpoint"):
        high = run("ceil", ranks).to(xp.FROM_NUMPY[xp.INT64])
        weight = ranks - low if interpolation == "linear" else where(high > low, 0.5, ranks * 0)
        lower = run("lerp.Tensor", lower, ordered.gather(-1, high), weight)
    return _arranged(lower, self, levels, dim, axis, keepdim)


def _check_quantile(self: Tensor, q: Any, interpolation: str) -> None:
    if self.array.size == 0:
        raise OperatorError("quantile() input tensor must be non-empty")
    if self.array.dtype not in (xp.FLOAT32, xp.FLOAT64):
        raise OperatorError("quantile() input tensor must be either float or double dtype")
    if isinstance(q, Tensor):
        if q.ndim > 1:
            raise OperatorError("quantile() q must be a scalar or 1D tensor")
        if q.array.dtype != self.array.dtype:
            raise OperatorError("quantile() q tensor must be same dtype as the input tensor")
    shares = q.array if isinstance(q, Tensor) else np.asarray(q)
    if not np.all((shares >= 0) & (shares <= 1)):
        raise OperatorError(
            "quantile() q values must be in the range [0, 1]"
            if isinstance(q, Tensor)
            else f"quantile() q must be in the range [0, 1] but got {q}"
        )
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise OperatorError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
            + interpolation
        )


def _ranks(ordered: Tensor, levels: Tensor, ignore_nan: bool) -> Tensor:
    """For every row and level, the place (with a fraction) among the ordered values."""
    shares = levels.reshape([-1])
    if ignore_nan:
        count = np.sum(ordered.array == ordered.array, axis=-1, keepdims=True)
        scaled: Tensor = shares * Tensor(np.maximum(count - 1, 0).astype(ordered.array.dtype))
        return scaled
    last = ordered.shape[-1] - 1
    ranks = shares * last
    rows = [*ordered.shape[:-1], ranks.shape[-1]]
    has_nan = Tensor(np.asarray(np.isnan(ordered.array).any(axis=-1, keepdims=True)))
    spread: Tensor = where(has_nan, float(last), ranks.expand(rows))
    return spread


def _arranged(found: Tensor, self: Tensor, levels: Tensor, dim: int | None, axis: int, keepdim: bool) -> Tensor:
    """(*rows, levels) as the caller wants it: levels in front, or none; perhaps the dimension kept."""
    shape = [1] * self.ndim if dim is None else list(self.shape)
    if dim is not None and self.ndim:
        shape[axis] = 1
    if not keepdim:
        shape = [] if dim is None else [n for i, n in enumerate(self.shape) if i != axis]
    front = found.movedim(-1, 0)
    result: Tensor = front.reshape([levels.shape[0], *shape] if levels.ndim else shape)
    return result


def nanquantile(self: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Tensor:
    return quantile(self, q, dim, keepdim, interpolation, ignore_nan=True)


for _name, _body in (("quantile", quantile), ("nanquantile", nanquantile)):
    for _overload, _type, _out in (("", "Tensor q", "out"), (".scalar", "float q", "scalar_out")):
        op(f"aten::{_name}{_overload}(Tensor self, {_type}, int? dim=None, bool keepdim=False, *, "
           'str interpolation="linear") -> Tensor', python=_body,
           variants=f"function method out:{_out}")  # fmt: skip

# ------------------------------------------------------------------ counts


def histc(self: Array, bins: int, min: float, max: float) -> Array:
    """How many values fall into each of so many equal intervals."""
    if bins <= 0:
        raise OperatorError("bins must be > 0")
    if not xp.is_float(self.dtype):
        raise OperatorError(f"\"histogram_cpu\" not implemented for '{xp.ir_name(self.dtype)}'")
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
    x = self.reshape(-1).astype(wide(self.dtype))
    inside = (x >= low) & (x <= high)
    places = np.minimum(((x[inside] - low) * (bins / (high - low))).astype(np.int64), bins - 1)
    weights = None if weight is None else weight.reshape(-1)[inside].astype(np.float64)
    edges = np.linspace(low, high, bins + 1)
    return np.bincount(places, weights, bins), edges


def histogram_edges(self: Array, bins: Array, weight: Array | None, density: bool) -> tuple[Array, Array]:
    x = self.reshape(-1)
    inside = (x >= bins[0]) & (x <= bins[-1])
    places = np.minimum(np.searchsorted(bins, x[inside], side="right") - 1, len(bins) - 2)
    weights = None if weight is None else weight.reshape(-1)[inside].astype(np.float64)
    counts = np.bincount(places, weights, len(bins) - 1)
    return _as_density(counts, bins, density).astype(self.dtype), bins.copy()


def histogram_count(
    self: Array, bins: int, range: Sequence[float] | None, weight: Array | None, density: bool
) -> tuple[Array, Array]:
    if bins <= 0:
        raise OperatorError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    low, high = _range(self, *(range if range is not None else (0.0, 0.0)))
    counts, edges = _histogram(self, bins, low, high, weight)
    return _as_density(counts, edges, density).astype(self.dtype), edges.astype(self.dtype)


def _as_density(counts: Array, edges: Array, density: bool) -> Array:
    return np.asarray(counts / counts.sum() / np.diff(edges)) if density else counts


op("aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", kernel=histc, variants=METHOD)
_HISTOGRAM: Final = "Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)"
out_form(op(f"aten::histogram.bins_tensor(Tensor self, Tensor bins, *, {_HISTOGRAM}", kernel=histogram_edges,
            variants="function method"), "bins_tensor_out", "hist bin_edges")  # fmt: skip
out_form(op(f"aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, {_HISTOGRAM}",
            kernel=histogram_count, variants="function method"), "bin_ct_out", "hist bin_edges")  # fmt: skip

# ------------------------------------------------------------------ covariance


def cov(self: Tensor, correction: int, fweights: Tensor | None, aweights: Tensor | None) -> Tensor:
    """Of variables in rows and observations in columns, which may be repeated (f) or weighted (a)."""
    if self.ndim > 2:
        raise OperatorError(f"cov(): expected input to have two or fewer dimensions but got an input with {self.ndim} "
                            "dimensions")  # fmt: skip
    if self.array.dtype.kind == "b":
        raise OperatorError("cov(): bool dtype is not supported for input")
    rows = self if self.ndim == 2 else self.reshape([1, -1])
    count = rows.shape[1]
    weight = _weights(fweights, aweights, count)
    total = run("sum", weight, None) if weight is not None else float(count)
    mean = (rows * weight if weight is not None else rows).sum([1], True) / total
    centred = rows - mean
    divisor = total - correction
    if weight is not None and aweights is not None and correction:
        divisor = total - correction * (weight * aweights).sum() / total
    if isinstance(divisor, Tensor):
        divisor = run("clamp_min", divisor, 0)
    weighted = centred if weight is None else centred * weight
    product = weighted.matmul(centred.t().conj()) / (divisor if isinstance(divisor, Tensor) else _positive(divisor))
    result: Tensor = product.squeeze()
    return result


def _positive(divisor: float) -> Any:
    """The divisor, at least 0: dividing by it then gives inf or NaN."""
    return Tensor(np.asarray(max(divisor, 0.0), default_dtype()))


def _weights(fweights: Tensor | None, aweights: Tensor | None, count: int) -> Tensor | None:
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        if weights.ndim > 1:
            raise OperatorError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
                                f"{weights.ndim} dimensions")  # fmt: skip
        if weights.array.size != count:
            raise OperatorError(f"cov(): expected {name} to have the same numel as there are observations in the input "
                                f"but got {weights.array.size} != {count}")  # fmt: skip
    if fweights is None or aweights is None:
        return aweights if fweights is None else fweights
    return fweights * aweights


def corrcoef(self: Tensor) -> Tensor:
    """Covariances divided by the deviations, between -1 and 1."""
    if self.ndim > 2:
        raise OperatorError("corrcoef(): expected input to have two or fewer dimensions but got an input with "
                            f"{self.ndim} dimensions")  # fmt: skip
    covariance = cov(self, 1, None, None)
    if covariance.ndim == 0:
        return covariance / covariance
    diagonal = covariance.diagonal(0, 0, 1)
    if diagonal.array.dtype.kind == "c":
        diagonal = run("real", diagonal)
    deviation = diagonal.sqrt()
    scaled: Tensor = covariance / deviation.unsqueeze(-1) / deviation.unsqueeze(0)
    return scaled if scaled.array.dtype.kind == "c" else scaled.clamp(-1, 1)


op("aten::cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor", python=cov,
   variants="function method")  # fmt: skip
op("aten::corrcoef(Tensor self) -> Tensor", python=corrcoef, variants="function method")

# ------------------------------------------------------------------ areas and slopes


def _sections(y: Tensor, step: Any, dim: int) -> Tensor:
    """Areas between neighbours, each of a trapezoid."""
    left = y.narrow(dim, 0, y.shape[dim] - 1)
    right = y.narrow(dim, 1, y.shape[dim] - 1)
    areas: Tensor = (left + right) * step / 2
    return areas


def _steps(y: Tensor, x: Tensor, dim: int) -> tuple[Tensor, int]:
    """Distances of the places x, shaped to go with y."""
    axis = wrap_dim(dim, y.ndim)
    if x.ndim == 0 or y.shape[axis] == 0:
        raise OperatorError("trapezoid: There must be one `x` value for each sample point")
    if x.ndim == 1:
        if x.shape[0] != y.shape[axis]:
            raise OperatorError("trapezoid: There must be one `x` value for each sample point")
        x = x.reshape([-1] + [1] * (y.ndim - 1 - axis))
        return diff(x, 1, 0, None, None), axis
    along = dim if dim < 0 else dim - y.ndim
    return diff(x, 1, along, None, None), axis


def trapezoid(y: Tensor, dx: Any, dim: int) -> Tensor:
    if y.ndim and y.shape[wrap_dim(dim, y.ndim)] == 0:
        empty: Tensor = y.sum([dim])
        return empty
    if isinstance(dx, bool):
        raise OperatorError("trapezoid: Currently, we only support dx as a real number")
    total: Tensor = _sections(y, dx, wrap_dim(dim, y.ndim)).sum([dim])
    return total


def trapezoid_at(y: Tensor, x: Tensor, dim: int) -> Tensor:
    if y.ndim and y.shape[wrap_dim(dim, y.ndim)] == 0:
        empty: Tensor = y.sum([dim])
        return empty
    step, axis = _steps(y, x, dim)
    total: Tensor = _sections(y, step, axis).sum([dim])
    return total


def cumulative_trapezoid(y: Tensor, dx: Any, dim: int) -> Tensor:
    total: Tensor = _sections(y, dx, wrap_dim(dim, y.ndim)).cumsum(dim)
    return total


def cumulative_trapezoid_at(y: Tensor, x: Tensor, dim: int) -> Tensor:
    step, axis = _steps(y, x, dim)
    total: Tensor = _sections(y, step, axis).cumsum(dim)
    return total


def diff(self: Tensor, n: int, dim: int, prepend: Tensor | None, append: Tensor | None) -> Tensor:
    """Differences of neighbours, n times."""
    if self.ndim == 0:
        raise OperatorError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise OperatorError(f"order must be non-negative but got {n}")
    axis = wrap_dim(dim, self.ndim)
    if n == 0:
        copy: Tensor = self.clone()
        return copy
    parts = [t for t in (prepend, self, append) if t is not None]
    result = run("cat", parts, axis) if len(parts) > 1 else self
    for _ in range(min(n, result.shape[axis])):
        size = max(result.shape[axis] - 1, 0)
        after, before = result.narrow(axis, min(1, result.shape[axis]), size), result.narrow(axis, 0, size)
        boolean = result.array.dtype.kind == "b"
        result = run("logical_xor", after, before) if boolean else after - before
    return result


for _name, _at, _by, _step in (
    ("trapezoid", trapezoid_at, trapezoid, "Scalar dx=1"), ("trapz", trapezoid_at, trapezoid, "float dx=1."),
    ("cumulative_trapezoid", cumulative_trapezoid_at, cumulative_trapezoid, "Scalar dx=1"),
):  # fmt: skip
    op(f"aten::{_name}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", python=_at)
    op(f"aten::{_name}.dx(Tensor y, *, {_step}, int dim=-1) -> Tensor", python=_by)
op("aten::diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor", python=diff,
   variants=METHOD)  # fmt: skip


def gradient(self: Tensor, spacing: Any, dim: int | Sequence[int] | None, edge_order: int) -> list[Tensor]:
    """Slopes along dimensions: central differences inside, one-sided at the ends."""
    dims = list(reduce_dims(dim, self.ndim)) if not isinstance(dim, int) else [wrap_dim(dim, self.ndim)]
    if edge_order not in (1, 2):
        raise OperatorError("torch.gradient only supports edge_order=1 and edge_order=2.")
    given = spacing if isinstance(spacing, (list, tuple)) else [1 if spacing is None else spacing] * len(dims)
    if len(given) != len(dims):
        raise OperatorError(
            f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length {len(dims)}"
        )
    for axis in dims:
        if self.shape[axis] < edge_order + 1:
            raise OperatorError("torch.gradient expected each dimension size to be at least edge_order+1")
    return [_slope(self, axis, step, edge_order) for axis, step in zip(dims, given, strict=True)]


def _slope(self: Tensor, axis: int, spacing: Any, edge_order: int) -> Tensor:
    size = self.shape[axis]
    d = to_float(self.array.dtype)
    places = spacing.array.astype(np.float64) if isinstance(spacing, Tensor) else np.arange(size) * float(spacing)
    step = np.diff(places)

    def shaped(values: Array) -> Tensor:
        return Tensor(np.asarray(values).astype(d).reshape([-1] + [1] * (self.ndim - 1 - axis)))

    def at(start: int, count: int) -> Tensor:
        part: Tensor = self.narrow(axis, start, count)
        return part

    left, right = step[:-1], step[1:]
    inner = (
        shaped(-right / (left * (left + right))) * at(0, size - 2)
        + shaped((right - left) / (left * right)) * at(1, size - 2)
        + shaped(left / (right * (left + right))) * at(2, size - 2)
        if size > 2
        else None
    )
    ends = [_edge(at, shaped, step, edge_order, size, last) for last in (False, True)]
    result: Tensor = run("cat", [ends[0], *([inner] if inner is not None else []), ends[1]], axis)
    return result


def _edge(at: Any, shaped: Any, step: Array, edge_order: int, size: int, last: bool) -> Tensor:
    """The slope at one end, from two or three values."""
    near = step[-1:] if last else step[:1]
    if edge_order == 1:
        first = size - 2 if last else 0
        slope: Tensor = (at(first + 1, 1) - at(first, 1)) / shaped(near)
        return slope
    a, b = (step[-1:], step[-2:-1]) if last else (step[:1], step[1:2])
    sign = 1.0 if last else -1.0
    ends = [size - 1 - i if last else i for i in range(3)]
    weights = [sign * (2 * a + b) / (a * (a + b)), -sign * (a + b) / (a * b), sign * a / (b * (a + b))]
    parts = [shaped(w) * at(i, 1) for w, i in zip(weights, ends, strict=True)]
    three: Tensor = parts[0] + parts[1] + parts[2]
    return three


def gradient_spaced(self: Tensor, dim: Sequence[int], edge_order: int) -> list[Tensor]:
    return gradient(self, None, dim, edge_order)


_EDGE: Final = "int edge_order=1"
for _overload, _arguments, _gradient in (
    ("scalarint", "Scalar? spacing=None, int? dim=None", gradient),
    ("scalararray", "Scalar spacing, int[] dim", gradient),
    ("array", "int[] dim", gradient_spaced),
    ("scalarrayint", "Scalar[] spacing, int? dim=None", gradient),
    ("scalarrayarray", "Scalar[] spacing, int[] dim", gradient),
    ("tensorarrayint", "Tensor[] spacing, int? dim=None", gradient),
    ("tensorarray", "Tensor[] spacing, int[] dim", gradient),
):
    op(f"aten::gradient.{_overload}(Tensor self, *, {_arguments}, {_EDGE}) -> Tensor[]", python=_gradient)
