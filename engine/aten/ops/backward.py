"""Helpers of gradient formulas that cannot be written as one expression.

In: the gradient of a result, and what the formula passes along.  Out: the gradient of an argument.  Nearly all are
made of other operators, so that they have gradients themselves; what only looks at numbers of elements takes sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.compose import cast, run, sum_over, where
from engine.aten.dispatch.table import op
from engine.aten.kernels.rules import reduce_dims, wrap_dim
from engine.aten.ops.matmul import LETTERS, explicit_subscripts
from engine.aten.values import xp
from engine.aten.values.storage import address
from engine.aten.values.tensor import Tensor, from_numpy
from engine.aten.values.xp import COMPLEX, Array, as_strided

Dims = Sequence[int] | int | None

# ------------------------------------------------------------------ reductions


def _unreduced(grad: Tensor, size: list[int], dim: int | None, keepdim: bool) -> Tensor:
    found: Tensor = run("_unreduced", grad, size, None if dim is None else [wrap_dim(dim, len(size))], keepdim)
    return found


def prod_backward(grad: Tensor, self: Tensor, dim: int | None, keepdim: bool, result: Tensor) -> Tensor:
    x = cast(self, grad.array.dtype)
    if self.ndim == 0:
        return grad
    if np.all(self.array != 0):
        size = list(self.shape)
        return _unreduced(grad, size, dim, keepdim) * _unreduced(result, size, dim, keepdim) / x
    flat, axis = (x.reshape([-1]), 0) if dim is None else (x, wrap_dim(dim, self.ndim))
    others = _product_before(flat, axis) * _product_before(flat.flip([axis]), axis).flip([axis])
    others = others.reshape(list(self.shape))
    found: Tensor = _unreduced(grad, list(self.shape), dim, keepdim) * others
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


def norm_backward(grad: Tensor, self: Tensor, p: Any, result: Tensor, dim: Dims, keepdim: bool) -> Tensor | None:
    size, d = list(self.shape), result.array.dtype
    x, order = self if self.array.dtype in COMPLEX else cast(self, d), 2.0 if p is None else float(p)
    if order == 0:
        return None
    grad, norm = (run("_unreduced", t, size, dim, keepdim) for t in (grad, result))
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
op(f"aten::_unreduced(Tensor grad, int[] size, {_OVER}) -> Tensor", hands_on=True,
   composite="unreduced(grad, size, dim, keepdim)")  # fmt: skip
op(f"aten::_mean_backward(Tensor grad, int[] size, {_OVER}) -> Tensor",
   composite="mean_back(grad, size, dim, keepdim)")  # fmt: skip
op(f"aten::_extreme_backward({_GRAD}, Tensor result, {_OVER}) -> Tensor",
   composite="extreme_back(grad, self, result, dim, keepdim)")  # fmt: skip
op("aten::_aminmax_backward(Tensor? of_min, Tensor? of_max, Tensor self, Tensor least, Tensor greatest, int? dim, "
   "bool keepdim) -> Tensor", composite="""
       dims = torch.jit.annotate(List[int], []) if dim is None else [dim]
       if of_min is None and of_max is None:
           return torch.zeros_like(self)
       if of_min is None:
           return extreme_back(torch.jit._unwrap_optional(of_max), self, greatest, dims, keepdim)
       found = extreme_back(of_min, self, least, dims, keepdim)
       if of_max is not None:
           found = found + extreme_back(of_max, self, greatest, dims, keepdim)
       return found
   """)  # fmt: skip
op(f"aten::_prod_backward({_GRAD}, int? dim, bool keepdim, Tensor result) -> Tensor", python=prod_backward)
op(f"aten::_cumprod_backward({_GRAD}, int dim, Tensor result) -> Tensor", python=cumprod_backward)
op("aten::_var_backward(Tensor? grad, Tensor? of_mean, Tensor self, int[]? dim, Scalar? correction, bool keepdim, "
   "Tensor? std) -> Tensor", composite="""
       size = self.size()
       if grad is None:
           return mean_back(torch.jit._unwrap_optional(of_mean), size, dim, keepdim)
       through = grad
       if std is not None:
           through = (grad / (std * 2)).masked_fill(std == 0, 0)
       degrees = float(reduced_count(size, dim)) - (1.0 if correction is None else float(correction))
       factor = 2 / degrees if degrees != 0 else float("inf")
       mean = self.mean(dim, True) if self.dim() > 0 else self
       found = unreduced(through, size, dim, keepdim) * factor * (self - mean)
       if of_mean is not None:
           found = found + mean_back(of_mean, size, dim, keepdim)
       return found
   """)  # fmt: skip
op(
    f"aten::_norm_backward({_GRAD}, Scalar? p, Tensor result, {_OVER}) -> Tensor",
    python=norm_backward,
    composite="""
    order = 2.0 if p is None else float(p)
    if order == 0:
        raise RuntimeError("the number of elements has no gradient")
    x = self if self.is_complex() else self.to(result.dtype)
    through = unreduced(grad, self.size(), dim, keepdim)
    norm = unreduced(result, self.size(), dim, keepdim)
    at_zero = norm == 0
    if order == 1:
        return x.sgn() * through
    if order == 2:
        return (x / norm).masked_fill(at_zero, 0) * through
    if order == float("inf") or order == -float("inf"):
        chosen = (x.abs() == norm).to(result.dtype)
        shared = chosen * through / chosen.sum(dim, True) if self.dim() > 0 else chosen * through
        return x.sgn() * shared
    scaled = x.sgn() * x.abs().pow(order - 1).masked_fill(x == 0, 0)
    return scaled * (through / norm.pow(order - 1)).masked_fill(at_zero, 0)
