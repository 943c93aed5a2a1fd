"""Less common layers: dropout variants, bilinear maps, weight norms, fused attention.

In: tensors.  Out: tensors.  All are made of other operators, from which their gradients come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import unboxed
from engine.aten.dispatch.compose import cast, run, sum_over
from engine.aten.dispatch.table import describe, op, out_form
from engine.aten.kernels.random import generator
from engine.aten.kernels.refusals import no_code
from engine.aten.ops.lookup import check_rows
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError

# ------------------------------------------------------------------ dropout

_SELU_DEPTH: Final = 1.7580993408473766
"""The negative saturation value of SELU; alpha dropout replaces elements by it."""


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise OperatorError(f"dropout probability has to be between 0 and 1, but got {p}")


def _kept(shape: Sequence[int], p: float, like: Tensor) -> Tensor:
    """Zeros with probability p, else ones."""
    return Tensor(generator().bernoulli(tuple(shape), 1 - p).astype(like.array.dtype))


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Alpha dropout, which preserves the mean and variance of SELU's outputs."""
    return _alpha_dropped(input, input.shape, p, train)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """The same for whole channels."""
    return _alpha_dropped(input, _channels(input) if train and p and input.array.size else (), p, train)


def _alpha_dropped(input: Tensor, shape: Sequence[int], p: float, train: bool) -> Tensor:
    _check_probability(p)
    if not train or p == 0 or input.array.size == 0:
        return input
    if p == 1:
        return input * Tensor(np.zeros((), input.array.dtype))
    kept = _kept(shape, p, input)
    scale = 1 / math.sqrt((_SELU_DEPTH * _SELU_DEPTH * p + 1) * (1 - p))
    return input * (kept * scale) + ((kept - 1) * (_SELU_DEPTH * scale) + _SELU_DEPTH * scale * p)


def _channels(input: Tensor) -> list[int]:
    if input.ndim < 2:
        raise OperatorError("Feature dropout requires at least 2 dimensions in the input")
    return [*input.shape[:2], *[1] * (input.ndim - 2)]


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Feature dropout: drops whole channels."""
    _check_probability(p)
    if not train or p == 0 or input.array.size == 0:
        return input
    shape = _channels(input)
    if p == 1:
        return input * Tensor(np.zeros((), input.array.dtype))
    return input * (_kept(shape, p, input) / (1 - p))


def written(body: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The in-place form."""

    def in_place(self: Tensor, p: float, train: bool) -> Tensor:
        result = body(self, p, train)
        return self if result is self else self.copy_(result)

    return in_place


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """The result, and which elements were kept."""
    if train is False or input.array.size == 0:
        return input.clone(), Tensor(np.ones(input.shape, np.bool_))
    mask = Tensor(generator().bernoulli(tuple(input.shape), 1 - p).astype(np.bool_))
    return input * mask * (0.0 if p == 1 else 1 / (1 - p)), mask


_DROPOUTS: Final = {
    "alpha_dropout": alpha_dropout, "feature_dropout": feature_dropout, "feature_alpha_dropout": feature_alpha_dropout,
}  # fmt: skip
for _name, _body in _DROPOUTS.items():
    op(f"aten::{_name}(Tensor input, float p, bool train) -> Tensor", python=_body, nondeterministic=True,
       shape="input", hands_on=True)  # fmt: skip
    op(f"aten::{_name}_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", python=written(_body),
       nondeterministic=True)  # fmt: skip
out_form(op("aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", python=native_dropout,
            nondeterministic=True), "out", "out0 out1")  # fmt: skip

# ------------------------------------------------------------------ maps


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """For every output, a product of the two inputs through a matrix."""
    if input1.shape[:-1] != input2.shape[:-1]:
        raise OperatorError("bilinear(): input dimensions do not match: got "
                            f"{list(input1.shape)} and {list(input2.shape)}")  # fmt: skip
    for i, (given, wanted) in enumerate(((input1, weight.shape[1]), (input2, weight.shape[2])), 1):
        if given.shape[-1] != wanted:
            raise OperatorError(f"bilinear(): input{i} size does not match weight size: got {given.shape[-1]} "
                                f"but expected {wanted}")  # fmt: skip
    first, second = (x.reshape([-1, x.shape[-1]]) for x in (input1, input2))
    count = weight.shape[0]
    half = first.matmul(weight.permute([1, 0, 2]).reshape([weight.shape[1], -1])).reshape([-1, *weight.shape[::2]])
    product = cast(sum_over(half * second.unsqueeze(1), [-1], keep=False), half.array.dtype)
    result: Tensor = product.reshape([*input1.shape[:-1], count])
    return result if bias is None else result + bias


