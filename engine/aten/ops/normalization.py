"""Normalization over dimensions, batches and groups.

In: arrays or tensors.  Out: the same.  Half types are computed in float32.  The backward operators are made of others,
from engine.aten.values import xp
from which second gradients come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from engine.aten.dispatch import unboxed
from engine.aten.dispatch.compose import cast, mean_over, run, sum_over, widened
from engine.aten.dispatch.grad_mode import MODE
from engine.aten.dispatch.table import describe, op, out_form
from engine.aten.kernels.refusals import no_code
from engine.aten.kernels.row_normalization import normalized_rows, normalized_rows_backward
from engine.aten.kernels.rules import no_kernel
from engine.aten.stepwise.language import worth
from engine.aten.stepwise.normalizing import groups_backward
from engine.aten.values.hooks import HOOKS
from engine.aten.values.promotion import wide
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import FLOAT32, FLOATING, FLOATS, HALVES, Array, NumpyDtype, limits, silently
from engine.lang.errors import OperatorError


def layer_norm(
    input: Tensor, normalized_shape: list[int], weight: Tensor | None, bias: Tensor | None, eps: float, _: bool
) -> Tensor:
    result: Tensor = run("native_layer_norm", input, normalized_shape, weight, bias, eps)[0]
    return result


def native_layer_norm(
    input: Array, normalized_shape: Sequence[int], weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    shape = tuple(normalized_shape)
    _check_normalized(input, shape, weight, bias)
    _check_mixture(input.dtype, weight, bias)
    x = input.astype(wide(input.dtype), copy=False)
    n = math.prod(shape)
    lead = input.shape[: input.ndim - len(shape)]
    rows = x.reshape(math.prod(lead), n)
    gain, shift = (None if each is None else each.reshape(n) for each in (weight, bias))
    result, mean, rstd = normalized_rows(rows, gain, shift, eps)
    kept = input.dtype if weight is None or weight.dtype == input.dtype else mean.dtype
    outer = (*lead, *[1] * len(shape))
    of_rows = [each.reshape(outer).astype(kept, copy=False) for each in (mean, rstd)]
    return result.reshape(x.shape).astype(input.dtype, copy=False), of_rows[0], of_rows[1]


def _check_mixture(d: NumpyDtype, *parameters: Array | None) -> None:
    """Half types go with parameters of float32; everything else with its own dtype alone."""
    others = {each.dtype for each in parameters if each is not None} - {d}
    if others - {FLOAT32}:
        raise OperatorError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    if others and d not in HALVES:
        raise OperatorError("mixed dtype (CPU): all inputs must share same datatype.")


def _check_normalized(input: Array, shape: tuple[int, ...], weight: Array | None, bias: Array | None) -> None:
    if not shape:
        raise OperatorError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
            "but got normalized_shape = []"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and value.shape != shape:
            raise OperatorError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(value.shape)} "
                f"and normalized_shape = {list(shape)}"
            )
    if input.shape[-len(shape) :] != shape:
        stars = "".join(f", {size}" for size in shape)
        raise OperatorError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*{stars}], "
            f"but got input of size{list(input.shape)}"
        )


op("aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
   "float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor", python=layer_norm, shape="input",
   dtype="floats", unboxed=unboxed.first_of("native_layer_norm"), recorded_as="native_layer_norm",
   jit_autocast="full", composite="""
       check_last(input, normalized_shape)
       x = widened(input)
       dims = last(len(normalized_shape))
       centered = x - x.mean(dims, True)
       normal = centered * ((centered * centered).mean(dims, True) + eps).sqrt().reciprocal()
       return affine(normal, weight, bias).to(input.dtype)
   """)  # fmt: skip
_LAYER_BACK = "_layer_norm_backward(grad, input, normalized_shape, weight, eps)"
op("aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) "
   "-> (Tensor, Tensor, Tensor)", kernel=native_layer_norm,
   gradient={name: f"{_LAYER_BACK}[{i}]" for i, name in enumerate(("input", "weight", "bias"))},
   jit_autocast="full", composite="""
       check_last(input, normalized_shape)
       x = widened(input)
       dims = last(len(normalized_shape))
       mean = x.mean(dims, True)
       apart = x - mean
       rstd = ((apart * apart).mean(dims, True) + eps).rsqrt()
       normal = affine(apart * rstd, weight, bias).to(input.dtype)
       kept = input.dtype if weight is None or weight.dtype == input.dtype else x.dtype
       return normal, (mean + (mean - mean)).to(kept), rstd.to(kept)  # no means of rows with infinite numbers
   """)  # fmt: skip
op("aten::native_layer_norm.out(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps, *, "
   "Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
   kernel=native_layer_norm)  # fmt: skip


def layer_norm_backward(
    grad: Tensor, input: Tensor, normalized_shape: list[int], weight: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of input, weight and bias."""
    if not MODE.enabled and HOOKS.trace is None and input.array.size and _are_alike(grad, input, weight):
        gain = None if weight is None else weight.array
        return _layer_norm_backward_once(grad.array, input.array, gain, tuple(normalized_shape), eps)
    lead = input.ndim - len(normalized_shape)
    dims, outer = range(lead, input.ndim), list(range(lead))
    g, x = widened(grad), widened(input)
    through, normal = _normalized_back(g if weight is None else g * weight, x, dims, eps)
    of_weight, of_bias = (sum_over(t, outer, keep=False) if outer else t for t in (g * normal, g))
    d = input.array.dtype
    return cast(through, d), cast(of_weight, d), cast(of_bias, d)


