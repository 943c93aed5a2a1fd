"""Helpers of gradient formulas that cannot be written as one expression.

In: the gradient of a result, and what the formula passes along.  Out: the gradient of an argument.  Nearly all are
made of other operators, so that they have gradients themselves; what only looks at numbers of elements takes sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.aten.dispatch.compose import cast, run, sum_over, where, widened
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels.rules import reduce_dims, wrap_dim
from engine.aten.ops.matmul import LETTERS, explicit_subscripts
from engine.aten.values import xp
from engine.aten.values.storage import address
from engine.aten.values.tensor import Tensor, from_numpy
from engine.aten.values.xp import COMPLEX, Array, as_strided

Dims = Sequence[int] | int | None

# ------------------------------------------------------------------ reductions


def unreduced(grad: Tensor, size: list[int], dim: Dims, keepdim: bool) -> Tensor:
    """`grad` of a reduction, expanded to the shape before it."""
    if not keepdim and size:
        axes = reduce_dims(dim, len(size))
        grad = run("reshape", grad, [1 if i in axes else n for i, n in enumerate(size)])
    expanded: Tensor = run("expand", grad, size, False)
    return expanded


def mean_backward(grad: Tensor, size: list[int], dim: Dims, keepdim: bool) -> Tensor:
    count = math.prod(size[axis] for axis in reduce_dims(dim, len(size))) if size else 1
    return unreduced(grad, size, dim, keepdim) / max(count, 1)


def extreme_backward(grad: Tensor, self: Tensor, result: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    """Places that share the extreme share its gradient."""
    size = list(self.shape)
    chosen = run("eq.Tensor", self, unreduced(result, size, dim, keepdim))
    share = sum_over(cast(chosen, self.array.dtype), reduce_dims(dim, self.ndim)) if size else 1
    return where(chosen, unreduced(grad, size, dim, keepdim), 0) / share


def aminmax_backward(
    of_min: Tensor | None, of_max: Tensor | None, self: Tensor, least: Tensor, greatest: Tensor, dim: int | None,
    keepdim: bool,
) -> Tensor:  # fmt: skip
    """The same for minimum and maximum together."""
    pairs = [(grad, result) for grad, result in ((of_min, least), (of_max, greatest)) if grad is not None]
    parts = [extreme_backward(grad, self, result, dim, keepdim) for grad, result in pairs]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def prod_backward(grad: Tensor, self: Tensor, dim: int | None, keepdim: bool, result: Tensor) -> Tensor:
    x = cast(self, grad.array.dtype)
    if self.ndim == 0:
        return grad
    if np.all(self.array != 0):
        size = list(self.shape)
        return unreduced(grad, size, dim, keepdim) * unreduced(result, size, dim, keepdim) / x
    flat, axis = (x.reshape([-1]), 0) if dim is None else (x, wrap_dim(dim, self.ndim))
    others = _product_before(flat, axis) * _product_before(flat.flip([axis]), axis).flip([axis])
    others = others.reshape(list(self.shape))
    found: Tensor = unreduced(grad, list(self.shape), dim, keepdim) * others
    return found


def _product_before(x: Tensor, dim: int) -> Tensor:
    """Exclusive cumulative product: for each index along a dimension, the product of the elements before it."""
    first = run("ones_like", x.narrow(dim, 0, 1), None, None, None, None, None)
    shifted = run("cat", [first, x.narrow(dim, 0, x.shape[dim] - 1)], dim)
    product: Tensor = run("cumprod", shifted, dim, None)
    return product


def cumprod_backward(grad: Tensor, self: Tensor, dim: int, result: Tensor) -> Tensor:
    if self.ndim == 0 or self.array.size == 0:
        return grad
    x, axis = cast(self, grad.array.dtype), wrap_dim(dim, self.ndim)
    if np.all(self.array != 0):
        found: Tensor = (grad * result).flip([axis]).cumsum(axis).flip([axis]) / x
        return found
    sums = [grad.select(axis, -1)]
    for i in range(x.shape[axis] - 1, 0, -1):
        sums.append(grad.select(axis, i - 1) + x.select(axis, i) * sums[-1])
    after: Tensor = run("stack", sums[::-1], axis)
    return after * _product_before(x, axis)


def var_backward(
    grad: Tensor | None, of_mean: Tensor | None, self: Tensor, dim: Dims, correction: Any, keepdim: bool,
    std: Tensor | None,
) -> Tensor:  # fmt: skip
    """Gradient of var, and of std where its result is given; and of the mean beside them."""
    size = list(self.shape)
    total = mean_backward(of_mean, size, dim, keepdim) if of_mean is not None else None
    if grad is None:
        assert total is not None
        return total
    if std is not None:
        grad = (grad / (std * 2)).masked_fill(run("eq.Scalar", std, 0), 0)
    axes = reduce_dims(dim, self.ndim)
    degrees = math.prod(size[axis] for axis in axes) - (1 if correction is None else correction)
    mean = run("mean.dim", self, list(axes), True, None) if size else self
    factor = 2 / degrees if degrees else math.inf
    through = unreduced(grad, size, dim, keepdim) * factor * (self - mean)
    return through if total is None else through + total


def norm_backward(grad: Tensor, self: Tensor, p: Any, result: Tensor, dim: Dims, keepdim: bool) -> Tensor | None:
    size, d = list(self.shape), result.array.dtype
    x, order = self if self.array.dtype in COMPLEX else cast(self, d), 2.0 if p is None else float(p)
    if order == 0:
        return None
    grad, norm = (unreduced(t, size, dim, keepdim) for t in (grad, result))
    at_zero = run("eq.Scalar", norm, 0)
    direction: Tensor = x.sgn()
    if order == 1:
        return direction * grad
    if order == 2:
        unit: Tensor = (x / norm).masked_fill(at_zero, 0)
        return unit * grad
    if math.isinf(order):
        chosen = cast(run("eq.Tensor", x.abs(), norm), d)
        count = sum_over(chosen, reduce_dims(dim, self.ndim)) if size else 1
        return direction * (chosen * grad / count)
    scaled: Tensor = direction * x.abs().pow(order - 1).masked_fill(run("eq.Scalar", x, 0), 0)
    share: Tensor = (grad / norm.pow(order - 1)).masked_fill(at_zero, 0)
    return scaled * share


def logsumexp_backward(grad: Tensor, self: Tensor, result: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    size = list(self.shape)
    top = where(run("isfinite", result), result, 0.0)
    found: Tensor = unreduced(grad, size, dim, keepdim) * (self - unreduced(top, size, dim, keepdim)).exp()
    return found


def slogdet_backward(of_sign: Tensor | None, of_logarithm: Tensor | None, self: Tensor, sign: Tensor) -> Tensor:
    """The sign of a complex determinant turns with the imaginary part of its logarithm."""
    slope = 0 if of_logarithm is None else of_logarithm
    if of_sign is not None and sign.array.dtype in COMPLEX:
        slope = slope - run("imag", of_sign.conj() * sign) * 1j
    if not isinstance(slope, Tensor):
        return self * 0
    turned: Tensor = run("linalg_inv_ex", self, False)[0].mH
    found: Tensor = slope.unsqueeze(-1).unsqueeze(-1) * turned
    return found


def median_backward(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """Places that hold the median share its gradient."""
    chosen = run("isnan", self) if np.isnan(result.array) else run("eq.Tensor", self, result)
    return where(chosen, grad / run("sum", chosen, None), 0)


def logcumsumexp_backward(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """In logarithms, the positive and the negative part of a real gradient apart."""
    if grad.array.dtype in COMPLEX:
        return _log_sums_after(grad.log(), self, result, dim)
    lowest = float(xp.limits(grad.array.dtype).min)
    logs, parts = grad.abs().log(), []
    for side in ("gt", "lt"):
        parts.append(_log_sums_after(where(run(f"{side}.Scalar", grad, 0), logs, lowest), self, result, dim))
    return parts[0] - parts[1]


def _log_sums_after(logs: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    after: Tensor = run("logcumsumexp", (logs - result).flip([dim]), dim).flip([dim])
    found: Tensor = (after + self).exp()
    return found


_GRAD = "Tensor grad, Tensor self"
_OVER = "int[]? dim, bool keepdim"
op(f"aten::_unreduced(Tensor grad, int[] size, {_OVER}) -> Tensor", python=unreduced)
op(f"aten::_mean_backward(Tensor grad, int[] size, {_OVER}) -> Tensor", python=mean_backward)
op(f"aten::_extreme_backward({_GRAD}, Tensor result, {_OVER}) -> Tensor", python=extreme_backward)
op("aten::_aminmax_backward(Tensor? of_min, Tensor? of_max, Tensor self, Tensor least, Tensor greatest, int? dim, "
   "bool keepdim) -> Tensor", python=aminmax_backward)  # fmt: skip
op(f"aten::_prod_backward({_GRAD}, int? dim, bool keepdim, Tensor result) -> Tensor", python=prod_backward)
op(f"aten::_cumprod_backward({_GRAD}, int dim, Tensor result) -> Tensor", python=cumprod_backward)
op("aten::_var_backward(Tensor? grad, Tensor? of_mean, Tensor self, int[]? dim, Scalar? correction, bool keepdim, "
   "Tensor? std) -> Tensor", python=var_backward)  # fmt: skip
op(f"aten::_norm_backward({_GRAD}, Scalar? p, Tensor result, {_OVER}) -> Tensor", python=norm_backward)
op(f"aten::_logsumexp_backward({_GRAD}, Tensor result, {_OVER}) -> Tensor", python=logsumexp_backward)
op("aten::_slogdet_backward(Tensor? of_sign, Tensor? of_logarithm, Tensor self, Tensor sign) -> Tensor",
   python=slogdet_backward)  # fmt: skip
op(f"aten::_logcumsumexp_backward({_GRAD}, Tensor result, int dim) -> Tensor", python=logcumsumexp_backward)
op(f"aten::_median_backward({_GRAD}, Tensor result) -> Tensor", python=median_backward)

# ------------------------------------------------------------------ products


def matmul_backward(grad: Tensor, self: Tensor, other: Tensor, mask: list[bool]) -> tuple[Tensor, Tensor]:
    """Gradients of both factors; of one not asked for, the gradient as it came."""
    if self.array.ndim == 2 == other.array.ndim:
        of_self = run("linear", grad, other, None) if mask[0] else grad
        return of_self, run("_linear_to_weight", self, grad, other) if mask[1] else grad
    if self.ndim == 1 and other.ndim == 1:
        return grad * other, grad * self
    rows = self if self.ndim > 1 else self.unsqueeze(0)
    columns = other if other.ndim > 1 else other.unsqueeze(-1)
    whole = grad if self.ndim > 1 else grad.unsqueeze(-1 if other.ndim == 1 else -2)
    whole = whole if other.ndim > 1 else whole.unsqueeze(-1)
    of_rows = of_columns = grad
    if mask[0]:
        of_rows = _summed_to(whole.matmul(columns.transpose(-2, -1)), rows).reshape(list(self.shape))
    if mask[1] and columns.ndim == 2 and rows.ndim > 2:
        flat = [t.reshape([math.prod(t.shape[:-1]), t.shape[-1]]) for t in (rows, whole)]
        of_columns = flat[0].t().matmul(flat[1]).reshape(list(other.shape))
    elif mask[1]:
        of_columns = _summed_to(rows.transpose(-2, -1).matmul(whole), columns).reshape(list(other.shape))
    return of_rows, of_columns


def _summed_to(x: Tensor, like: Tensor) -> Tensor:
    lead = x.ndim - like.ndim
    dims = [*range(lead), *(i + lead for i, n in enumerate(like.shape) if n == 1 != x.shape[i + lead])]
    return sum_over(x, dims).reshape(list(like.shape)) if dims else x


def einsum_backward(grad: Tensor, equation: str, tensors: list[Tensor]) -> list[Tensor]:
    """The gradient of an operand is an einsum of the others, with the result's gradient in the place of the operand."""
    operands, result = explicit_subscripts(equation.replace(" ", ""), [t.ndim for t in tensors])
    return [_of_operand(grad, result, operands, tensors, i) for i in range(len(tensors))]


