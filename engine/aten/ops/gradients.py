"""Gradients as operators: programs that were exported with their backward part call them by name.

In: the gradient of the result, what the operator saw or made.  Out: the gradient of an argument.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import out_checks
from engine.aten.dispatch.compose import MEAN, NONE, cast, run, where, widened
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import describe, op, out_form, registered
from engine.aten.kernels.refusals import no_code
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor

_GRAD: Final = "Tensor grad_output, Tensor self"

# ------------------------------------------------------------------ activations


def silu_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    x = widened(self)
    share: Tensor = x.sigmoid()
    return cast(widened(grad_output) * (share * (1 + x * (1 - share))), self.array.dtype)


def gelu_backward(grad_output: Tensor, self: Tensor, approximate: str) -> Tensor:
    result: Tensor = run("_gelu_backward", grad_output, self, approximate)
    return result


def softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype: int) -> Tensor:
    result = widened(output)
    product = widened(grad_output) * result
    total: Tensor = product.sum([dim], True)
    return cast(product - result * total, output.array.dtype)


def log_softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype: int) -> Tensor:
    slope = widened(grad_output)
    total: Tensor = slope.sum([dim], True)
    return cast(slope - widened(output).exp() * total, output.array.dtype)


def with_grad_input(entry: Op) -> None:
    """The form that writes into `grad_input`."""
    out_form(entry, "grad_input", "grad_input")


with_grad_input(op(f"aten::threshold_backward({_GRAD}, Scalar threshold) -> Tensor", dtype="promote: grad_output, self",
                   scalar="where(self <= threshold, 0, grad_output)",
                   gradient={"grad_output": "where(self <= threshold, 0, grad)", "self": "zeros_like(grad)"}
                   ))  # fmt: skip
with_grad_input(op("aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
                   scalar="grad_output * (1 - output) * output",
                   gradient={"grad_output": "grad * output * (1 - output)",
                             "output": "grad * grad_output * (-2 * output + 1)"}))  # fmt: skip
with_grad_input(op("aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
                   scalar="grad_output * (1 - output * output)",
                   gradient={"grad_output": "grad * (1 - output * output)",
                             "output": "grad * -2 * output * grad_output"}))  # fmt: skip
with_grad_input(op(f'aten::gelu_backward({_GRAD}, *, str approximate="none") -> Tensor', python=gelu_backward))
with_grad_input(op(f"aten::silu_backward({_GRAD}) -> Tensor", python=silu_backward))
out_form(op("aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) "
            "-> Tensor", python=softmax_backward), "out", "grad_input")  # fmt: skip
op("aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
   python=log_softmax_backward, variants="function out")  # fmt: skip

_SLOPES: Final = {
    # arguments after grad_output and self, the gradient; where the slope is 0 infinities and NaN have no say
    "hardswish": ("", "where(self <= 0 - 3, 0, where(self < 3, grad_output * (self / 3 + 0.5), grad_output))"),
    "hardsigmoid": ("", "where((self > 0 - 3) & (self < 3), grad_output * 0.1666666716337204, 0)"),
    "leaky_relu": (", Scalar negative_slope, bool self_is_result",
                   "where(self > 0, grad_output, grad_output * negative_slope)"),
    "hardtanh": (", Scalar min_val, Scalar max_val", "where((self <= min_val) | (self >= max_val), 0, grad_output)"),
    "softplus": (", Scalar beta, Scalar threshold",
                 "where(beta * self > threshold, grad_output, grad_output * sigmoid(beta * self))"),
    "softshrink": (", Scalar lambd", "where((self >= 0 - lambd) & (self <= lambd), 0, grad_output)"),
}  # fmt: skip
"""A sixth is PyTorch's, of single precision in all dtypes (`hardsigmoid_backward_kernel`)."""
_CURVED: Final = {
    "hardswish": "where((self > -3) & (self < 3), grad * grad_output / 3, 0)",
    "softplus": "sigmoid_backward(grad * grad_output, (self * beta).sigmoid()) * (self * beta < threshold) * beta",
}  # fmt: skip
"""The gradient's own, of those that are not made of straight lines."""
for _name, (_rest, _gradient) in _SLOPES.items():
    _names = "".join(f", {argument.split()[-1]}" for argument in _rest.split(", ")[1:])
    out_form(op(f"aten::{_name}_backward({_GRAD}{_rest}) -> Tensor", scalar=_gradient,
                dtype="promote: grad_output, self",
                gradient={"grad_output": f"{_name}_backward(grad, self{_names})",
                          "self": _CURVED.get(_name, "zeros_like(self)")}),
             *(("out", "out") if _name == "hardswish" else ("grad_input", "grad_input")))  # fmt: skip


