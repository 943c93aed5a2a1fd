"""`quantized::`: arithmetic and functions that take the scale and the zero point of their results.

In: quantized tensors, numbers.  Out: quantized tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.compose import run
from engine.aten.dispatch.table import op
from engine.aten.kernels.affine import dequantize, fused, limited, quantize, quantized_late
from engine.aten.quantized import pointwise
from engine.aten.values.quantizer import LIMITS, Quantizer, integers_of, per_tensor, quantizer_of, wrapped
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang.errors import OperatorError

Body = Callable[..., Tensor]


def uniform(x: Tensor) -> Quantizer:
    """The quantizer of an operand.  Raises OperatorError for one that has several scales."""
    return pointwise.uniform(x.array)


def _same_kind(x: Tensor, y: Tensor) -> None:
    if uniform(x).dtype is not uniform(y).dtype:
        raise OperatorError(f"operands have different dtypes: {x.dtype} and {y.dtype}")


def _above_zero(array: Array, how: Quantizer) -> Array:
    """ReLU of a quantized result."""
    return wrapped(np.maximum(integers_of(array), how.integer.type(how.zero_point)), how)


def _finished(array: Array, relu: bool) -> Tensor:
    return Tensor(_above_zero(array, quantizer_of(array)) if relu else array)


# ------------------------------------------------------------------ two tensors


def _add(relu: bool) -> Body:
    def add(x: Tensor, y: Tensor, scale: float, zero_point: int) -> Tensor:
        _same_kind(x, y)
        to = per_tensor(uniform(x).dtype, scale, zero_point)
        total = fused(x.array) + fused(y.array)
        return Tensor(quantized_late(np.maximum(total, np.float32(0)) if relu else total, to))

    return add


def _mul(relu: bool) -> Body:
    def mul(x: Tensor, y: Tensor, scale: float, zero_point: int) -> Tensor:
        """The integers' product is exact, and scaled once."""
        _same_kind(x, y)
        a, b = uniform(x), uniform(y)
        to = per_tensor(a.dtype, scale, zero_point)
        above = [integers_of(t.array).astype(np.int64) - how.zero_point for t, how in ((x, a), (y, b))]
        factor = np.float32(a.scale) * np.float32(b.scale) * (np.float32(1) / np.float32(scale))
        whole = np.rint((above[0] * above[1]).astype(np.float32) * factor)
        return _finished(wrapped(limited(whole, zero_point, to), to), relu)

    return mul


def _matmul(x: Tensor, y: Tensor, scale: float, zero_point: int) -> Tensor:
    _same_kind(x, y)
    result: Tensor = run("matmul", Tensor(dequantize(x.array)), Tensor(dequantize(y.array)))
    return Tensor(quantize(result.array, per_tensor(uniform(x).dtype, scale, zero_point)))


def _cat(relu: bool) -> Body:
    def cat(tensors: Sequence[Tensor], dim: int, scale: float | None, zero_point: int | None) -> Tensor:
        if not tensors:
            raise OperatorError("cat expects a non-empty list of tensors")
        first = uniform(tensors[0])
        to = per_tensor(first.dtype, first.scale if scale is None else scale,
                        first.zero_point if zero_point is None else zero_point)  # fmt: skip
        return _finished(pointwise.joined([t.array for t in tensors], dim, to), relu)

    return cat


# ------------------------------------------------------------------ a tensor and a number


def _number(value: Any) -> float:
    return float(value.item() if isinstance(value, Tensor) else value)


def _add_number(relu: bool) -> Body:
    """The zero point moves; where it would leave its range, the scale grows."""

    def add(x: Tensor, value: Any) -> Tensor:
        how = uniform(x)
        low, high = LIMITS[how.dtype.name]
        steps = round(_number(value) / how.scale)
        moved = how.zero_point - steps
        if low <= moved <= high:
            to = per_tensor(how.dtype, how.scale, moved)
            return _finished(wrapped(integers_of(x.array).copy(), to), relu)
        reach = high - moved if moved < low else moved - low
        to = per_tensor(how.dtype, reach / (high - low) * how.scale, low if moved < low else high)
        numbers = dequantize(x.array) + np.float32(steps * how.scale)
        return _finished(quantized_late(numbers, to), relu)

    return add