def _of_operand(grad: Tensor, result: str, operands: list[str], tensors: list[Tensor], place: int) -> Tensor:
    wanted, tensor = operands[place], tensors[place]
    names = [result, *(s for i, s in enumerate(operands) if i != place)]
    values = [grad, *(t for i, t in enumerate(tensors) if i != place)]
    free = iter(letter for letter in LETTERS if letter not in "".join([result, *operands]))
    target = ""
    for letter, size in zip(wanted, tensor.shape, strict=True):
        name = next(free) if letter in target else letter
        if name != letter:  # a diagonal: zero elsewhere
            names.append(letter + name)
            values.append(from_numpy(np.eye(size, dtype=tensor.array.dtype)))
        elif not any(letter in other for other in names):
            names.append(letter)
            values.append(from_numpy(np.ones(size, tensor.array.dtype)))
        target += name
    found: Tensor = run("einsum", f"{','.join(names)}->{target}", values, None)
    return _summed_to(found, tensor)


op("aten::_matmul_backward(Tensor grad, Tensor self, Tensor other, bool[2] mask) -> (Tensor, Tensor)",
   python=matmul_backward)  # fmt: skip
op("aten::_einsum_backward(Tensor grad, str equation, Tensor[] tensors) -> Tensor[]", python=einsum_backward)