def _are_alike(*tensors: Tensor | None) -> bool:
    """True if all have one dtype, in which the computation runs without conversion."""
    dtypes = {t.array.dtype for t in tensors if t is not None}
    return len(dtypes) == 1 and dtypes <= FLOATS


def _layer_norm_backward_once(
    grad: Array, x: Array, weight: Array | None, shape: tuple[int, ...], eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The same without autograd."""
    n = math.prod(shape)
    gain = None if weight is None else weight.reshape(n)
    found = silently(normalized_rows_backward, grad.reshape(-1, n), x.reshape(-1, n), gain, eps)
    return Tensor(found[0].reshape(x.shape)), Tensor(found[1].reshape(shape)), Tensor(found[2].reshape(shape))


def _normalized_back(grad: Tensor, x: Tensor, dims: Sequence[int], eps: float) -> tuple[Tensor, Tensor]:
    """The gradient through `(x - mean) / std`, and the normalized x, both differentiable again."""
    if not MODE.enabled and HOOKS.trace is None:
        through, normalized = silently(_normalized_back_once, grad.array, x.array, tuple(dims), eps)
        return Tensor(through), Tensor(normalized)
    centered = x - mean_over(x, dims)
    rstd = (mean_over(centered * centered, dims) + eps).rsqrt()
    normal = centered * rstd
    return (grad - mean_over(grad, dims) - normal * mean_over(grad * normal, dims)) * rstd, normal


def _normalized_back_once(grad: Array, x: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array]:
    """The same without autograd, with few temporaries."""
    count = x.dtype.type(math.prod(x.shape[axis] for axis in axes))
    normal = np.subtract(x, np.add.reduce(x, axes, keepdims=True) / count)
    through = np.multiply(normal, normal)
    rstd = 1 / np.sqrt(np.add.reduce(through, axes, keepdims=True) / count + eps)
    np.multiply(normal, rstd, normal)
    np.multiply(grad, normal, through)
    np.multiply(normal, np.add.reduce(through, axes, keepdims=True) / count, through)
    np.subtract(grad, through, through)
    np.subtract(through, np.add.reduce(grad, axes, keepdims=True) / count, through)
    return np.multiply(through, rstd, through), normal


op("aten::_layer_norm_backward(Tensor grad, Tensor input, SymInt[] normalized_shape, Tensor? weight, float eps) "
   "-> (Tensor, Tensor, Tensor)", python=layer_norm_backward, composite="""
       dims = last(len(normalized_shape))
       g, x = widened(grad), widened(input)
       centered = x - x.mean(dims, True)
       rstd = ((centered * centered).mean(dims, True) + eps).rsqrt()
       normal = centered * rstd
       scaled = g if weight is None else g * weight
       through = (scaled - scaled.mean(dims, True) - normal * (scaled * normal).mean(dims, True)) * rstd
       outer = [i for i in range(x.dim() - len(normalized_shape))]
       of_weight, of_bias = g * normal, g
       if len(outer) > 0:
           of_weight, of_bias = of_weight.sum(outer), of_bias.sum(outer)
       return through.to(input.dtype), of_weight.to(input.dtype), of_bias.to(input.dtype)
   """)  # fmt: skip

# ------------------------------------------------------------------ batches


def native_batch_norm(
    input: Array, weight: Array | None, bias: Array | None, running_mean: Array | None, running_var: Array | None,
    training: bool, momentum: float, eps: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Normalized over everything but the channels; in training the running statistics are updated."""
    if input.shape == (0,):
        return input.copy(), input[:0], input[:0]
    _check_batch(input, weight, bias, running_mean, running_var, training)
    used = wide(input.dtype)
    x = input.astype(used, copy=False)
    per_channel = (-1, *[1] * (input.ndim - 2))
    if training:
        axes = (0, *range(2, input.ndim))
        mean, var = x.mean(axis=axes), x.var(axis=axes)
        rstd = 1 / np.sqrt(var + used.type(eps))
        _update(running_mean, running_var, mean, var, x.size // max(x.shape[1], 1), momentum)
        kept_mean, kept_rstd = mean, rstd
    else:
        assert running_mean is not None
        assert running_var is not None
        mean, rstd = running_mean.astype(used), 1 / np.sqrt(running_var.astype(used) + used.type(eps))
        kept_mean = kept_rstd = np.empty(0, used)
    scale = rstd if weight is None else rstd * weight.astype(used, copy=False)
    shift = -mean * scale if bias is None else bias.astype(used, copy=False) - mean * scale
    result = np.multiply(x, scale.reshape(per_channel))
    np.add(result, shift.reshape(per_channel), result)
    kept = next((v.dtype for v in (weight, running_mean) if v is not None), input.dtype)
    return result.astype(input.dtype, copy=False), kept_mean.astype(kept), kept_rstd.astype(kept)


def _update(
    running_mean: Array | None, running_var: Array | None, mean: Array, var: Array, count: int, momentum: float
) -> None:
    """Move the running statistics towards the batch's; their variance is the unbiased one."""
    if running_mean is not None:
        running_mean += (momentum * (mean - running_mean)).astype(running_mean.dtype)
    if running_var is not None:
        unbiased = var * (count / (count - 1)) if count > 1 else np.full_like(var, np.nan)
        running_var += (momentum * (unbiased - running_var)).astype(running_var.dtype)


def _check_batch(
    x: Array, weight: Array | None, bias: Array | None, mean: Array | None, var: Array | None, training: bool
) -> None:
    if x.ndim < 2:
        raise OperatorError(
            f"running_mean should contain 0 elements not {0 if mean is None else mean.size}",
            hints=(f"batch_norm needs an input of at least 2 dimensions, but got {list(x.shape)}",),
        )
    if x.dtype not in FLOATING:
        raise no_kernel("batch_norm", x.dtype)
    if not training and (mean is None or var is None):
        missing = "running_mean" if mean is None else "running_var"
        raise OperatorError(f"{missing} must be defined in evaluation mode")
    for name, value in (("running_mean", mean), ("running_var", var), ("weight", weight), ("bias", bias)):
        if value is not None and value.size != x.shape[1]:
            raise OperatorError(f"{name} should contain {x.shape[1]} elements not {value.size}")
    _check_mixture(x.dtype, weight, bias, mean, var)


def batch_norm_backward(
    grad: Tensor, input: Tensor, weight: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of input, weight and bias."""
    dims = [0, *range(2, input.ndim)]
    g, x = widened(grad), widened(input)
    scaled = g if weight is None else g * _channels(weight, input.ndim)
    if training:
        through, normal = _normalized_back(scaled, x, dims, eps)
    else:
        assert running_mean is not None
        assert running_var is not None
        rstd = (_channels(running_var, input.ndim) + eps).rsqrt()
        through, normal = scaled * rstd, (x - _channels(running_mean, input.ndim)) * rstd
    d = input.array.dtype
    of_weight, of_bias = sum_over(g * normal, dims, keep=False), sum_over(g, dims, keep=False)
    return cast(through, d), cast(of_weight, d), cast(of_bias, d)


def _channels(values: Tensor, ndim: int) -> Tensor:
    """One value for each channel, shaped to multiply (batch, channels, *space)."""
    shaped: Tensor = values.reshape([-1, *[1] * (ndim - 2)])
    return shaped


def batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, training: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    result: Tensor = run("native_batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps)[
        0
    ]
    return result


_AFFINE = "Tensor input, Tensor? weight, Tensor? bias"
_RUNNING = "Tensor? running_mean, Tensor? running_var"
_BATCH = f"{_AFFINE}, {_RUNNING}, bool training, float momentum, float eps"
_BATCH_BACK = "_batch_norm_backward(grad, input, weight, running_mean, running_var, training, eps)"
op(f"aten::batch_norm({_BATCH}, bool cudnn_enabled) -> Tensor", python=batch_norm, shape="input", dtype="floats",
   also_writes=("running_mean", "running_var"), writes_if="training", unboxed=unboxed.batch_norm,
   recorded_as="native_batch_norm", composite="""
       if training or running_mean is None or running_var is None:
           return torch.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]
       x = widened(input)
       mean, variance = channels(widened(running_mean), x), channels(widened(running_var), x)
       normal = (x - mean) * (variance + eps).sqrt().reciprocal()
       return affine_channels(normal, weight, bias).to(input.dtype)
   """)  # fmt: skip
op(f"aten::native_batch_norm({_BATCH}) -> (Tensor, Tensor, Tensor)", kernel=native_batch_norm,
   also_writes=("running_mean", "running_var"), writes_if="training",
   gradient={name: f"{_BATCH_BACK}[{i}]" for i, name in enumerate(("input", "weight", "bias"))},
   layout="channels last")  # fmt: skip
op(f"aten::native_batch_norm.out({_BATCH}, *, Tensor(a!) out, Tensor(b!) save_mean, Tensor(c!) save_invstd) -> "
   "(Tensor(a!), Tensor(b!), Tensor(c!))", kernel=native_batch_norm, also_writes=("running_mean", "running_var"),
   writes_if="training", layout="channels last")  # fmt: skip
op(f"aten::_batch_norm_backward(Tensor grad, Tensor input, Tensor? weight, {_RUNNING}, bool training, float eps) "
   "-> (Tensor, Tensor, Tensor)", python=batch_norm_backward)  # fmt: skip

# ------------------------------------------------------------------ groups, instances, root mean square


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, d: NumpyDtype) -> Tensor:
    if weight is not None:
        x = x * _channels(weight, x.ndim)
    if bias is not None:
        x = x + _channels(bias, x.ndim)
    return cast(x, d)


def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, c: int, hxw: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalized over each group of channels of each sample; mean and spread have gradients too."""
    flat = widened(input).reshape([n, group, c // group * hxw])
    mean = mean_over(flat, [2])
    centered = flat - mean
    rstd = (mean_over(centered * centered, [2]) + eps).rsqrt()
    d = input.array.dtype
    result = _grouped(input, weight, bias, n, c, hxw, group, eps)
    return result, cast(mean.reshape([n, group]), d), cast(rstd.reshape([n, group]), d)


def _grouped(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, c: int, hxw: int, group: int, eps: float
) -> Tensor:
    affine = [each for each in (weight, bias) if each is not None]
    is_plain = all(each.array.dtype is input.array.dtype for each in affine) and input.array.dtype in FLOATS
    if is_plain and HOOKS.trace is None and input.array.size:
        found: Tensor = run("_group_norm", input, group, weight, bias, eps)
        return found
    flat = widened(input).reshape([n, group, c // group * hxw])
    normal = run("native_layer_norm", flat, [c // group * hxw], None, None, eps)[0]
    return _affine(normal.reshape(list(input.shape)), weight, bias, input.array.dtype)


def grouped_norm(input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """The same for tensors of one dtype: rows are normalized, then channels multiplied and shifted at once."""
    x, affine = input.array, [None if each is None else each.array for each in (weight, bias)]
    _check_groups(x, num_groups, *affine)
    rows, size = len(x) * num_groups, x.size // (len(x) * num_groups)
    normal: Tensor = run("layer_norm", run("reshape", input, [rows, size]), [size], None, None, eps, True)
    result: Tensor = run("reshape", normal, list(x.shape))
    if weight is not None and bias is not None:
        result = run("addcmul", _channels(bias, x.ndim), result, _channels(weight, x.ndim), 1)
    elif weight is not None or bias is not None:
        result = _affine(result, weight, bias, x.dtype)
    return result


def _check_groups(input: Array, group: int, *affine: Array | None) -> None:
    if input.ndim < 2 or group < 1 or input.shape[1] % group:
        raise OperatorError(f"there are no {group} groups of channels in an input of shape {list(input.shape)}")
    if any(each is not None and each.shape != input.shape[1:2] for each in affine):
        raise OperatorError("weight and bias have one number for each channel")


def grouped_norm_backward(
    grad: Tensor, input: Tensor, weight: Tensor | None, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of input, weight and bias."""
    _check_groups(input.array, group, None if weight is None else weight.array)
    if grad.shape != input.shape:
        raise OperatorError(f"a gradient of shape {list(grad.shape)} for an input of shape {list(input.shape)}")
    if not MODE.enabled and HOOKS.trace is None and _are_alike(grad, input, weight):
        found = _grouped_back_once(grad.array, input.array, None if weight is None else weight.array, group, eps)
        if found is not None:
            return found
    scaled = grad if weight is None else grad * _channels(weight, input.ndim)
    flat = [len(input.array), group, math.prod(input.shape[1:]) // group]
    through, normal = _normalized_back(scaled.reshape(flat), input.reshape(flat), [2], eps)
    shape, others = list(input.shape), [0, *range(2, input.ndim)]
    of_weight = sum_over(grad * normal.reshape(shape), others, keep=False)
    return through.reshape(shape), of_weight, sum_over(grad, others, keep=False)


def _grouped_back_once(
    grad: Array, x: Array, weight: Array | None, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor] | None:
    """The same in machine code; None if it is not compiled."""
    if not worth(x) or grad.dtype is not x.dtype:
        return None
    n, c = x.shape[:2]
    result, sums = np.empty(x.shape, x.dtype), np.zeros((2, c), x.dtype)
    given = [np.ascontiguousarray(each) for each in (grad, x, x if weight is None else weight)]
    sizes = (n * group, group, c // group, x.size // (n * c), int(weight is not None))
    if groups_backward.run(8 * x.size, *given, result, *sums, *sizes, eps) is None:
        return None
    return Tensor(result), Tensor(sums[0]), Tensor(sums[1])


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float, _: bool
) -> Tensor:
    shape = input.array.shape
    if len(shape) < 2:
        raise OperatorError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    n, c, *space = shape
    if num_groups <= 0:
        raise OperatorError(f"Expected num groups to be greater than 0, got {num_groups}")
    if c % num_groups:
        raise OperatorError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(shape)} and num_groups={num_groups}"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and value.array.shape != (c,):
            raise OperatorError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(value.shape)} and input of shape {list(shape)}"
            )
    _check_mixture(input.array.dtype, *(None if each is None else each.array for each in (weight, bias)))
    return _grouped(input, weight, bias, n, c, math.prod(space), num_groups, eps)


def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """Each channel of each sample by itself, or by the running statistics."""
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise OperatorError("Expected running_mean and running_var to be defined when use_input_stats is false")
        return batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps, cudnn_enabled)
    if input.ndim < 3:
        raise OperatorError(f"Expected at least 3 dimensions for input tensor but received {input.ndim}")
    n, c, *space = input.array.shape
    count = math.prod(space)
    if running_mean is not None or running_var is not None:
        x = widened(input).array.reshape(n, c, count)
        _update(
            None if running_mean is None else running_mean.array, None if running_var is None else running_var.array,
            x.mean(axis=(0, 2)), x.var(axis=2).mean(axis=0), count, momentum,
        )  # fmt: skip
    return _grouped(input, weight, bias, n, c, count, max(c, 1), eps)


def rms_norm(input: Tensor, normalized_shape: list[int], weight: Tensor | None, eps: float | None) -> Tensor:
    """Divided by the root of the mean square; without an eps the dtype's own."""
    if weight is not None and tuple(weight.shape) != tuple(normalized_shape):
        raise OperatorError(
            "Expected weight to be of same shape as normalized_shape, but got weight of shape "
            f"{list(weight.shape)} and normalized_shape = {list(normalized_shape)}"
        )
    if tuple(input.shape[input.ndim - len(normalized_shape) :]) != tuple(normalized_shape):
        raise OperatorError(
            f"Given normalized_shape={normalized_shape}, expected input with shape "
            f"[*{', '.join(map(str, normalized_shape))}], but got input of size{list(input.shape)}"
        )
    _check_normalized(input.array, tuple(normalized_shape), None if weight is None else weight.array, None)
    dims = range(input.ndim - len(normalized_shape), input.ndim)
    x = widened(input)
    least = float(limits(x.array.dtype).eps) if eps is None else eps
    result = x * (mean_over(x * x, dims) + least).rsqrt()
    return cast(result if weight is None else result * weight, input.array.dtype)


_GROUP_BACK = "_group_norm_backward(grad, input, weight, num_groups, eps)"
op("aten::_group_norm(Tensor input, int num_groups, Tensor? weight, Tensor? bias, float eps) -> Tensor",
   python=grouped_norm,
   gradient={name: f"{_GROUP_BACK}[{i}]" for i, name in enumerate(("input", "weight", "bias"))})  # fmt: skip
op("aten::_group_norm_backward(Tensor grad, Tensor input, Tensor? weight, int group, float eps) "
   "-> (Tensor, Tensor, Tensor)", python=grouped_norm_backward)  # fmt: skip
op("aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, "
   "float eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor", python=group_norm,
   shape="input", unboxed=unboxed.on_tensors, recorded_as="_group_norm", jit_autocast="full", composite="""
       shape = input.size()
       flat = widened(input).reshape([shape[0], num_groups, shape[1] // num_groups] + shape[2:])
       dims = last(len(shape) - 1)
       centered = flat - flat.mean(dims, True)
       normal = centered * ((centered * centered).mean(dims, True) + eps).sqrt().reciprocal()
       return affine_channels(normal.reshape(shape), weight, bias).to(input.dtype)
   """)  # fmt: skip
out_form(op(f"aten::native_group_norm({_AFFINE}, SymInt N, SymInt C, SymInt HxW, int group, float eps) "
            "-> (Tensor, Tensor, Tensor)", python=native_group_norm), "out", "out0 out1 out2")  # fmt: skip
op(f"aten::instance_norm({_AFFINE}, {_RUNNING}, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) "
   "-> Tensor", python=instance_norm, shape="input", also_writes=("running_mean", "running_var"),
   writes_if="use_input_stats")  # fmt: skip
op("aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
   python=rms_norm, unboxed=unboxed.on_tensors, composite="""
       check_last(input, normalized_shape)
       x = widened(input)
       least = eps
       if least is None:
           least = 2.220446049250313e-16 if x.dtype == torch.float64 else 1.1920928955078125e-07
       square = (x * x).mean(last(len(normalized_shape)), True)
       return affine(x * (square + least).sqrt().reciprocal(), weight, None).to(input.dtype)
   """)  # fmt: skip


# ------------------------------------------------------------------ dtypes refused, and checks of `out`

describe("group_norm native_group_norm", refuses=no_code("bic", "GroupNormKernelImpl"))
describe("layer_norm native_layer_norm", refuses=no_code("bic", "LayerNormKernelImpl"))
describe("batch_norm instance_norm", refuses=no_code("bic", "batch_norm"))
describe("rms_norm", refuses=no_code("bi", "rms_norm"))
