"""Activations, softmax and dropout.  In: arrays of floating point types.  Gradient formulas: see `pointwise`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks, unboxed
from engine.aten.dispatch.table import describe, op
from engine.aten.kernels import checks, special
from engine.aten.kernels.blocks import BLOCK, in_blocks
from engine.aten.kernels.random import generator
from engine.aten.kernels.refusals import no_code, unsupported
from engine.aten.kernels.rules import c_name, no_kernel, wrap_dim
from engine.aten.values import xp
from engine.aten.values.promotion import check_cast, wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorDtypeError, OperatorError

ALL: Final = "function inplace out"

# ------------------------------------------------------------------ pointwise


op("aten::relu(Tensor self) -> Tensor", scalar="relu(self)", variants="function method inplace out",
   gradient={"self": "threshold_backward(grad, result, 0)"}, activation=True)  # fmt: skip
op("aten::relu6(Tensor self) -> Tensor", scalar="minimum(maximum(self, 0), 6)", variants="function inplace",
   gradient={"self": "hardtanh_backward(grad, self, 0, 6)"}, activation=True)  # fmt: skip
op("aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
   scalar="where(self > 0, self, negative_slope * self)", dtype="float: self", variants=ALL,
   gradient={"self": "leaky_relu_backward(grad, self, negative_slope, False)"}, activation=True)  # fmt: skip
op("aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
   scalar="where(self < 0, (alpha * scale) * expm1(input_scale * self), scale * self)", dtype="float: self",
   variants=ALL,
   gradient={"self": "where(self <= 0, grad * ((alpha * scale * input_scale) * exp(input_scale * self)), "
                     "grad * scale)"}, activation=True)  # fmt: skip
op("aten::selu(Tensor self) -> Tensor", variants="function inplace",
   scalar="where(self < 0, 1.7580993408473766 * expm1(self), 1.0507009873554805 * self)",
   gradient={"self": "where(self <= 0, grad * (1.7580993408473766 * exp(self)), "
                     "grad * 1.0507009873554805)"}, activation=True)  # fmt: skip
op("aten::celu(Tensor self, Scalar alpha=1.) -> Tensor", dtype="float: self", variants=ALL,
   scalar="where(self < 0, alpha * expm1(self / alpha), self)",
   gradient={"self": "where(self < 0, grad * exp(self / alpha), grad)"}, activation=True)  # fmt: skip
op("aten::silu(Tensor self) -> Tensor", scalar="self * sigmoid(self)", dtype="float", variants=ALL,
   gradient={"self": "silu_backward(grad, self)"}, activation=True)  # fmt: skip
op("aten::mish(Tensor self) -> Tensor", scalar="self * tanh(softplus(self))", dtype="float", variants=ALL,
   gradient={"self": "grad * ((self.exp().log1p()).tanh() + "
                     "self * self.sigmoid() * (1 - (self.exp().log1p()).tanh().pow(2)))"})  # fmt: skip
op("aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", dtype="self", variants=ALL,
   scalar="minimum(maximum(self, min_val), max_val)",
   gradient={"self": "hardtanh_backward(grad, self, min_val, max_val)"}, activation=True)  # fmt: skip
op("aten::hardsigmoid(Tensor self) -> Tensor", scalar="minimum(maximum(self + 3, 0), 6) / 6", dtype="float",
   variants=ALL, gradient={"self": "hardsigmoid_backward(grad, self)"}, activation=True)  # fmt: skip
op("aten::hardswish(Tensor self) -> Tensor", scalar="self * minimum(maximum(self + 3, 0), 6) / 6", dtype="float",
   variants=ALL,
   gradient={"self": "hardswish_backward(grad, self)"}, activation=True)  # fmt: skip
op("aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", dtype="float: self",
   scalar="where(beta * self > threshold, self, softplus(beta * self) / beta)", variants="function out",
   gradient={"self": "where(self * beta > threshold, grad, grad * (self * beta).sigmoid())"},
   jit_autocast="full")  # fmt: skip
op("aten::log_sigmoid(Tensor self) -> Tensor", scalar="log_sigmoid(self)", dtype="float", variants="function out",
   gradient={"self": "grad * (-self).sigmoid()"})  # fmt: skip
op("aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", dtype="self",
   scalar="where(self <= threshold, value, self)", variants=ALL,
   gradient={"self": "threshold_backward(grad, self, threshold)"})  # fmt: skip


def gelu(self: Array, approximate: str) -> Array:
    if self.dtype in xp.INTEGRAL:
        raise no_kernel("GeluKernelImpl", self.dtype)
    if approximate not in _GELU:
        raise OperatorError("approximate argument must be either none or tanh.")
    return np.asarray(_GELU[approximate](self.astype(wide(self.dtype), copy=False))).astype(self.dtype, copy=False)


def _gelu_tanh(x: Array) -> Array:
    return in_blocks(lambda y: np.asarray(0.5 * y * (1 + np.tanh(0.7978845608028654 * (y + 0.044715 * y * y * y)))), x)


def _gelu_erf(x: Array) -> Array:
    return in_blocks(_gelu_of_block, x)


def _gelu_of_block(x: Array) -> Array:
    result = np.asarray(special.erf(x * 0.7071067811865476))
    np.add(result, 1, result)
    np.multiply(result, x, result)
    return np.asarray(np.multiply(result, 0.5, result))


_GELU_TEXT: Final = {
    "none": "(erf(self * 0.7071067811865476) + 1) * self * 0.5",
    "tanh": "0.5 * self * (1 + tanh(0.7978845608028654 * (self + 0.044715 * self * self * self)))",
}
_GELU: Final = {"none": _gelu_erf, "tanh": _gelu_tanh}
op("aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor", kernel=gelu, variants=ALL, layout="operands",
   gradient={"self": "_gelu_backward(grad, self, approximate)"}, shape="self", dtype="floats",
   expression=f"{_GELU_TEXT['none']} if approximate == 'none' else {_GELU_TEXT['tanh']}",
   jit_autocast="full", activation=True)  # fmt: skip


op("aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor", scalar="where(self > 0, self, weight * self)",
   gradient={"self": "where(self > 0, grad, weight * grad)", "weight": "where(self > 0, 0, self * grad)"})  # fmt: skip


def _has_slopes(x: Array, slope: Array) -> None:
    """Raise OperatorError unless there is one slope, or one for each channel."""
    if x.dtype != slope.dtype:
        raise OperatorError(f"prelu: Type promoting not supported. Got {c_name(x.dtype)} and {c_name(slope.dtype)}")
    if slope.ndim > 1:
        raise OperatorError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {slope.ndim}")
    if slope.size != 1:
        if x.ndim == 0:
            raise OperatorError("Not allow zero-dim input tensor.")
        channels = x.shape[1] if x.ndim > 1 else 1
        if channels != slope.size:
            raise OperatorError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{slope.size} and channel size = {channels}."
            )


op("aten::_gated(Tensor self, Tensor gate) -> Tensor", scalar="self * sigmoid(gate)", dtype="float")


def _halves(self: Array, dim: int) -> None:
    """Raise OperatorError unless the dimension can be halved."""
    if not self.shape:
        raise OperatorError("glu does not support 0-dimensional tensors")
    dim = wrap_dim(dim, self.ndim)
    if self.shape[dim] % 2:
        raise OperatorError(f"Halving dimension must be even, but dimension {dim} is size {self.shape[dim]}")


op("aten::prelu(Tensor self, Tensor weight) -> Tensor", variants="function method", check=_has_slopes,
   jit_autocast="fast", autocast="fast", composite="""
       count = weight.numel()
       sizes = [count] + [1] * (self.dim() - 2) if self.dim() > 1 else [count] * self.dim()
       return torch._prelu_kernel(self, weight.reshape(sizes))
   """)  # fmt: skip
op("aten::glu(Tensor self, int dim=-1) -> Tensor", variants="function out", check=_halves,
   composite="""
       value, gate = self.chunk(2, dim)
       return torch._gated(value, gate)
   """,
   gradient={"self": "_glu_backward(grad, self, dim)"})  # fmt: skip

# ------------------------------------------------------------------ softmax


def softmax(self: Array, dim: int, dtype: int | None) -> Array:
    return _normalized(self, dim, dtype, log=False)


def log_softmax(self: Array, dim: int, dtype: int | None) -> Array:
    return _normalized(self, dim, dtype, log=True)


def _normalized(self: Array, dim: int, dtype: int | None, log: bool) -> Array:
    d = self.dtype if dtype is None else xp.numpy_dtype(dtype)
    if d not in xp.FLOATING:
        raise no_kernel("log_softmax_lastdim_kernel_impl" if log else "softmax_lastdim_kernel_impl", d)
    x = self if d is self.dtype and d in xp.FLOATS else xp.cast(self, d).astype(wide(d), copy=False)
    axis = wrap_dim(dim, x.ndim)
    if x.ndim == 0:
        return np.asarray(x * 0 + (0 if log else 1)).astype(d)
    if x.size == 0:
        return np.empty(x.shape, d)
    result = np.empty(x.shape, x.dtype)
    rounded = d if d in xp.HALVES and axis == x.ndim - 1 else x.dtype
    if axis != x.ndim - 1 or x.size <= BLOCK or not x.flags.c_contiguous:
        _normalize(x, axis, log, result, rounded)
    else:
        rows, out = x.reshape(-1, x.shape[-1]), result.reshape(-1, x.shape[-1])
        step = max(1, 2 * BLOCK // x.shape[-1])
        for start in range(0, len(rows), step):
            _normalize(rows[start : start + step], 1, log, out[start : start + step], rounded)
    return result if result.dtype is d else result.astype(d)


def _normalize(x: Array, axis: int, log: bool, out: Array, rounded: xp.NumpyDtype) -> None:
    """The (logarithms of the) exponentials divided by their sum, into `out`.

    The sum and its logarithm are `rounded` to that dtype, as `vec_log_softmax_lastdim_kernel` keeps them.
    """
    np.subtract(x, np.maximum.reduce(x, axis, keepdims=True), out)
    exponentials = np.exp(out, None if log else out)
    total = np.add.reduce(exponentials, axis, keepdims=True)
    if log:
        if rounded is not total.dtype:
            total = np.log(total.astype(rounded).astype(x.dtype)).astype(rounded).astype(x.dtype)
        else:
            total = np.log(total)
        np.subtract(out, total, out)
    else:
        np.true_divide(exponentials, total, out)


def _half_to_float(log: bool) -> Any:
    def kernel(self: Array, dim: int, half_to_float: bool) -> Array:
        if half_to_float:
            raise OperatorError("softmax with half to float conversion is not supported on CPU")
        return _normalized(self, dim, None, log)

    return kernel


_FLOATING: Final = """
    if not x.is_floating_point():
        raise RuntimeError("there is no softmax of whole numbers")
    wide = widened(x)