# ------------------------------------------------------------------ shapes


def permute_backward(grad: Tensor, dims: list[int]) -> Tensor:
    order: Tensor = grad.permute(np.argsort([wrap_dim(d, len(dims)) for d in dims]).tolist())
    return order


def cat_backward(grad: Tensor, tensors: list[Tensor], dim: int) -> list[Tensor]:
    """The parts; of the tensors only the sizes matter."""
    axis, start = wrap_dim(dim, grad.ndim), 0
    parts: list[Tensor] = []
    for tensor in tensors:
        if tensor.shape == (0,):
            parts.append(from_numpy(np.zeros(0, tensor.array.dtype)))
            continue
        parts.append(grad.narrow(axis, start, tensor.shape[axis]))
        start += tensor.shape[axis]
    return parts


def narrow_backward(grad: Tensor, size: list[int], dim: int, start: int, length: int) -> Tensor:
    axis = wrap_dim(dim, len(size))
    begin = start + size[axis] if start < 0 else start
    zeros = from_numpy(np.zeros(size, grad.array.dtype))
    placed: Tensor = run("slice_scatter", zeros, grad, axis, begin, begin + length, 1)
    return placed


def diagonal_backward(grad: Array, size: Sequence[int], offset: int, dim1: int, dim2: int) -> Array:
    result = np.zeros(tuple(size), grad.dtype)
    a, b = wrap_dim(dim1, len(size)), wrap_dim(dim2, len(size))
    moved = np.moveaxis(result, (a, b), (-2, -1))
    places = np.arange(grad.shape[-1])
    moved[..., places + max(-offset, 0), places + max(offset, 0)] = grad
    return result