def elu_backward(
    grad_output: Tensor, alpha: Any, scale: Any, input_scale: Any, is_result: bool, self_or_result: Tensor
) -> Tensor:
    x = self_or_result
    low = (x + alpha * scale) * input_scale if is_result else (x * input_scale).exp() * (alpha * scale * input_scale)
    return where(run("le.Scalar", x, 0), grad_output * low, grad_output * scale)


def logit_backward(grad_output: Tensor, self: Tensor, eps: float | None) -> Tensor:
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    inside = run("ge.Scalar", self, low).logical_and(run("le.Scalar", self, high))
    return where(inside, grad_output / (self * (1 - self)), float("nan") if eps is None else 0.0)


def glu_backward(grad_output: Tensor, self: Tensor, dim: int) -> Tensor:
    result: Tensor = run("_glu_backward", grad_output, self, dim)
    return result


def diagonal_backward(grad_output: Tensor, input_sizes: Sequence[int], offset: int, dim1: int, dim2: int) -> Tensor:
    result: Tensor = run("_diagonal_backward", grad_output, input_sizes, offset, dim1, dim2)
    return result


def unfold_backward(grad_in: Tensor, input_sizes: Sequence[int], dim: int, size: int, step: int) -> Tensor:
    result: Tensor = run("_unfold_backward", grad_in, input_sizes, dim, size, step)
    return result


with_grad_input(op("aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, "
                   "bool is_result, Tensor self_or_result) -> Tensor", python=elu_backward))  # fmt: skip
with_grad_input(op(f"aten::logit_backward({_GRAD}, float? eps=None) -> Tensor", python=logit_backward))
with_grad_input(op(f"aten::glu_backward({_GRAD}, int dim) -> Tensor", python=glu_backward))
op("aten::diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
   python=diagonal_backward, variants="function out")  # fmt: skip
op("aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
   python=unfold_backward, variants="function out")  # fmt: skip

# ------------------------------------------------------------------ layers

_THREE: Final = "-> (Tensor, Tensor, Tensor)"


def _masked(wanted: Sequence[bool], *parts: Tensor | None) -> tuple[Any, ...]:
    """The gradients asked for; an empty tensor in place of the others."""
    nothing = Tensor(np.empty(0, np.float32))
    return tuple(p if want and p is not None else nothing for want, p in zip(wanted, parts, strict=True))