"""
_SOFTMAX: Final = f"""{_FLOATING}
    powers = torch.exp(wide - wide.amax([dim], True))
    return (powers * powers.sum([dim], True).reciprocal()).to(x.dtype)
"""
_NO_CONVERSION: Final = """
    if half_to_float:
        raise RuntimeError("softmax with half to float conversion is not supported on CPU")
"""
_LOG_SOFTMAX: Final = f"""{_FLOATING}
    top = wide.amax([dim], True)
    total = torch.exp(wide - top).sum([dim], True)
    if dim == -1 or dim == x.dim() - 1:  # where it is rounded on the way
        total = widened(total.to(x.dtype).log().to(x.dtype))
    else:
        total = total.log()
    return (wide - top - total).to(x.dtype)
"""
for _name, _kernel, _text in (("softmax", softmax, _SOFTMAX), ("log_softmax", log_softmax, _LOG_SOFTMAX)):
    _gradient = {"self": f"_{_name}_backward_data(grad, result, dim, 6)"}
    op(f"aten::{_name}.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", kernel=_kernel,
       composite=f"    x = self if dtype is None else self.to(dtype){_text}",
       variants="function method out", gradient=_gradient, shape="self", dtype="floats",
       jit_autocast="full" if _name == "log_softmax" else "")  # fmt: skip
    op(f"aten::_{_name}(Tensor self, int dim, bool half_to_float) -> Tensor",
       kernel=_half_to_float(_name == "log_softmax"), variants="function out", gradient=_gradient, shape="self",
       composite=f"{_NO_CONVERSION}    x = self{_text}")  # fmt: skip

# ------------------------------------------------------------------ dropout


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    _check_probability(p)
    if not train or p == 0 or input.array.size == 0:
        return input
    return input * Tensor(_keep_mask(input.array, p))


def dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    _check_probability(p)
    if train and p > 0 and self.array.size:
        self.mul_(Tensor(_keep_mask(self.array, p)))
    return self


def _keep_mask(like: Array, p: float) -> Array:
    """Random mask: 0 with probability p, else the factor that preserves the mean."""
    if p == 1:
        return np.zeros(like.shape, like.dtype)
    if like.dtype not in xp.COMPLEX:
        check_cast(xp.FLOAT32, like.dtype)
    kept, made = generator().chosen(like.shape, 1 - p), like.dtype.type
    return np.asarray(np.where(kept, made(1 / (1 - p)), made(0)))


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise OperatorError(f"dropout probability has to be between 0 and 1, but got {p}")


op("aten::dropout(Tensor input, float p, bool train) -> Tensor", python=dropout, nondeterministic=True, shape="input",
   dtype="floats", unboxed=unboxed.dropout, recorded_as="mul.Tensor", hands_on=True)  # fmt: skip
op("aten::dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", python=dropout_, nondeterministic=True)


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("gelu", refuses=no_code("ic", "GeluKernelImpl"))
describe("elu celu selu", refuses=no_code("bic", "elu_cpu"))
describe("glu", refuses=no_code("bi", "glu_cpu"))
describe("hardsigmoid", refuses=no_code("bic", "hardsigmoid_cpu"))
describe("hardswish", refuses=no_code("bic", "hardswish_cpu"))
describe("leaky_relu", refuses=no_code("bic", "leaky_relu_cpu"))
describe("log_sigmoid", refuses=no_code("bic", "log_sigmoid_cpu"))
describe("mish", refuses=no_code("bic", "mish_cpu"))
describe("silu", refuses=no_code("bi", "silu_cpu"))
describe("softplus", refuses=no_code("bic", "softplus_cpu"))
describe("threshold", refuses=no_code("bc", "threshold_cpu"))
describe("glu", refuses=no_code("c", "glu_cpu"))
describe("prelu _prelu_kernel", refuses=no_code("bic", "prelu_cpu"))
describe("_log_softmax", refuses=no_code("c", "log_softmax_lastdim_kernel_impl"))
describe("_softmax", refuses=no_code("c", "softmax_lastdim_kernel_impl"))
describe(
    "relu relu6 hardtanh",
    refuses=unsupported("c", "clamp is not supported for complex types", error=OperatorDtypeError),
)
describe("hardtanh relu6", refuses=unsupported("b", "Bool inputs not supported for hardtanh"))
describe("hardtanh", check=checks.limits_of_its_sign, checks_numbers=True)
describe("celu", check=checks.alpha_not_zero, checks_numbers=True)
describe(
    "_log_softmax.out _softmax.out celu.out log_softmax.int_out relu.out softmax.int_out",
    out_check=out_checks.check_same,
)
describe(
    "elu.out gelu.out hardsigmoid.out hardswish.out hardtanh.out leaky_relu.out mish.out silu.out softplus.out",
    out_check=out_checks.check_found,
)