def unfold_backward(grad: Array, size: Sequence[int], dimension: int, length: int, step: int) -> Array:
    result = np.zeros(tuple(size), grad.dtype)
    if not result.ndim:
        return np.asarray(grad.reshape(()))
    axis = wrap_dim(dimension, len(size))
    moved, parts = np.moveaxis(result, axis, -1), np.moveaxis(grad, axis, -2)
    for i in range(length):
        moved[..., i : i + step * parts.shape[-2] : step][..., : parts.shape[-2]] += parts[..., i]
    return result


def repeat_backward(grad: Tensor, size: list[int], repeats: list[int]) -> Tensor:
    lead = len(repeats) - len(size)
    counts = [1] * -lead + list(repeats)
    sizes = [1] * lead + list(size)
    if 0 in counts:
        return from_numpy(np.zeros(size, grad.array.dtype))
    pairs = [n for pair in zip(counts, sizes, strict=True) for n in pair]
    summed: Tensor = sum_over(grad.reshape(pairs), range(0, len(pairs), 2), keep=False) if pairs else grad
    found: Tensor = summed.reshape(list(size))
    return found


def repeat_interleave_backward(grad: Tensor, size: list[int], repeats: Tensor, dim: int | None) -> Tensor:
    axis = 0 if dim is None else wrap_dim(dim, len(size))
    count = math.prod(size) if dim is None or not size else size[axis]
    places = np.repeat(np.arange(count), repeats.array.reshape(-1) if repeats.array.size != 1 else repeats.item())
    flat = [count] if dim is None or not size else size
    zeros = from_numpy(np.zeros(flat, grad.array.dtype))
    found: Tensor = run("index_add", zeros, axis, from_numpy(places), grad, 1).reshape(list(size))
    return found