def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int) -> Tensor:
    """A convolution over time, of (time, batch, channels)."""
    if self.ndim != 3 or weight.ndim != 3:
        raise OperatorError("Input must have 3 dims: time, batch, in_channel; weight must have 3 dims: "
                            "kernel_width, in_channels, out_channels.")  # fmt: skip
    moved: Tensor = run("conv1d", self.permute([1, 2, 0]), weight.permute([2, 1, 0]), bias, [1], [pad], [1], 1)
    result: Tensor = moved.permute([2, 0, 1])
    return result


def norm_except_dim(v: Tensor, pow: int, dim: int) -> Tensor:
    """The norm of every slice along a dimension, in a shape that goes with `v`."""
    if dim == -1:
        whole: Tensor = run("norm.Scalar", v, pow)
        return whole
    others = [i for i in range(v.ndim) if i != dim]
    norm: Tensor = run("norm.ScalarOpt_dim", v, pow, others, True)
    return norm


def weight_norm(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """The direction of v with the length g."""
    return v * (g / norm_except_dim(v, 2, dim))


op("aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", python=bilinear,
   jit_autocast="widest")  # fmt: skip
op("aten::conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", python=conv_tbc,
   variants="function out", jit_autocast="fast", autocast="fast")  # fmt: skip
op("aten::norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", python=norm_except_dim)
op("aten::_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", python=weight_norm, unboxed=unboxed.on_tensors)


def embedding_renorm_(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Shrinks the rows that are looked up to at most `max_norm`."""
    check_rows(self.array, indices.array, "embedding_renorm_", 2)
    rows = np.unique(indices.array)
    if self.array.dtype not in xp.INEXACT:
        raise OperatorError(f"norm(): input dtype should be either floating point or complex. "
                            f"Got {xp.ir_name(self.array.dtype)} instead.")  # fmt: skip
    found = self.array[rows].astype(np.complex128 if self.array.dtype in xp.COMPLEX else np.float64)
    if norm_type == math.inf:
        norms = np.abs(found).max(axis=1)
    else:
        norms = (np.abs(found) ** norm_type).sum(axis=1) ** (1 / norm_type)
    long = norms > max_norm
    factors = max_norm / (norms[long] + 1e-7)
    self.array[rows[long]] = (found[long] * factors[:, None]).astype(self.array.dtype)
    self.bump_version()
    return self


def renorm_quietly(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> Tensor:
    return embedding_renorm_(weight, input, max_norm, norm_type)


op("aten::embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)",
   python=embedding_renorm_)  # fmt: skip
op("aten::_no_grad_embedding_renorm_(Tensor weight, Tensor input, float max_norm, float norm_type) -> Tensor",
   python=renorm_quietly, also_writes=("weight",))  # fmt: skip

# ------------------------------------------------------------------ attention in one piece


_QKV: Final = "Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias"
out_form(op(f"aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, "
            f"{_QKV}, Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) "
            "-> (Tensor, Tensor)", unboxed=unboxed.on_tensors, autocast="fast", composite="""
    batch, time = query.size(0), query.size(1)
    size = embed_dim // num_head
    if query is key and key is value:
        projected = torch.linear(query, qkv_weight, qkv_bias).view([batch, time, 3, num_head, size]).transpose(1, 3)
        q, k, v = projected.select(2, 0), projected.select(2, 1), projected.select(2, 2)
    else:
        wq, wk, wv = qkv_weight.chunk(3)
        bq, bk, bv = qkv_bias.chunk(3)
        q = torch.linear(query, wq, bq).view([batch, time, num_head, size]).transpose(1, 2)
        k = torch.linear(key, wk, bk).view([batch, key.size(1), num_head, size]).transpose(1, 2)
        v = torch.linear(value, wv, bv).view([batch, value.size(1), num_head, size]).transpose(1, 2)
    scores = q.matmul(k.transpose(-2, -1)) / math.sqrt(size)
    if mask is not None:
        hidden = mask if mask.dtype == torch.bool else mask != 0
        if mask_type is not None and mask_type == 1:
            hidden = hidden.reshape([mask.size(0), 1, 1, -1])
        scores = scores.masked_fill(hidden, -float("inf"))
    weights = shares(scores)
    joined = weights.matmul(v).transpose(1, 2).reshape([batch, time, embed_dim])
    result = torch.linear(joined, proj_weight, proj_bias)
    if not need_weights:
        return result, query.new_zeros([0])
    return result, weights.mean([1]) if average_attn_weights else weights
"""), "out", "out0 out1")  # fmt: skip
op(f"aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, {_QKV}, bool use_gelu, "
   "bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, "
   "Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, "
   "int? mask_type=None) -> Tensor", variants="function out", unboxed=unboxed.on_tensors, composite="""
       x = src
       if norm_first:
           x = torch.layer_norm(src, [embed_dim], norm_weight_1, norm_bias_1, eps)
       attended, _ = torch._native_multi_head_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias,
           proj_weight, proj_bias, mask, False, True, mask_type)
       x = src + attended
       y = x
       if norm_first:
           y = torch.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)
       else:
           x = torch.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)
           y = x
       hidden = torch.linear(y, ffn_weight_1, ffn_bias_1)
       hidden = torch.gelu(hidden) if use_gelu else torch.relu(hidden)
       x = x + torch.linear(hidden, ffn_weight_2, ffn_bias_2)
       return x if norm_first else torch.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)
   """)  # fmt: skip


def nested_from_mask(t: Tensor, mask: Tensor, mask_check: bool) -> Tensor:
    raise OperatorError("nested tensors are not supported", hints=("pad the sequences, and give a mask",))


def to_padded_tensor(self: Tensor, padding: float, output_size: list[int] | None) -> Tensor:
    raise OperatorError("to_padded_tensor() is only defined for nested tensors", hints=("this tensor has no gaps",))


# Programs ask whether sequences could be nested before they nest them; the answer is always no.
op("aten::_nested_tensor_from_mask_left_aligned(Tensor t, Tensor mask) -> bool", python=lambda t, mask: False)
op("aten::_nested_tensor_from_mask(Tensor t, Tensor mask, bool mask_check=True) -> Tensor", python=nested_from_mask)
op("aten::to_padded_tensor(Tensor self, float padding, SymInt[]? output_size=None) -> Tensor", python=to_padded_tensor,
   variants="method")  # fmt: skip

# ------------------------------------------------------------------ quantization


def fake_quantize(self: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Tensor:
    """Rounded to the numbers that a quantized tensor could hold, and back."""
    if quant_min > quant_max:
        raise OperatorError("`quant_min` should be less than or equal to `quant_max`.")
    factor = float(scale.item() if isinstance(scale, Tensor) else scale)
    zero = int(zero_point.item() if isinstance(zero_point, Tensor) else zero_point)
    if not quant_min <= zero <= quant_max:
        raise OperatorError("`zero_point` must be between `quant_min` and `quant_max`.")
    result: Tensor = run("_fake_quantize", self, factor, zero, quant_min, quant_max)[0]
    return result


def fake_quantize_kernel(self: xp.Array, scale: float, zero: int, low: int, high: int) -> tuple[xp.Array, xp.Array]:
    steps = zero + np.rint(self.astype(np.float32) * np.float32(1 / scale))
    inside = (steps >= low) & (steps <= high)
    return ((np.clip(steps, low, high) - zero) * np.float32(scale)).astype(self.dtype), inside


op("aten::_fake_quantize(Tensor self, float scale, int zero, int low, int high) -> (Tensor result, Tensor inside)",
   kernel=fake_quantize_kernel, gradient={"self": "grad * result1"})  # fmt: skip
op("aten::fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) "
   "-> Tensor", python=fake_quantize, autocast="full")  # fmt: skip
op("aten::fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, "
   "int quant_max) -> Tensor", python=fake_quantize)  # fmt: skip


# ------------------------------------------------------------------ layouts

describe("native_dropout", layout="operands")

# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("_weight_norm", refuses=no_code("bic", "weight_norm_kernel"))
describe(
    "fake_quantize_per_tensor_affine",
    refuses=no_code("bic", "fake_quantize_tensor_cachemask_kernel_type_handling"),
)
