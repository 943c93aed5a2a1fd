"""`torch.nn.init`: initial values of parameters.

In: a tensor.  Out: the same tensor with new values, written outside autograd.  A package of one file, so that layers
which use it do not import `torch.nn` itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from engine.aten.dispatch.calls import call
from engine.aten.kernels.random import Generator
from engine.aten.values.tensor import Tensor
from engine.torch.namespace.missing_names import refuse_unknown_names


def empty(size: Sequence[int], dtype: Any = None, device: Any = None) -> Tensor:
    """A new uninitialized tensor."""
    made: Tensor = call("empty", (list(size),), {"dtype": dtype, "device": device})
    return made


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    tensor.data.uniform_(a, b, generator=generator)
    return tensor


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    tensor.data.normal_(mean, std, generator=generator)
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    tensor.data.fill_(val)
    return tensor


def zeros_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 1.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity."""
    if tensor.ndim != 2:
        raise ValueError(f"Only tensors with 2 dimensions are supported, not {tensor.ndim}")
    rows, columns = tensor.shape
    tensor.data.copy_(call("eye", (rows, columns), {}))
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill the tensor with normal numbers between `a` and `b`."""
    values = tensor.data
    low, high = (math.erf((bound - mean) / (std * math.sqrt(2.0))) for bound in (a, b))
    if high - low < 2 * _WORTH_DRAWING_AGAIN:
        values.uniform_(low, high, generator=generator).erfinv_().mul_(std * math.sqrt(2.0)).add_(mean).clamp_(a, b)
        return tensor
    outside = values.normal_(mean, std, generator=generator).lt(a) | values.gt(b)
    while bool(outside.any()):
        others = empty(tensor.shape, tensor.dtype).normal_(mean, std, generator=generator)
        values.copy_(call("where", (outside, others, values), {}))
        outside = values.lt(a) | values.gt(b)
    return tensor


_WORTH_DRAWING_AGAIN = 0.3
"""The share of accepted samples from which `trunc_normal_` redraws the others, as in PyTorch for the same seeds."""


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill the tensor with orthogonal rows (or columns, if there are fewer).  Raises ValueError."""
    if tensor.ndim < 2:
        raise ValueError(f"Only tensors with 2 or more dimensions are supported, not {tensor.ndim}")
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    flat = empty([rows, columns], tensor.dtype).normal_(generator=generator)
    q, r = call("linalg_qr", (flat.t() if rows < columns else flat,), {})
    q = q * r.diagonal().sign()
    tensor.data.copy_((q.t() if rows < columns else q).reshape(tensor.shape)).mul_(gain)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill convolution kernels so that they pass on as many channels as possible.  Raises ValueError."""
    if tensor.ndim not in (3, 4, 5) or tensor.shape[0] % groups:
        raise ValueError("Only tensors with 3, 4, or 5 dimensions, their first divisible by groups, are supported")
    each = tensor.shape[0] // groups
    values, middle = tensor.data.zero_(), [size // 2 for size in tensor.shape[2:]]
    for group in range(groups):
        for channel in range(min(each, tensor.shape[1])):
            values[(group * each + channel, channel, *middle)] = 1
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill a matrix with normal numbers, and a share of each column with zeros.  Raises ValueError."""
    if tensor.ndim != 2:
        raise ValueError(f"Only tensors with 2 dimensions are supported, not {tensor.ndim}")
    rows, columns = tensor.shape
    values, zeros = tensor.data.normal_(0.0, std, generator=generator), math.ceil(sparsity * rows)
    for column in range(columns):
        values[call("randperm", (rows,), {})[:zeros], column] = 0
    return tensor


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that compensates a nonlinearity's effect on the variance.  Raises ValueError for an unknown one."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}; there are leaky_relu, {', '.join(_GAINS)}")
    return _GAINS[nonlinearity]


_GAINS = {
    **dict.fromkeys(("linear", "sigmoid", "conv1d", "conv2d", "conv3d"), 1.0),
    "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4,
}  # fmt: skip


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """The fan-in and the fan-out of a weight `(out, in, *kernel)`.  Raises ValueError."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    kernel = 1
    for size in tensor.shape[2:]:
        kernel *= size
    return tensor.size(1) * kernel, tensor.size(0) * kernel


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """The fan-in or the fan-out, as `mode` says.  Raises ValueError for another mode."""
    fans = dict(zip(("fan_in", "fan_out"), _calculate_fan_in_and_fan_out(tensor), strict=True))
    if mode.lower() not in fans:
        raise ValueError(f"Mode {mode} not supported, please use one of {[*fans]}")
    return fans[mode.lower()]


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return 0.0 if fan == 0 else calculate_gain(nonlinearity, a) / math.sqrt(fan)


refuse_unknown_names(__name__)
