"""Statistics: sums and middles that skip NaN, quantiles, covariance, areas and slopes.

In: tensors.  Out: tensors.  Most are made of other operators, from which their gradients come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.compose import run, where
from engine.aten.dispatch.table import describe, op, out_form
from engine.aten.kernels import shapes
from engine.aten.kernels.refusals import no_code, unsupported
from engine.aten.kernels.rules import no_kernel, wrap_dim, wrap_dims
from engine.aten.ops.reductions import nothing_in_the_middle
from engine.aten.ops.sorting import order
from engine.aten.values import xp
from engine.aten.values.promotion import default_dtype, to_float, wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError, OperatorIndexError

METHOD: Final = "function method out"

# ------------------------------------------------------------------ without NaN


def _without_nan(self: Tensor) -> Tensor:
    return where(run("isnan", self), 0.0, self) if self.array.dtype in xp.FLOATING else self


def nansum(self: Tensor, dim: Sequence[int] | None, keepdim: bool, dtype: int | None) -> Tensor:
    result: Tensor = run("sum.dim_IntList", _without_nan(self), dim, keepdim, dtype)
    return result


def nanmean(self: Tensor, dim: Sequence[int] | None, keepdim: bool, dtype: int | None) -> Tensor:
    if self.array.dtype not in xp.FLOATING and self.array.dtype not in xp.COMPLEX:
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
        return nothing_in_the_middle(self.dtype)
    if self.dtype not in xp.REAL:
        raise no_kernel("median_cpu", self.dtype)
    return np.asarray(np.sort(kept.astype(wide(self.dtype)))[(kept.size - 1) // 2]).astype(self.dtype)


def nanmedian_dim(self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """The lower median of the elements that are not NaN, and its index."""
    axis = wrap_dim(dim, self.ndim)
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    kept = np.sum(self == self, axis=axis, keepdims=True)
    places = np.take_along_axis(order(self, axis, False), np.maximum(kept - 1, 0) // 2, axis)
    values = np.take_along_axis(self, places, axis)
    return (values, places) if keepdim else (values.squeeze(axis), places.squeeze(axis))


_DIMS: Final = "Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None"
op(f"aten::nansum({_DIMS}) -> Tensor", python=nansum, variants=METHOD, shape=shapes.reduced, dtype="sum")
op(f"aten::nanmean({_DIMS}) -> Tensor", python=nanmean, variants=METHOD, shape=shapes.reduced)
op("aten::nanmedian(Tensor self) -> Tensor", kernel=nanmedian, variants=METHOD,
   gradient={"self": "_median_backward(grad, self, result)"}, layout="contiguous")  # fmt: skip
out_form(op("aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
            kernel=nanmedian_dim, variants="function method", gradient={
                "self": "(zeros_like(self).scatter(dim, indices, grad) if keepdim or self.dim() == 0 else "
                        "zeros_like(self).scatter(dim, indices.unsqueeze(dim), grad.unsqueeze(dim)))"},
            layout="contiguous"),
         "dim_values", "values indices")  # fmt: skip

# ------------------------------------------------------------------ quantiles

_ROUNDED: Final = {"lower": "floor", "higher": "ceil", "nearest": "round"}


def quantile(
    self: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str, ignore_nan: bool = False
) -> Tensor:
    """The q-quantile of the values, interpolated between the two nearest."""
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
        weight = ranks - low if interpolation == "linear" else (high > low).to(ranks.dtype) * 0.5
        lower = run("lerp.Tensor", lower, ordered.gather(-1, high), weight)
    return _arranged(lower, self, levels, dim, axis, keepdim)


def _check_quantile(self: Tensor, q: Any, interpolation: str) -> None:
    if self.array.size == 0:
        raise OperatorError("quantile() input tensor must be non-empty")
    if isinstance(q, Tensor) and q.ndim > 1:
        raise OperatorError("quantile() q must be a scalar or 1D tensor")
    if self.array.dtype not in (xp.FLOAT32, xp.FLOAT64):
        raise OperatorError("quantile() input tensor must be either float or double dtype")
    if isinstance(q, Tensor) and q.array.dtype != self.array.dtype:
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
    """For every row and level, the fractional index among the ordered values."""
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
           variants=f"function method out:{_out}", autocast="full")  # fmt: skip

# ------------------------------------------------------------------ covariance


def cov(self: Tensor, correction: int, fweights: Tensor | None, aweights: Tensor | None) -> Tensor:
    """Covariance of variables in rows; observations in columns may be repeated (f) or weighted (a)."""
    if self.ndim > 2:
        raise OperatorError(f"cov(): expected input to have two or fewer dimensions but got an input with {self.ndim} "
                            "dimensions")  # fmt: skip
    if self.array.dtype == xp.BOOL:
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
        kind, d = "integral" if name == "fweights" else "floating point", weights.array.dtype
        if not (d in xp.INTEGERS if name == "fweights" else d in xp.FLOATING):
            given = xp.ir_name(d)
            raise OperatorError(f"cov(): expected {name} to have {kind} dtype but got {name} with {given} dtype")
        if weights.array.size != count:
            raise OperatorError(f"cov(): expected {name} to have the same numel as there are observations in the input "
                                f"but got {weights.array.size} != {count}")  # fmt: skip
        if weights.array.size and weights.array.min() < 0:
            raise OperatorError(f"cov(): {name} cannot be negative")
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
    if diagonal.array.dtype in xp.COMPLEX:
        diagonal = run("real", diagonal)
    deviation = diagonal.sqrt()
    scaled: Tensor = covariance / deviation.unsqueeze(-1) / deviation.unsqueeze(0)
    return scaled if scaled.array.dtype in xp.COMPLEX else scaled.clamp(-1, 1)


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


def _axis_of(y: Tensor, dim: int) -> int:
    if y.ndim == 0:
        raise OperatorIndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, y.ndim)


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
    if y.shape[_axis_of(y, dim)] == 0:
        return _no_areas(y, dim)
    if y.array.dtype == xp.BOOL:
        raise OperatorError("trapezoid: received a bool input for `y`, but bool is not supported")
    if isinstance(dx, bool):
        raise OperatorError("trapezoid: Currently, we only support dx as a real number")
    total: Tensor = _sections(y, dx, wrap_dim(dim, y.ndim)).sum([dim])
    return total


def _no_areas(y: Tensor, dim: int) -> Tensor:
    total: Tensor = y.sum([dim]).to(y.dtype)
    return total


def _no_bools(name: str, y: Tensor, x: Tensor) -> None:
    if xp.BOOL in (y.array.dtype, x.array.dtype):
        raise OperatorError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")


def trapezoid_at(y: Tensor, x: Tensor, dim: int) -> Tensor:
    if y.shape[_axis_of(y, dim)] == 0:
        return _no_areas(y, dim)
    _no_bools("trapezoid", y, x)
    step, axis = _steps(y, x, dim)
    total: Tensor = _sections(y, step, axis).sum([dim])
    return total


def _cumulative_axis(y: Tensor, dim: int) -> int:
    if y.ndim == 0:
        raise OperatorIndexError("slice() cannot be applied to a 0-dim tensor.")
    if y.array.dtype == xp.BOOL:
        raise OperatorError("cumulative_trapezoid: received a bool input for `y`, but bool is not supported")
    return wrap_dim(dim, y.ndim)


def cumulative_trapezoid(y: Tensor, dx: Any, dim: int) -> Tensor:
    axis = _cumulative_axis(y, dim)
    if y.shape[axis] == 0:
        empty: Tensor = y * dx / 2
        return empty
    total: Tensor = _sections(y, dx, axis).cumsum(dim)
    return total


def cumulative_trapezoid_at(y: Tensor, x: Tensor, dim: int) -> Tensor:
    _no_bools("cumulative_trapezoid", y, x)
    step, axis = _steps(y, x, dim)
    total: Tensor = _sections(y, step, axis).cumsum(dim)
    return total


def diff(self: Tensor, n: int, dim: int, prepend: Tensor | None, append: Tensor | None) -> Tensor:
    """Differences of neighbours, n times."""
    if self.ndim == 0:
        raise OperatorError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise OperatorError(f"order must be non-negative but got {n}")
    if n == 0:
        copy: Tensor = self.clone()
        return copy
    axis = wrap_dim(dim, self.ndim)
    parts = [t for t in (prepend, self, append) if t is not None]
    result = run("cat", parts, axis) if len(parts) > 1 else self
    for _ in range(min(n, result.shape[axis])):
        size = max(result.shape[axis] - 1, 0)
        after, before = result.narrow(axis, min(1, result.shape[axis]), size), result.narrow(axis, 0, size)
        boolean = result.array.dtype == xp.BOOL
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
    _check_gradient(self, spacing, dim, edge_order)
    if dim is None:
        dims = list(range(self.ndim))
    else:
        dims = [wrap_dim(dim, self.ndim)] if isinstance(dim, int) else list(wrap_dims(dim, self.ndim))
    given = spacing if isinstance(spacing, (list, tuple)) else [1 if spacing is None else spacing] * len(dims)
    for axis in dims:
        if self.shape[axis] < edge_order + 1:
            raise OperatorError("torch.gradient expected each dimension size to be at least edge_order+1")
    return [_slope(self, axis, step, edge_order) for axis, step in zip(dims, given, strict=True)]


def _check_gradient(self: Tensor, spacing: Any, dim: int | Sequence[int] | None, edge_order: int) -> None:
    """Raise OperatorError unless slopes can be taken like that."""
    if self.array.dtype == xp.UINT8:
        raise OperatorError("torch.gradient does not support uint8 input.")
    if isinstance(spacing, (list, tuple)):
        asked = None if dim is None else 1 if isinstance(dim, int) else len(dim)
        if asked is None and len(spacing) != self.ndim:
            raise OperatorError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
                f"'self.dim() = {self.ndim}', since dim argument was not given, but got a list of length {len(spacing)}"
            )
        if asked is not None and len(spacing) != asked:
            raise OperatorError(
                "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have "
                f"the same length, but got a spacing argument of length {len(spacing)} and a dim argument of length "
                f"{asked}."
            )
        for step in spacing:
            if isinstance(step, Tensor) and step.ndim != 1:
                raise OperatorError(
                    "torch.gradient expected each element of spacing to have one dimension, but got an element with "
                    f"{step.ndim} dimensions!"
                )
    if edge_order not in (1, 2):
        raise OperatorError("torch.gradient only supports edge_order=1 and edge_order=2.")


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


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("nansum nanmean", refuses=unsupported("c", "nansum on CPU does not support complex inputs"))
describe("nanmedian.dim", refuses=no_code("bc", "median_out"))
describe("nanmedian.out nansum.out", out_check=out_checks.check_same)
describe(
    "quantile.out quantile.scalar_out nanquantile.out nanquantile.scalar_out",
    out_check=out_checks.only_same("quantile() out tensor must be same dtype as the input tensor"),
)
describe("nansum.out", in_dtype_of_out=True)