def _mul_number(relu: bool) -> Body:
    """The scale is multiplied; a negative number turns the integers round."""

    def mul(x: Tensor, value: Any) -> Tensor:
        how, factor, integers = uniform(x), _number(value), integers_of(x.array)
        low, high = LIMITS[how.dtype.name]
        if factor > 0:
            return _finished(wrapped(integers.copy(), per_tensor(how.dtype, how.scale * factor, how.zero_point)), relu)
        if factor == 0:
            return _finished(wrapped(np.zeros_like(integers), per_tensor(how.dtype, 1.0, 0)), relu)
        to = per_tensor(how.dtype, -factor * how.scale, high - (how.zero_point - low))
        return _finished(wrapped((high + low - integers.astype(np.int64)).astype(how.integer), to), relu)

    return mul


_QQ: Final = "Tensor qa, Tensor qb, float scale, int zero_point"
for _name, _two, _one in (("add", _add, _add_number), ("mul", _mul, _mul_number)):
    for _end, _relu in (("", False), ("_relu", True)):
        op(f"quantized::{_name}{_end}({_QQ}) -> Tensor qc", python=_two(_relu))
        _body = _one(_relu)
        op(f"quantized::{_name}{_end}.Scalar(Tensor qa, Scalar b) -> Tensor qc", python=_body)
        op(f"quantized::{_name}{_end}.Scalar2(Scalar b, Tensor qa) -> Tensor qc",
           python=lambda value, x, body=_body: body(x, value))  # fmt: skip
        op(f"quantized::{_name}_scalar{_end}(Tensor qa, Scalar b) -> Tensor qc", python=_body)
        op(f"quantized::{_name}_scalar{_end}.Tensor(Tensor qa, Tensor b) -> Tensor qc", python=_body)
op(f"quantized::matmul({_QQ}) -> Tensor qc", python=_matmul)
for _end, _relu in (("", False), ("_relu", True)):
    op(f"quantized::cat{_end}(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor", python=_cat(_relu))

# ------------------------------------------------------------------ functions


def _through(x: Tensor, name: str, args: Sequence[Any], scale: float, zero_point: int) -> Tensor:
    to = per_tensor(uniform(x).dtype, scale, zero_point)
    return Tensor(pointwise.through_numbers(x.array, name, *args, to=to))


_SCALED: Final = "float output_scale, int output_zero_point"
op(
    f"quantized::hardswish(Tensor input, {_SCALED}) -> Tensor",
    python=lambda x, s, z: _through(x, "hardswish", (), s, z),
)
op(f"quantized::sigmoid(Tensor qx, {_SCALED}) -> Tensor", python=lambda x, s, z: _through(x, "sigmoid", (), s, z))
op(f"quantized::leaky_relu(Tensor qx, Scalar negative_slope, bool inplace, {_SCALED}) -> Tensor",
   python=lambda x, slope, _, s, z: _through(x, "leaky_relu", (slope,), s, z))  # fmt: skip
op(f"quantized::elu(Tensor self, {_SCALED}, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
   python=lambda x, s, z, *factors: _through(x, "elu", factors, s, z))  # fmt: skip
op(f"quantized::celu(Tensor self, {_SCALED}, Scalar alpha=1) -> Tensor",
   python=lambda x, s, z, alpha: _through(x, "celu", (alpha,), s, z))  # fmt: skip
op(f"quantized::softmax(Tensor qx, int dim, {_SCALED}) -> Tensor",
   python=lambda x, dim, s, z: _through(x, "softmax.int", (dim, None), s, z))  # fmt: skip
op(f"quantized::prelu(Tensor qx, Tensor weight, {_SCALED}) -> Tensor",
   python=lambda x, weight, s, z: _through(x, "prelu", (Tensor(dequantize(weight.array)),), s, z))  # fmt: skip
