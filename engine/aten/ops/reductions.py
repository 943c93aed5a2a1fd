"""Reductions and scans.

In: arrays, the dimensions to go over, perhaps a dtype.  Half types are summed in float32, whole numbers in
int64.  Gradient formulas: see `pointwise`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels import checks, shapes
from engine.aten.kernels.blocks import BLOCK
from engine.aten.kernels.cumulative import running
from engine.aten.kernels.order_statistics import kth_in_machine_code
from engine.aten.kernels.refusals import no_code, unsupported
from engine.aten.kernels.rules import no_kernel, reduce_dims, wrap_dim
from engine.aten.stepwise.language import worth
from engine.aten.stepwise.products import rows_multiplied
from engine.aten.values import xp
from engine.aten.values.promotion import converted, promote_types, wide
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError, OperatorIndexError

OUT: Final = "function method out"
Dims = Sequence[int] | int | None


def over(ufunc: Any, x: Array, axes: tuple[int, ...] | None, keepdim: bool = False) -> Array:
    """A function of two numbers, applied along dimensions.

    Where dimensions are kept, numpy gives these the steps that they have in a turned operand, PyTorch those of a
    result in C order.
    """
    found = np.asarray(ufunc.reduce(x, axes, None, None, keepdim))
    return found.copy(order="C") if keepdim and not x.flags.c_contiguous else found


# ------------------------------------------------------------------ sums


def _summed_dtype(d: xp.NumpyDtype, dtype: int | None) -> xp.NumpyDtype:
    if dtype is not None:
        return xp.numpy_dtype(dtype)
    return xp.INT64 if d in xp.INTEGRAL else d


def sum_dims(self: Array, dim: Dims, keepdim: bool, dtype: int | None) -> Array:
    if dtype is None and self.dtype in xp.FLOATS:
        return over(np.add, self, reduce_dims(dim, self.ndim), keepdim)
    d = _summed_dtype(self.dtype, dtype)
    axes = reduce_dims(dim, self.ndim)
    x = xp.cast(self, d)
    return np.asarray(over(np.add, x.astype(wide(d), copy=False), axes, keepdim)).astype(d, copy=False)


def sum_all(self: Array, dtype: int | None) -> Array:
    if dtype is None and self.dtype in xp.FLOATS:
        return np.asarray(np.add.reduce(self, None))
    return sum_dims(self, None, False, dtype)


def mean_dims(self: Array, dim: Dims, keepdim: bool, dtype: int | None) -> Array:
    d = self.dtype if dtype is None else xp.numpy_dtype(dtype)
    if d in xp.INTEGRAL:
        what = "Input dtype" if dtype is None else "Optional dtype"
        raise OperatorError(
            "mean(): could not infer output dtype. "
            f"{what} must be either a floating point or complex dtype. Got: {xp.ir_name(d)}"
        )
    axes = reduce_dims(dim, self.ndim)
    count = math.prod([self.shape[axis] for axis in axes])
    if dtype is None and d in xp.FLOATS:
        return np.asarray(np.true_divide(over(np.add, self, axes, keepdim), d.type(count)))
    x = xp.cast(self, d).astype(wide(d), copy=False)
    divisor = x.dtype.type(count) if d in xp.HALVES else np.float64(count)
    return np.asarray(np.divide(over(np.add, x, axes, keepdim), divisor)).astype(d)


def mean_all(self: Array, dtype: int | None) -> Array:
    return mean_dims(self, None, False, dtype)


def prod_all(self: Array, dtype: int | None) -> Array:
    d = _summed_dtype(self.dtype, dtype)
    return np.asarray(over(np.multiply, xp.cast(self, d).astype(wide(d)), None)).astype(d)


def _product(x: Array, axes: tuple[int, ...], keepdim: bool) -> Array:
    """Products over `axes`; long rows are folded in halves, so that each step multiplies whole vectors."""
    if axes == (x.ndim - 1,) and x.dtype in xp.FLOATS and x.shape[-1] and worth(x):
        found = np.empty((*x.shape[:-1], 1), x.dtype)
        if rows_multiplied.run(x.size, np.ascontiguousarray(x), found, found.size, x.shape[-1]) is not None:
            return found if keepdim else found.squeeze(-1)
    if axes == (x.ndim - 1,) and x.dtype in xp.FLOATS and x.size > BLOCK:
        while x.shape[-1] >= 16 and x.shape[-1] % 2 == 0:
            middle = x.shape[-1] // 2
            x = x[..., :middle] * x[..., middle:]
    return over(np.multiply, x, axes, keepdim)


def prod_dim(self: Array, dim: int, keepdim: bool, dtype: int | None) -> Array:
    d = _summed_dtype(self.dtype, dtype)
    axes = reduce_dims(dim, self.ndim)
    return np.asarray(_product(xp.cast(self, d).astype(wide(d), copy=False), axes, keepdim)).astype(d, order="C")


op("aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   kernel=sum_dims, variants="function method out:IntList_out",
   gradient={"self": "_unreduced(grad, self.size(), dim, keepdim)"}, shape=shapes.reduced, dtype="sum",
   jit_autocast="full", layout="contiguous")  # fmt: skip
op("aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", kernel=sum_all, variants=OUT,
   gradient={"self": "grad.expand(self.size())"}, shape=shapes.reduced, dtype="sum", jit_autocast="full",
   layout="contiguous")  # fmt: skip
op("aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", kernel=mean_all,
   variants="function method out:dtype_out",
   gradient={"self": "grad.expand(self.size()) / self.numel()"}, shape=shapes.reduced, dtype="floats",
   layout="contiguous")  # fmt: skip
op("aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   kernel=mean_dims, variants="function method out:out",
   gradient={"self": "_mean_backward(grad, self.size(), dim, keepdim)"}, shape=shapes.reduced,
   dtype="floats", layout="contiguous")  # fmt: skip
op("aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", kernel=prod_all, variants=OUT,
   gradient={"self": "_prod_backward(grad, self, None, False, result)"}, shape=shapes.reduced, dtype="sum",
   jit_autocast="full", layout="contiguous", autocast="full")  # fmt: skip
op("aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   kernel=prod_dim, variants="function method out:int_out",
   gradient={"self": "_prod_backward(grad, self, dim, keepdim, result)"}, shape=shapes.reduced,
   dtype="sum", jit_autocast="full", layout="contiguous", autocast="full")  # fmt: skip

# ------------------------------------------------------------------ extremes


def _check_ordered(name: str, self: Array) -> None:
    if self.dtype in xp.COMPLEX:
        raise no_kernel(name, self.dtype)


def _extreme(name: str, pick: Callable[..., Any], place: Callable[[Array], Any]) -> Callable[[Array], Array]:
    """`place` finds the extreme, too, and in less time."""

    def kernel(self: Array) -> Array:
        if self.dtype in xp.FLOATS and self.flags.c_contiguous and self.size:
            flat = self.reshape(-1)
            return np.asarray(flat[place(flat)])
        _check_ordered(f"{name}_all", self)
        if self.size == 0:
            raise OperatorError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                "Specify the reduction dim with the 'dim' argument."
            )
        return np.asarray(pick(self, None))

    return kernel


def _check_not_empty(name: str, self: Array, axes: Sequence[int]) -> None:
    for axis in axes:
        if self.ndim and self.shape[axis] == 0:
            raise OperatorIndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")


def _first_place(self: Array, axis: int, largest: bool) -> Array:
    """Index of the first extreme element; a NaN counts as the extreme."""
    x = self if self.dtype in xp.FLOATS else self.astype(wide(self.dtype), copy=False)
    return np.asarray(x.argmax(axis) if largest else x.argmin(axis))


def extreme_dim(name: str, largest: bool) -> Callable[[Array, int, bool], tuple[Array, Array]]:
    def kernel(self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
        _check_ordered(name, self)
        axis = wrap_dim(dim, self.ndim)
        if self.ndim == 0:
            return self.copy(), np.zeros((), np.int64)
        _check_not_empty(name, self, [axis])
        places = np.expand_dims(_first_place(self, axis, largest), axis)
        values = np.take_along_axis(self, places, axis)
        return (values, places) if keepdim else (values.squeeze(axis), places.squeeze(axis))

    return kernel


def extremes(name: str, pick: Callable[..., Any]) -> Callable[[Array, Dims, bool], Array]:
    def kernel(self: Array, dim: Dims, keepdim: bool) -> Array:
        _check_ordered(name, self)
        axes = reduce_dims(dim, self.ndim)
        if self.size == 0 and not dim:
            raise OperatorError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                "Specify the reduction dim with the 'dim' argument."
            )
        _check_not_empty(name, self, axes)
        return np.array(pick(self, axis=axes, keepdims=keepdim))

    return kernel


def place_of_extreme(name: str, largest: bool) -> Callable[[Array, int | None, bool], Array]:
    def kernel(self: Array, dim: int | None, keepdim: bool) -> Array:
        if self.dtype not in xp.REAL:
            raise no_kernel(f"{name}_cpu", self.dtype)
        if dim is None:
            if self.size == 0:
                raise OperatorIndexError(
                    f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                    "Specify the reduction dim with the 'dim' argument."
                )
            place = _first_place(self.reshape(-1), 0, largest)
            return place.reshape((1,) * self.ndim) if keepdim else place
        axis = wrap_dim(dim, self.ndim)
        if self.ndim == 0:
            return np.zeros((), np.int64)
        _check_not_empty(name, self, [axis])
        place = _first_place(self, axis, largest)
        return np.expand_dims(place, axis) if keepdim else place

    return kernel


_CHOSEN: Final = "(self == result) | (self != self)"
"""The elements that are the extreme; NaN is, where there is any."""
_SCATTER: Final = (
    "zeros_like(self).scatter(dim, indices if keepdim else indices.unsqueeze(dim), "
    "grad if keepdim else grad.unsqueeze(dim))"
)
for _name, _ufunc, _less in (("max", np.maximum, "<"), ("min", np.minimum, ">")):
    _largest = _name == "max"
    op(f"aten::{_name}.other(Tensor self, Tensor other) -> Tensor", scalar=f"{_name}imum(self, other)",
       variants="function method out:out",
       gradient={"self": f"where(self {_less} other, 0, where(self == other, grad / 2, grad))",
                 "other": f"where(other {_less} self, 0, where(self == other, grad / 2, grad))"})  # fmt: skip
    _place = np.ndarray.argmax if _largest else np.ndarray.argmin
    op(f"aten::{_name}(Tensor self) -> Tensor", kernel=_extreme(_name, _ufunc.reduce, _place),
       variants="function method out:unary_out",
       gradient={"self": f"where({_CHOSEN}, grad / ({_CHOSEN}).sum(), 0)"}, shape=shapes.reduced,
       dtype="same", layout="contiguous")  # fmt: skip
    _entry = op(f"aten::{_name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
                kernel=extreme_dim(_name, _largest), variants="function method",
                gradient={"self": _SCATTER}, shape=shapes.reduced, dtype="same", layout="contiguous")  # fmt: skip
    _outs = "max, Tensor(b!) max_values" if _largest else "min, Tensor(b!) min_indices"
    op(f"aten::{_name}.dim_{_name}(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) {_outs}) "
       "-> (Tensor(a!) values, Tensor(b!) indices)", functional=_entry)  # fmt: skip
    op(f"aten::a{_name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
       kernel=extremes(f"a{_name}", _ufunc.reduce), variants=OUT,
       gradient={"self": "_extreme_backward(grad, self, result, dim, keepdim)"}, shape=shapes.reduced,
       dtype="same", layout="contiguous")  # fmt: skip
    op(f"aten::arg{_name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
       kernel=place_of_extreme(f"arg{_name}", _largest), variants=OUT, exact=True, shape=shapes.reduced,
       dtype="int64", layout="contiguous")  # fmt: skip

# ------------------------------------------------------------------ truth, counting


def truth(test: Callable[..., Any]) -> Callable[..., Array]:
    def kernel(self: Array, dim: Dims = None, keepdim: bool = False) -> Array:
        axes = tuple(range(self.ndim)) if dim is None else reduce_dims(dim, self.ndim) if dim != [] else ()
        answer = np.asarray(test(xp.cast(self, xp.BOOL), axis=axes, keepdims=keepdim))
        return np.array(answer, np.uint8 if self.dtype == xp.UINT8 else np.bool_, order="C")

    return kernel


def count_nonzero(self: Array, dim: Dims) -> Array:
    axes = reduce_dims(dim, self.ndim)
    return np.asarray(over(np.add, (self != 0).astype(np.int64), axes))


for _name, _test in (("any", np.logical_or.reduce), ("all", np.logical_and.reduce)):
    _kernel = truth(_test)
    op(f"aten::{_name}(Tensor self) -> Tensor", kernel=_kernel, variants="function method out:all_out",
       shape=shapes.reduced, dtype="truth", layout="contiguous")  # fmt: skip
    op(f"aten::{_name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", kernel=_kernel,
       variants="function method out:out", shape=shapes.reduced, dtype="truth", layout="contiguous")  # fmt: skip
    op(f"aten::{_name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", kernel=_kernel,
       variants="function method out", shape=shapes.reduced, dtype="truth", layout="contiguous")  # fmt: skip
op("aten::count_nonzero(Tensor self, int? dim=None) -> Tensor", kernel=count_nonzero, variants=OUT,
   shape=shapes.reduced, dtype="int64", layout="contiguous")  # fmt: skip
op("aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", kernel=count_nonzero, variants=OUT,
   shape=shapes.reduced, dtype="int64", layout="contiguous")  # fmt: skip

# ------------------------------------------------------------------ spread


def _has_spread(name: str, self: Array, *_: Any) -> None:
    if self.dtype in xp.INTEGRAL:
        raise OperatorError(f"{name} only support floating point and complex dtypes")


def _spread(self: Array, dim: Dims, correction: float, keepdim: bool) -> tuple[Array, Array]:
    """Variance and mean over dimensions, in the dtype to compute in."""
    axes = reduce_dims(dim, self.ndim)
    x = self.astype(wide(self.dtype), copy=False)
    count = math.prod([self.shape[axis] for axis in axes])
    mean = np.divide(over(np.add, x, axes, True), float(count)).astype(x.dtype, copy=False)
    apart = x - mean
    divisor = np.float64(max(0.0, count - correction))
    parts = (apart.real, apart.imag) if apart.dtype in xp.COMPLEX else (apart,)
    of_parts = [np.divide(over(np.add, np.square(part), axes, keepdim), divisor) for part in parts]
    variance = np.asarray(sum(of_parts[1:], of_parts[0])).astype(parts[0].dtype)
    return variance, np.asarray(mean).reshape(variance.shape)


def spread(root: bool, with_mean: bool) -> tuple[Callable[..., Any], ...]:
    """Kernels of the three overloads of var, std, var_mean or std_mean."""

    def finish(self: Array, dim: Dims, correction: float, keepdim: bool) -> Any:
        variance, mean = _spread(self, dim, correction, keepdim)
        part = xp.PART_OF.get(self.dtype, self.dtype)
        answer = (np.sqrt(variance) if root else variance).astype(part, copy=False)
        return (answer, mean.astype(self.dtype, copy=False)) if with_mean else answer

    def whole(self: Array, unbiased: bool) -> Any:
        return finish(self, None, float(unbiased), False)

    def dims(self: Array, dim: Dims, unbiased: bool, keepdim: bool) -> Any:
        return finish(self, dim, float(unbiased), keepdim)

    def corrected(self: Array, dim: Dims, correction: Any, keepdim: bool) -> Any:
        return finish(self, dim, 1.0 if correction is None else float(converted(correction, xp.FLOAT64)), keepdim)

    return whole, dims, corrected


def _spread_text(root: bool, with_mean: bool, dim: str, correction: str, keepdim: str) -> str:
    """The mean of squared distances from the mean, of which so many are taken for known."""
    return f"""
        x = widened(self)
        mean = x.mean({dim}, True)
        apart = x - mean
        if self.is_complex():
            apart = apart.abs()
        total = (apart * apart).sum({dim}, {keepdim})
        count = float(x.numel()) / float(max(total.numel(), 1))
        found = total / max(0.0, count - {correction})
        {"found = found.sqrt()" if root else ""}
        result = found if self.is_complex() else found.to(self.dtype)
        return {"(result, mean.reshape(found.size()).to(self.dtype))" if with_mean else "result"}
    """


_ALL: Final = "torch.jit.annotate(List[int], [])"
_UNBIASED: Final = "float(unbiased)"
_CORRECTION: Final = "(1.0 if correction is None else float(correction))"

for _name in ("var", "std", "var_mean", "std_mean"):
    _mean = _name.endswith("_mean")
    _whole, _dims, _corrected = spread(_name.startswith("std"), _mean)
    _returns = "(Tensor, Tensor)" if _mean else "Tensor"
    _form = "function" if _mean else "function method"
    _by = ("grads[0], grads[1]" if _mean else "grads[0], None") + ", self"
    _std = "None" if not _name.startswith("std") else "result0" if _mean else "result"
    _shape = None if _mean else shapes.reduced
    _text = partial(_spread_text, _name.startswith("std"), _mean)
    op(f"aten::{_name}(Tensor self, bool unbiased=True) -> {_returns}", kernel=_whole, variants=_form,
       composite=_text(_ALL, _UNBIASED, "False"),
       gradient={"self": f"_var_backward({_by}, None, 1 if unbiased else 0, False, {_std})"}, shape=_shape,
       layout="contiguous")  # fmt: skip
    op(f"aten::{_name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> {_returns}",
       kernel=_dims, variants=_form if _mean else f"{_form} out:out", composite=_text("dim", _UNBIASED, "keepdim"),
       gradient={"self": f"_var_backward({_by}, dim, 1 if unbiased else 0, keepdim, {_std})"},
       shape=_shape, layout="contiguous")  # fmt: skip
    _entry = op(f"aten::{_name}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
                f"bool keepdim=False) -> {_returns}", kernel=_corrected,
                composite=_text("dim", _CORRECTION, "keepdim"),
                variants=_form if _mean else f"{_form} out",
                gradient={"self": f"_var_backward({_by}, dim, correction, keepdim, {_std})"}, shape=_shape,
                layout="contiguous")  # fmt: skip
    describe(_name, check=partial(_has_spread, _name if _mean else "std and var"))
    if _mean:
        op(
            f"aten::{_name}.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
            "bool keepdim=False, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))",
            functional=_entry,
        )

# ------------------------------------------------------------------ norms


def vector_norm(self: Array, ord: Any, dim: Dims, keepdim: bool, dtype: int | None) -> Array:
    return _norm(self, ord, dim, keepdim, dtype)


def _norm(self: Array, order: Any, dim: Dims, keepdim: bool, dtype: int | None) -> Array:
    d = self.dtype if dtype is None else xp.numpy_dtype(dtype)
    axes = reduce_dims(dim, self.ndim)
    if order == 2 and d is self.dtype and d in xp.FLOATS and axes == (self.ndim - 1,) and self.shape[-1] > 1:
        total = square_sums(self)
        return np.asarray(np.sqrt(total if keepdim else total.squeeze(-1)))
    x = np.abs(xp.cast(self, d).astype(wide(d), copy=False))
    real = xp.PART_OF.get(d, d)
    if order < 0 or np.isinf(order):
        _some_element(x, axes, dim, order)
    if order != 0 and x.size and all(x.shape[axis] == 1 for axis in axes):
        return over(np.add, x, axes, keepdim).astype(real)
    if np.isinf(order):
        return over(np.maximum if order > 0 else np.minimum, x, axes, keepdim).astype(real)
    if order == 0:
        return np.asarray(over(np.add, (x != 0).astype(x.dtype), axes, keepdim)).astype(real)
    if order == 2:
        total = np.sqrt(over(np.add, x * x, axes, keepdim))
    elif order == 1:
        total = over(np.add, x, axes, keepdim)
    else:
        total = np.power(over(np.add, np.power(x, order), axes, keepdim), 1.0 / order)
    return np.asarray(total).astype(real)


def _check_norm(self: Array, order: Any, dtype: int | None, d: xp.NumpyDtype) -> None:
    """Raise OperatorError for what has no norm; `d` is a dtype that has to have some."""
    if d in xp.INTEGRAL:
        raise OperatorError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {xp.ir_name(d)}"
        )
    if isinstance(order, complex):
        raise OperatorError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    if dtype is not None:
        _check_norm_dtype(self.dtype, xp.numpy_dtype(dtype))


def _check_norm_dtype(given: xp.NumpyDtype, d: xp.NumpyDtype) -> None:
    """Raise OperatorError unless norms of such elements can be computed in `d`."""
    name = xp.ir_name(d)
    if d in xp.INTEGRAL:
        raise OperatorError(f"linalg.vector_norm: dtype should be floating point or complex, but got {name}")
    if (given in xp.COMPLEX) != (d in xp.COMPLEX):
        kind = "complex" if given in xp.COMPLEX else "real"
        raise OperatorError(f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got {name}")
    if promote_types(given, d) != d:
        raise OperatorError(
            f"linalg.vector_norm: the dtype of the input ({xp.ir_name(given)}) should be convertible without narrowing "
            f"to the specified dtype ({name})"
        )


def square_sums(x: Array) -> Array:
    """The sums of squares along the last dimension, which is kept."""
    return np.asarray(np.add.reduce(np.square(np.ascontiguousarray(x)), -1, keepdims=True))


def _some_element(x: Array, axes: tuple[int, ...], dim: Dims, order: float) -> None:
    """Norms that look for an element, or divide by one, refuse to look at none."""
    empty = next((axis for axis in axes if x.shape[axis] == 0), None)
    if empty is None:
        return
    given = f"linalg.vector_norm cannot compute the {order:g} norm on"
    if not dim:
        raise OperatorError(f"{given} an empty tensor because the operation does not have an identity")
    raise OperatorError(
        f"{given} the dimension {empty}because this dimension is empty and the operation does not have an identity"
    )


def norm(self: Array, p: Any, dim: Dims, keepdim: bool, dtype: int | None) -> Array:
    return _norm(self, 2 if p is None else p, dim, keepdim, dtype)


def _has_norm(self: Array, order: Any, *_: Any) -> None:
    _check_norm(self, order, None, self.dtype)


def _has_norm_in(self: Array, order: Any, *others: Any) -> None:
    """The same where the last argument is the dtype of the norm."""
    _check_norm(self, order, others[-1], xp.numpy_dtype(others[-1]))


def _has_vector_norm(self: Array, order: Any, *others: Any) -> None:
    _check_norm(self, order, others[-1], self.dtype)


def _norm_text(order: str, dim: str, keepdim: str, dtype: str) -> str:
    """The usual norms, and those of other orders."""
    return f"""
        x = widened(self{f".to({dtype})" if dtype else ""})
        order = {order}
        dims = {dim}
        if order == 1:
            result = x.abs().sum(dims, {keepdim})
        elif order == float("inf"):
            result = x.abs().amax(dims, {keepdim})
        elif order == -float("inf"):
            result = x.abs().amin(dims, {keepdim})
        elif order == 0:
            result = (x != 0).to(x.dtype).sum(dims, {keepdim})
        elif x.numel() > 0 and reduced_count(x.size(), dims) == 1:
            result = x.abs().sum(dims, {keepdim})
        elif order == 2:
            result = (x * x).sum(dims, {keepdim}).sqrt()
        else:
            result = x.abs().pow(order).sum(dims, {keepdim}).pow(1 / order)
        return result.to({dtype or "self.dtype"})
    """


_ASKED: Final = "(self.dtype if dtype is None else dtype)"
_ORDER: Final = "2 if p is None else p"

op("aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor", kernel=lambda self, p: norm(self, p, None, False, None),
   composite=_norm_text("p", _ALL, "False", ""), variants=OUT,
   gradient={"self": "_norm_backward(grad, self, p, result, None, False)"},
   shape=shapes.reduced, layout="contiguous")  # fmt: skip
op("aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
   kernel=lambda self, p, dim, keepdim: norm(self, p, dim, keepdim, None),
   composite=_norm_text(_ORDER, "dim", "keepdim", ""),
   variants="function method out:out",
   gradient={"self": "_norm_backward(grad, self, p, result, dim, keepdim)"}, shape=shapes.reduced,
   layout="contiguous")  # fmt: skip
op("aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor",
   kernel=norm, composite=_norm_text(_ORDER, "dim", "keepdim", "dtype"), variants="function method out:dtype_out",
   gradient={"self": "_norm_backward(grad, self, p, result, dim, keepdim)"}, shape=shapes.reduced,
   layout="contiguous")  # fmt: skip
op("aten::norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
   kernel=lambda self, p, dtype: norm(self, p, None, False, dtype),
   composite=_norm_text(_ORDER, _ALL, "False", "dtype"), variants=OUT,
   gradient={"self": "_norm_backward(grad, self, p, result, None, False)"}, shape=shapes.reduced,
   layout="contiguous")  # fmt: skip
op("aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
   "ScalarType? dtype=None) -> Tensor", kernel=vector_norm, variants="function out",
   composite=_norm_text("ord", f"{_ALL} if dim is None else dim", "keepdim", _ASKED),
   gradient={"self": "_norm_backward(grad, self, ord, result, dim, keepdim)"}, layout="contiguous")  # fmt: skip


describe("norm.Scalar norm.ScalarOpt_dim", check=_has_norm)
describe("norm.ScalarOpt_dim_dtype norm.ScalarOpt_dtype", check=_has_norm_in)
describe("linalg_vector_norm", check=_has_vector_norm)


def logsumexp(self: Array, dim: Dims, keepdim: bool) -> Array:
    d = self.dtype if self.dtype not in xp.INTEGRAL else xp.FLOAT32
    x = self.astype(wide(d), copy=False)
    axes = reduce_dims(dim, self.ndim)
    if x.size == 0:
        return np.log(over(np.add, np.exp(x), axes, keepdim)).astype(d)
    top = over(np.maximum, x.real, axes, True)
    top = np.where(np.isfinite(top), top, 0).astype(x.real.dtype)
    total = np.log(over(np.add, np.exp(x - top), axes, True)) + top
    return np.asarray(total if keepdim else total.squeeze(axes)).astype(d)


op("aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", kernel=logsumexp, variants=OUT,
   composite="""
       x = widened(self if self.is_floating_point() else self.float())
       dtype = self.dtype if self.is_floating_point() else x.dtype
       if x.numel() == 0:
           return torch.exp(x).sum(dim, keepdim).log().to(dtype)
       top = x.amax(dim, True)
       top = torch.where(top.abs() == float("inf"), 0.0, top)
       result = (torch.exp(x - top).sum(dim, True).log() + top).to(dtype)
       if keepdim:
           return result
       return result.squeeze(dim) if len(dim) > 0 else result.reshape([])
   """,
   gradient={"self": "_logsumexp_backward(grad, self, result, dim, keepdim)"}, shape=shapes.reduced,
   jit_autocast="full", layout="contiguous")  # fmt: skip

# ------------------------------------------------------------------ median


def nothing_in_the_middle(d: xp.NumpyDtype) -> Array:
    """The median of no values: NaN, the lowest integer, True."""
    return np.asarray(
        np.nan if d in xp.FLOATING or d in xp.COMPLEX else True if d == xp.BOOL else np.iinfo(d).min
    ).astype(d)


def median_all(self: Array) -> Array:
    if self.size == 0:
        return nothing_in_the_middle(self.dtype)
    if self.dtype not in xp.REAL:
        raise no_kernel("median_cpu", self.dtype)
    return median_dim(self.reshape(-1), 0, False)[0]


def median_dim(self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """The lower of the middle values, and where it stands; a NaN wins."""
    axis = wrap_dim(dim, self.ndim)
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    _check_not_empty("median", self, [axis])
    found = kth_in_machine_code(self, axis, (self.shape[axis] - 1) // 2, is_stable=True)
    if found is not None:
        return found if keepdim else (found[0].squeeze(axis), found[1].squeeze(axis))
    x = self.astype(wide(self.dtype), copy=False)
    order = np.argsort(x, axis=axis, kind="stable")
    middle = np.take(order, [(self.shape[axis] - 1) // 2], axis=axis)
    if x.dtype in xp.FLOATING:
        missing = np.isnan(x)
        middle = np.where(missing.any(axis=axis, keepdims=True), missing.argmax(axis=axis, keepdims=True), middle)
    values = np.take_along_axis(self, middle, axis)
    return (values, middle) if keepdim else (values.squeeze(axis), middle.squeeze(axis))


op("aten::median(Tensor self) -> Tensor", kernel=median_all, variants=OUT,
   gradient={"self": "_median_backward(grad, self, result)"}, shape=shapes.reduced, layout="contiguous")  # fmt: skip
_MEDIAN = op("aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
             kernel=median_dim, variants="function method", gradient={"self": _SCATTER},
             shape=shapes.reduced, layout="contiguous")  # fmt: skip
op("aten::median.dim_values(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) "
   "-> (Tensor(a!) values, Tensor(b!) indices)", functional=_MEDIAN)  # fmt: skip

# ------------------------------------------------------------------ scans


def scan(name: str, function: np.ufunc) -> Callable[[Array, int, int | None], Array]:
    def kernel(self: Array, dim: int, dtype: int | None) -> Array:
        d = _summed_dtype(self.dtype, dtype)
        axis = wrap_dim(dim, self.ndim)
        if d == xp.BOOL and self.ndim:
            raise no_kernel(f"{name}_out_cpu", d)
        x = xp.cast(self, d).astype(wide(d), copy=False)
        found = running(function, x, axis, in_double=d is xp.FLOAT32) if x.ndim else x.copy()
        return found.astype(d, copy=False)

    return kernel


op("aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
   kernel=scan("cumsum", np.add), variants="function method inplace out",
   gradient={"self": "grad.flip([dim]).cumsum(dim).flip([dim])"}, shape="self", dtype="sum",
   jit_autocast="full", layout="contiguous")  # fmt: skip
op("aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
   kernel=scan("cumprod", np.multiply), variants="function method inplace out",
   gradient={"self": "_cumprod_backward(grad, self, dim, result)"}, shape="self", dtype="sum",
   jit_autocast="full", layout="contiguous")  # fmt: skip


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("amax", refuses=no_code("c", "max_values_cpu"))
describe("amin", refuses=no_code("c", "min_values_cpu"))
describe("argmax", refuses=unsupported("c", "argmax(): does not support complex input"))
describe("argmin", refuses=unsupported("c", "argmin(): does not support complex input"))
describe("argmax", refuses=unsupported("b", "argmax(): does not support bool input"))
describe("argmin", refuses=unsupported("b", "argmin(): does not support bool input"))
describe("median.dim", refuses=no_code("bc", "median_out"))
describe("max.dim", refuses=unsupported("c", "max(): does not support complex input"))
describe("min.dim", refuses=unsupported("c", "min(): does not support complex input"))
describe("max.other", refuses=unsupported("c", "maximum not implemented for complex tensors.", common=True))
describe("min.other", refuses=unsupported("c", "minimum not implemented for complex tensors.", common=True))
describe("cumsum_", check=checks.keeps_dtype("cumsum"))
describe("cumprod_", check=checks.keeps_dtype("cumprod"))
describe(
    "argmax.out argmin.out count_nonzero.dim_IntList_out count_nonzero.out cumprod.out cumsum.out "
    "linalg_vector_norm.out max.dim_max mean.out median.out min.dim_min norm.ScalarOpt_dtype_out "
    "norm.Scalar_out norm.out prod.int_out prod.out std_mean.correction_out sum.IntList_out sum.out "
    "var_mean.correction_out",
    out_check=out_checks.check_same,
)
describe("amax.out amin.out", out_check=out_checks.check_matching)
describe("all.all_out all.out all.dims_out", out_check=out_checks.only_bool("all"))
describe("any.all_out any.out any.dims_out", out_check=out_checks.only_bool("any"))
describe("mean.dtype_out", out_check=out_checks.cast_in_words("mean.dtype_out(): input types"))
describe("cumprod.out cumsum.out prod.int_out sum.IntList_out", in_dtype_of_out=True)