""",
)
op(
    f"aten::_logsumexp_backward({_GRAD}, Tensor result, {_OVER}) -> Tensor",
    composite="""
    top = torch.where(torch.isfinite(result), result, 0.0)
    through = unreduced(grad, self.size(), dim, keepdim)
    return through * (self - unreduced(top, self.size(), dim, keepdim)).exp()
""",
)
op("aten::_slogdet_backward(Tensor? of_sign, Tensor? of_logarithm, Tensor self, Tensor sign) -> Tensor",
   python=slogdet_backward)  # fmt: skip
op(f"aten::_logcumsumexp_backward({_GRAD}, Tensor result, int dim) -> Tensor", python=logcumsumexp_backward)
op(f"aten::_median_backward({_GRAD}, Tensor result) -> Tensor", python=median_backward)

# ------------------------------------------------------------------ products


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


op(
    "aten::_matmul_backward(Tensor grad, Tensor self, Tensor other, bool[2] mask) -> (Tensor, Tensor)",
    composite="""
    of_self, of_other = grad, grad  # what nobody asks for
    if self.dim() == 2 and other.dim() == 2:
        if mask[0]:
            of_self = torch.linear(grad, other)
        if mask[1]:
            of_other = torch._linear_to_weight(self, grad, other)
        return of_self, of_other
    if self.dim() == 1 and other.dim() == 1:
        return grad * other, grad * self
    rows = self if self.dim() > 1 else self.unsqueeze(0)
    columns = other if other.dim() > 1 else other.unsqueeze(-1)
    whole = grad
    if self.dim() == 1:
        whole = whole.unsqueeze(-1 if other.dim() == 1 else -2)
    if other.dim() == 1:
        whole = whole.unsqueeze(-1)
    if mask[0]:
        of_self = summed_to(whole.matmul(columns.transpose(-2, -1)), rows.size()).reshape(self.size())
    if mask[1]:
        if columns.dim() == 2 and rows.dim() > 2:
            of_other = rows.flatten(0, -2).t().matmul(whole.flatten(0, -2)).reshape(other.size())
        else:
            of_other = summed_to(rows.transpose(-2, -1).matmul(whole), columns.size()).reshape(other.size())
    return of_self, of_other
""",
)
op("aten::_einsum_backward(Tensor grad, str equation, Tensor[] tensors) -> Tensor[]", python=einsum_backward)

# ------------------------------------------------------------------ shapes


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


op(
    "aten::_permute_backward(Tensor grad, int[] dims) -> Tensor",
    hands_on=True,
    composite="""
    back = torch.jit.annotate(List[int], [])
    for d in range(len(dims)):
        for i in range(len(dims)):
            if dims[i] == d or dims[i] == d - len(dims):
                back.append(i)
    return grad.permute(back)
""",
)
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


_CLAMPED: Final = """
    if min is not None:  # the gradient where self is within the limits
        grad = torch.where(self >= min, grad, 0)
    if max is not None:
        grad = torch.where(self <= max, grad, 0)
    return grad
"""
op(f"aten::_clamp_backward({_GRAD}, Scalar? min, Scalar? max) -> Tensor", composite=_CLAMPED)
op(f"aten::_clamp_backward.Tensor({_GRAD}, Tensor? min, Tensor? max) -> Tensor", composite=_CLAMPED)
op(
    f"aten::_clamp_limit_backward({_GRAD}, Tensor? min, Tensor? max, bool of_min) -> Tensor",
    composite="""
    if of_min:  # where a limit replaced the element; the upper one has priority if they are crossed
        least = torch.jit._unwrap_optional(min)
        taken = self < least
        if max is not None:
            taken = taken & (least < max)
    else:
        greatest = torch.jit._unwrap_optional(max)
        taken = self > greatest
        if min is not None:
            taken = taken | (min > greatest)
    return torch.where(taken, grad, 0)
""",
)
op(
    f"aten::_sgn_backward({_GRAD}, Tensor sgn) -> Tensor",
    composite="""
    if not self.is_complex():
        return grad * 0
    length = self.abs()
    return (grad / length - torch.real(grad / self) * sgn).masked_fill(length == 0, 0)
""",
)
op(
    f"aten::_angle_backward({_GRAD}) -> Tensor",
    composite="""
    if not self.is_complex():
        return torch.zeros_like(grad)
    length = torch.real(self * self.conj())
    return (self * 1j * (grad / length)).masked_fill(length == 0, 0)
""",
)
op(
    f"aten::_gelu_backward({_GRAD}, str approximate) -> Tensor",
    composite="""
    x = widened(self)
    if approximate == "tanh":
        twice = (x + x.pow(3) * 0.044715) * 1.5957691216057308
        steep = (1 + x.pow(2) * 0.134145) * 1.5957691216057308
        slope = twice.sigmoid() * (1 + x * steep * (-twice).sigmoid())  # of sigmoids, since 1 + tanh would cancel
    else:
        slope = ((x * 0.7071067811865476).erf() + 1) * 0.5 + x * ((x * x * -0.5).exp() * 0.3989422804014327)
    return (widened(grad) * slope).to(self.dtype)
""",
)
op(
    f"aten::_glu_backward({_GRAD}, int dim) -> Tensor",
    composite="""
    value, gate = self.chunk(2, dim)
    gate = gate.sigmoid()
    return torch.cat([grad * gate, grad * value * gate * (1 - gate)], dim)
""",
)