op(f"quantized::dropout(Tensor self, {_SCALED}, Scalar p=0.5, bool training=False) -> Tensor",
   python=lambda x, s, z, p, training: x, hands_on=True)  # fmt: skip
op("quantized::relu6(Tensor qx, bool inplace=False) -> Tensor", python=lambda x, _: Tensor(pointwise.relu6(x.array)))
op("quantized::clamp(Tensor qx, Scalar? min=None, Scalar? max=None) -> Tensor qy",
   python=lambda x, low, high: Tensor(pointwise.clamp(x.array, low, high)))  # fmt: skip
op("quantized::threshold(Tensor qx, Scalar threshold, Scalar value) -> Tensor qy",
   python=lambda x, limit, value: Tensor(pointwise.threshold(x.array, limit, value)))  # fmt: skip
_POOL: Final = "Tensor qx, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode"
for _n in (1, 2):
    op(f"quantized::max_pool{_n}d({_POOL}) -> Tensor", python=lambda x, *args, n=_n: run(f"max_pool{n}d", x, *args))

# ------------------------------------------------------------------ norms


_RANKS: Final = {None: (2, 3, 4, 5), 1: (2, 3), 2: (4,), 3: (5,)}
"""The ranks that the input may have."""


def _batch_norm(dims: int | None, relu: bool) -> Body:
    def norm(
        x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, scale: float,
        zero_point: int,
    ) -> Tensor:  # fmt: skip
        """Each channel's integers times a factor, and one more number."""
        how, array = uniform(x), x.array
        if array.ndim not in _RANKS[dims]:
            raise OperatorError(f"Expecting the input tensor of rank {' or '.join(map(str, _RANKS[dims]))}")
        to = per_tensor(how.dtype, scale, zero_point)
        shape = (1, -1, *[1] * (array.ndim - 2))
        gain = (1 if weight is None else weight.array) / np.sqrt(var.array + np.float32(eps))
        factor = (gain * np.float32(how.scale) / np.float32(scale)).astype(np.float32).reshape(shape)
        moved = (0 if bias is None else bias.array) - mean.array * gain
        offset = (moved / np.float32(scale)).astype(np.float32).reshape(shape)
        above = (integers_of(array).astype(np.int64) - how.zero_point).astype(np.float32)
        whole = np.rint(above * factor + offset)
        return _finished(wrapped(limited(whole, zero_point, to), to), relu)

    return norm


_NORM: Final = f"Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, {_SCALED}"
for _name, _dims in (("", None), ("1d", 1), ("2d", 2), ("3d", 3)):
    for _end, _relu in (("", False), ("_relu", True)):
        op(f"quantized::batch_norm{_name}{_end}(Tensor qx, {_NORM}) -> Tensor", python=_batch_norm(_dims, _relu))
op(f"aten::quantized_batch_norm(Tensor input, {_NORM}) -> Tensor", python=_batch_norm(None, False))


def _layer_norm(
    x: Tensor, shape: list[int], weight: Tensor | None, bias: Tensor | None, eps: float, scale: float, zero_point: int
) -> Tensor:
    return _through(x, "layer_norm", (shape, weight, bias, eps, False), scale, zero_point)


def _group_norm(
    x: Tensor, groups: int, weight: Tensor | None, bias: Tensor | None, eps: float, scale: float, zero_point: int
) -> Tensor:
    return _through(x, "group_norm", (groups, weight, bias, eps, False), scale, zero_point)


def _instance_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, scale: float, zero_point: int
) -> Tensor:
    return _group_norm(x, x.array.shape[1], weight, bias, eps, scale, zero_point)


_AFFINE: Final = f"Tensor? weight, Tensor? bias, float eps, {_SCALED}"
op(f"quantized::layer_norm(Tensor input, int[] normalized_shape, {_AFFINE}) -> Tensor", python=_layer_norm)
op(f"quantized::group_norm(Tensor input, int num_groups, {_AFFINE}) -> Tensor", python=_group_norm)
op(f"quantized::instance_norm(Tensor input, {_AFFINE}) -> Tensor", python=_instance_norm)