def as_strided_backward(
    grad: Tensor, self: Tensor, size: list[int], stride: list[int], storage_offset: int | None
) -> Tensor:
    """Through the memory: elements shown more than once add up, those shown twice by the input share."""
    x = self.array
    steps = [s // x.itemsize for s in x.strides]
    here = (address(x) - address(self.memory.owner)) // x.itemsize if x.size else 0
    there = here if storage_offset is None else storage_offset
    span = 1 + max(_reach(here, x.shape, steps), _reach(there, size, stride))
    numbers = np.arange(span)
    read, written = (
        np.array(as_strided(numbers[start:], tuple(shape), tuple(8 * s for s in by))).reshape(-1)
        for start, shape, by in ((here, x.shape, steps), (there, size, stride))
    )
    memory = run(
        "index_add", from_numpy(np.zeros(span, grad.array.dtype)), 0, from_numpy(written), grad.reshape([-1]), 1
    )
    shares = np.maximum(np.bincount(read, minlength=span), 1)[read].astype(grad.array.dtype)
    of_input: Tensor = memory.index_select(0, from_numpy(read)) / from_numpy(shares)
    found: Tensor = of_input.reshape(list(x.shape))
    return found


def _reach(start: int, shape: Sequence[int], steps: Sequence[int]) -> int:
    return start + sum((max(n, 1) - 1) * s for n, s in zip(shape, steps, strict=True))


op("aten::_permute_backward(Tensor grad, int[] dims) -> Tensor", python=permute_backward)
op("aten::_cat_backward(Tensor grad, Tensor[] tensors, int dim) -> Tensor[]", python=cat_backward)
op("aten::_narrow_backward(Tensor grad, int[] size, int dim, int start, int length) -> Tensor", python=narrow_backward)
op("aten::_diagonal_backward(Tensor grad_output, int[] size, int offset, int dim1, int dim2) -> Tensor",
   kernel=diagonal_backward, gradient={"grad_output": "grad.diagonal(offset, dim1, dim2)"})  # fmt: skip
op("aten::_unfold_backward(Tensor grad_output, int[] size, int dimension, int length, int step) -> Tensor",
   kernel=unfold_backward, gradient={"grad_output": "grad.unfold(dimension, length, step)"})  # fmt: skip
op("aten::_repeat_backward(Tensor grad, int[] size, int[] repeats) -> Tensor", python=repeat_backward)
op("aten::_repeat_interleave_backward(Tensor grad, int[] size, Tensor repeats, int? dim) -> Tensor",
   python=repeat_interleave_backward)  # fmt: skip
op("aten::_as_strided_backward(Tensor grad, Tensor self, int[] size, int[] stride, int? storage_offset) -> Tensor",
   python=as_strided_backward)  # fmt: skip

# ------------------------------------------------------------------ pointwise


def clamp_backward(grad: Tensor, self: Tensor, low: Any, high: Any) -> Tensor:
    """`grad` where `self` is within the limits, else 0."""
    for limit, inside in ((low, "ge"), (high, "le")):
        if limit is not None:
            kind = "Tensor" if isinstance(limit, Tensor) else "Scalar"
            grad = where(run(f"{inside}.{kind}", self, limit), grad, 0)
    return grad


def clamp_limit_backward(grad: Tensor, self: Tensor, low: Tensor | None, high: Tensor | None, of_low: bool) -> Tensor:
    """`grad` where a limit replaced the element, else 0; the upper limit has priority if they are crossed."""
    if of_low:
        assert low is not None
        taken = run("lt.Tensor", self, low)
        taken = taken if high is None else taken & run("lt.Tensor", low, high)
    else:
        assert high is not None
        taken = run("gt.Tensor", self, high)
        taken = taken if low is None else taken | run("gt.Tensor", low, high)
    return where(taken, grad, 0)


def sgn_backward(grad: Tensor, self: Tensor, sgn: Tensor) -> Tensor:
    """Nothing for real numbers; a complex one can turn."""
    if self.array.dtype not in COMPLEX:
        return grad * 0
    length = self.abs()
    along = run("real", grad / self) * sgn
    found: Tensor = (grad / length - along).masked_fill(run("eq.Scalar", length, 0), 0)
    return found


def angle_backward(grad: Tensor, self: Tensor) -> Tensor:
    """Nothing for real numbers; a complex one turns by what is across it."""
    if self.array.dtype not in COMPLEX:
        nothing: Tensor = run("zeros_like", grad, None, None, None, None, None)
        return nothing
    length = run("real", self * self.conj())
    found: Tensor = (self * 1j * (grad / length)).masked_fill(run("eq.Scalar", length, 0), 0)
    return found


def gelu_backward(grad: Tensor, self: Tensor, approximate: str) -> Tensor:
    x = widened(self)
    slope: Tensor
    if approximate == "tanh":
        twice = (x + x.pow(3) * 0.044715) * 1.5957691216057308
        steep = (1 + x.pow(2) * 0.134145) * 1.5957691216057308
        slope = twice.sigmoid() * (1 + x * steep * (-twice).sigmoid())  # of sigmoids, since 1 + tanh would cancel
    else:
        slope = ((x * 0.7071067811865476).erf() + 1) * 0.5 + x * ((x * x * -0.5).exp() * 0.3989422804014327)
    return cast(widened(grad) * slope, self.array.dtype)


def glu_backward(grad: Tensor, self: Tensor, dim: int) -> Tensor:
    a, b = self.chunk(2, dim)
    gate = b.sigmoid()
    joined: Tensor = run("cat", [grad * gate, grad * a * gate * (1 - gate)], dim)
    return joined


op(f"aten::_clamp_backward({_GRAD}, Scalar? min, Scalar? max) -> Tensor", python=clamp_backward)
op(f"aten::_clamp_backward.Tensor({_GRAD}, Tensor? min, Tensor? max) -> Tensor", python=clamp_backward)
op(f"aten::_clamp_limit_backward({_GRAD}, Tensor? min, Tensor? max, bool of_min) -> Tensor",
   python=clamp_limit_backward)  # fmt: skip
op(f"aten::_sgn_backward({_GRAD}, Tensor sgn) -> Tensor", python=sgn_backward)
op(f"aten::_angle_backward({_GRAD}) -> Tensor", python=angle_backward)
op(f"aten::_gelu_backward({_GRAD}, str approximate) -> Tensor", python=gelu_backward)
op(f"aten::_glu_backward({_GRAD}, int dim) -> Tensor", python=glu_backward)
describe(
    "_unreduced _mean_backward _extreme_backward _aminmax_backward _var_backward _norm_backward _logsumexp_backward "
    "_matmul_backward _permute_backward _clamp_backward _clamp_limit_backward _sgn_backward _angle_backward "
    "_gelu_backward _glu_backward",
    unfolds=True,
)