def _fused(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a * b + c, rounded once."""
    exact = [cast(t, xp.FLOAT64) if t.array.dtype == xp.FLOAT32 else t for t in (a, b, c)]
    return cast(exact[0] * exact[1] + exact[2], a.array.dtype)


def _through_normalization(
    grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, dims: list[int]
) -> Tensor:
    """The gradient through `(x - mean) * rstd * weight`.

    Note [Order of operations]
    For short rows this is a small difference of great numbers, and what float32 leaves of it depends on the order of
    operations and on which are fused; this is the reference's.
    """
    gain = Tensor(np.ones((), x.array.dtype)) if weight is None else weight
    share = 1 / max(math.prod(x.shape[dim] for dim in dims), 1)
    of_scale, of_shift = (grad * x * gain).sum(dims, True), (grad * gain).sum(dims, True)
    slope = _fused(of_shift, mean, -of_scale) * rstd * rstd * rstd * share
    rest = _fused(-slope, mean, -(of_shift * rstd * share))
    return _fused(slope, x, rstd * grad * gain) + rest


def layer_norm_backward(
    grad_out: Tensor, input: Tensor, normalized_shape: Sequence[int], mean: Tensor, rstd: Tensor,
    weight: Tensor | None, bias: Tensor | None, output_mask: Sequence[bool],
) -> tuple[Any, ...]:  # fmt: skip
    inner = list(range(input.ndim - len(normalized_shape), input.ndim))
    outer = list(range(input.ndim - len(normalized_shape)))
    normal = (input - mean) * rstd
    of_input = _through_normalization(grad_out, input, mean, rstd, weight, inner)
    of_weight = (grad_out * normal).sum(outer) if outer else grad_out * normal
    of_bias = grad_out.sum(outer) if outer else grad_out
    return _masked(output_mask, of_input, None if weight is None else of_weight, None if bias is None else of_bias)


def batch_norm_backward(
    grad_out: Tensor, input: Tensor, weight: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    save_mean: Tensor | None, save_invstd: Tensor | None, train: bool, eps: float, output_mask: Sequence[bool],
) -> tuple[Any, ...]:  # fmt: skip
    over = [i for i in range(input.ndim) if i != 1]
    shape = [1, -1] + [1] * (input.ndim - 2)
    if train:
        mean, rstd = save_mean, save_invstd
    else:
        mean, rstd = running_mean, None if running_var is None else (running_var + eps).rsqrt()
    assert mean is not None
    assert rstd is not None
    normal = (input - mean.reshape(shape)) * rstd.reshape(shape)
    of_bias, of_weight = grad_out.sum(over), (grad_out * normal).sum(over)
    scale = (rstd if weight is None else rstd * weight).reshape(shape)
    of_input = grad_out
    if train:
        count = input.array.size // max(input.shape[1], 1)
        of_input = grad_out - (of_bias.reshape(shape) + normal * of_weight.reshape(shape)) / count
    return _masked(output_mask, of_input * scale, of_weight, of_bias)


out_form(op("aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, "
            f"Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) {_THREE}", python=layer_norm_backward),
         "out", "out0 out1 out2")  # fmt: skip
out_form(op("aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, "
            "Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) "
            f"{_THREE}", python=batch_norm_backward), "out", "out0 out1 out2")  # fmt: skip


def max_pool_backward(
    grad_output: Tensor, self: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    indices: Tensor,
) -> Tensor:  # fmt: skip
    """Each window's gradient goes where its greatest element was."""
    result: Tensor = run("_put_back", grad_output, self, indices, 2)
    return result


_POOL: Final = "int[2] kernel_size, int[2] stride, int[2] padding"
with_grad_input(op(f"aten::max_pool2d_with_indices_backward({_GRAD}, {_POOL}, int[2] dilation, bool ceil_mode, "
                   "Tensor indices) -> Tensor", python=max_pool_backward))  # fmt: skip
for _name in (
    "avg_pool2d avg_pool3d reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d "
    "replication_pad3d upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d "
    "_upsample_nearest_exact2d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d "
    "upsample_bicubic2d"
).split():
    for _entry in registered(f"aten::{_name}_backward"):
        with_grad_input(_entry)
for _entry in registered("aten::convolution_backward"):
    out_form(_entry, "out", "out0 out1 out2")


def embedding_dense_backward(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    result: Tensor = run("_embedding_backward", grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
    return result


op("aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, "
   "bool scale_grad_by_freq) -> Tensor", python=embedding_dense_backward, variants="function out")  # fmt: skip

# ------------------------------------------------------------------ losses

_TARGETS: Final = "Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index"


def _class_weights(self: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> tuple[Tensor, Tensor]:
    """Each target's class (0 where it is ignored), and its weight."""
    kept = run("ne.Scalar", target, ignore_index)
    chosen = where(kept, target, 0)
    weights = cast(kept, self.array.dtype)
    if weight is not None:
        weights = weights * run("index_select", weight, 0, chosen.reshape([-1])).reshape(list(target.shape))
    return chosen, weights


def nll_loss_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """The loss, and the sum of weights that its mean divides by."""
    loss = run("nll_loss", self, target, weight, reduction, ignore_index)
    _, weights = _class_weights(self, target, weight, ignore_index)
    total = weights.sum() if reduction != NONE else Tensor(np.zeros((), self.array.dtype))
    return loss, total


def nll_loss_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int,
    total_weight: Tensor,
) -> Tensor:  # fmt: skip
    chosen, weights = _class_weights(self, target, weight, ignore_index)
    axis = self.ndim - 1
    slope = -weights * grad_output
    slope = slope / total_weight if reduction == MEAN else slope
    zeros = Tensor(np.zeros(self.shape, self.array.dtype))
    result: Tensor = zeros.scatter(axis, chosen.unsqueeze(axis), slope.unsqueeze(axis))
    return result


def mse_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    count = max(self.array.size, 1) if reduction == MEAN else 1
    return (self - target) * grad_output * (2.0 / count)


out_form(op(f"aten::nll_loss_forward({_TARGETS}) -> (Tensor output, Tensor total_weight)", python=nll_loss_forward),
         "output", "output total_weight", named=False)  # fmt: skip
with_grad_input(op(f"aten::nll_loss_backward(Tensor grad_output, {_TARGETS}, Tensor total_weight) -> Tensor",
                   python=nll_loss_backward))  # fmt: skip
with_grad_input(op(f"aten::mse_loss_backward({_GRAD}, Tensor target, int reduction) -> Tensor",
                   python=mse_loss_backward))  # fmt: skip


# ------------------------------------------------------------------ layouts

describe(
    "threshold_backward leaky_relu_backward",
    layout="operands: self, grad_output",
)
describe("elu_backward logit_backward", layout="operands")
describe("_softmax_backward_data _log_softmax_backward_data mse_loss_backward", layout="contiguous")
describe("avg_pool2d_backward", layout="channels last: self")

# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("silu_backward", expression="grad_output * (sigmoid(self) * (1 + self * (1 - sigmoid(self))))")
describe("threshold_backward", refuses=no_code("bc", "threshold_cpu"))
describe("softplus_backward", refuses=no_code("bic", "softplus_backward_cpu"))
describe("softshrink_backward", refuses=no_code("bic", "shrink_backward_cpu"))
describe("hardsigmoid_backward", refuses=no_code("bic", "hardsigmoid_backward"))
describe("hardswish_backward", refuses=no_code("bic", "hardswish_backward_cpu"))
describe("leaky_relu_backward", refuses=no_code("bic", "leaky_relu_backward_cpu"))
describe("hardtanh_backward", refuses=no_code("bic", "hardshrink_backward_cpu"))
describe("_log_softmax_backward_data", refuses=no_code("bic", "log_softmax_backward_lastdim_kernel_impl"))
describe("_softmax_backward_data", refuses=no_code("bic", "softmax_backward_lastdim_kernel_impl"))
describe("avg_pool2d_backward", refuses=no_code("bnc", "avg_pool2d_backward"))
describe("max_pool2d_with_indices_backward", refuses=no_code("bic", "max_pool2d_backward"))
describe("native_layer_norm_backward", refuses=no_code("bic", "layer_norm_backward"))
describe("native_batch_norm_backward", refuses=no_code("bic", "batch_norm_backward_cpu"))
describe("nll_loss_forward", refuses=no_code("bic", "nll_loss_out_frame"))
describe("nll_loss_backward", refuses=no_code("bic", "nll_loss_backward_out_frame"))
describe("sigmoid_backward", refuses=no_code("i", "sigmoid_backward_cpu", common=True))
describe("tanh_backward", refuses=no_code("bi", "tanh_backward_cpu", common=True))
describe("mse_loss_backward", refuses=no_code("bc", "mse_backward_cpu_out", common=True))
describe(
    "_log_softmax_backward_data.out _softmax_backward_data.out avg_pool2d_backward.grad_input",
    out_check=out_checks.check_same,
)
